/* The sampler thread: it owns every kernel object of a running profile, in a descriptor table of
 * its own, and is the only writer of the counters. */
#ifndef PROFIL_SAMPLER_H
#define PROFIL_SAMPLER_H

#include "event.h"
#include "privilege.h"
#include "range.h"
#include "tally.h"

struct sampler;

struct sampler_plan {
    struct event_spec spec;
    unsigned int subticks; /* samples to a tick, 1 .. BUCKET_SUBTICKS_MAX */
    size_t ring_bytes;     /* wanted, per CPU */

    /* If not 0: when ticks are seen to be lost, sampling goes over to this many samples to a tick.
     */
    unsigned int fine_subticks;
    struct event_spec fine_spec;
};

/* What was being done when a start or change was refused. */
enum sampler_step {
    SAMPLER_MEMORY,
    SAMPLER_THREAD,
    SAMPLER_TABLE,
    SAMPLER_SIGNALFD,
    SAMPLER_BUFFER,
    SAMPLER_CPUS,
    SAMPLER_THREADS,
    SAMPLER_EVENT,
    SAMPLER_RING,
    SAMPLER_CONTROL,
};

/* How a start went. */
struct sampler_start {
    enum sampler_step step; /* at which it failed, if it did */
    struct facts facts;     /* if it went as far as the events */
};

/* Starts sampling into the set, which stays the caller's and must last as long as it is in use.
 * 0 or -errno. */
int profil_sampler_start(struct sampler **sampler, const struct sampler_plan *plan,
                         struct range_set *ranges, struct sampler_start *start);

/* From the return on, ticks go to the new set and nothing touches the old one. 0, or -errno and the
 * old set stays: -EFAULT, -ENOMEM, or -ESRCH when sampling has ended because every thread of the
 * program had gone. */
int profil_sampler_change(struct sampler *sampler, struct range_set *ranges);

/* The counts as of now. */
void profil_sampler_read(struct sampler *sampler, struct sampler_counts *counts);

/* When this returns every tick so far is counted, nothing writes any more, and no thread, mapping
 * or event is left. True when the sampler is to be freed, which may wait until what others have
 * sampled of its threads was read; false when it was the last of the process and stays. */
bool profil_sampler_stop(struct sampler *sampler, struct sampler_counts *counts);

/* In a forked child, which has the memory of the sampler but not its threads: gives back what is
 * mapped. `bare`: the child was made by the system call alone; the C library there still counts on
 * the threads' stacks. */
void profil_sampler_forget(struct sampler *sampler, bool bare);

/* After a stop, or a forget. NULL is allowed. */
void profil_sampler_free(struct sampler *sampler);

#endif
