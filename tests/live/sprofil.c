/* sprofil(): several ranges, two widths of counters, the overflow entry. */
#include "support.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

/* Loops of at most 1 KiB of text; the least that two bytes or four of it have a counter each for.
 */
enum { COUNTERS = 512 };

static const double burn_seconds = 0.2;

/* 100 ticks a second. Two may be lost to the phase on two CPUs, and on a busy machine 3 % on
 * average to the kernel, where it is not sampled: six more are far beyond chance. The calls may add
 * one. */
enum { TICKS_AT_LEAST = 12, TICKS_AT_MOST = 21 };

/* What may come in from outside of the loops: clocks, starting and stopping, which on a busy
 * machine take their time; fewer than the ticks of a loop. */
enum { STRAY_AT_MOST = 10 };

static unsigned short first[COUNTERS], second[COUNTERS];
static unsigned int wide_first[COUNTERS], wide_second[COUNTERS];

static unsigned long sum_wide(const unsigned int *counters)
{
    unsigned long sum = 0;

    for (size_t i = 0; i < COUNTERS; i++)
        sum += counters[i];
    return sum;
}

static void turn_on(struct prof *ranges, int count, unsigned int flags)
{
    cr_assert_eq(sprofil(ranges, count, NULL, flags), 0);
}

static void turn_off(void)
{
    cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}

static void assert_ticks(unsigned long ticks)
{
    cr_assert(ticks >= TICKS_AT_LEAST && ticks <= TICKS_AT_MOST, "%lu ticks", ticks);
}

static struct prof overflow(void *counter, size_t bytes)
{
    return (struct prof){.pr_base = counter, .pr_size = bytes, .pr_off = 0, .pr_scale = 2};
}

