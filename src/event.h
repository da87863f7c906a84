/* One perf event: what is asked of the kernel, and how much less is asked when it refuses. */
#ifndef PROFIL_EVENT_H
#define PROFIL_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A tick of profil(3) is 10 ms of CPU time. The unit of the task clock's period is 1 ns, and the
 * kernel takes no period under 10 us (perf_swevent_hrtimer() in kernel/events/core.c). */
enum { EVENT_TICK_NANOSECONDS = 10000000, EVENT_SHORTEST_CLOCK_PERIOD = 10000 };

struct event_spec {
    struct perf_event_attr attr;
    bool kernel_required;
    bool settled; /* the kernel has accepted it once: it is not lowered again */
};

/* Whether samples that fall into the kernel are asked for. */
enum event_kernel { EVENT_KERNEL_IF_PERMITTED, EVENT_KERNEL_REQUIRED, EVENT_KERNEL_EXCLUDED };

/* Which event: the fields of perf_event_attr that name it. */
struct event_source {
    uint32_t type;
    uint64_t config, config1, config2;
    bool exclude_user, exclude_kernel;
};

extern const struct event_source profil_event_task_clock;

/* Describes the sampling of an event; `period` is in its own unit. A reader of the ring is woken at
 * every `wakeup`th sample: each waking is an interrupt of its own to the sampled thread. */
void profil_event_describe(struct event_spec *spec, const struct event_source *source,
                           uint64_t period, uint32_t wakeup, enum event_kernel kernel);

/* Also has births and ends of threads recorded. */
void profil_event_watch_threads(struct event_spec *spec);

/* Whether the event measures CPU time. */
bool profil_event_is_clock(const struct event_spec *spec);
bool profil_event_source_is_clock(const struct event_source *source);

/* Whether samples that fall into the kernel are taken, to be charged to the user's PC. */
bool profil_event_samples_kernel(const struct event_spec *spec);

/* Opens the event, disabled, for a thread on a CPU. The first successful call settles what the
 * kernel permits. The descriptor, or -errno: -ESRCH for a thread that has gone, -ENODEV for a CPU
 * that is offline. */
int profil_event_open(struct event_spec *spec, pid_t tid, int cpu);

/* Opens an event of the calling thread that never counts, to map a ring over to which events of the
 * spec write. The descriptor, or -errno. */
int profil_event_open_ring(const struct event_spec *spec, int cpu);

#endif
