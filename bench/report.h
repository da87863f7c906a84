/* A measure's figures, one "name=value" to a line of standard output. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

void report(const char *name, double value);

/* The measure cannot be had here, for this reason; ends the program with status 0. */
_Noreturn void report_unsupported(const char *reason);

/* A call failed with -errno; ends the program with status 1. */
_Noreturn void report_failure(const char *what, int error);

#endif
