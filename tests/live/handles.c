/* Profiles of one's own: ranges, starts and stops, several at once, and what threads, forks and the
 * end of the process make of them. Ticks are of 1 ms, so that few of them are much. */
#include "act.h"
#include "profile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024, MARK = 0x5a };

static const double burn_seconds = 0.2, fast_ticks_per_second = 1000;

/* Room for the loops' text at any width, and for what must not be touched behind it. */
static uint16_t counters_16[2][TEXT_BYTES];
static uint32_t counters_32[2][TEXT_BYTES];
static uint64_t counters_64[2][TEXT_BYTES];

static unsigned long sum_16(int which)
{
    return support_sum(counters_16[which], TEXT_BYTES);
}

static unsigned long sum_32(int which)
{
    unsigned long sum = 0;

    for (size_t i = 0; i < TEXT_BYTES; i++)
        sum += counters_32[which][i];
    return sum;
}

static unsigned long sum_64(int which)
{
    unsigned long sum = 0;

    for (size_t i = 0; i < TEXT_BYTES; i++)
        sum += (unsigned long)counters_64[which][i];
    return sum;
}

static double burn(const struct support_hot *hot)
{
    return support_burn_in(hot, burn_seconds);
}

/* What may come in from outside of a loop: clocks, starting, stopping, and on a busy machine the
 * page faults of a first run. */
enum { STRAY_AT_MOST = 10 };

/* ---- Ranges. ---- */

/* Three profiles at once, each with counters of another width over the same loop. */
Test(handles, counters_of_16_32_and_64_bits_have_the_ticks_of_the_loop)
{
    profil_profile *profiles[3];
    double expected;

    support_require_perf();
    for (int i = 0; i < 3; i++)
        profiles[i] = profile_open_fast();
    profile_add_loop(profiles[0], &support_hot_first, counters_16, TEXT_BYTES, 16);
    profile_add_loop(profiles[1], &support_hot_first, counters_32, TEXT_BYTES, 32);
    profile_add_loop(profiles[2], &support_hot_first, counters_64, TEXT_BYTES, 64);
    for (int i = 0; i < 3; i++)
        profile_start(profiles[i]);
    expected = burn(&support_hot_first) * fast_ticks_per_second;
    for (int i = 0; i < 3; i++)
        profile_close(profiles[i]);
    support_assert_ticks(sum_16(0), expected);
    support_assert_ticks(sum_32(0), expected);
    support_assert_ticks(sum_64(0), expected);
}

/* A counter of n bytes stands for n bytes of text: the loop ends in bucket (size - 1) / n. */
Test(handles, ticks_of_a_loop_are_in_the_counters_of_its_text_and_in_no_others)
{
    size_t size = (size_t)(support_hot_first.end - support_hot_first.start);
    profil_profile *profile;
    unsigned long within = 0;

    support_require_perf();
    for (size_t i = 0; i < TEXT_BYTES; i++)
        counters_64[0][i] = i * 8 < size ? 0 : MARK;
    profile = profile_open_fast();
    cr_assert_eq(profil_add_range(profile, counters_64, (size + 7) / 8 * 8, 64,
                                  (size_t)support_hot_first.start, 65536),
                 0);
    profile_start(profile);
    double expected = burn(&support_hot_first) * fast_ticks_per_second;
    burn(&support_hot_second);
    profile_close(profile);
    for (size_t i = 0; i * 8 < size; i++)
        within += (unsigned long)counters_64[0][i];
    support_assert_ticks(within, expected);
    for (size_t i = (size + 7) / 8; i < TEXT_BYTES; i++)
        cr_assert_eq(counters_64[0][i], MARK, "counter %zu", i);
}

Test(handles, each_range_has_its_own_ticks_and_the_rest_goes_to_the_overflow_range)
{
    profil_profile *profile;
    uint64_t rest = 0;
    double first, second;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &rest);
    profile_add_loop(profile, &support_hot_second, counters_32, TEXT_BYTES, 32);
    profile_start(profile);
    first = burn(&support_hot_first) * fast_ticks_per_second;
    second = burn(&support_hot_second) * fast_ticks_per_second;
    profile_stop(profile);
    support_assert_ticks(sum_32(0), second);
    cr_assert_leq(rest, first * 1.02 + STRAY_AT_MOST, "%ju ticks", (uintmax_t)rest);
    support_assert_ticks((unsigned long)rest + sum_32(0), first + second);
    profile_close(profile);
}