Test(sprofil, each_range_has_the_ticks_of_its_function)
{
    struct prof ranges[] = {
        support_range(&support_hot_second, second, sizeof(second)),
        support_range(&support_hot_first, first, sizeof(first)),
    };

    support_require_perf();
    turn_on(ranges, 2, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    support_burn_in(&support_hot_second, 2 * burn_seconds);
    turn_off();
    assert_ticks(support_sum(first, COUNTERS));
    cr_assert_geq(support_sum(second, COUNTERS), 2 * TICKS_AT_LEAST);
    cr_assert_leq(support_sum(second, COUNTERS), 2 * TICKS_AT_MOST);
}

/* A 32-bit counter stands for four bytes of text: half as many buckets, and none is hit behind
 * them. */
Test(sprofil, a_range_of_32_bit_counters_has_the_ticks_of_its_function)
{
    struct prof ranges[] = {
        support_range(&support_hot_first, wide_first, sizeof(wide_first)),
        support_range(&support_hot_second, wide_second, sizeof(wide_second)),
    };
    size_t buckets = ranges[0].pr_size / sizeof(wide_first[0]);
    unsigned long within = 0;

    support_require_perf();
    turn_on(ranges, 2, PROF_UINT);
    support_burn_in(&support_hot_first, burn_seconds);
    support_burn_in(&support_hot_second, burn_seconds);
    turn_off();
    for (size_t i = 0; i < buckets; i++)
        within += wide_first[i];
    assert_ticks(within);
    cr_assert_eq(sum_wide(wide_first), within);
    assert_ticks(sum_wide(wide_second));
}

Test(sprofil, a_32_bit_counter_goes_on_at_65535_and_stays_at_its_maximum)
{
    unsigned int counters[2] = {65530, 7};
    struct prof all = overflow(counters, sizeof(counters));

    support_require_perf();
    turn_on(&all, 1, PROF_UINT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(counters[0] - 65530);

    counters[0] = UINT32_MAX - 5;
    turn_on(&all, 1, PROF_UINT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    cr_assert_eq(counters[0], UINT32_MAX);
    cr_assert_eq(counters[1], 7);
}

Test(sprofil, a_16_bit_counter_stays_at_its_maximum)
{
    unsigned short counters[2] = {65530, 7};
    struct prof all = overflow(counters, sizeof(counters));

    support_require_perf();
    turn_on(&all, 1, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    cr_assert_eq(counters[0], UINT16_MAX);
    cr_assert_eq(counters[1], 7);
}

/* Wherever it stands in the table. */
Test(sprofil, the_overflow_entry_takes_what_no_range_has_a_bucket_for)
{
    for (int position = 0; position < 2; position++) {
        unsigned short rest[2] = {0};
        struct prof ranges[2];

        ranges[position] = overflow(rest, sizeof(rest));
        ranges[1 - position] = support_range(&support_hot_first, first, sizeof(first));
        memset(first, 0, sizeof(first));
        support_require_perf();
        turn_on(ranges, 2, PROF_USHORT);
        support_burn_in(&support_hot_first, burn_seconds);
        support_burn_in(&support_hot_second, burn_seconds);
        turn_off();
        assert_ticks(support_sum(first, COUNTERS));
        cr_expect_geq(rest[0], TICKS_AT_LEAST);
        cr_expect_leq(rest[0], TICKS_AT_MOST + STRAY_AT_MOST);
        cr_expect_eq(rest[1], 0);
    }
}

/* The outer range begins below both loops, the inner one is the first loop's alone. */
Test(sprofil, a_pc_belongs_to_the_nearest_range_below_it_that_has_a_bucket)
{
    static unsigned short outer[1];
    uintptr_t low = (uintptr_t)support_hot_first.start - 1000;
    struct prof ranges[] = {
        {.pr_base = outer, .pr_size = sizeof(outer), .pr_off = low, .pr_scale = 3},
        support_range(&support_hot_first, first, sizeof(first)),
    };

    cr_assert_leq((uintptr_t)support_hot_second.end - low, 131072 / 3);
    cr_assert_gt(support_hot_second.start, support_hot_first.start);
    support_require_perf();
    turn_on(ranges, 2, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    support_burn_in(&support_hot_second, 2 * burn_seconds);
    turn_off();
    assert_ticks(support_sum(first, COUNTERS));
    cr_assert_geq(outer[0], 2 * TICKS_AT_LEAST);
    cr_assert_leq(outer[0], 2 * TICKS_AT_MOST + STRAY_AT_MOST);
}

/* And nothing is looked for before the beginning of the table. */
Test(sprofil, a_pc_below_every_range_is_not_counted)
{
    struct prof ranges[] = {
        {.pr_base = first,
         .pr_size = sizeof(first),
         .pr_off = (uintptr_t)support_hot_first.end,
         .pr_scale = 65536},
        {.pr_base = second,
         .pr_size = sizeof(second),
         .pr_off = SIZE_MAX - 4096,
         .pr_scale = 65536},
    };

    support_require_perf();
    turn_on(ranges, 2, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    cr_assert_leq(support_sum(first, COUNTERS), STRAY_AT_MOST);
    cr_assert_eq(support_sum(second, COUNTERS), 0);
}

Test(sprofil, a_range_of_size_0_counts_nothing_and_leaves_the_others_alone)
{
    struct prof ranges[] = {
        support_range(&support_hot_first, first, sizeof(first)),
        support_range(&support_hot_first, first, sizeof(first)),
        {0},
    };

    support_require_perf();
    ranges[0].pr_size = 0;
    turn_on(ranges, 1, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    cr_assert_eq(support_sum(first, COUNTERS), 0);

    turn_on(ranges, 3, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(support_sum(first, COUNTERS));
}

Test(sprofil, scale_0_and_1_take_part_in_nothing)
{
    unsigned short counters[2] = {0};
    struct prof ranges[] = {
        {.pr_base = &counters[0], .pr_size = 2, .pr_off = 0, .pr_scale = 0},
        {.pr_base = &counters[1],
         .pr_size = 2,
         .pr_off = (uintptr_t)support_hot_first.start,
         .pr_scale = 1},
    };

    support_require_perf();
    turn_on(ranges, 2, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    cr_assert_eq(counters[0], 0);
    cr_assert_eq(counters[1], 0);
}

/* 262144 bytes are 131072 pairs, times 3 / 65536: bucket 6; or 65536 fours: bucket 3. */
Test(sprofil, scale_3_puts_the_ticks_where_the_formula_says)
{
    struct prof range = {.pr_off = (uintptr_t)support_hot_first.start - 262144, .pr_scale = 3};

    support_require_perf();
    range.pr_base = first;
    range.pr_size = 8 * sizeof(first[0]);
    turn_on(&range, 1, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(first[6]);

    range.pr_base = wide_first;
    range.pr_size = 8 * sizeof(wide_first[0]);
    turn_on(&range, 1, PROF_UINT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(wide_first[3]);
}

Test(sprofil, the_interval_is_the_one_that_is_used)
{
    struct timeval interval = {.tv_sec = 9, .tv_usec = 9};
    unsigned short ticks = 0;
    struct prof all = overflow(&ticks, sizeof(ticks));
    double expected;

    support_require_perf();
    support_confine(2);
    cr_assert_eq(sprofil(&all, 1, &interval, PROF_USHORT), 0);
    cr_assert_eq(interval.tv_sec, 0);
    cr_assert_eq(interval.tv_usec, 10000);
    expected = support_burn_in(&support_hot_first, 1) / 0.010;
    turn_off();
    support_assert_ticks(ticks, expected);
}

Test(sprofil, it_may_be_turned_on_and_off_again_and_again)
{
    struct prof ranges[] = {
        support_range(&support_hot_first, first, sizeof(first)),
        support_range(&support_hot_second, second, sizeof(second)),
    };

    support_require_perf();
    for (int i = 0; i < 30; i++) {
        turn_on(ranges, 1 + i % 2, i % 3 ? PROF_USHORT : PROF_UINT);
        support_burn_in(&support_hot_first, 0.002);
        turn_off();
        turn_off();
    }
    memset(first, 0, sizeof(first));
    turn_on(ranges, 2, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(support_sum(first, COUNTERS));
}

Test(sprofil, a_new_table_replaces_the_old_one)
{
    struct prof before = support_range(&support_hot_first, first, sizeof(first));
    struct prof after = support_range(&support_hot_first, second, sizeof(second));

    support_require_perf();
    turn_on(&before, 1, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_on(&after, 1, PROF_USHORT);
    unsigned long ticks = support_sum(first, COUNTERS);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(ticks);
    cr_assert_eq(support_sum(first, COUNTERS), ticks);
    assert_ticks(support_sum(second, COUNTERS));
}

/* One after the other, each with its own buffer; the figure of each is read when the next is on. */
Test(sprofil, profil_and_sprofil_replace_each_other)
{
    unsigned short by_profil = 0, again = 0;
    struct prof range = support_range(&support_hot_first, first, sizeof(first));

    support_require_perf();
    cr_assert_eq(profil(&by_profil, sizeof(by_profil), 0, 0), 0);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_on(&range, 1, PROF_USHORT);
    unsigned short ticks_of_profil = by_profil;
    support_burn_in(&support_hot_first, burn_seconds);
    cr_assert_eq(profil(&again, sizeof(again), 0, 0), 0);
    unsigned long ticks_of_sprofil = support_sum(first, COUNTERS);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    assert_ticks(ticks_of_profil);
    assert_ticks(ticks_of_sprofil);
    assert_ticks(again);
    cr_assert_eq(by_profil, ticks_of_profil);
    cr_assert_eq(support_sum(first, COUNTERS), ticks_of_sprofil);
}

Test(sprofil, either_turns_the_other_off)
{
    unsigned short counter = 0;
    struct prof range = support_range(&support_hot_first, first, sizeof(first));
    unsigned long ticks;

    support_require_perf();
    turn_on(&range, 1, PROF_USHORT);
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    ticks = support_sum(first, COUNTERS);
    support_burn_in(&support_hot_first, burn_seconds);
    assert_ticks(ticks);
    cr_assert_eq(support_sum(first, COUNTERS), ticks);

    cr_assert_eq(profil(&counter, sizeof(counter), 0, 0), 0);
    support_burn_in(&support_hot_first, burn_seconds);
    turn_off();
    ticks = counter;
    support_burn_in(&support_hot_first, burn_seconds);
    assert_ticks(ticks);
    cr_assert_eq(counter, ticks);
}
