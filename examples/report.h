/* What the counters say: ticks by function and by stage, and the tables that show them. */
#ifndef EXAMPLE_REPORT_H
#define EXAMPLE_REPORT_H

#include "symbols.h"
#include "texts.h"
#include "workload.h"

struct report;

/* NULL when there is no memory or no symbol table. Close the symbols after the report. */
struct report *report_new(const struct texts *texts, struct symbols *symbols);

/* The functions with the most ticks, at most that many lines. */
void report_print_functions(const struct report *report, size_t lines);

/* What part of the CPU time of the process each stage took: by the clock of the threads that ran
 * it, and by the profile. */
void report_print_stages(const struct report *report, const double stage_seconds[WORKLOAD_STAGES],
                         double process_seconds);

/* All ticks, against the CPU time of the process. */
void report_print_total(const struct report *report, double process_seconds);

void report_free(struct report *report);

#endif
