/* Counters for the busy functions, one per four bytes of text, and one for everywhere else: what
 * sprofil(3) and those after its model count in. */
#ifndef BENCH_RANGES_H
#define BENCH_RANGES_H

#include "backend.h"

enum { RANGE_COUNTERS = 512, RANGE_SCALE = 65536, OVERFLOW_SCALE = 2 };

struct range_counters {
    uint32_t function[HOT_FUNCTIONS][RANGE_COUNTERS];
    uint32_t elsewhere;
};

static inline size_t range_bytes(size_t function)
{
    size_t bytes = (size_t)(workload_hot[function].end - workload_hot[function].start);
    size_t room = sizeof(((struct range_counters *)0)->function[0]);

    return bytes < room ? bytes : room;
}

static inline void ranges_add(const struct range_counters *ranges, struct counts *counts)
{
    for (size_t i = 0; i < HOT_FUNCTIONS; i++)
        for (size_t j = 0; j < RANGE_COUNTERS; j++) {
            counts->function[i] += ranges->function[i][j];
            counts->total += ranges->function[i][j];
        }
    counts->total += ranges->elsewhere;
}

#endif
