#include "texts.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <sys/profil.h>
#include <unistd.h>

/* One counter takes 2 bytes: this scale gives each 2 bytes of text a counter of their own. */
enum { SCALE_ONE = 65536, COUNTER_BYTES = sizeof(unsigned short) };

static int add_text(struct texts *texts, uintptr_t start, size_t bytes)
{
    struct text *items = reallocarray(texts->items, texts->count + 1, sizeof(*items));
    size_t counter_count = bytes / texts->width + 1;

    if (!items)
        return -1;
    texts->items = items;
    items[texts->count] =
        (struct text){start, bytes, calloc(counter_count, COUNTER_BYTES), counter_count};
    if (!items[texts->count].counters)
        return -1;
    texts->count++;
    return 0;
}

static int add_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
            add_text(context, object->dlpi_addr + segment->p_vaddr, segment->p_memsz) == -1)
            return -1;
    }
    return 0;
}

int texts_find(struct texts *texts, unsigned int width)
{
    *texts = (struct texts){.width = width};
    return dl_iterate_phdr(add_object, texts);
}

static unsigned int scale_of(const struct texts *texts)
{
    return SCALE_ONE * COUNTER_BYTES / texts->width;
}

static int profile_program(struct texts *texts)
{
    const struct text *program = &texts->items[0];

    return profil(program->counters, program->counter_count * COUNTER_BYTES, program->start,
                  scale_of(texts));
}

/* The last entry, with offset 0 and scale 2, counts what no other has a counter for. */
static int profile_all(struct texts *texts)
{
    struct prof *entries = calloc(texts->count + 1, sizeof(*entries));
    int result;

    if (!entries)
        return -1;
    for (size_t i = 0; i < texts->count; i++)
        entries[i] = (struct prof){.pr_base = texts->items[i].counters,
                                   .pr_size = texts->items[i].counter_count * COUNTER_BYTES,
                                   .pr_off = texts->items[i].start,
                                   .pr_scale = scale_of(texts)};
    entries[texts->count] = (struct prof){
        .pr_base = &texts->outside, .pr_size = sizeof(texts->outside), .pr_off = 0, .pr_scale = 2};
    result = sprofil(entries, (int)texts->count + 1, NULL, PROF_USHORT);
    free(entries);
    return result;
}

int texts_profile(struct texts *texts, enum texts_choice choice)
{
    return choice == TEXTS_ALL ? profile_all(texts) : profile_program(texts);
}

int texts_stop(void)
{
    return sprofil(NULL, 0, NULL, 0);
}

void texts_free(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i].counters);
    free(texts->items);
}
