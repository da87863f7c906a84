/* What else does the program notice? */
#include "measure.h"
#include "report.h"
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_THREADS = 2 };

static atomic_bool done;

static void *burn_until_done(void *function)
{
    backend_enter();
    while (!atomic_load(&done))
        workload_burn((size_t)(uintptr_t)function, 1000000);
    backend_leave();
    return NULL;
}

static void start_busy(pthread_t *threads)
{
    for (uintptr_t i = 0; i < BUSY_THREADS; i++)
        if (pthread_create(&threads[i], NULL, burn_until_done, (void *)i) != 0)
            report_failure("pthread_create", -EAGAIN);
}

static void stop_busy(pthread_t *threads)
{
    atomic_store(&done, true);
    for (size_t i = 0; i < BUSY_THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* eintr SECONDS: sleeps and polls of 2 ms beside two busy threads. */
void measure_eintr(const struct arguments *arguments)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    pthread_t threads[BUSY_THREADS];
    uint64_t begin, interrupted = 0, calls = 0;

    measure_start(arguments, SCOPE_TOTAL);
    start_busy(threads);
    begin = workload_wall_time();
    while (workload_wall_time() - begin < (uint64_t)(arguments->number[0] * 1e9)) {
        interrupted += nanosleep(&pause, NULL) < 0 && errno == EINTR;
        interrupted += poll(NULL, 0, 2) < 0 && errno == EINTR;
        calls += 2;
    }
    stop_busy(threads);
    backend_stop();
    report("calls", (double)calls);
    report("eintr", (double)interrupted);
}

static void burn_and_stop(const struct arguments *arguments, uint64_t used_before)
{
    uint64_t used = used_before + workload_burn(0, 500000000);
    struct counts counts;

    backend_stop();
    backend_read(&counts);
    measure_report_ticks(&counts, used, arguments->period);
}

static void survive_exec(const struct arguments *arguments)
{
    (void)arguments;
    workload_burn(0, 100000000);
    /* Of the profiler, nothing may be left in the new program but an interval timer, if it has one.
     */
    execl("/proc/self/exe", "subject", "survival", "10000000", "executed", (char *)NULL);
    report_failure("execl", -errno);
}

static void survive_fork(const struct arguments *arguments)
{
    uint64_t used = workload_burn(0, 100000000);
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        workload_burn(1, 300000000);
        _exit(0);
    }
    used += workload_burn(2, 300000000);
    waitpid(child, &status, 0);
    report("child_status", status);
    burn_and_stop(arguments, used);
}

static void survive_closefrom(const struct arguments *arguments)
{
    uint64_t used = workload_burn(0, 100000000);
    int first, second;

    closefrom(3);
    used += workload_burn(0, 300000000);
    first = open("/dev/null", O_RDWR);
    second = dup(first);
    report("lowest_descriptor", first);
    burn_and_stop(arguments, used);
    /* A profiler that closes by number what it believes to be its own closes these. */
    report("descriptors_left", (fcntl(first, F_GETFD) >= 0) + (fcntl(second, F_GETFD) >= 0));
}

/* survival exec|fork|closefrom */
void measure_survival(const struct arguments *arguments)
{
    if (strcmp(arguments->word, "executed") == 0) {
        workload_burn(0, 300000000);
        report("alive", 1);
        return;
    }
    measure_start(arguments, SCOPE_TOTAL);
    if (strcmp(arguments->word, "exec") == 0)
        survive_exec(arguments);
    else if (strcmp(arguments->word, "fork") == 0)
        survive_fork(arguments);
    else
        survive_closefrom(arguments);
    report("alive", 1);
}

/* A sleep that goes on after a signal; how many there were. */
static uint64_t sleep_through(double seconds)
{
    struct timespec until;
    uint64_t interrupted = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    until.tv_sec += (time_t)seconds + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        interrupted++;
    return interrupted;
}

/* wakeups idle|busy SECONDS: how often the profiler's own threads wake up, per second; the program
 * sleeps, or has two busy threads. */
void measure_wakeups(const struct arguments *arguments)
{
    static struct tasks known;
    bool busy = strcmp(arguments->word, "busy") == 0;
    struct task_figures before, after;
    pthread_t threads[BUSY_THREADS];
    uint64_t begin, interrupted;
    double seconds;

    if (busy) {
        measure_require_all_threads();
        workload_rounds(1);
        start_busy(threads);
    }
    tasks_read(&known);
    measure_start(arguments, SCOPE_TOTAL);
    sleep_through(0.1); /* what the start itself brings */
    tasks_of_others(&known, &before);
    begin = workload_wall_time();
    interrupted = sleep_through(arguments->number[0]);
    tasks_of_others(&known, &after);
    seconds = (double)(workload_wall_time() - begin) / 1e9;
    if (busy)
        stop_busy(threads);
    backend_stop();
    report("threads", (double)after.count);
    report("wakeups", (double)(after.wakeups - before.wakeups));
    report("wakeups_per_second", (double)(after.wakeups - before.wakeups) / seconds);
    report("own_cpu_ns_per_second", (double)(after.cpu_time - before.cpu_time) / seconds);
    report("interrupted", (double)interrupted);
}

struct memory {
    double mapped, resident, rings, ring_count, smallest_stack;
};

/* Sums over /proc/self/smaps, in KiB. A stack is writable memory directly above a page that is not
 * accessible. */
static void read_memory(struct memory *memory)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    unsigned long start, end, guard_end = 0;
    char line[512], access[8];
    double amount;

    *memory = (struct memory){.smallest_stack = 1e300};
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3) {
            double size = (double)(end - start) / 1024;

            memory->mapped += size;
            if (strstr(line, "[perf_event]")) {
                memory->rings += size;
                memory->ring_count++;
            }
            if (access[1] == 'w' && start == guard_end && size < memory->smallest_stack)
                memory->smallest_stack = size;
            guard_end = memcmp(access, "---p", 4) == 0 ? end : 0;
        } else if (sscanf(line, "Rss: %lf", &amount) == 1) {
            memory->resident += amount;
        }
    }
    if (file)
        fclose(file);
}

/* memory: what the profile adds to the process, in KiB, after half a second of work. */
void measure_memory(const struct arguments *arguments)
{
    struct memory before, after;

    workload_burn(0, 10000000);
    read_memory(&before);
    read_memory(&before); /* the second time, with what reading itself takes */
    measure_start(arguments, SCOPE_TOTAL);
    workload_burn(0, 500000000);
    read_memory(&after);
    backend_stop();
    report("mapped_kib", after.mapped - before.mapped);
    report("resident_kib", after.resident - before.resident);
    report("rings_kib", after.rings);
    report("rings", after.ring_count);
    if (after.smallest_stack < before.smallest_stack)
        report("smallest_stack_kib", after.smallest_stack);
}
