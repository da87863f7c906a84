/* subject-PROFILER MEASURE PERIOD [WORD] [NUMBER...]: one measure with one profiler, in a process
 * of its own. The period is in ns of CPU time. */
#include "measure.h"
#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(const struct arguments *arguments);
} measures[] = {
    {"ticks", measure_ticks},       {"skew", measure_skew},       {"mix", measure_mix},
    {"births", measure_births},     {"system", measure_system},   {"eintr", measure_eintr},
    {"survival", measure_survival}, {"wakeups", measure_wakeups}, {"memory", measure_memory},
    {"gaps", measure_gaps},         {"work", measure_work},       {"startstop", measure_startstop},
    {"create", measure_create},     {"loss", measure_loss},       {"turns", measure_create_in_turn},
};

void measure_start(const struct arguments *arguments, enum scope scope)
{
    int result;

    workload_rounds(1); /* calibrates */
    result = backend_start(arguments->period, scope);
    if (result == -EOPNOTSUPP)
        report_unsupported(backend_reason());
    if (result < 0)
        report_failure(*backend_reason() ? backend_reason() : "start", result);
}

void measure_require_all_threads(void)
{
    if (!backend_sees_all_threads)
        report_unsupported("each thread has to start its own");
}

void measure_report_ticks(const struct counts *counts, uint64_t cpu_time, uint64_t period)
{
    report("cpu_ns", (double)cpu_time);
    report("ticks", (double)counts->total);
    report("lost", (double)counts->lost);
    report("ratio", (double)counts->total * (double)period / (double)cpu_time);
}

static void parse(int argc, char **argv, struct arguments *arguments)
{
    size_t count = 0;

    arguments->period = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        if (isalpha((unsigned char)argv[i][0]))
            arguments->word = argv[i];
        else if (count < sizeof(arguments->number) / sizeof(arguments->number[0]))
            arguments->number[count++] = strtod(argv[i], NULL);
    }
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.word = ""};

    for (size_t i = 0; argc >= 3 && i < sizeof(measures) / sizeof(measures[0]); i++)
        if (strcmp(argv[1], measures[i].name) == 0) {
            parse(argc, argv, &arguments);
            measures[i].run(&arguments);
            return EXIT_SUCCESS;
        }
    fprintf(stderr, "usage: %s MEASURE PERIOD [WORD] [NUMBER...]\n", argv[0]);
    return 2;
}
