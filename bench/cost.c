/* What does it cost? */
#include "measure.h"
#include "report.h"
#include "tasks.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
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

/* With two CPUs the measured thread has one and the profiler's own thread the other, so that the
 * gaps are those that sampling makes in the program; the profiler's own time is counted apart. The
 * CPUs are those of the process, not those of a thread that is pinned already. */
static void pin(const cpu_set_t *allowed, size_t which)
{
    cpu_set_t one;
    size_t seen = 0;

    if (CPU_COUNT(allowed) < 2)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && seen++ == which) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
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

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* create COUNT: a thread that does nothing is created and joined; the median over the lot. */
void measure_create(const struct arguments *arguments)
{
    size_t count = (size_t)arguments->number[0];
    double *microseconds = calloc(count + 1, sizeof(*microseconds));
    uint64_t cpu;

    measure_start(arguments, SCOPE_TOTAL);
    cpu = workload_process_time();
    for (size_t i = 0; microseconds && i < count; i++) {
        uint64_t begin = workload_wall_time();
        pthread_t thread;

        if (pthread_create(&thread, NULL, run_nothing, NULL) != 0)
            report_failure("pthread_create", -EAGAIN);
        pthread_join(thread, NULL);
        microseconds[i] = (double)(workload_wall_time() - begin) / 1e3;
    }
    cpu = workload_process_time() - cpu;
    backend_stop();
    if (!microseconds || count == 0)
        report_failure("calloc", -ENOMEM);
    qsort(microseconds, count, sizeof(*microseconds), compare);
    report("create_us", microseconds[count / 2]);
    report("create_cpu_us", (double)cpu / 1e3 / (double)count);
    free(microseconds);
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