Test(handles, of_ranges_with_one_offset_the_first_added_has_the_ticks)
{
    profil_profile *profile;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_loop(profile, &support_hot_first, counters_32[0], TEXT_BYTES, 32);
    profile_add_loop(profile, &support_hot_first, counters_16[0], TEXT_BYTES, 16);
    profile_start(profile);
    double expected = burn(&support_hot_first) * fast_ticks_per_second;
    profile_close(profile);
    support_assert_ticks(sum_32(0), expected);
    cr_assert_eq(sum_16(0), 0);
}

Test(handles, the_last_overflow_range_has_the_ticks)
{
    uint64_t before = 0, after = 0;
    profil_profile *profile;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &before);
    profile_add_rest(profile, &after);
    profile_start(profile);
    double expected = burn(&support_hot_first) * fast_ticks_per_second;
    profile_close(profile);
    cr_assert_eq(before, 0);
    support_assert_ticks((unsigned long)after, expected);
}

Test(handles, a_64_bit_counter_goes_on_beyond_32_bits)
{
    uint64_t counter = UINT32_MAX - UINT64_C(5);
    profil_profile *profile;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &counter);
    profile_start(profile);
    double expected = burn(&support_hot_first) * fast_ticks_per_second;
    profile_close(profile);
    support_assert_ticks((unsigned long)(counter - (UINT32_MAX - UINT64_C(5))), expected);
}

Test(handles, a_range_added_while_running_has_ticks_from_then_on)
{
    profil_profile *profile;
    double expected;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_loop(profile, &support_hot_first, counters_16[0], TEXT_BYTES, 16);
    profile_start(profile);
    burn(&support_hot_second);
    profile_add_loop(profile, &support_hot_second, counters_16[1], TEXT_BYTES, 16);
    cr_assert_eq(sum_16(1), 0);
    expected = burn(&support_hot_second) * fast_ticks_per_second;
    burn(&support_hot_first);
    profile_close(profile);
    support_assert_ticks(sum_16(1), expected);
    support_assert_ticks(sum_16(0), burn_seconds * fast_ticks_per_second);
}

/* No tick is lost or doubled when ranges come: the overflow range takes every one from the start.
 */
Test(handles, adding_ranges_while_running_loses_and_doubles_no_tick)
{
    enum { RANGES = 50 };
    static uint16_t unused[RANGES];
    profil_profile *profile;
    uint64_t all = 0;
    double expected = 0;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &all);
    profile_start(profile);
    for (int i = 0; i < RANGES; i++) {
        expected += support_burn_in(&support_hot_first, 0.004) * fast_ticks_per_second;
        cr_assert_eq(profil_add_range(profile, &unused[i], 2, 16, SIZE_MAX - 4096, 65536), 0);
    }
    profile_close(profile);
    /* Adding takes time of its own, less than 0.2 ms of the program's. */
    cr_assert_leq(all, expected * 1.02 + 1 + RANGES * 0.2);
    support_assert_ticks((unsigned long)fmin((double)all, expected), expected);
}

/* ---- Starting and stopping. ---- */

Test(handles, ticks_of_several_runs_add_up_in_the_counters)
{
    profil_profile *profile;
    double expected = 0;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_loop(profile, &support_hot_first, counters_32, TEXT_BYTES, 32);
    for (int run = 0; run < 4; run++) {
        profile_start(profile);
        expected += support_burn_in(&support_hot_first, 0.1) * fast_ticks_per_second;
        profile_stop(profile);
        support_burn_in(&support_hot_first, 0.02);
    }
    /* Each run leaves half a tick unseen, on average, on each CPU. */
    support_assert_ticks(sum_32(0) + 4 * 1, expected);
    profile_close(profile);
}

Test(handles, statistics_are_those_of_the_last_run)
{
    profil_profile *profile;
    struct profil_stats first, second;
    uint64_t all = 0;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &all);
    profile_start(profile);
    burn(&support_hot_first);
    profile_stop(profile);
    first = profile_stats(profile);
    profile_start(profile);
    support_burn_in(&support_hot_first, burn_seconds / 2);
    profile_stop(profile);
    second = profile_stats(profile);
    profile_close(profile);
    cr_assert_eq(first.ticks + second.ticks, all);
    cr_assert_lt(second.ticks, first.ticks * 3 / 4);
    cr_assert_lt(second.cpu_time, first.cpu_time * 3 / 4);
}

