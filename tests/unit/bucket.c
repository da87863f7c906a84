#include "bucket.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

static const enum bucket_shift shifts[] = {BUCKET_SHIFT_16, BUCKET_SHIFT_32, BUCKET_SHIFT_64};

struct question {
    uintptr_t pc, offset;
    uint32_t scale;
    enum bucket_shift shift;
};

/* Whether the answer was a number; the test fails if it was not the right one. */
static bool check_index(const struct question *question)
{
    exact_type exact =
        exact_index(question->pc, question->offset, question->scale, (size_t)1 << question->shift);
    bool fits = (exact_type)(uint64_t)exact == exact;
    uint64_t index = 0;
    bool result = profil_bucket_index(question->pc, question->offset, question->scale,
                                      question->shift, &index);

    /* An assertion that holds costs as much as a message: only the failure is put as one. */
    if (result != fits || (fits && index != (uint64_t)exact))
        cr_assert_fail("pc %#zx, offset %#zx, scale %u, width %d: %s %ju, not %s %ju", question->pc,
                       question->offset, question->scale, 1 << question->shift,
                       result ? "index" : "refused", (uintmax_t)index, fits ? "index" : "refused",
                       (uintmax_t)exact);
    return result;
}

Test(bucket, index_is_the_exact_quotient_for_every_pc_offset_scale_and_width)
{
    struct generator generator = {20};
    size_t answered = 0, refused = 0;

    for (int i = 0; i < 3000000; i++) {
        uintptr_t offset = generator_address(&generator);
        uintptr_t pc = generator_address(&generator);

        /* Half of them close to the offset, above and below. */
        if (i % 2)
            pc = offset + (pc >> generator_below(&generator, 64)) - 8;
        if (check_index(&(struct question){pc, offset, generator_scale(&generator), shifts[i % 3]}))
            answered++;
        else
            refused++;
    }
    /* Neither answer is so rare that it would not have been tried. */
    cr_assert_gt(answered, 100000);
    if (sizeof(uintptr_t) == 8)
        cr_assert_gt(refused, 100000);
}

#if UINTPTR_MAX == UINT64_MAX
Test(bucket, index_is_refused_from_the_first_pc_whose_index_needs_more_than_64_bits)
{
    static const uint32_t scales[] = {0xffffffff, 0x80000001, 0x80000000, 1234567890, 262144};

    for (size_t i = 0; i < LENGTH_OF(scales); i++) {
        exact_type distance = (((exact_type)1 << 80) + scales[i] - 1) / scales[i];
        uintptr_t first = (uintptr_t)distance * 2;
        uint64_t index = 0;

        cr_assert(profil_bucket_index(first - 1, 0, scales[i], BUCKET_SHIFT_16, &index));
        cr_assert_geq(index, UINT64_MAX - scales[i] / 65536);
        cr_assert_not(profil_bucket_index(first, 0, scales[i], BUCKET_SHIFT_16, &index));
    }
}
#endif

static uint64_t index_of(uintptr_t pc, uintptr_t offset, uint32_t scale, enum bucket_shift shift)
{
    uint64_t index = 0;

    cr_assert(profil_bucket_index(pc, offset, scale, shift, &index));
    return index;
}

Test(bucket, scale_65536_gives_each_counter_as_many_bytes_of_text_as_it_is_wide)
{
    for (size_t i = 0; i < LENGTH_OF(shifts); i++) {
        uintptr_t width = (uintptr_t)1 << shifts[i];

        cr_assert_eq(index_of(1000, 1000, 65536, shifts[i]), 0);
        cr_assert_eq(index_of(1000 + width - 1, 1000, 65536, shifts[i]), 0);
        cr_assert_eq(index_of(1000 + width, 1000, 65536, shifts[i]), 1);
        cr_assert_eq(index_of(1000 + 7 * width, 1000, 65536, shifts[i]), 7);
    }
}

Test(bucket, scale_32768_gives_two_words_to_a_bucket_and_131072_half_a_word)
{
    cr_assert_eq(index_of(1003, 1000, 32768, BUCKET_SHIFT_16), 0);
    cr_assert_eq(index_of(1004, 1000, 32768, BUCKET_SHIFT_16), 1);
    cr_assert_eq(index_of(1001, 1000, 131072, BUCKET_SHIFT_16), 0);
    cr_assert_eq(index_of(1002, 1000, 131072, BUCKET_SHIFT_16), 2);
}

Test(bucket, scale_0_puts_every_pc_into_the_first_bucket)
{
    cr_assert_eq(index_of(0, 1000, 0, BUCKET_SHIFT_16), 0);
    cr_assert_eq(index_of(UINTPTR_MAX, 0, 0, BUCKET_SHIFT_64), 0);
}

