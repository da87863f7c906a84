/* What this process may do, and why not, in words; the only user of libcap. */
#ifndef PROFIL_PRIVILEGE_H
#define PROFIL_PRIVILEGE_H

#include "reason.h"

/* What the kernel refused. */
enum refusal {
    REFUSAL_MEMORY,   /* malloc */
    REFUSAL_THREAD,   /* pthread_create */
    REFUSAL_TABLE,    /* close_range, unshare */
    REFUSAL_SIGNALFD, /* signalfd */
    REFUSAL_BUFFER,   /* the program's counters */
    REFUSAL_CPUS,     /* sched_getaffinity */
    REFUSAL_THREADS,  /* /proc/self/task */
    REFUSAL_EVENT,    /* perf_event_open */
    REFUSAL_CONTROL,  /* ioctl on an event */
    REFUSAL_RING,     /* mmap of a ring */
};

/* Sets the reason to a sentence on the refusal: cause with present values, and remedy. `error` is
 * -errno. Reads /proc, through descriptors that it closes again. */
void profil_privilege_explain(enum refusal refusal, int error, struct reason *reason);

/* Sets the reason to a sentence on why kernel time cannot be sampled here. */
void profil_privilege_explain_kernel(struct reason *reason);

#endif