Test(handles, starting_what_runs_and_stopping_what_does_not_changes_nothing)
{
    profil_profile *profile;
    uint64_t all = 0;
    double expected;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &all);
    profile_stop(profile);
    profile_start(profile);
    expected = burn(&support_hot_first) * fast_ticks_per_second;
    profile_start(profile);
    expected += burn(&support_hot_first) * fast_ticks_per_second;
    profile_stop(profile);
    profile_stop(profile);
    support_assert_ticks((unsigned long)all, expected);
    cr_assert_eq(profile_stats(profile).ticks, all);
    profile_close(profile);
}

Test(handles, after_stop_and_after_close_the_counters_stay)
{
    profil_profile *profile;
    uint64_t all = 0, then;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &all);
    for (int closes = 0; closes < 2; closes++) {
        profile_start(profile);
        burn(&support_hot_first);
        if (closes)
            profile_close(profile);
        else
            profile_stop(profile);
        then = __atomic_load_n(&all, __ATOMIC_RELAXED);
        burn(&support_hot_first);
        cr_assert_eq(__atomic_load_n(&all, __ATOMIC_RELAXED), then);
    }
    cr_assert_geq(then, 2 * burn_seconds * fast_ticks_per_second * 0.85);
}

/* Looked at as the first profile left the process: that one may have brought things that stay. */
Test(handles, closed_profiles_leave_nothing_behind_whether_they_ran_or_not)
{
    struct process_state before, after;
    size_t threads;

    support_require_perf();
    threads = support_thread_count();
    process_read_settled_state(&before, threads);
    for (int i = 0; i < 30; i++) {
        profil_profile *running = profile_open_fast(), *stopped = profile_open_fast(),
                       *unused = profile_open_fast();

        profile_add_loop(running, &support_hot_first, counters_16, TEXT_BYTES, 16);
        profile_add_loop(stopped, &support_hot_first, counters_16, TEXT_BYTES, 16);
        profile_start(stopped);
        profile_start(running);
        profile_stop(stopped);
        profile_close(running);
        profile_close(unused);
        profile_close(stopped);
    }
    process_read_settled_state(&after, threads);
    cr_expect_eq(after.threads, before.threads);
    cr_expect_eq(after.descriptors, before.descriptors);
    cr_expect_eq(after.rings, 0);
    /* malloc may take and give back. */
    cr_expect_leq(after.mappings, before.mappings + 1);
}

Test(handles, running_profiles_have_no_descriptor_in_the_programs_table)
{
    struct process_state before, running;
    profil_profile *one, *other;

    support_require_perf();
    process_read_state(&before);
    one = profile_open_fast();
    other = profile_open_fast();
    profile_start(one);
    profile_start(other);
    process_read_state(&running);
    profile_close(one);
    profile_close(other);
    cr_assert_gt(running.rings, 0);
    cr_assert_eq(running.descriptors, before.descriptors);
}

/* ---- Several profiles at once. ---- */

enum { PAGES = 2000 };

SUPPORT_SECTION(live_touch);

/* One fault for each page, all at one instruction. */
SUPPORT_IN_SECTION(live_touch) static void touch(volatile char *pages, size_t page)
{
    for (size_t i = 0; i < PAGES; i++)
        pages[i * page] = 1;
}

/* Fresh pages of the base size, which huge pages are not. */
static void touch_fresh_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq((void *)pages, MAP_FAILED);
    madvise(pages, PAGES * page, MADV_NOHUGEPAGE);
    touch(pages, page);
    munmap(pages, PAGES * page);
}

