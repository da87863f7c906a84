/* Are the ticks as many as the CPU time, and are they where the time was? */
#include "measure.h"
#include "report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static size_t thread_count(double wanted)
{
    return wanted < 1 ? 1 : wanted > MOST_THREADS ? MOST_THREADS : (size_t)wanted;
}

/* How far the functions of equal threads are apart, as a part of the mean tick count. */
static double skew(const struct counts *counts, const struct worker *workers, size_t threads)
{
    double least = 1e300, most = 0, sum = 0;

    for (size_t i = 0; i < threads; i++) {
        double share = (double)counts->function[i] / (double)workers[i].used;

        least = share < least ? share : least;
        most = share > most ? share : most;
        sum += share;
    }
    return sum > 0 ? (most - least) * (double)threads / sum : 0;
}

static uint64_t burn_equally(struct worker *workers, size_t threads, double seconds)
{
    for (size_t i = 0; i < threads; i++) {
        workers[i].function = i % HOT_FUNCTIONS;
        workers[i].nanoseconds = (uint64_t)(seconds * 1e9);
    }
    return workers_burn(workers, threads);
}

/* ticks THREADS SECONDS: equal threads, that much CPU time each. */
void measure_ticks(const struct arguments *arguments)
{
    struct worker workers[MOST_THREADS] = {0};
    struct counts counts;
    uint64_t used;

    measure_start(arguments, SCOPE_TOTAL);
    used = burn_equally(workers, thread_count(arguments->number[0]), arguments->number[1]);
    backend_stop();
    backend_read(&counts);
    measure_report_ticks(&counts, used, arguments->period);
}

/* skew THREADS SECONDS: as many functions as threads, and how far their ticks are apart. */
void measure_skew(const struct arguments *arguments)
{
    struct worker workers[MOST_THREADS] = {0};
    size_t threads = thread_count(arguments->number[0]);
    struct counts counts;

    if (threads < 2 || threads > HOT_FUNCTIONS)
        report_unsupported("two to five threads");
    measure_start(arguments, SCOPE_FUNCTIONS);
    burn_equally(workers, threads, arguments->number[1]);
    backend_stop();
    backend_read(&counts);
    report("skew", skew(&counts, workers, threads));
}

struct mixer {
    pthread_t thread;
    uint64_t seed, nanoseconds;
    uint64_t truth[HOT_FUNCTIONS];
};

static size_t choose(uint64_t *random)
{
    static const double upto[HOT_FUNCTIONS] = {0.50, 0.80, 0.95, 0.99, 1.00};
    double at = random_unit(random);
    size_t function = 0;

    while (function < HOT_FUNCTIONS - 1 && at >= upto[function])
        function++;
    return function;
}

/* Slices of random length and much shorter than a tick: whatever the sampler's phase, each sample
 * falls into a function by its share. */
static void *run_mixer(void *argument)
{
    enum { LONGEST_SLICE = 1000000 };
    struct mixer *mixer = argument;
    unsigned long most = workload_rounds(LONGEST_SLICE);
    uint64_t begin, before, now;

    backend_enter();
    begin = now = workload_thread_time();
    while (now - begin < mixer->nanoseconds) {
        size_t function = choose(&mixer->seed);

        before = now;
        workload_hot[function].run(1 + (unsigned long)((double)most * random_unit(&mixer->seed)));
        now = workload_thread_time();
        mixer->truth[function] += now - before;
    }
    backend_leave();
    return NULL;
}

/* mix THREADS SECONDS SEED: functions of 50, 30, 15, 4 and 1 % of the time of each thread. */
void measure_mix(const struct arguments *arguments)
{
    struct mixer mixers[MOST_THREADS] = {0};
    size_t threads = thread_count(arguments->number[0]);
    struct counts counts;
    char name[16];

    measure_start(arguments, SCOPE_FUNCTIONS);
    for (size_t i = 0; i < threads; i++) {
        mixers[i].seed = (uint64_t)arguments->number[2] * 1000003 + 7919 * (i + 1);
        mixers[i].nanoseconds = (uint64_t)(arguments->number[1] * 1e9);
        pthread_create(&mixers[i].thread, NULL, run_mixer, &mixers[i]);
    }
    for (size_t i = 0; i < threads; i++)
        pthread_join(mixers[i].thread, NULL);
    backend_stop();
    backend_read(&counts);
    for (size_t function = 0; function < HOT_FUNCTIONS; function++) {
        uint64_t truth = 0;

        for (size_t i = 0; i < threads; i++)
            truth += mixers[i].truth[function];
        snprintf(name, sizeof(name), "truth%zu", function);
        report(name, (double)truth);
        snprintf(name, sizeof(name), "ticks%zu", function);
        report(name, (double)counts.function[function]);
    }
}

/* births MILLISECONDS COUNT: threads of that much CPU time, one after the other. */
void measure_births(const struct arguments *arguments)
{
    uint64_t used = 0;
    struct counts counts;

    measure_start(arguments, SCOPE_TOTAL);
    for (size_t i = 0; i < (size_t)arguments->number[1]; i++) {
        struct worker worker = {.function = i % HOT_FUNCTIONS,
                                .nanoseconds = (uint64_t)(arguments->number[0] * 1e6)};

        worker_start(&worker);
        worker_join(&worker);
        used += worker.used;
    }
    backend_stop();
    backend_read(&counts);
    measure_report_ticks(&counts, used, arguments->period);
}

/* system SECONDS: nearly all of the time is the kernel's. */
void measure_system(const struct arguments *arguments)
{
    enum { BLOCK = 1 << 18 };
    static char block[BLOCK];
    int fd = open("/dev/zero", O_RDONLY);
    struct counts counts;
    uint64_t begin, used;

    if (fd < 0)
        report_unsupported("/dev/zero cannot be read");
    measure_start(arguments, SCOPE_TOTAL);
    begin = workload_thread_time();
    do
        if (read(fd, block, sizeof(block)) < 0)
            report_unsupported("/dev/zero cannot be read");
    while ((used = workload_thread_time() - begin) < (uint64_t)(arguments->number[0] * 1e9));
    backend_stop();
    backend_read(&counts);
    close(fd);
    measure_report_ticks(&counts, used, arguments->period);
}
