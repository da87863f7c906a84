#include "range.h"

#include "support.h"

#include <string.h>

/* A range is known by its counters; nothing is counted here. */
static char counters[8192];

static struct range_set *new_set(const struct range *ranges, size_t count,
                                 const struct range *overflow)
{
    struct range_set *set = profil_range_set_new(ranges, count, overflow);

    cr_assert_not_null(set);
    return set;
}

/* Which range serves pc: its place in `counters`, or -1 for none. */
static ptrdiff_t found_at(const struct range_set *set, uintptr_t pc, uint64_t *index)
{
    const struct range *found = profil_range_find(set, pc, index);

    return found ? (const char *)found->counters - counters : -1;
}

static ptrdiff_t found(const struct range_set *set, uintptr_t pc)
{
    uint64_t index;

    return found_at(set, pc, &index);
}

/* The rule by its wording: of the ranges from whose offset upwards pc lies and that have a bucket
 * for it, the one with the greatest offset, of equal ones the first. */
static ptrdiff_t expected_at(const struct range *ranges, size_t count, const struct range *overflow,
                             uintptr_t pc, uint64_t *index)
{
    const struct range *best = NULL;

    for (const struct range *range = ranges; range < ranges + count; range++) {
        exact_type exact = exact_index(pc, range->offset, range->scale, (size_t)1 << range->shift);

        if (pc < range->offset || exact >= range->buckets)
            continue;
        if (best && best->offset >= range->offset)
            continue;
        best = range;
        *index = (uint64_t)exact;
    }
    if (!best && overflow) {
        best = overflow;
        *index = 0;
    }
    return best ? (const char *)best->counters - counters : -1;
}

static void check_choice(const struct range_set *set, const struct range *ranges, size_t count,
                         const struct range *overflow, uintptr_t pc)
{
    uint64_t index = 0, expected_index = 0;
    ptrdiff_t expected = expected_at(ranges, count, overflow, pc, &expected_index);
    ptrdiff_t actual = found_at(set, pc, &index);

    if (actual != expected || (expected >= 0 && index != expected_index))
        cr_assert_fail(
            "%zu ranges, pc %#zx: range %td, bucket %ju instead of range %td, bucket %ju", count,
            pc, actual, (uintmax_t)index, expected, (uintmax_t)expected_index);
}

enum { NEIGHBOURHOOD = 256 };

static uint64_t random_buckets(struct generator *generator)
{
    switch (generator_below(generator, 8)) {
    case 0:
        return 0;
    case 1:
        return generator_next(generator) >> generator_below(generator, 64);
    default:
        return generator_below(generator, 40);
    }
}

/* A range whose offset is in the neighbourhood above `base`, which may lie over the end of the
 * address space. */
static struct range random_range(struct generator *generator, uintptr_t base, char *identity)
{
    return (struct range){.counters = identity,
                          .buckets = random_buckets(generator),
                          .offset = base + (uintptr_t)generator_below(generator, NEIGHBOURHOOD),
                          .scale = generator_scale(generator),
                          .shift = (enum bucket_shift)(1 + generator_below(generator, 3))};
}

Test(range, the_choice_is_that_of_its_definition_for_random_sets_at_every_pc_around)
{
    struct generator generator = {7};
    struct range ranges[12];

    for (int round = 0; round < 4000; round++) {
        uintptr_t base = generator_address(&generator);
        size_t count = generator_below(&generator, LENGTH_OF(ranges) + 1);
        const struct range overflow = {.counters = counters + 100, .buckets = 1};
        const struct range *overflow_or_none = round % 2 ? &overflow : NULL;
        struct range_set *set;

        for (size_t i = 0; i < count; i++)
            ranges[i] = random_range(&generator, base, counters + i);
        set = new_set(ranges, count, overflow_or_none);
        for (uintptr_t pc = base - 32; pc != base + 2 * NEIGHBOURHOOD; pc++)
            check_choice(set, ranges, count, overflow_or_none, pc);
        profil_range_set_free(set);
    }
}