static long minor_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/* A fault that the kernel has to start over, when memory is short, is counted again. */
Test(handles, page_faults_and_cpu_time_at_once_are_both_right)
{
    static const struct support_hot touching = {.start = __start_live_touch,
                                                .end = __stop_live_touch};
    profil_profile *faults, *clock;
    uint64_t ticks = 0, other_faults = 0;
    long outside;
    double used;

    support_require_perf();
    faults = profile_open((struct profil_options){.event = "page-faults"});
    clock = profile_open_fast();
    profile_add_loop(faults, &touching, counters_16, TEXT_BYTES, 16);
    profile_add_rest(faults, &other_faults);
    profile_add_rest(clock, &ticks);
    profile_start(faults);
    profile_start(clock);
    used = support_thread_seconds();
    outside = minor_faults();
    touch_fresh_pages();
    outside = minor_faults() - outside;
    burn(&support_hot_first);
    used = support_thread_seconds() - used;
    profile_stop(clock);
    profile_stop(faults);
    cr_assert_geq(outside, PAGES);
    cr_assert_geq(sum_16(0), PAGES);
    cr_assert_leq(sum_16(0), (unsigned long)outside);
    cr_assert_eq(profile_stats(faults).ticks, sum_16(0) + other_faults);
    cr_assert_eq(profile_stats(faults).lost, 0);
    /* The calls around it have a few faults too, of which the sampler of the other has its own. */
    cr_assert_leq(other_faults, 200, "%ju", (uintmax_t)other_faults);

    /* Half of the time that the faults take is the kernel's. */
    if (support_kernel_is_sampled())
        support_assert_ticks((unsigned long)ticks, used * fast_ticks_per_second);
    else
        support_assert_ticks((unsigned long)fmax((double)ticks, burn_seconds * 1000),
                             fmax((double)ticks, burn_seconds * 1000));
    profile_close(faults);
    profile_close(clock);
}

Test(handles, clocks_with_different_periods_at_once_are_both_right)
{
    profil_profile *fast, *slow;
    uint64_t fast_ticks = 0, slow_ticks = 0;
    double used;

    support_require_perf();
    fast = profile_open((struct profil_options){.period = 500000, .subticks = 1});
    slow = profile_open((struct profil_options){.period = 5000000, .subticks = 5});
    profile_add_rest(fast, &fast_ticks);
    profile_add_rest(slow, &slow_ticks);
    profile_start(fast);
    profile_start(slow);
    used = support_burn_in(&support_hot_first, 0.5);
    profile_close(slow);
    profile_close(fast);
    support_assert_ticks((unsigned long)fast_ticks, used * 2000);
    support_assert_ticks((unsigned long)slow_ticks, used * 200);
}

Test(handles, a_profile_beside_profil_leaves_both_right)
{
    unsigned short by_profil = 0;
    uint64_t by_handle = 0;
    profil_profile *profile;
    double used;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &by_handle);
    cr_assert_eq(profil(&by_profil, sizeof(by_profil), 0, 0), 0);
    profile_start(profile);
    used = support_burn_in(&support_hot_first, 0.5);
    support_off();
    used += support_burn_in(&support_hot_first, 0.2);
    profile_close(profile);
    support_assert_ticks(by_profil, (used - 0.2) * 100);
    support_assert_ticks((unsigned long)by_handle, used * fast_ticks_per_second);
}

/* The sampler of one is a thread that the other must not count, though it may have inherited its
 * events: a profile of everything has no more ticks for the profiles that come and go beside it
 * than their starts and stops cost the program. */
Test(handles, a_profile_does_not_count_the_samplers_of_others)
{
    profil_profile *watching;
    uint64_t all = 0;
    struct profil_stats stats;
    double used;

    support_require_perf();
    watching = profile_open((struct profil_options){.period = 100000, .subticks = 1});
    profile_add_rest(watching, &all);
    used = support_thread_seconds();
    profile_start(watching);
    for (int i = 0; i < 5; i++) {
        profil_profile *watched =
            profile_open((struct profil_options){.period = 100000, .subticks = 1});

        profile_start(watched);
        support_burn_in(&support_hot_first, 0.05);
        profile_close(watched);
    }
    profile_stop(watching);
    used = support_thread_seconds() - used;
    stats = profile_stats(watching);
    profile_close(watching);
    cr_assert_leq(all, used * 10000 * 1.02 + 1, "%ju ticks, %.3f s, %ju of other threads",
                  (uintmax_t)all, used, (uintmax_t)stats.foreign);
}

/* ---- What is refused. ---- */

Test(handles, null_is_allowed_where_it_says_so)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    char reason[16] = "x";

    cr_expect_eq(profil_close(NULL), 0);
    cr_expect_eq(profil_stats(NULL, &stats), 0);
    cr_expect_eq(stats.engine, PROFIL_ENGINE_AUTO, "never started");
    cr_expect_not(stats.running);
    cr_expect_eq(profil_reason(NULL, reason, sizeof(reason)), 0);
    cr_expect_str_eq(reason, "");
    cr_expect_eq(profil_reason(NULL, NULL, 0), 0);
}

