/* What a program of the benchmark can measure; the arguments are numbers, or for one a word. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "backend.h"

struct arguments {
    uint64_t period;
    const char *word;
    double number[3];
};

void measure_ticks(const struct arguments *arguments);
void measure_skew(const struct arguments *arguments);
void measure_mix(const struct arguments *arguments);
void measure_births(const struct arguments *arguments);
void measure_system(const struct arguments *arguments);

void measure_eintr(const struct arguments *arguments);
void measure_survival(const struct arguments *arguments);
void measure_wakeups(const struct arguments *arguments);
void measure_memory(const struct arguments *arguments);

void measure_gaps(const struct arguments *arguments);
void measure_work(const struct arguments *arguments);
void measure_startstop(const struct arguments *arguments);
void measure_create(const struct arguments *arguments);
void measure_create_in_turn(const struct arguments *arguments);
void measure_loss(const struct arguments *arguments);

/* Starts the profiler, or ends the program with the reason why not. */
void measure_start(const struct arguments *arguments, enum scope scope);

/* Before there are threads that are to be profiled: ends the program where the profiler would not
 * see them. */
void measure_require_all_threads(void);

/* Ticks, CPU time and their ratio. */
void measure_report_ticks(const struct counts *counts, uint64_t cpu_time, uint64_t period);

#endif
