/* How many ticks there are for how much CPU time, and where. The bounds, and the reasons for them,
 * are those of support_assert_ticks(), for threads on two CPUs at most. */
#include "support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

enum { CPUS = 2, THREADS_AT_MOST = 8 };

static const double ticks_per_second = 100;

static void profile_threads(int count)
{
    struct support_burner burners[THREADS_AT_MOST];
    unsigned short ticks = 0;
    double used = 0;

    support_require_perf();
    support_confine(CPUS);
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    for (int i = 0; i < count; i++) {
        burners[i] = (struct support_burner){.hot = &support_hot_first, .seconds = 1};
        support_burner_start(&burners[i]);
    }
    for (int i = 0; i < count; i++)
        used += support_burner_join(&burners[i]);
    support_off();
    support_assert_ticks(ticks, used * ticks_per_second);
}

Test(accuracy, the_calling_thread_has_a_tick_for_each_10_ms)
{
    unsigned short ticks = 0;
    double used;

    support_require_perf();
    support_confine(CPUS);
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    used = support_burn_in(&support_hot_first, 1);
    support_off();
    support_assert_ticks(ticks, used * ticks_per_second);
}

Test(accuracy, one_thread_has_a_tick_for_each_10_ms)
{
    profile_threads(1);
}

Test(accuracy, two_threads_have_a_tick_for_each_10_ms)
{
    profile_threads(2);
}

Test(accuracy, four_threads_have_a_tick_for_each_10_ms)
{
    profile_threads(4);
}

Test(accuracy, eight_threads_have_a_tick_for_each_10_ms)
{
    profile_threads(8);
}

/* By how much the ticks of one thread differ from those of another, each set against its own clock.
 */
static double difference_of_two_equal_threads(void)
{
    struct support_burner burners[] = {
        {.hot = &support_hot_first, .seconds = 1.5},
        {.hot = &support_hot_second, .seconds = 1.5},
    };
    unsigned short first[512] = {0}, second[512] = {0};
    struct prof ranges[] = {
        support_range(&support_hot_first, first, sizeof(first)),
        support_range(&support_hot_second, second, sizeof(second)),
    };

    cr_assert_eq(sprofil(ranges, 2, NULL, PROF_USHORT), 0);
    for (int i = 0; i < 2; i++)
        support_burner_start(&burners[i]);
    for (int i = 0; i < 2; i++)
        support_burner_join(&burners[i]);
    support_off();
    return fabs((double)support_sum(first, 512) / burners[0].used /
                    ((double)support_sum(second, 512) / burners[1].used) -
                1);
}

/* What the two lose to the phase differs by 20 ms at most, 1.3 % of 1.5 s, and what they lose to
 * switches by 1 %. Where the kernel is not sampled both may lose up to 3 % of their ticks by
 * chance: four standard deviations of that difference come on top. On a machine with dozens of
 * threads for each CPU chance may go further once, which a true skew does each time: there are
 * three attempts. */
Test(accuracy, two_equal_threads_differ_by_at_most_3_percent)
{
    double bound = 0.03, difference = 1;

    support_require_perf();
    support_confine(CPUS);
    if (!support_kernel_is_sampled())
        bound += 4 * sqrt(2 * 0.03 / (1.5 * ticks_per_second));
    for (int attempt = 0; attempt < 3 && difference > bound; attempt++)
        difference = difference_of_two_equal_threads();
    cr_assert_leq(difference, bound, "the ticks differ by %.3f", difference);
}

/* Each profile begins with a full period and is stopped just after the end of one, bound to one
 * CPU: there is exactly one right figure. */
Test(accuracy, each_of_many_short_profiles_has_its_ticks)
{
    enum { PROFILES = 20, TICKS = 5 };
    unsigned long sum = 0, expected = 0;

    support_require_perf();
    support_bind(0);
    for (int i = 0; i < PROFILES; i++) {
        unsigned short ticks = 0;

        cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
        expected += support_whole_ticks(
            support_burn_in(&support_hot_first, (TICKS + 0.1) / ticks_per_second));
        support_off();
        sum += ticks;
    }
    support_assert_ticks(sum, (double)expected);
}

/* The sampler reads the rings, and then holds off for a tick. A second thread that is half a tick
 * behind makes it do so just before the last tick of the first, which is then read by off or never.
 * Off comes 1 ms after it. The thread waits at a gate: its birth would take time of the first. */
static double profile_with_a_thread_behind(struct prof *range, int ticks)
{
    pthread_barrier_t gate;
    struct support_burner behind = {.hot = &support_hot_second, .seconds = 0.030, .gate = &gate};
    double used;

    pthread_barrier_init(&gate, NULL, 2);
    support_bind(1);
    support_burner_start(&behind);
    support_bind(0);
    cr_assert_eq(sprofil(range, 1, NULL, PROF_USHORT), 0);
    used = support_burn_in(&support_hot_first, 0.5 / ticks_per_second);
    pthread_barrier_wait(&gate);
    used += support_burn_in(&support_hot_first, ticks / ticks_per_second + 0.001 - used);
    support_off();
    support_burner_join(&behind);
    pthread_barrier_destroy(&gate);
    return used;
}

Test(accuracy, at_off_the_last_tick_is_in_the_buffer)
{
    enum { PROFILES = 30, TICKS = 2 };
    static unsigned short counters[512];
    struct prof range = support_range(&support_hot_first, counters, sizeof(counters));
    unsigned long expected = 0;

    support_require_perf();
    for (int i = 0; i < PROFILES; i++)
        expected += support_whole_ticks(profile_with_a_thread_behind(&range, TICKS));
    /* A virtual machine that is paused loses a tick now and then; without the reading at off it
     * would be every second one. */
    cr_assert_geq((double)support_sum(counters, 512), 0.85 * (double)expected);
}
