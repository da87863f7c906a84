/* One perf event: what is asked of the kernel, and how much less is asked when it refuses. */
#ifndef PROFIL_EVENT_H
#define PROFIL_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A tick of profil(3) is 10 ms of CPU time; the unit of the task clock's period is 1 ns. */
enum { EVENT_TICK_NANOSECONDS = 10000000 };

struct event_spec {
    struct perf_event_attr attr;
    bool settled; /* the kernel has accepted it once: it is not lowered again */
};

void profil_event_describe(struct event_spec *spec, uint64_t period);

/* Whether the kernel lets samples that fall into it be taken, to be charged to the user's PC. */
bool profil_event_samples_kernel(const struct event_spec *spec);

/* Opens the event, disabled, for a thread on a CPU. The first successful call settles what the kernel
 * permits. The descriptor, or -errno: -ESRCH for a thread that has gone, -ENODEV for a CPU that is
 * offline. */
int profil_event_open(struct event_spec *spec, pid_t tid, int cpu);

#endif
