/* How far the samples are behind the CPU time that the program has used.
 *
 * An event starts with a full period, so that each thread leaves, on each CPU that it has run on,
 * part of a period unseen: its phase. Threads that end before they have used a period are never
 * seen at all. */
#ifndef PROFIL_LAG_H
#define PROFIL_LAG_H

#include <stdbool.h>
#include <stdint.h>

struct lag {
    int task_fd; /* of profil_threads_open(), or negative */
    unsigned long most_threads;
    uint64_t cpu_time_before;
    uint64_t system_time_before;
    uint64_t own; /* for profil_own_account() */
};

/* From now on. Called, like the others, by the sampler, whose own time is left out. */
void profil_lag_begin(struct lag *lag);

/* The CPU time of the program since then, in ns. */
uint64_t profil_lag_cpu_time(struct lag *lag);

/* Whether more of it is unsampled than the phase of the program's threads explains, and enough to
 * matter. `accounted` is the time that the samples stand for; time in the kernel counts only where
 * it is sampled. */
bool profil_lag_is_large(struct lag *lag, uint64_t accounted, uint64_t sample_period,
                         unsigned int cpus, bool samples_kernel);

#endif