Test(bucket, a_pc_below_the_offset_is_a_whole_address_space_above_it)
{
    cr_assert_eq(index_of(999, 1000, 65536, BUCKET_SHIFT_16), UINTPTR_MAX / 2);
    cr_assert_eq(index_of(0, 1, 65536, BUCKET_SHIFT_64), UINTPTR_MAX / 8);
    /* Scale 2 spans the whole address space with one 16-bit counter. */
    if (sizeof(uintptr_t) == 4)
        cr_assert_eq(index_of(0, 1, 2, BUCKET_SHIFT_16), 65535);
    cr_assert_eq(index_of(0, 1, 1, BUCKET_SHIFT_32), UINTPTR_MAX / 4 / 65536);
}

static void store(unsigned char *counter, enum bucket_shift shift, uint64_t value)
{
    uint16_t value_16 = (uint16_t)value;
    uint32_t value_32 = (uint32_t)value;

    if (shift == BUCKET_SHIFT_16)
        memcpy(counter, &value_16, sizeof(value_16));
    else if (shift == BUCKET_SHIFT_32)
        memcpy(counter, &value_32, sizeof(value_32));
    else
        memcpy(counter, &value, sizeof(value));
}

static uint64_t maximum_of(enum bucket_shift shift)
{
    return UINT64_MAX >> (64 - (8 << shift));
}

enum { AREA = 96 };

/* Counts once in an area full of other bytes, at that misalignment: the counter goes from `before`
 * to `after`, and not one byte beside it changes. */
static void check_count(size_t misalignment, size_t at, enum bucket_shift shift, uint64_t before,
                        uint64_t after)
{
    _Alignas(8) unsigned char area[AREA], expected[AREA];
    size_t position = 8 + misalignment + (at << shift);
    bool counted;

    for (size_t i = 0; i < AREA; i++)
        area[i] = expected[i] = (unsigned char)(0xff - i);
    store(area + position, shift, before);
    store(expected + position, shift, after);
    counted = profil_bucket_count(area + 8 + misalignment, at, shift);
    if (counted != (before != after))
        cr_assert_fail("width %d, misalignment %zu, counter at %#jx: result %d", 1 << shift,
                       misalignment, (uintmax_t)before, counted);
    if (memcmp(area, expected, AREA) != 0)
        cr_assert_fail("width %d, misalignment %zu, counter at %#jx: wrong bytes", 1 << shift,
                       misalignment, (uintmax_t)before);
}

static void check_count_everywhere(enum bucket_shift shift, uint64_t before, uint64_t after)
{
    for (size_t misalignment = 0; misalignment < 8; misalignment++)
        for (size_t at = 0; at < 5; at++)
            check_count(misalignment, at, shift, before, after);
}

Test(bucket, a_count_adds_one_to_its_counter_and_leaves_the_neighbours_alone)
{
    for (size_t i = 0; i < LENGTH_OF(shifts); i++) {
        uint64_t maximum = maximum_of(shifts[i]);

        check_count_everywhere(shifts[i], 0, 1);
        check_count_everywhere(shifts[i], 1, 2);
        check_count_everywhere(shifts[i], maximum - 1, maximum);
        check_count_everywhere(shifts[i], maximum / 2, maximum / 2 + 1);
        for (int carried = 8; carried < 8 << shifts[i]; carried += 8)
            check_count_everywhere(shifts[i], ((uint64_t)1 << carried) - 1, (uint64_t)1 << carried);
    }
}

Test(bucket, a_counter_at_its_maximum_stays_there_and_says_so)
{
    for (size_t i = 0; i < LENGTH_OF(shifts); i++)
        check_count_everywhere(shifts[i], maximum_of(shifts[i]), maximum_of(shifts[i]));
}

Test(bucket, a_16_bit_counter_takes_65535_counts)
{
    for (size_t misalignment = 0; misalignment < 2; misalignment++) {
        unsigned char area[8] = {0};
        uint16_t value;
        long counted = 0;

        for (long i = 0; i < 70000; i++)
            counted += profil_bucket_count(area + misalignment, 0, BUCKET_SHIFT_16);
        memcpy(&value, area + misalignment, sizeof(value));
        cr_assert_eq(counted, 65535);
        cr_assert_eq(value, 65535);
    }
}

Test(bucket, the_last_counter_before_forbidden_memory_and_the_first_after_it_can_be_counted)
{
    size_t page = page_size();

    for (size_t i = 0; i < LENGTH_OF(shifts); i++) {
        size_t width = (size_t)1 << shifts[i];
        unsigned char *counters = guarded_pages(page);

        cr_assert(profil_bucket_count(counters, 0, shifts[i]));
        cr_assert(profil_bucket_count(counters, page / width - 1, shifts[i]));
        cr_assert(profil_bucket_count(counters + page - width, 0, shifts[i]));
        /* The base may be odd where the end of the page is not reached. */
        for (size_t misalignment = 1; misalignment < width; misalignment++)
            cr_assert(profil_bucket_count(counters + misalignment, page / width - 2, shifts[i]));
    }
}
