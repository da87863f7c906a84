/* What profil() promises about its buffer: off, change, and the buffers of unusual shapes. */
#include "support.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A loop of at most 1 KiB of text, at two bytes for each counter. */
enum { COUNTERS = 512, PATTERN = 0xa5 };

/* With CPU time for so many ticks in one thread, at least that many come, whatever the phase on two
 * CPUs takes; half of them more than makes up for those that may fall into the kernel. */
static const double burn_seconds = 0.1;
enum { BURN_TICKS_AT_LEAST = 4 };

static int start_in_first(unsigned short *counters, size_t bytes)
{
    return profil(counters, bytes, (uintptr_t)support_hot_first.start, 65536);
}

/* Threads that burn all the time while a test plays with the profile. */
static _Atomic bool burners_stop;

static void *burn_until_stopped(void *used)
{
    double *seconds = used;

    while (!burners_stop)
        *seconds += support_burn_in(&support_hot_first, 0.002);
    return NULL;
}

enum { BACKGROUND = 2 };

struct background {
    pthread_t threads[BACKGROUND];
    double used[BACKGROUND];
};

static void start_background(struct background *background)
{
    *background = (struct background){0};
    for (int i = 0; i < BACKGROUND; i++)
        cr_assert_eq(
            pthread_create(&background->threads[i], NULL, burn_until_stopped, &background->used[i]),
            0);
}

static double stop_background(struct background *background)
{
    double used = 0;

    burners_stop = true;
    for (int i = 0; i < BACKGROUND; i++) {
        pthread_join(background->threads[i], NULL);
        used += background->used[i];
    }
    return used;
}

Test(contract, null_turns_it_off_whatever_the_other_arguments_are)
{
    static const struct {
        size_t bufsiz, offset;
        unsigned int scale;
    } others[] = {{0, 0, 0}, {SIZE_MAX, 12345, 65536}, {2, SIZE_MAX, UINT_MAX}, {1, 0, 1}};

    support_require_perf();
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        unsigned short *volatile null = NULL;
        unsigned short ticks = 0, ticks_at_off;

        cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
        support_burn(burn_seconds);
        cr_assert_eq(profil(null, others[i].bufsiz, others[i].offset, others[i].scale), 0);
        ticks_at_off = ticks;
        support_burn(burn_seconds);
        cr_expect_geq(ticks_at_off, BURN_TICKS_AT_LEAST);
        cr_expect_eq(ticks, ticks_at_off, "case %zu: still counting", i);
    }
}

Test(contract, null_returns_0_when_nothing_is_on)
{
    unsigned short *volatile null = NULL;
    size_t threads = support_thread_count();

    support_require_perf();
    cr_assert_eq(profil(null, 0, 0, 0), 0);
    cr_assert_eq(profil(null, SIZE_MAX, SIZE_MAX, UINT_MAX), 0);
    cr_assert(support_thread_count_becomes(threads), "something was started");
}

Test(contract, nothing_writes_to_the_buffer_after_off)
{
    static unsigned char buffer[2 * COUNTERS], pattern[2 * COUNTERS];
    struct background background;

    support_require_perf();
    memset(pattern, PATTERN, sizeof(pattern));
    start_background(&background);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(start_in_first((void *)buffer, sizeof(buffer)), 0);
        support_burn_in(&support_hot_first, 0.015);
        support_off();
        memcpy(buffer, pattern, sizeof(buffer));
        support_burn_in(&support_hot_first, 0.015);
        cr_assert_arr_eq(buffer, pattern, sizeof(buffer));
    }
    stop_background(&background);
}

static void *map(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(base, MAP_FAILED);
    return base;
}

/* A late write would be a SIGSEGV. */
Test(contract, the_buffer_may_be_unmapped_the_moment_off_returns)
{
    struct background background;
    unsigned long ticks = 0;

    support_require_perf();
    start_background(&background);
    for (int i = 0; i < 30; i++) {
        size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
        unsigned short *buffer = map(bytes);

        cr_assert_eq(start_in_first(buffer, bytes), 0);
        support_burn_in(&support_hot_first, 0.012);
        support_off();
        ticks += support_sum(buffer, bytes / sizeof(*buffer));
        munmap(buffer, bytes);
    }
    stop_background(&background);
    cr_assert_gt(ticks, 0);
}

/* The changes come every few milliseconds, each at a time when ticks lie unread in the rings:
 * losing or doubling those of a change would lose or double most of all. The changing thread may
 * have ticks of its own, though nearly all of its time is in the kernel. */