static void expect_refused_range(profil_profile *profile, unsigned int bits, unsigned int scale)
{
    errno = 0;
    cr_expect_eq(profil_add_range(profile, counters_64, sizeof(counters_64), bits, 0x1000, scale),
                 -1, "%u bits, scale %u", bits, scale);
    cr_expect_eq(errno, EINVAL, "%u bits, scale %u: %s", bits, scale, strerror(errno));
}

Test(handles, counters_of_other_widths_and_scales_0_and_1_are_refused)
{
    static const unsigned int widths[] = {0, 1, 8, 15, 24, 48, 65, 128, 0x10010};
    profil_profile *profile = profile_open((struct profil_options){0});

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        expect_refused_range(profile, widths[i], 65536);
    expect_refused_range(profile, 16, 0);
    expect_refused_range(profile, 64, 1);
    profile_close(profile);
}

static void expect_refused_options(struct profil_options options, int error, const char *named)
{
    profil_profile *profile = (profil_profile *)&options;

    if (options.struct_size == 0)
        options.struct_size = sizeof(options);
    errno = 0;
    cr_expect_eq(profil_open(&profile, &options), -1, "%s", named);
    cr_expect_eq(errno, error, "%s: %s", named, strerror(errno));
    cr_expect_null(profile);
    cr_expect_not_null(strstr(profile_reason(NULL), named), "%s: %s", named, profile_reason(NULL));
}

Test(handles, options_that_cannot_be_are_refused_with_a_reason)
{
    expect_refused_options((struct profil_options){.struct_size = 8}, EINVAL, "struct_size");
    expect_refused_options((struct profil_options){.engine = (enum profil_engine)9}, EINVAL,
                           "engine");
    expect_refused_options((struct profil_options){.subticks = 1001}, EINVAL, "subticks");
    expect_refused_options((struct profil_options){.period = 9999}, EINVAL, "too short");
    expect_refused_options((struct profil_options){.event = "no-such-event"}, ENOENT,
                           "no-such-event");
}

Test(handles, success_leaves_errno_alone)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    struct profil_options options = {.struct_size = sizeof(options)};
    profil_profile *profile;
    char reason[64];

    support_require_perf();
    errno = ERANGE;
    cr_expect_eq(profil_open(&profile, &options), 0);
    cr_expect_eq(errno, ERANGE);
    cr_expect_eq(profil_add_range(profile, counters_16, 2, 16, 0x1000, 65536), 0);
    cr_expect_eq(errno, ERANGE);
    cr_expect_eq(profil_start(profile), 0);
    cr_expect_eq(errno, ERANGE);
    cr_expect_eq(profil_stats(profile, &stats), 0);
    profil_reason(profile, reason, sizeof(reason));
    cr_expect_eq(errno, ERANGE);
    cr_expect_eq(profil_stop(profile), 0);
    cr_expect_eq(errno, ERANGE);
    cr_expect_eq(profil_close(profile), 0);
    cr_expect_eq(errno, ERANGE);
}

static void *read_only_page(void)
{
    void *page =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(page, MAP_FAILED);
    return page;
}

Test(handles, counters_that_cannot_be_written_are_refused_at_the_start)
{
    profil_profile *profile;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_loop(profile, &support_hot_second, counters_16, TEXT_BYTES, 16);
    cr_assert_eq(profil_add_range(profile, read_only_page(), TEXT_BYTES, 16, 0x1000, 65536), 0,
                 "a stopped profile does not look");
    for (int i = 0; i < 2; i++) {
        errno = 0;
        cr_assert_eq(profil_start(profile), -1);
        cr_assert_eq(errno, EFAULT, "%s", strerror(errno));
        cr_assert_not_null(strstr(profile_reason(profile), "EFAULT"), "%s",
                           profile_reason(profile));
        cr_assert_not(profile_stats(profile).running);
    }
    profile_close(profile);
}

/* And may be put right. */
Test(handles, a_range_that_cannot_be_written_leaves_a_running_profile_as_it_was)
{
    profil_profile *profile;
    double expected;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_loop(profile, &support_hot_first, counters_16[0], TEXT_BYTES, 16);
    profile_start(profile);
    expected = burn(&support_hot_first) * fast_ticks_per_second;
    errno = 0;
    cr_assert_eq(profil_add_range(profile, read_only_page(), TEXT_BYTES, 16, 0x1000, 65536), -1);
    cr_assert_eq(errno, EFAULT, "%s", strerror(errno));
    cr_assert_not_null(strstr(profile_reason(profile), "EFAULT"), "%s", profile_reason(profile));
    expected += burn(&support_hot_first) * fast_ticks_per_second;
    profile_add_loop(profile, &support_hot_second, counters_16[1], TEXT_BYTES, 16);
    double second = burn(&support_hot_second) * fast_ticks_per_second;
    profile_stop(profile);
    support_assert_ticks(sum_16(0), expected);
    support_assert_ticks(sum_16(1), second);
    profile_start(profile);
    profile_close(profile);
}

