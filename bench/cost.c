/* What does it cost? */
#include "measure.h"
#include "report.h"
#include "tasks.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

/* A clock that is read in user mode, as often as possible. */
static inline uint64_t stamp(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return workload_wall_time();
#endif
}

static double stamps_per_nanosecond(void)
{
    uint64_t begin = workload_wall_time(), first = stamp(), now, last;

    do {
        now = workload_wall_time();
        last = stamp();
    } while (now - begin < 20000000);
    return (double)(last - first) / (double)(now - begin);
}

/* That one of the CPUs, counted from 0; false if there are not that many, or is only one. */
static bool select_cpu(const cpu_set_t *allowed, size_t which, cpu_set_t *one)
{
    size_t seen = 0;

    if (CPU_COUNT(allowed) < 2)
        return false;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && seen++ == which) {
            CPU_ZERO(one);
            CPU_SET(cpu, one);
            return true;
        }
    return false;
}

/* With two CPUs the measured thread has one and the profiler's own thread the other, so that the
 * gaps are those that sampling makes in the program; the profiler's own time is counted apart. The
 * CPUs are those of the process, not those of a thread that is pinned already. */
static void pin(const cpu_set_t *allowed, size_t which)
{
    cpu_set_t one;

    if (select_cpu(allowed, which, &one))
        sched_setaffinity(0, sizeof(one), &one);
}

/* A gap that is longer than an iteration can be, and one that only another task can have made. */
enum { SHORTEST_GAP = 500, LONGEST_GAP = 300000 };

struct gaps {
    cpu_set_t cpus;
    uint64_t wall, cpu, count;
    double nanoseconds; /* in gaps */
    double seconds;
    double scale; /* stamps in a ns */
};

static void *run_gaps(void *argument)
{
    struct gaps *gaps = argument;
    double shortest, longest;
    uint64_t begin, end, previous, now, sum = 0;

    pin(&gaps->cpus, 0);
    shortest = SHORTEST_GAP * gaps->scale;
    longest = LONGEST_GAP * gaps->scale;
    backend_enter();
    gaps->cpu = workload_thread_time();
    begin = previous = stamp();
    end = begin + (uint64_t)(gaps->seconds * 1e9 * gaps->scale);
    while ((now = stamp()) < end) {
        uint64_t gap = now - previous;

        previous = now;
        if ((double)gap < shortest || (double)gap > longest)
            continue;
        sum += gap;
        gaps->count++;
    }
    gaps->cpu = workload_thread_time() - gaps->cpu;
    gaps->nanoseconds = (double)sum / gaps->scale;
    backend_leave();
    return NULL;
}

/* gaps SECONDS: a thread that only looks at the clock sees what sampling takes from it. */
void measure_gaps(const struct arguments *arguments)
{
    static struct tasks known;
    struct gaps gaps = {.seconds = arguments->number[0], .scale = stamps_per_nanosecond()};
    struct task_figures before, after;
    struct counts counts;
    pthread_t thread;

    tasks_read(&known);
    if (sched_getaffinity(0, sizeof(gaps.cpus), &gaps.cpus) < 0)
        report_failure("sched_getaffinity", -errno);
    pin(&gaps.cpus, 1);
    measure_start(arguments, SCOPE_TOTAL);
    tasks_of_others(&known, &before);
    if (pthread_create(&thread, NULL, run_gaps, &gaps) != 0)
        report_failure("pthread_create", -EAGAIN);
    pthread_join(thread, NULL);
    tasks_of_others(&known, &after);
    backend_stop();
    backend_read(&counts);
    report("gaps", (double)gaps.count);
    report("gap_ns_per_cpu_second", gaps.nanoseconds / ((double)gaps.cpu / 1e9));
    report("own_ns_per_cpu_second",
           (double)(after.cpu_time - before.cpu_time) / ((double)gaps.cpu / 1e9));
    report("wakeups", (double)(after.wakeups - before.wakeups));
    measure_report_ticks(&counts, gaps.cpu, arguments->period);
}

/* work THREADS ROUNDS: the CPU time of the process for a fixed amount of work. */
void measure_work(const struct arguments *arguments)
{
    enum { MOST_THREADS = 16 };
    struct worker workers[MOST_THREADS] = {0};
    size_t threads = (size_t)arguments->number[0];
    struct counts counts;
    uint64_t begin, used;

    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    for (size_t i = 0; i < threads; i++) {
        workers[i].function = i % HOT_FUNCTIONS;
        workers[i].rounds = (unsigned long)arguments->number[1];
    }
    measure_start(arguments, SCOPE_TOTAL);
    begin = workload_process_time();
    workers_burn(workers, threads);
    used = workload_process_time() - begin;
    backend_stop();
    backend_read(&counts);
    measure_report_ticks(&counts, used, arguments->period);
}

static sem_t parked, leave;

static void *run_parked(void *unused)
{
    (void)unused;
    sem_post(&parked);
    sem_wait(&leave);
    return NULL;
}

