/* What the profile costs where nothing happens, and how soon a tick is there. */
#include "process.h"
#include "support.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* At scale 0 every tick goes to the first counter. */
static unsigned short ticks;

static double wall_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long wakeups_of(pid_t thread)
{
    char value[64] = "";

    cr_assert(process_thread_field(thread, "voluntary_ctxt_switches", value, sizeof(value)));
    return atol(value);
}

static pid_t start(void)
{
    pid_t sampler;

    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    sampler = process_thread_named("profil-sampler");
    cr_assert_neq(sampler, 0, "no thread has the sampler's name");
    return sampler;
}

Test(wakeups, an_idle_program_wakes_the_sampler_at_most_twice_in_two_seconds)
{
    support_require_perf();
    const struct timespec two_seconds = {.tv_sec = 2};
    pid_t sampler = start();
    long after_work;

    support_burn(0.1);
    after_work = wakeups_of(sampler);
    nanosleep(&two_seconds, NULL);
    long idle = wakeups_of(sampler) - after_work;
    support_off();
    cr_expect_geq(ticks, 5, "%d ticks: there was no work to wake up for", ticks);
    cr_expect_leq(idle, 2, "%ld wake-ups in two seconds", idle);
}

enum { MOST_THREADS = 8 };

static void expect_few_wakeups(int thread_count, void *(*run)(void *), double seconds_each)
{
    pthread_t threads[MOST_THREADS];
    pid_t sampler = start();
    long before = wakeups_of(sampler);
    double begin = wall_seconds();

    for (int i = 0; i < thread_count; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run, &seconds_each), 0);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    long wakeups = wakeups_of(sampler) - before;
    double seconds = wall_seconds() - begin;
    support_off();
    cr_expect(wakeups >= 1 && (double)wakeups <= seconds * 110, "%ld wake-ups in %.3f s", wakeups,
              seconds);
}

Test(wakeups, a_busy_thread_wakes_the_sampler_at_most_110_times_a_second)
{
    support_require_perf();
    expect_few_wakeups(1, support_burn_thread, 1.0);
}

static void *burn_with_pauses(void *seconds)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};

    for (double left = *(double *)seconds; left > 0; left -= 0.004) {
        support_burn(0.004);
        nanosleep(&millisecond, NULL);
    }
    return NULL;
}

/* Its samples come a little more than a tick apart. */
Test(wakeups, a_thread_that_is_busy_most_of_the_time_wakes_the_sampler_no_more_often)
{
    support_require_perf();
    expect_few_wakeups(1, burn_with_pauses, 0.6);
}

Test(wakeups, several_busy_threads_wake_the_sampler_no_more_often)
{
    support_require_perf();
    expect_few_wakeups(4, support_burn_thread, 0.25);
}

static int compare_doubles(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* How many ticks a reading of so many, after so many seconds, is behind what the whole profile
 * gave: its ticks by its CPU time. What the kernel takes of an unprivileged profile is not
 * lateness. */
struct reading {
    double seconds;
    double ticks;
};

static double ticks_behind(struct reading reading, struct reading whole)
{
    return whole.ticks * reading.seconds / whole.seconds - reading.ticks;
}

/* The sampler needs a CPU to count what the kernel has sampled, and on a busy machine may wait for
 * it longer than the bound: half of the readings are enough to show how late it is by itself. */
Test(wakeups, a_reader_of_the_running_profile_is_at_most_three_ticks_behind)
{
    enum { READINGS = 200 };

    support_require_perf();
    struct reading readings[READINGS], whole;
    double behind[READINGS], begin = support_thread_seconds();

    start();
    for (int i = 0; i < READINGS; i++) {
        support_burn(0.003);
        readings[i].seconds = support_thread_seconds() - begin;
        readings[i].ticks = __atomic_load_n(&ticks, __ATOMIC_RELAXED);
    }
    whole.seconds = support_thread_seconds() - begin;
    support_off();
    whole.ticks = ticks;
    for (int i = 0; i < READINGS; i++)
        behind[i] = ticks_behind(readings[i], whole);
    qsort(behind, READINGS, sizeof(behind[0]), compare_doubles);
    cr_expect_geq(ticks, 30, "%d ticks in %.3f s", ticks, whole.seconds);
    cr_expect_leq(behind[READINGS / 2], 3, "%.1f ticks behind; at most %.1f", behind[READINGS / 2],
                  behind[READINGS - 1]);
}
