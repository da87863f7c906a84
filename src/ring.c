#include "ring.h"

#include "kernel.h"
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

/* The longest record that is looked into: a sample of eight words.
 * Of a longer one only the size matters. */
enum { RECORD_WORDS = 16 };

union record {
    struct perf_event_header header;
    uint64_t words[RECORD_WORDS];
};

/* The words of a sample, which come in the order of the bits in sample_type, as perf_event_open(2)
 * lists them: the header, IP, TID, and then ID, or READ with an ID of its own: the value, ID, and
 * perhaps LOST. The ABI and the one register come last. */
enum { WORD_IP = 1, WORD_TID, WORD_ID, WORD_READ = 3, WORD_READ_ID, WORD_READ_LOST };

static void lay_out(struct ring *ring, const struct perf_event_attr *attr)
{
    bool reads = attr->sample_type & PERF_SAMPLE_READ;
    bool reads_lost = reads && attr->read_format & PERF_FORMAT_LOST;

    ring->id_word = reads ? WORD_READ_ID : WORD_ID;
    if (attr->sample_type & PERF_SAMPLE_REGS_USER)
        ring->register_word = (reads_lost ? WORD_READ_LOST : ring->id_word) + 1;
}

int profil_ring_map(struct ring *ring, int fd, size_t pages, const struct perf_event_attr *attr)
{
    size_t page_size = profil_memory_page();
    void *base;

    /* Writable, which is how the kernel tells a ring that stops when full from one that overwrites.
     */
    base = mmap(NULL, (1 + pages) * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    *ring = (struct ring){
        .page = base, .data = (const unsigned char *)base + page_size, .size = pages * page_size};
    lay_out(ring, attr);
    return 0;
}

void profil_ring_unmap(struct ring *ring)
{
    if (ring->page)
        munmap(ring->page, profil_memory_page() + ring->size);
    ring->page = NULL;
}

/* A record starts on a multiple of eight, so its header never wraps. */
static const union record *record_at(const struct ring *ring)
{
    return (const void *)(ring->data + ((size_t)ring->tail & (ring->size - 1)));
}

static bool is_possible(const struct perf_event_header *header, uint64_t left)
{
    return header->size >= sizeof(*header) && header->size % sizeof(uint64_t) == 0 &&
           header->size <= left;
}

/* The record itself, or where it wraps a copy of what is looked into. */
static const union record *unwrap(const struct ring *ring, const union record *record,
                                  union record *copy)
{
    size_t bytes = record->header.size < sizeof(*copy) ? record->header.size : sizeof(*copy);
    size_t before = (size_t)(ring->data + ring->size - (const unsigned char *)record);

    if (bytes <= before)
        return record;
    memcpy(copy, record, before);
    memcpy((unsigned char *)copy + before, ring->data, bytes - before);
    return copy;
}

static bool parse_sample(const union record *record, const struct ring *ring, struct sample *sample)
{
    size_t words = record->header.size / sizeof(record->words[0]);
    size_t registers = ring->register_word;
    bool in_user = (record->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    uint32_t ids[2];

    if (words <= ring->id_word)
        return false;
    memcpy(ids, &record->words[WORD_TID], sizeof(ids));
    *sample = (struct sample){.pc = (uintptr_t)record->words[WORD_IP],
                              .attributed = in_user,
                              .process = (pid_t)ids[0],
                              .thread = (pid_t)ids[1],
                              .event_id = record->words[ring->id_word]};
    /* The registers follow only where there are user registers at all. */
    if (!in_user && registers && words >= registers + 2 &&
        record->words[registers] != PERF_SAMPLE_REGS_ABI_NONE) {
        sample->pc = (uintptr_t)record->words[registers + 1];
        sample->attributed = true;
    }
    return true;
}

static void dispatch(const union record *record, const struct ring *ring,
                     const struct ring_reader *reader)
{
    struct sample sample;

    switch (record->header.type) {
    case PERF_RECORD_SAMPLE:
        if (reader->sample && parse_sample(record, ring, &sample))
            reader->sample(reader->context, &sample);
        break;
    case PERF_RECORD_LOST: /* { header, id, lost } */
        if (reader->lost && record->header.size >= 3 * sizeof(record->words[0]))
            reader->lost(reader->context, record->words[2]);
        break;
    case PERF_RECORD_THROTTLE:
        if (reader->throttled)
            reader->throttled(reader->context);
        break;
    case PERF_RECORD_EXIT:
        if (reader->ended)
            reader->ended(reader->context);
        break;
    default:
        break;
    }
}

size_t profil_ring_drain(struct ring *ring, const struct ring_reader *reader)
{
    uint64_t head = kernel_ring_head(ring->page);
    size_t count = 0;

    if (head - ring->tail > ring->size)
        ring->corrupt = true;
    while (!ring->corrupt && head != ring->tail) {
        const union record *record = record_at(ring);
        union record copy;

        if (!is_possible(&record->header, head - ring->tail)) {
            ring->corrupt = true;
            break;
        }
        dispatch(unwrap(ring, record, &copy), ring, reader);
        ring->tail += record->header.size;
        count++;
    }
    kernel_ring_release(ring->page, ring->tail);
    return count;
}