static pthread_t *park(size_t count)
{
    enum { STACK_BYTES = 64 << 10 };
    pthread_t *threads = calloc(count, sizeof(*threads));
    pthread_attr_t attributes;

    sem_init(&parked, 0, 0);
    sem_init(&leave, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (size_t i = 0; i < count; i++)
        if (!threads || pthread_create(&threads[i], &attributes, run_parked, NULL) != 0)
            report_unsupported("so many threads cannot be had");
    for (size_t i = 0; i < count; i++)
        sem_wait(&parked);
    pthread_attr_destroy(&attributes);
    return threads;
}

static void unpark(pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sem_post(&leave);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

/* startstop THREADS BEFORE: the time of both calls, with that many threads in all, the others
 * asleep, when both have been called that often before. */
void measure_startstop(const struct arguments *arguments)
{
    size_t others = (size_t)arguments->number[0] - 1;
    uint64_t wall[4], cpu[4];
    pthread_t *threads;

    if (others > 0)
        measure_require_all_threads();
    threads = park(others);
    for (double before = 0; before < arguments->number[1]; before++) {
        measure_start(arguments, SCOPE_TOTAL);
        backend_stop();
    }
    workload_rounds(1);
    cpu[0] = workload_process_time();
    wall[0] = workload_wall_time();
    measure_start(arguments, SCOPE_TOTAL);
    wall[1] = workload_wall_time();
    cpu[1] = workload_process_time();
    workload_burn(0, 2000000);
    cpu[2] = workload_process_time();
    wall[2] = workload_wall_time();
    backend_stop();
    wall[3] = workload_wall_time();
    cpu[3] = workload_process_time();
    unpark(threads, others);
    report("start_us", (double)(wall[1] - wall[0]) / 1e3);
    report("stop_us", (double)(wall[3] - wall[2]) / 1e3);
    report("start_cpu_us", (double)(cpu[1] - cpu[0]) / 1e3);
    report("stop_cpu_us", (double)(cpu[3] - cpu[2]) / 1e3);
}

static void *run_nothing(void *unused)
{
    backend_enter();
    backend_leave();
    return unused;
}

enum { MOST_CREATED = 1000, MOST_PAIRS = 1000 };

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return count > 0 ? values[count / 2] : 0;
}

/* The median time to create and join a thread that does nothing, in us. */
static double create_and_join(const pthread_attr_t *attributes, double *microseconds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = workload_wall_time();
        pthread_t thread;

        if (pthread_create(&thread, attributes, run_nothing, NULL) != 0)
            report_failure("pthread_create", -EAGAIN);
        pthread_join(thread, NULL);
        microseconds[i] = (double)(workload_wall_time() - begin) / 1e3;
    }
    return median(microseconds, count);
}

/* create COUNT: a thread that does nothing is created and joined. */
void measure_create(const struct arguments *arguments)
{
    static double microseconds[MOST_CREATED];
    size_t count = MIN((size_t)arguments->number[0], (size_t)MOST_CREATED);
    uint64_t cpu;

    measure_start(arguments, SCOPE_TOTAL);
    cpu = workload_process_time();
    report("create_us", create_and_join(NULL, microseconds, count));
    report("create_cpu_us", (double)(workload_process_time() - cpu) / 1e3 / (double)count);
    backend_stop();
}

/* turns COUNT PAIRS OTHER: the same without and with the profiler, in turn in one process, COUNT
 * threads each time. The thread is created on the CPU of its creator, or if OTHER is not 0 on the
 * next one: where the scheduler puts it makes more of a difference than a profiler. */
void measure_create_in_turn(const struct arguments *arguments)
{
    static double microseconds[MOST_CREATED], off[MOST_PAIRS], on[MOST_PAIRS], ratio[MOST_PAIRS];
    size_t count = MIN((size_t)arguments->number[0], (size_t)MOST_CREATED);
    size_t pairs = MIN((size_t)arguments->number[1], (size_t)MOST_PAIRS);
    bool other = arguments->number[2] != 0;
    cpu_set_t all, one;
    pthread_attr_t attributes;

    sched_getaffinity(0, sizeof(all), &all);
    pthread_attr_init(&attributes);
    if (select_cpu(&all, other ? 1 : 0, &one))
        pthread_attr_setaffinity_np(&attributes, sizeof(one), &one);
    else if (other)
        report_unsupported("there is one CPU");
    for (size_t i = 0; i < pairs; i++) {
        pin(&all, 0);
        off[i] = create_and_join(&attributes, microseconds, count);
        sched_setaffinity(0, sizeof(all), &all);
        measure_start(arguments, SCOPE_TOTAL);
        pin(&all, 0);
        on[i] = create_and_join(&attributes, microseconds, count);
        sched_setaffinity(0, sizeof(all), &all);
        backend_stop();
        ratio[i] = on[i] / off[i];
    }
    report("create_off_us", median(off, pairs));
    report("create_us", median(on, pairs));
    report("create_ratio", median(ratio, pairs));
}

/* loss THREADS SECONDS: samples that found no room. */
void measure_loss(const struct arguments *arguments)
{
    enum { MOST_THREADS = 64 };
    struct worker workers[MOST_THREADS] = {0};
    size_t threads = (size_t)arguments->number[0];
    struct counts counts;
    uint64_t used;

    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    for (size_t i = 0; i < threads; i++) {
        workers[i].function = i % HOT_FUNCTIONS;
        workers[i].nanoseconds = (uint64_t)(arguments->number[1] * 1e9);
    }
    measure_start(arguments, SCOPE_TOTAL);
    used = workers_burn(workers, threads);
    backend_stop();
    backend_read(&counts);
    measure_report_ticks(&counts, used, arguments->period);
}