Test(handles, a_success_clears_the_reason_of_an_earlier_failure)
{
    struct profil_options options = {
        .struct_size = sizeof(options), .engine = PROFIL_ENGINE_PERF, .system = PROFIL_SYSTEM_USER};
    profil_profile *profile;

    support_require_perf();
    profile = profile_open(options);
    profile_start(profile);
    cr_assert_eq(profil_add_range(profile, read_only_page(), TEXT_BYTES, 16, 0x1000, 65536), -1);
    cr_assert_str_neq(profile_reason(profile), "");
    profile_add_loop(profile, &support_hot_first, counters_16, TEXT_BYTES, 16);
    cr_expect_str_eq(profile_reason(profile), "", "after a change: %s", profile_reason(profile));
    profile_stop(profile);
    profile_start(profile);
    cr_expect_str_eq(profile_reason(profile), "", "after a start: %s", profile_reason(profile));
    profile_close(profile);
}

Test(handles, a_refused_range_has_a_reason)
{
    profil_profile *profile = profile_open((struct profil_options){0});

    expect_refused_range(profile, 24, 65536);
    cr_expect_str_neq(profile_reason(profile), "");
    profile_close(profile);
}

/* ---- Threads. ---- */

enum { USERS = 4 };
static profil_profile *shared;
static int finished;

/* Everything but to close it. */
static void *use_shared(void *number)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    unsigned int turn = (unsigned int)(uintptr_t)number;
    char reason[64];

    while (!__atomic_load_n(&finished, __ATOMIC_RELAXED)) {
        switch (turn++ % 4) {
        case 0:
            if (profil_start(shared) != 0)
                return "start";
            break;
        case 1:
            if (profil_stats(shared, &stats) != 0)
                return "stats";
            break;
        case 2:
            profil_reason(shared, reason, sizeof(reason));
            break;
        default:
            if (profil_stop(shared) != 0)
                return "stop";
        }
    }
    return NULL;
}

Test(handles, the_reason_without_a_profile_is_that_of_the_last_call_that_was_refused)
{
    struct profil_options wrong = {.struct_size = sizeof(wrong), .subticks = 5000};
    struct profil_options right = {.struct_size = sizeof(right)};
    struct prof entry = {.pr_scale = 65536};
    profil_profile *profile;

    cr_assert_eq(sprofil(&entry, -1, NULL, 0), -1);
    cr_expect_not_null(strstr(profile_reason(NULL), "negative"), "%s", profile_reason(NULL));
    cr_assert_eq(sprofil(NULL, 1, NULL, 0), -1);
    cr_expect_not_null(strstr(profile_reason(NULL), "no table"), "%s", profile_reason(NULL));
    cr_assert_eq(profil_open(&profile, &wrong), -1);
    cr_expect_not_null(strstr(profile_reason(NULL), "subticks"), "%s", profile_reason(NULL));
    cr_assert_eq(profil_open(&profile, &right), 0);
    cr_expect_null(strstr(profile_reason(NULL), "subticks"), "%s", profile_reason(NULL));
    profile_close(profile);
    right.period = UINT64_MAX;
    cr_assert_eq(profil_open(&profile, &right), -1);
    cr_expect_eq(errno, EINVAL);
}

Test(handles, several_threads_may_use_one_profile)
{
    pthread_t threads[USERS];
    struct process_state state;
    uint64_t all = 0, before;
    double expected;

    support_require_perf();
    shared = profile_open_fast();
    profile_add_rest(shared, &all);
    for (uintptr_t i = 0; i < USERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, use_shared, (void *)i), 0);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(profil_add_range(shared, counters_16, 2, 16, SIZE_MAX - 4096, 65536), 0);
        support_burn_in(&support_hot_first, 0.005);
    }
    __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < USERS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        cr_expect_null(failed, "%s", (const char *)failed);
    }
    profile_stop(shared);
    process_read_settled_state(&state, 1);
    cr_assert_eq(state.rings, 0);
    before = all;
    profile_start(shared);
    expected = burn(&support_hot_first) * fast_ticks_per_second;
    profile_close(shared);
    support_assert_ticks((unsigned long)(all - before), expected);
}