Test(contract, at_a_change_each_tick_goes_to_exactly_one_buffer)
{
    static unsigned short counters[2];
    struct background background;
    struct timespec pause = {.tv_nsec = 3000000};
    double start, start_of_changer, used, used_by_changer;

    support_require_perf();
    support_confine(2);
    start_of_changer = support_thread_seconds();
    cr_assert_eq(profil(&counters[0], sizeof(counters[0]), 0, 0), 0);
    start_background(&background);
    start = support_process_seconds();
    for (int i = 1; support_process_seconds() - start < 2; i++) {
        unsigned short left_alone;

        cr_assert_eq(profil(&counters[i % 2], sizeof(counters[0]), 0, 0), 0);
        left_alone = counters[(i + 1) % 2];
        nanosleep(&pause, NULL);
        cr_assert_eq(counters[(i + 1) % 2], left_alone, "the old buffer changed");
    }
    used = stop_background(&background);
    support_off();
    used_by_changer = support_thread_seconds() - start_of_changer;
    cr_assert_gt(counters[0], 0);
    cr_assert_gt(counters[1], 0);
    support_assert_ticks_and_up_to((unsigned long)counters[0] + counters[1], used * 100,
                                   used_by_changer * 100);
}

Test(contract, the_old_buffer_may_be_unmapped_the_moment_a_change_returns)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned short *old = map(bytes);
    struct background background;

    support_require_perf();
    start_background(&background);
    cr_assert_eq(start_in_first(old, bytes), 0);
    for (int i = 0; i < 30; i++) {
        unsigned short *next = map(bytes);

        support_burn_in(&support_hot_first, 0.012);
        cr_assert_eq(start_in_first(next, bytes), 0);
        munmap(old, bytes);
        old = next;
    }
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    stop_background(&background);
    cr_assert_geq(support_sum(old, bytes / sizeof(*old)), BURN_TICKS_AT_LEAST);
    munmap(old, bytes);
}

Test(contract, at_scale_0_every_tick_goes_to_the_first_counter)
{
    unsigned short counters[16] = {0};
    double used;

    support_require_perf();
    support_confine(2);
    cr_assert_eq(profil(counters, sizeof(counters), (uintptr_t)support_hot_second.end, 0), 0);
    used = support_burn_in(&support_hot_first, 0.5);
    used += support_burn_in(&support_hot_second, 0.5);
    support_off();
    support_assert_ticks(counters[0], used * 100);
    cr_assert_eq(support_sum(&counters[1], 15), 0);
}

/* Burns with a buffer of that many bytes inside of a larger one that is full of the pattern. */
static void burn_with_size(unsigned char *memory, size_t memory_bytes, size_t bufsiz)
{
    memset(memory, PATTERN, memory_bytes);
    cr_assert_eq(profil((unsigned short *)(void *)memory, bufsiz, 0, 0), 0);
    support_burn(burn_seconds);
    support_off();
}

static void assert_pattern(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(memory[i], PATTERN, "byte %zu was written to", i);
}

Test(contract, a_buffer_of_0_or_1_bytes_counts_nothing)
{
    _Alignas(unsigned short) unsigned char memory[8];

    support_require_perf();
    burn_with_size(memory, sizeof(memory), 0);
    assert_pattern(memory, sizeof(memory));
    burn_with_size(memory, sizeof(memory), 1);
    assert_pattern(memory, sizeof(memory));
}

/* On: its thread is there. */
Test(contract, a_buffer_of_0_bytes_turns_the_profile_on)
{
    size_t threads = support_thread_count();
    unsigned short counter;

    support_require_perf();
    cr_assert(support_thread_count_becomes(threads));
    cr_assert_eq(profil(&counter, 0, 0, 0), 0);
    cr_assert_gt(support_thread_count(), threads);
    support_off();
}

Test(contract, a_buffer_of_3_bytes_has_one_counter)
{
    _Alignas(unsigned short) unsigned char memory[8];
    unsigned short first;

    support_require_perf();
    burn_with_size(memory, sizeof(memory), 3);
    memcpy(&first, memory, sizeof(first));
    cr_assert_geq(first, PATTERN * 257 + BURN_TICKS_AT_LEAST);
    assert_pattern(memory + 2, sizeof(memory) - 2);
}