Test(range, the_choice_is_that_of_its_definition_in_sets_of_thousands)
{
    struct generator generator = {11};
    struct range ranges[3000];
    struct range_set *set;

    for (size_t i = 0; i < LENGTH_OF(ranges); i++)
        ranges[i] = (struct range){.counters = counters + i,
                                   .buckets = generator_below(&generator, 3000),
                                   .offset = (uintptr_t)generator_below(&generator, 100000),
                                   .scale = generator_scale(&generator),
                                   .shift = BUCKET_SHIFT_16};
    set = new_set(ranges, LENGTH_OF(ranges), NULL);
    for (int probe = 0; probe < 3000; probe++)
        check_choice(set, ranges, LENGTH_OF(ranges), NULL,
                     (uintptr_t)generator_below(&generator, 120000));
    profil_range_set_free(set);
}

/* Ranges of 16-bit counters with one counter for each two bytes. */
static struct range plain(size_t identity, uintptr_t offset, uint64_t buckets)
{
    return (struct range){.counters = counters + identity,
                          .buckets = buckets,
                          .offset = offset,
                          .scale = 65536,
                          .shift = BUCKET_SHIFT_16};
}

Test(range, of_adjacent_ranges_each_serves_its_own_bytes)
{
    const struct range ranges[] = {plain(1, 1020, 10), plain(0, 1000, 10)};
    struct range_set *set = new_set(ranges, 2, NULL);

    cr_assert_eq(found(set, 999), -1);
    cr_assert_eq(found(set, 1000), 0);
    cr_assert_eq(found(set, 1019), 0);
    cr_assert_eq(found(set, 1020), 1);
    cr_assert_eq(found(set, 1039), 1);
    cr_assert_eq(found(set, 1040), -1);
    profil_range_set_free(set);
}

Test(range, a_range_inside_another_takes_its_part_and_leaves_what_is_behind_it)
{
    const struct range ranges[] = {plain(0, 1000, 100), plain(1, 1050, 10), plain(2, 1054, 1)};
    struct range_set *set = new_set(ranges, 3, NULL);
    uint64_t index;

    cr_assert_eq(found(set, 1049), 0);
    cr_assert_eq(found(set, 1053), 1);
    cr_assert_eq(found(set, 1054), 2);
    cr_assert_eq(found(set, 1056), 1);
    cr_assert_eq(found_at(set, 1070, &index), 0);
    cr_assert_eq(index, 35);
    profil_range_set_free(set);
}

Test(range, of_equal_offsets_the_first_given_serves_and_the_next_has_the_rest)
{
    const struct range ranges[] = {plain(0, 1000, 3), plain(1, 1000, 5), plain(2, 1000, 4)};
    struct range_set *set = new_set(ranges, 3, NULL);

    cr_assert_eq(found(set, 1005), 0);
    cr_assert_eq(found(set, 1006), 1);
    cr_assert_eq(found(set, 1009), 1);
    cr_assert_eq(found(set, 1010), -1);
    profil_range_set_free(set);
}

Test(range, of_thousands_of_equal_offsets_the_first_given_serves)
{
    struct range ranges[5000];
    struct range_set *set;

    for (size_t i = 0; i < LENGTH_OF(ranges); i++)
        ranges[i] = plain(i, 1000 + 100 * (i % 7), 50);
    set = new_set(ranges, LENGTH_OF(ranges), NULL);
    for (size_t i = 0; i < 7; i++)
        cr_assert_eq(found(set, 1000 + 100 * i + 50), (ptrdiff_t)i);
    profil_range_set_free(set);
}

Test(range, in_thousands_of_adjacent_ranges_every_border_is_exact)
{
    struct range ranges[8000];
    struct range_set *set;

    for (size_t i = 0; i < LENGTH_OF(ranges); i++)
        ranges[LENGTH_OF(ranges) - 1 - i] = plain(i, 1000 + 16 * i, 8);
    set = new_set(ranges, LENGTH_OF(ranges), NULL);
    for (size_t i = 0; i < LENGTH_OF(ranges); i++)
        if (found(set, 1000 + 16 * i) != (ptrdiff_t)i || found(set, 1015 + 16 * i) != (ptrdiff_t)i)
            cr_assert_fail("range %zu does not have its first or its last byte", i);
    cr_assert_eq(found(set, 1000 + 16 * LENGTH_OF(ranges)), -1);
    profil_range_set_free(set);
}

