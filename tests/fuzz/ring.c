/* The ring reader, on a ring that could hold anything: it comes to an end, reads nothing outside of
 * the data, and goes no further than the head. */
#include "ring.h"

#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

/* An input: this, and then the data of the ring from its start. */
struct layout {
    uint16_t tail;    /* where reading begins, in words */
    uint16_t head;    /* how far ahead the kernel is, in bytes */
    uint8_t shift;    /* the data are 64 bytes times 2 to the power of up to 7 */
    uint8_t type;     /* bit 0: with the user's registers; bit 1: the event's number a word later */
    uint8_t position; /* bit 0: just before the positions go round at 64 bits */
    uint8_t read;     /* words of a read-out in each sample, up to 3 */
};

enum { SMALLEST_DATA = 64, SHIFTS = 8, READ_WORDS = 4 };

struct seen {
    const struct ring *ring;
    uint64_t calls;
};

static void see(struct seen *seen)
{
    seen->calls++;
    /* A word for the header at least: no more records can be in a ring than it has words. */
    FUZZ_EXPECT(seen->calls <= seen->ring->size / 8);
}

static void see_sample(void *context, const struct sample *sample)
{
    (void)sample;
    see(context);
}

static void see_lost(void *context, uint64_t count)
{
    (void)count;
    see(context);
}

static void see_other(void *context)
{
    see(context);
}

static uint64_t start_of(const struct layout *layout)
{
    uint64_t tail = (uint64_t)layout->tail * 8;

    return layout->position & 1 ? tail - UINT64_C(0x8000) : tail;
}

static void check_reading(struct ring *ring, uint64_t start)
{
    struct seen seen = {.ring = ring};
    const struct ring_reader reader = {.sample = see_sample,
                                       .lost = see_lost,
                                       .throttled = see_other,
                                       .ended = see_other,
                                       .context = &seen};
    uint64_t ahead = ring->page->data_head - start;
    size_t records = profil_ring_drain(ring, &reader);
    uint64_t read = ring->tail - start;

    FUZZ_EXPECT(seen.calls <= records);
    FUZZ_EXPECT(read <= ahead);
    FUZZ_EXPECT(read <= ring->size);
    FUZZ_EXPECT(read >= records * 8);
    FUZZ_EXPECT(ring->page->data_tail == ring->tail);
    FUZZ_EXPECT(ring->corrupt || read == ahead);
    FUZZ_EXPECT(ahead <= ring->size || (ring->corrupt && read == 0));

    FUZZ_EXPECT(profil_ring_drain(ring, &reader) == 0);
    FUZZ_EXPECT(ring->tail == start + read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct layout layout;
    struct ring ring;
    unsigned char *bytes;
    size_t room;

    if (size < sizeof(layout))
        return -1;
    memcpy(&layout, data, sizeof(layout));
    data += sizeof(layout);
    size -= sizeof(layout);
    room = (size_t)SMALLEST_DATA << layout.shift % SHIFTS;
    bytes = calloc(1, room); /* of its own, so that a step outside is seen */
    memcpy(bytes, data, size < room ? size : room);
    ring = (struct ring){.page = calloc(1, sizeof(*ring.page)),
                         .data = bytes,
                         .size = room,
                         .tail = start_of(&layout),
                         .id_word = layout.type & 2 ? 4 : 3};
    if (layout.type & 1)
        ring.register_word = 4 + layout.read % READ_WORDS;
    ring.page->data_head = ring.tail + layout.head;
    check_reading(&ring, ring.tail);
    free(ring.page);
    free(bytes);
    return 0;
}
