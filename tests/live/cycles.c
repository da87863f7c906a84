/* Over and over: nothing is left, and nothing is touched that has been given back. */
#include "process.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BUSY_THREADS = 4 };

struct busy {
    pthread_t threads[BUSY_THREADS];
    int finished;
};

/* At the lowest priority: always runnable and often sampled, but the cycles, which are what is
 * tested, need not wait for a CPU each time. */
static void *burn_until_finished(void *argument)
{
    struct busy *busy = argument;

    setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
    while (!__atomic_load_n(&busy->finished, __ATOMIC_RELAXED))
        support_burn(0.002);
    return NULL;
}

static void start_busy(struct busy *busy)
{
    busy->finished = 0;
    for (int i = 0; i < BUSY_THREADS; i++)
        cr_assert_eq(pthread_create(&busy->threads[i], NULL, burn_until_finished, busy), 0);
}

static void stop_busy(struct busy *busy)
{
    __atomic_store_n(&busy->finished, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < BUSY_THREADS; i++)
        pthread_join(busy->threads[i], NULL);
}

static void work_a_little(void)
{
    volatile unsigned long sum = 0;

    for (unsigned long i = 0; i < 20000; i++)
        sum += i;
    (void)sum;
}

/* Long enough for a tick: in a shorter cycle there is nothing to write. */
static void work_a_tick(void)
{
    support_burn(0.012);
}

/* A write to the buffer after the stop is a fault. */
static unsigned long cycle(void (*work)(void))
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned short *buffer =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long ticks;

    cr_assert_neq(buffer, MAP_FAILED);
    cr_assert_eq(profil(buffer, bytes, 0, 0), 0, "start: %s", strerror(errno));
    work();
    support_off();
    ticks = buffer[0];
    munmap(buffer, bytes);
    return ticks;
}

Test(cycles, three_thousand_cycles_under_busy_threads_touch_no_buffer_after_the_stop)
{
    support_require_perf();
    struct busy busy;
    unsigned long ticks = 0;

    start_busy(&busy);
    for (int i = 0; i < 3000; i++)
        ticks += cycle(i % 30 == 0 ? work_a_tick : work_a_little);
    stop_busy(&busy);
    /* Some fall in the kernel, which an unprivileged profile does not see. */
    cr_expect_geq(ticks, 50, "%lu ticks in 100 cycles that had time for one", ticks);
}

static void expect_same_limits(const struct rlimit before[], const struct rlimit after[])
{
    for (int i = 0; i < RLIM_NLIMITS; i++)
        cr_expect(before[i].rlim_cur == after[i].rlim_cur &&
                      before[i].rlim_max == after[i].rlim_max,
                  "limit %d was %lu and is %lu", i, (unsigned long)before[i].rlim_cur,
                  (unsigned long)after[i].rlim_cur);
}

static void read_limits(struct rlimit limits[])
{
    for (int i = 0; i < RLIM_NLIMITS; i++)
        getrlimit(i, &limits[i]);
}

Test(cycles, three_hundred_cycles_leave_no_thread_mapping_descriptor_or_limit)
{
    struct rlimit limits_before[RLIM_NLIMITS], limits_after[RLIM_NLIMITS];
    struct process_state at_rest, before, after;
    struct busy busy;

    process_read_state(&at_rest);
    support_require_perf();
    start_busy(&busy);
    for (int i = 0; i < 10; i++)
        cycle(work_a_little);
    process_read_settled_state(&before, at_rest.threads + BUSY_THREADS);
    read_limits(limits_before);
    for (int i = 0; i < 300; i++)
        cycle(work_a_little);
    process_read_settled_state(&after, at_rest.threads + BUSY_THREADS);
    read_limits(limits_after);
    stop_busy(&busy);
    cr_expect_eq(after.threads, before.threads, "%zu threads, then %zu", before.threads,
                 after.threads);
    cr_expect_eq(after.descriptors, before.descriptors, "%zu descriptors, then %zu",
                 before.descriptors, after.descriptors);
    cr_expect_eq(after.rings, 0, "%zu rings", after.rings);
    cr_expect_eq(after.mappings, before.mappings, "%zu mappings, then %zu", before.mappings,
                 after.mappings);
    cr_expect_eq(after.kilobytes, before.kilobytes, "%zu kB, then %zu", before.kilobytes,
                 after.kilobytes);
    expect_same_limits(limits_before, limits_after);
}

struct caller {
    pthread_t thread;
    unsigned short counter;
    int failures;
};

static void *start_and_stop(void *argument)
{
    struct caller *caller = argument;

    for (int i = 0; i < 100; i++) {
        unsigned short *volatile off = NULL;

        caller->failures += profil(&caller->counter, sizeof(caller->counter), 0, 0) != 0;
        work_a_little();
        caller->failures += profil(off, 0, 0, 0) != 0;
    }
    return NULL;
}

Test(cycles, many_threads_start_and_stop_at_once)
{
    enum { CALLERS = 8 };

    struct caller callers[CALLERS] = {0};
    struct process_state before, after;
    int failures = 0;

    process_read_state(&before);
    support_require_perf();
    for (int i = 0; i < CALLERS; i++)
        cr_assert_eq(pthread_create(&callers[i].thread, NULL, start_and_stop, &callers[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        failures += callers[i].failures;
    }
    process_read_settled_state(&after, before.threads);
    cr_expect_eq(failures, 0, "%d calls failed", failures);
    cr_expect_eq(after.threads, before.threads, "%zu threads, then %zu", before.threads,
                 after.threads);
    cr_expect_eq(after.rings, 0, "%zu rings are left", after.rings);
}
