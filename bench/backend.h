/* A profiler, as the measures see it. Each program of the benchmark has one of them. */
#ifndef BENCH_BACKEND_H
#define BENCH_BACKEND_H

#include "workload.h"

#include <stdbool.h>
#include <stdint.h>

struct counts {
    uint64_t total; /* samples, or ticks, wherever the program was */
    uint64_t function[HOT_FUNCTIONS];
    uint64_t lost; /* as far as the profiler says */
};

/* Whether a thread that is there before the start, or does not make itself known, is profiled. */
extern const bool backend_sees_all_threads;

/* What the measure wants to know: how many samples there are, or how many in each function. The C
 * library's profil() can tell only one of the two. */
enum scope { SCOPE_TOTAL, SCOPE_FUNCTIONS };

/* Begins to sample every `period` ns of CPU time. 0 or -errno; -EOPNOTSUPP: not with this profiler
 * here. Once in a process. */
int backend_start(uint64_t period, enum scope scope);

/* Ends it; then the counts are final. */
void backend_stop(void);
void backend_read(struct counts *counts);

/* Why the start failed, or "". */
const char *backend_reason(void);

/* What a thread has to do at its begin and end to be profiled; nothing, for most. The thread that
 * calls start and stop need not. */
void backend_enter(void);
void backend_leave(void);

/* Counts a sample at a program counter. */
static inline void counts_add(struct counts *counts, uintptr_t pc, uint64_t samples)
{
    size_t function = workload_find(pc);

    counts->total += samples;
    if (function < HOT_FUNCTIONS)
        counts->function[function] += samples;
}

#endif
