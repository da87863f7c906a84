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

static void expect_few_wakeups(int thread_count, double seconds_each)
{
    pthread_t threads[MOST_THREADS];
    pid_t sampler = start();
    long before = wakeups_of(sampler);
    double begin = wall_seconds();

    for (int i = 0; i < thread_count; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, support_burn_thread, &seconds_each), 0);
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
    expect_few_wakeups(1, 1.0);
}

Test(wakeups, several_busy_threads_wake_the_sampler_no_more_often)
{
    support_require_perf();
    expect_few_wakeups(4, 0.25);
}

static int compare_doubles(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* The sampler needs a CPU to count what the kernel has sampled, and on a busy machine may wait for
 * it longer than the bound: half of the readings are enough to show how late it is by itself. */
Test(wakeups, a_reader_of_the_running_profile_is_at_most_three_ticks_behind)
{
    enum { READINGS = 200 };

    support_require_perf();
    double behind[READINGS];
    double begin = support_thread_seconds();

    start();
    for (int i = 0; i < READINGS; i++) {
        support_burn(0.003);
        behind[i] = (support_thread_seconds() - begin) * 100;
        behind[i] -= __atomic_load_n(&ticks, __ATOMIC_RELAXED);
    }
    support_off();
    qsort(behind, READINGS, sizeof(behind[0]), compare_doubles);
    cr_expect_leq(behind[READINGS / 2], 3, "%.1f ticks behind; at most %.1f", behind[READINGS / 2],
                  behind[READINGS - 1]);
    cr_expect_geq(behind[0], -2, "%.1f ticks ahead", -behind[0]);
}