static void *use_own(void *failure)
{
    for (int i = 0; i < 10; i++) {
        profil_profile *profile = profile_open_fast();
        uint64_t counter = 0;

        profile_add_rest(profile, &counter);
        profile_start(profile);
        support_burn_in(&support_hot_first, 0.01);
        profile_close(profile);
        if (counter < 4)
            return "too few ticks";
    }
    return failure;
}

/* Each has the ticks of all of them: 10 at least, of which 6 may be lost to the kernel and chance.
 */
Test(handles, several_threads_may_have_profiles_of_their_own)
{
    pthread_t threads[USERS];
    struct process_state state;
    size_t before;

    support_require_perf();
    before = support_thread_count();
    for (int i = 0; i < USERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, use_own, NULL), 0);
    for (int i = 0; i < USERS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        cr_expect_null(failed, "%s", (const char *)failed);
    }
    process_read_settled_state(&state, before);
    cr_assert_eq(state.threads, before);
    cr_assert_eq(state.rings, 0);
}

static void *use_until_cancelled(void *asynchronously)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    char reason[64];

    for (;;) {
        if (asynchronously)
            pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        profil_start(shared);
        profil_stats(shared, &stats);
        profil_reason(shared, reason, sizeof(reason));
        profil_stop(shared);
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
        pthread_testcancel();
    }
    return NULL;
}

/* In a process of its own, which a lock that stays shut ends by its watchdog. The thread is
 * cancelled at another moment of a start or stop each time. */
static int cancel_users(const char *asynchronously)
{
    struct profil_options options = {.struct_size = sizeof(options), .engine = PROFIL_ENGINE_PERF};

    if (profil_open(&shared, &options) != 0)
        process_complain("open: %s", strerror(errno));
    for (int i = 0; i < 50; i++) {
        struct timespec moment = {.tv_nsec = (i * 73 % 50) * 40000}; /* up to 2 ms */
        profil_profile *other;
        pthread_t thread;

        pthread_create(&thread, NULL, use_until_cancelled, *asynchronously ? "" : NULL);
        nanosleep(&moment, NULL);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        if (profil_stop(shared) != 0 || profil_open(&other, &options) != 0 ||
            profil_start(other) != 0 || profil_close(other) != 0)
            process_complain("after cancellation %d: %s", i, strerror(errno));
    }
    if (profil_close(shared) != 0)
        process_complain("close: %s", strerror(errno));
    if (!support_thread_count_becomes(1))
        process_complain("%zu threads are left", support_thread_count());
    return 0;
}

static void expect_act(const char *name, const char *argument, const char *output)
{
    struct outcome outcome;

    act_run(&outcome, name, argument);
    process_expect(&outcome, process_exited(0));
    cr_expect_str_eq(outcome.output, output, "the output is \"%s\"", outcome.output);
}

/* Frames that a cancellation unwinds stay marked in the address sanitizer's map of the stack, and
 * what runs there next is taken for an overflow. */
static void skip_if_sanitized(void)
{
    if (PROCESS_SANITIZED)
        cr_skip_test("the sanitizer takes cancelled frames for living ones");
}

Test(handles, a_cancelled_thread_leaves_no_lock_behind)
{
    skip_if_sanitized();
    support_require_perf();
    expect_act("cancel_users", "", "");
}

Test(handles, a_thread_cancelled_asynchronously_leaves_no_lock_behind)
{
    skip_if_sanitized();
    support_require_perf();
    expect_act("cancel_users", "asynchronously", "");
}

/* ---- Forks and the end of the process, with two profiles on. ---- */

static profil_profile *first_profile, *second_profile;
static uint64_t first_ticks, second_ticks;

/* In children too, where no assertion can be made. */
static void start_two(void)
{
    struct profil_options options = {
        .struct_size = sizeof(options), .engine = PROFIL_ENGINE_PERF, .period = 1000000};

    if (profil_open(&first_profile, &options) != 0 || profil_open(&second_profile, &options) != 0 ||
        profil_add_range(first_profile, &first_ticks, 8, 64, 0, 2) != 0 ||
        profil_add_range(second_profile, &second_ticks, 8, 64, 0, 2) != 0 ||
        profil_start(first_profile) != 0 || profil_start(second_profile) != 0)
        process_complain("two profiles: %s", strerror(errno));
}