Test(range, of_thousands_nested_in_each_other_each_pc_has_its_innermost)
{
    enum { DEPTH = 4000, MIDDLE = 100000 };
    struct range ranges[DEPTH];
    struct range_set *set;

    for (size_t i = 0; i < DEPTH; i++)
        ranges[i] = plain(i, MIDDLE - 2 - 2 * i, 2 + 2 * i);
    set = new_set(ranges, DEPTH, NULL);
    for (size_t i = 0; i < DEPTH; i++)
        if (found(set, MIDDLE - 2 - 2 * i) != (ptrdiff_t)i ||
            found(set, MIDDLE + 1 + 2 * i) != (ptrdiff_t)i)
            cr_assert_fail("range %zu does not have the bytes that no inner one has", i);
    profil_range_set_free(set);
}

Test(range, a_range_without_buckets_serves_nothing_and_hides_nothing)
{
    const struct range ranges[] = {plain(0, 1000, 10), plain(1, 1004, 0), plain(2, 0, 0)};
    struct range_set *set = new_set(ranges, 3, NULL);

    cr_assert_eq(found(set, 1004), 0);
    cr_assert_eq(found(set, 1020), -1);
    cr_assert_eq(found(set, 0), -1);
    profil_range_set_free(set);
}

Test(range, a_range_at_the_end_of_the_address_space_serves_the_last_byte_and_not_the_first)
{
    const struct range ranges[] = {plain(0, UINTPTR_MAX - 3, 2), plain(1, UINTPTR_MAX - 99, 1000)};
    struct range_set *set = new_set(ranges, 2, NULL);
    uint64_t index;

    cr_assert_eq(found_at(set, UINTPTR_MAX, &index), 0);
    cr_assert_eq(index, 1);
    cr_assert_eq(found_at(set, UINTPTR_MAX - 4, &index), 1);
    cr_assert_eq(index, 47);
    cr_assert_eq(found(set, 0), -1);
    cr_assert_eq(found(set, 100), -1);
    profil_range_set_free(set);
}

Test(range, a_range_of_scale_0_serves_everything_from_its_offset_upwards_in_one_bucket)
{
    struct range ranges[] = {plain(0, 1000, 1), plain(1, 2000, 1)};
    struct range_set *set;
    uint64_t index;

    ranges[0].scale = 0;
    set = new_set(ranges, 2, NULL);
    cr_assert_eq(found(set, 999), -1);
    cr_assert_eq(found(set, 2001), 1);
    cr_assert_eq(found_at(set, UINTPTR_MAX, &index), 0);
    cr_assert_eq(index, 0);
    profil_range_set_free(set);
}

Test(range, the_overflow_range_takes_in_its_first_counter_what_no_range_serves)
{
    const struct range ranges[] = {plain(0, 1000, 10), plain(1, 2000, 10)};
    const struct range overflow = plain(9, 0, 1);
    const uintptr_t elsewhere[] = {0, 999, 1020, 1999, 2020, UINTPTR_MAX};
    struct range_set *set = new_set(ranges, 2, &overflow);
    uint64_t index;

    for (size_t i = 0; i < LENGTH_OF(elsewhere); i++) {
        index = 77;
        cr_assert_eq(found_at(set, elsewhere[i], &index), 9);
        cr_assert_eq(index, 0);
    }
    cr_assert_eq(found(set, 1000), 0);
    cr_assert_eq(found(set, 2019), 1);
    profil_range_set_free(set);
}

Test(range, an_empty_set_serves_nothing_but_its_overflow)
{
    const struct range overflow = plain(9, 0, 1);
    struct range_set *empty = new_set(NULL, 0, NULL), *only_overflow = new_set(NULL, 0, &overflow);

    cr_assert_eq(found(empty, 0), -1);
    cr_assert_eq(found(empty, UINTPTR_MAX), -1);
    cr_assert_eq(found(only_overflow, 0), 9);
    cr_assert_eq(found(only_overflow, UINTPTR_MAX), 9);
    profil_range_set_free(empty);
    profil_range_set_free(only_overflow);
    profil_range_set_free(NULL);
}

Test(range, the_set_keeps_a_copy_of_what_it_was_given)
{
    struct range ranges[] = {plain(0, 1000, 10)}, overflow = plain(9, 0, 1);
    struct range_set *set = new_set(ranges, 1, &overflow),
                     *single = profil_range_set_single(ranges);

    memset(ranges, 0, sizeof(ranges));
    memset(&overflow, 0, sizeof(overflow));
    cr_assert_eq(found(set, 1000), 0);
    cr_assert_eq(found(set, 500), 9);
    cr_assert_eq(found(single, 1000), 0);
    profil_range_set_free(set);
    profil_range_set_free(single);
}

