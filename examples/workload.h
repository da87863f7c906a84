/* The work that is profiled: stages of well-known algorithms over data of a thread's own. */
#ifndef EXAMPLE_WORKLOAD_H
#define EXAMPLE_WORKLOAD_H

#include <stdint.h>

enum { WORKLOAD_STAGES = 7 };

struct workload;

struct stage {
    const char *name;
    /* Where its time is spent: in functions of these names, or anywhere else in this object. */
    const char *functions[3];
    const char *object;
    /* A digest of the result: the same on every run over the same data. */
    uint64_t (*run)(struct workload *workload);
};

extern const struct stage workload_stages[WORKLOAD_STAGES];

/* NULL when there is no memory. */
struct workload *workload_new(uint64_t seed);

void workload_free(struct workload *workload);

#endif