static void complain_unless_stopped(profil_profile *profile, const char *name)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};

    if (profil_stats(profile, &stats) != 0 || stats.running)
        process_complain("%s is on", name);
}

static bool fits_between(uint64_t ticks, double least, double most)
{
    return (double)ticks >= least * fast_ticks_per_second * 0.85 &&
           (double)ticks <= most * fast_ticks_per_second * 1.02 + 2;
}

static bool fits(uint64_t ticks, double seconds)
{
    return fits_between(ticks, seconds, seconds);
}

/* One is started again, the other closed. */
static void look_at_both_in_a_child(void *context)
{
    uint64_t first = first_ticks, second = second_ticks;
    double used;

    (void)context;
    complain_unless_stopped(first_profile, "the first");
    complain_unless_stopped(second_profile, "the second");
    support_burn(0.05);
    if (first_ticks != first || second_ticks != second)
        process_complain("the child is profiled");
    if (profil_start(first_profile) != 0)
        process_complain("start in the child: %s", strerror(errno));
    used = support_burn_in(&support_hot_first, burn_seconds);
    if (profil_close(second_profile) != 0 || profil_stop(first_profile) != 0)
        process_complain("stop in the child: %s", strerror(errno));
    if (!fits(first_ticks - first, used))
        process_complain("%ju ticks in %.3f s of the child", (uintmax_t)(first_ticks - first),
                         used);
    if (second_ticks != second)
        process_complain("the second is on");
    profil_close(first_profile);
}

Test(handles, in_a_forked_child_both_are_stopped_and_may_be_started_or_closed)
{
    struct outcome outcome;
    double before, used, all;

    support_require_perf();
    before = support_process_seconds();
    start_two();
    used = burn(&support_hot_first);
    process_fork(&outcome, look_at_both_in_a_child, NULL);
    used += burn(&support_hot_first);
    profile_close(first_profile);
    profile_close(second_profile);
    all = support_process_seconds() - before;
    process_expect(&outcome, process_exited(0));
    cr_expect(fits_between(first_ticks, used, all), "%ju ticks in %.3f to %.3f s",
              (uintmax_t)first_ticks, used, all);
    cr_expect(fits_between(second_ticks, used, all), "%ju ticks in %.3f to %.3f s",
              (uintmax_t)second_ticks, used, all);
}

static void say_that_it_ran(void)
{
    printf("handler");
}

static int exit_with_two_on(const char *unused)
{
    (void)unused;
    printf("in stdout, ");
    atexit(say_that_it_ran);
    start_two();
    support_burn(0.05);
    return 0;
}

Test(handles, a_process_exits_while_two_are_on)
{
    support_require_perf();
    expect_act("exit_with_two_on", "", "in stdout, handler");
}

static void *burn_and_leave(void *unused)
{
    support_burn(0.05);
    pthread_exit(unused);
}

static void stop_both_and_look(void)
{
    double used = support_process_seconds();

    if (profil_stop(first_profile) != 0 || profil_close(second_profile) != 0)
        process_complain("stop: %s", strerror(errno));
    if (!fits_between(first_ticks, 0.1, used) || !fits_between(second_ticks, 0.1, used))
        process_complain("%ju and %ju ticks in 0.1 to %.3f s", (uintmax_t)first_ticks,
                         (uintmax_t)second_ticks, used);
    say_that_it_ran();
}

/* By pthread_exit(), which is exit(0) for the last thread. */
static int leave_with_two_on(const char *stops)
{
    pthread_t threads[2];

    printf("in stdout, ");
    atexit(*stops ? stop_both_and_look : say_that_it_ran);
    start_two();
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, burn_and_leave, NULL) != 0)
            process_complain("no thread");
    pthread_detach(threads[0]);
    pthread_exit(NULL);
}

Test(handles, the_last_thread_ends_while_two_are_on)
{
    support_require_perf();
    expect_act("leave_with_two_on", "", "in stdout, handler");
}

Test(handles, an_exit_handler_after_the_last_thread_finds_the_ticks_of_both)
{
    support_require_perf();
    expect_act("leave_with_two_on", "stops", "in stdout, handler");
}

const struct act acts[] = {
    {"cancel_users", cancel_users},
    {"exit_with_two_on", exit_with_two_on},
    {"leave_with_two_on", leave_with_two_on},
    {NULL, NULL},
};
