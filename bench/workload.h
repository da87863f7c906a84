/* What every candidate runs: busy functions whose extents are known, and clocks of CPU time. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { HOT_FUNCTIONS = 5 };

/* A busy function, alone in a section of its own, so that the linker knows its extent. */
struct hot {
    unsigned long (*run)(unsigned long rounds);
    const char *start, *end;
};

extern const struct hot workload_hot[HOT_FUNCTIONS];

/* The index of the function that pc is in, or HOT_FUNCTIONS. */
size_t workload_find(uintptr_t pc);

/* ns of CPU time: of the calling thread, of the process; ns of wall time. */
uint64_t workload_thread_time(void);
uint64_t workload_process_time(void);
uint64_t workload_wall_time(void);

/* Uses that much CPU time of the calling thread in a function; what it really was. */
uint64_t workload_burn(size_t function, uint64_t nanoseconds);

/* Rounds of the functions that take about that long. */
unsigned long workload_rounds(uint64_t nanoseconds);

/* A thread that makes itself known to the profiler, waits at the gate and then burns. */
struct worker {
    size_t function;
    uint64_t nanoseconds;
    unsigned long rounds; /* if not 0: a fixed amount of work instead */
    pthread_barrier_t *gate;
    uint64_t used; /* ns of CPU time from the gate on; valid once joined */
    pthread_t thread;
};

void worker_start(struct worker *worker);
void worker_join(struct worker *worker);

/* That many equal workers, past the gate together; the sum of what they used. */
uint64_t workers_burn(struct worker *workers, size_t count);

/* Numbers that look random and are the same for the same seed (not 0). */
uint64_t random_next(uint64_t *state);
double random_unit(uint64_t *state);

#endif