/* All ticks are for the counter that the third byte is half of. */
Test(contract, half_a_counter_at_the_end_is_not_written)
{
    _Alignas(unsigned short) unsigned char memory[8];

    support_require_perf();
    memset(memory, PATTERN, sizeof(memory));
    cr_assert_eq(
        profil((unsigned short *)(void *)memory, 3, (uintptr_t)support_hot_first.start - 131072, 1),
        0);
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    assert_pattern(memory, sizeof(memory));
}

/* Two buffers that begin differently count in the same way. */
Test(contract, counting_adds_to_what_the_buffer_holds)
{
    static unsigned short counters[COUNTERS];
    unsigned long before = 0, after;

    support_require_perf();
    for (size_t i = 0; i < COUNTERS; i++)
        before += counters[i] = (unsigned short)(100 + i);
    cr_assert_eq(start_in_first(counters, sizeof(counters)), 0);
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    after = support_sum(counters, COUNTERS);
    cr_assert_geq(after, before + BURN_TICKS_AT_LEAST);
    cr_assert_leq(after, before + 2 * 100 * burn_seconds);
    for (size_t i = 0; i < COUNTERS; i++)
        cr_assert_geq(counters[i], 100 + i);
}

Test(contract, an_unaligned_buffer_counts)
{
    static unsigned char memory[2 * COUNTERS + 3];
    static unsigned short counters[COUNTERS];

    support_require_perf();
    memory[0] = memory[sizeof(memory) - 2] = memory[sizeof(memory) - 1] = PATTERN;
    cr_assert_eq(start_in_first((unsigned short *)(void *)(memory + 1), 2 * COUNTERS), 0);
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    memcpy(counters, memory + 1, sizeof(counters));
    cr_assert_geq(support_sum(counters, COUNTERS), BURN_TICKS_AT_LEAST);
    cr_assert_leq(support_sum(counters, COUNTERS), 2 * 100 * burn_seconds);
    cr_assert_eq(memory[0], PATTERN);
    assert_pattern(memory + sizeof(memory) - 2, 2);
}

static void fill_up(unsigned short *counter)
{
    const unsigned short almost = 65530;

    memcpy(counter, &almost, sizeof(almost));
    cr_assert_eq(profil(counter, sizeof(*counter), 0, 0), 0);
    support_burn(0.25);
    support_off();
}

Test(contract, a_counter_stays_at_65535)
{
    unsigned short counters[2] = {0, 7};
    unsigned char memory[4] = {0};
    unsigned short unaligned;

    support_require_perf();
    fill_up(counters);
    cr_assert_eq(counters[0], 65535);
    cr_assert_eq(counters[1], 7);
    fill_up((unsigned short *)(void *)(memory + 1));
    memcpy(&unaligned, memory + 1, sizeof(unaligned));
    cr_assert_eq(unaligned, 65535);
    cr_assert_eq(memory[3], 0);
}

/* Stretches of random length, so that sampling every 10 ms cannot fall into step with them: the
 * count of the first function is then at most as far from its share as a binomial count, of which
 * four standard deviations are allowed. Many readings of the clock lie between the stretches, where
 * a thread likes to be switched away from: up to 15 % of the ticks may be lost to that. */
Test(contract, ticks_land_in_the_function_that_used_the_time)
{
    static unsigned short first[COUNTERS], second[COUNTERS];
    struct prof ranges[] = {
        support_range(&support_hot_first, first, sizeof(first)),
        support_range(&support_hot_second, second, sizeof(second)),
    };
    double used_first = 0, used_second = 0, share, ticks, ticks_of_first;

    support_require_perf();
    srandom(1);
    cr_assert_eq(sprofil(ranges, 2, NULL, PROF_USHORT), 0);
    while (used_first + used_second < 2) {
        used_first += support_burn_in(&support_hot_first, 0.002 * (double)(random() % 8 + 1));
        used_second += support_burn_in(&support_hot_second, 0.001 * (double)(random() % 8 + 1));
    }
    support_off();
    share = used_first / (used_first + used_second);
    ticks_of_first = (double)support_sum(first, COUNTERS);
    ticks = ticks_of_first + (double)support_sum(second, COUNTERS);
    cr_assert_geq(ticks, 0.85 * 100 * (used_first + used_second));
    cr_assert_leq(ticks, support_most_ticks(used_first + used_second));
    cr_assert_float_eq(ticks_of_first, ticks * share, 4 * sqrt(ticks * share * (1 - share)),
                       "%.0f of %.0f ticks for %.3f of the time", ticks_of_first, ticks, share);
}
