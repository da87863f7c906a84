/* Profiles a threaded program with profil() or sprofil() and shows where its CPU time went.
 *
 * Each thread also times the stages of its work with its own CPU clock, so that what the profile
 * says can be held against a second measurement. */
#include "report.h"
#include "symbols.h"
#include "texts.h"
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_LIMIT = 1024 };

struct options {
    int threads;
    double seconds;
    unsigned int width;
    size_t lines;
    enum texts_choice choice;
};

struct worker {
    pthread_t thread;
    struct workload *workload;
    double seconds;
    unsigned int random;
    double stage_seconds[WORKLOAD_STAGES];
    unsigned long runs[WORKLOAD_STAGES];
    uint64_t digests[WORKLOAD_STAGES];
    bool wrong;
};

static double cpu_seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void run_stage(struct worker *worker, int stage)
{
    double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    uint64_t digest = workload_stages[stage].run(worker->workload);

    worker->stage_seconds[stage] += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (worker->runs[stage]++ == 0)
        worker->digests[stage] = digest;
    worker->wrong |= digest != worker->digests[stage];
}

/* In random order: samples at even intervals would keep meeting work that repeats evenly in the
 * same places. */
static void *work(void *argument)
{
    struct worker *worker = argument;

    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < worker->seconds)
        run_stage(worker, (int)(rand_r(&worker->random) % WORKLOAD_STAGES));
    return NULL;
}

static int prepare(struct worker *workers, const struct options *options)
{
    for (int i = 0; i < options->threads; i++) {
        workers[i].seconds = options->seconds;
        workers[i].random = (unsigned int)i + 1;
        workers[i].workload = workload_new((uint64_t)i);
        if (!workers[i].workload)
            return -1;
    }
    return 0;
}

static int run(struct worker *workers, int threads)
{
    int started = 0;

    while (started < threads &&
           (errno = pthread_create(&workers[started].thread, NULL, work, &workers[started])) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    return started == threads ? 0 : -1;
}

static int profile(struct texts *texts, struct worker *workers, const struct options *options,
                   double *seconds)
{
    double start;

    if (texts_profile(texts, options->choice) == -1) {
        perror(options->choice == TEXTS_ALL ? "sprofil" : "profil");
        return -1;
    }
    start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (run(workers, options->threads) == -1) {
        perror("pthread_create");
        texts_stop();
        return -1;
    }
    *seconds = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    return texts_stop();
}

static void sum_up(const struct worker *workers, int threads, struct worker *sum)
{
    *sum = (struct worker){0};
    for (int i = 0; i < threads; i++) {
        for (int stage = 0; stage < WORKLOAD_STAGES; stage++)
            sum->stage_seconds[stage] += workers[i].stage_seconds[stage];
        sum->wrong |= workers[i].wrong;
    }
}

static int show(const struct texts *texts, const struct worker *sum, const struct options *options,
                double seconds)
{
    struct symbols *symbols = symbols_open();
    struct report *report = symbols ? report_new(texts, symbols) : NULL;

    if (report) {
        printf("\nThe hottest functions of %d threads, by %s:\n\n", options->threads,
               options->choice == TEXTS_ALL ? "sprofil() over the program and its libraries"
                                            : "profil() over the program's own text");
        report_print_functions(report, options->lines);
        printf("\nThe same stages by the threads' own CPU clocks (+/-: one standard error):\n\n");
        report_print_stages(report, sum->stage_seconds, seconds);
        printf("\n");
        report_print_total(report, seconds);
        printf("\n");
    }
    if (sum->wrong)
        fprintf(stderr, "the same work gave different results\n");
    report_free(report);
    if (symbols)
        symbols_close(symbols);
    return report && !sum->wrong ? 0 : -1;
}

static _Noreturn void usage(const char *program, int status)
{
    fprintf(status ? stderr : stdout,
            "usage: %s [-t threads] [-s seconds] [-u bytes] [-n lines] [-p]\n"
            "  -t  threads that work (4)\n"
            "  -s  CPU time of each thread, in seconds (2)\n"
            "  -u  bytes of text for each counter, 2, 4, 8 ... 65536 (4)\n"
            "  -n  functions to show (10)\n"
            "  -p  profil() over the program's own text, without the shared libraries\n",
            program);
    exit(status);
}

static double number(const char *program, double least, double most)
{
    char *end;
    double value = strtod(optarg, &end);

    if (end == optarg || *end || !(value >= least && value <= most))
        usage(program, 2);
    return value;
}

/* A power of two: then the scale has no remainder. */
static unsigned int read_width(const char *program)
{
    unsigned int width = (unsigned int)number(program, 2, 65536);

    if (width & (width - 1))
        usage(program, 2);
    return width;
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {
        .threads = 4, .seconds = 2, .width = 4, .lines = 10, .choice = TEXTS_ALL};
    int option;

    while ((option = getopt(argc, argv, "t:s:u:n:ph")) != -1) {
        if (option == 't')
            options.threads = (int)number(argv[0], 1, THREADS_LIMIT);
        else if (option == 's')
            options.seconds = number(argv[0], 0.01, 3600);
        else if (option == 'u')
            options.width = read_width(argv[0]);
        else if (option == 'n')
            options.lines = (size_t)number(argv[0], 1, 1000);
        else if (option == 'p')
            options.choice = TEXTS_PROGRAM;
        else
            usage(argv[0], option == 'h' ? 0 : 2);
    }
    if (optind < argc)
        usage(argv[0], 2);
    return options;
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    struct worker *workers = calloc((size_t)options.threads, sizeof(*workers));
    struct worker sum;
    struct texts texts;
    double seconds;
    int result = -1;

    if (!workers || prepare(workers, &options) == -1 || texts_find(&texts, options.width) == -1) {
        perror(argv[0]);
        return EXIT_FAILURE;
    }
    if (profile(&texts, workers, &options, &seconds) == 0) {
        sum_up(workers, options.threads, &sum);
        result = show(&texts, &sum, &options, seconds);
    }
    for (int i = 0; i < options.threads; i++)
        workload_free(workers[i].workload);
    free(workers);
    texts_free(&texts);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
