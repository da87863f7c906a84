/* What this process may do, and why not, in words; the only user of libcap. */
#ifndef PROFIL_PRIVILEGE_H
#define PROFIL_PRIVILEGE_H

#include "reason.h"

#include <stdbool.h>

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

/* The sysctls that the kernel goes by. FACT_UNKNOWN, a value that neither can have: cannot be read,
 * or was not looked at. */
struct facts {
    int paranoid; /* kernel.perf_event_paranoid */
    int mlock_kb; /* kernel.perf_event_mlock_kb */
};

enum { FACT_UNKNOWN = -100 };

/* Looks at them, through descriptors in the calling thread's table: not for a thread that has the
 * program's. */
void profil_privilege_look(struct facts *facts);

/* Sets the reason to a sentence on the refusal: cause with present values, and remedy. `error` is
 * -errno. */
void profil_privilege_explain(enum refusal refusal, int error, const struct facts *facts,
                              struct reason *reason);

/* Whether perf_event_open() has failed for no more than that kernel time was to be sampled. */
bool profil_privilege_lacks_kernel(int error, const struct facts *facts);

/* Sets the reason to a sentence on why kernel time cannot be sampled here. */
void profil_privilege_explain_kernel(const struct facts *facts, struct reason *reason);

#endif