/* With the address sanitizer too an allocation that is too large shall fail and not end the test.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

Test(range, a_set_that_no_memory_could_hold_is_refused)
{
    const struct range range = plain(0, 1000, 10);

    cr_assert_null(profil_range_set_new(&range, SIZE_MAX, NULL));
    /* Counts whose bytes, whatever the set keeps of each range, would come out small again. */
    for (size_t bytes = 8; bytes <= 128; bytes += 8)
        cr_assert_null(profil_range_set_new(&range, SIZE_MAX / bytes + 2, NULL));
}

Test(range, the_single_range_also_serves_program_counters_below_its_offset)
{
    struct range range = plain(0, 1000, UINT64_MAX);
    struct range_set *set = profil_range_set_single(&range);
    uint64_t index;

    cr_assert_eq(found_at(set, 998, &index), 0);
    cr_assert_eq(index, UINTPTR_MAX / 2);
    profil_range_set_free(set);

    range.buckets = UINTPTR_MAX / 2;
    set = profil_range_set_single(&range);
    cr_assert_eq(found(set, 998), -1);
    cr_assert_eq(found(set, 996), 0);
    profil_range_set_free(set);
}

Test(range, the_single_range_serves_exactly_what_its_buckets_cover)
{
    struct generator generator = {13};
    size_t served = 0, refused = 0;

    for (int round = 0; round < 300000; round++) {
        struct range range = random_range(&generator, generator_address(&generator), counters);
        uintptr_t pc = round % 2 ? generator_address(&generator)
                                 : range.offset + (uintptr_t)generator_below(&generator, 64) - 16;
        exact_type exact = exact_index(pc, range.offset, range.scale, (size_t)1 << range.shift);
        bool expected = exact < range.buckets;
        struct range_set *set = profil_range_set_single(&range);
        uint64_t index = 0;
        bool actual = profil_range_find(set, pc, &index) != NULL;

        if (actual != expected || (expected && index != (uint64_t)exact))
            cr_assert_fail("pc %#zx, offset %#zx, scale %u: %d", pc, range.offset, range.scale,
                           actual);
        served += actual;
        refused += !actual;
        profil_range_set_free(set);
    }
    /* Neither answer is so rare that it would not have been tried. */
    cr_assert_gt(served, 30000);
    cr_assert_gt(refused, 30000);
}

static struct {
    size_t calls;
    size_t stop_at;
    size_t bytes[16]; /* by place in `counters` */
} visits;

static int note_visit(void *base, size_t bytes)
{
    visits.calls++;
    visits.bytes[(char *)base - counters] += bytes;
    return visits.calls == visits.stop_at ? -42 : 0;
}

static struct range_set *three_widths_and_overflow(void)
{
    const struct range overflow = plain(9, 0, 7);
    struct range ranges[] = {plain(0, 3000, 10), plain(1, 1000, 11), plain(2, 2000, 0),
                             plain(3, 1, 13)};

    ranges[1].shift = BUCKET_SHIFT_32;
    ranges[3].shift = BUCKET_SHIFT_64;
    return new_set(ranges, LENGTH_OF(ranges), &overflow);
}

Test(range, each_range_and_the_overflow_are_visited_once_with_their_size_in_bytes)
{
    struct range_set *set = three_widths_and_overflow();

    cr_assert_eq(profil_range_each(set, note_visit), 0);
    cr_assert_eq(visits.calls, 5);
    cr_assert_eq(visits.bytes[0], 20);
    cr_assert_eq(visits.bytes[1], 44);
    cr_assert_eq(visits.bytes[2], 0);
    cr_assert_eq(visits.bytes[3], 104);
    cr_assert_eq(visits.bytes[9], 14);
    profil_range_set_free(set);
}

Test(range, the_visits_end_with_the_first_result_that_is_not_0)
{
    struct range_set *set = three_widths_and_overflow();

    for (visits.stop_at = 1; visits.stop_at <= 5; visits.stop_at++) {
        visits.calls = 0;
        cr_assert_eq(profil_range_each(set, note_visit), -42);
        cr_assert_eq(visits.calls, visits.stop_at);
    }
    profil_range_set_free(set);
}

Test(range, an_empty_set_has_nothing_to_visit)
{
    struct range_set *set = new_set(NULL, 0, NULL);

    cr_assert_eq(profil_range_each(set, note_visit), 0);
    cr_assert_eq(visits.calls, 0);
    profil_range_set_free(set);
}
