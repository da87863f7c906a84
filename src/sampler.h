/* The sampler thread: it owns every kernel object of a running profile, in a descriptor table of its
 * own, and is the only writer of the counters. */
#ifndef PROFIL_SAMPLER_H
#define PROFIL_SAMPLER_H

#include "range.h"

struct sampler;

/* Starts sampling into the set, which stays the caller's and must last as long as it is in use.
 * 0 or -errno. */
int profil_sampler_start(struct sampler **sampler, const struct range_set *ranges);

/* From the return on, ticks go to the new set and nothing touches the old one. 0, or -errno and the
 * old set stays: -EFAULT, or -ESRCH when sampling has ended because every thread of the program
 * had gone. */
int profil_sampler_change(struct sampler *sampler, const struct range_set *ranges);

/* When this returns every tick so far is counted, nothing writes any more, and no thread, mapping or
 * event is left. */
void profil_sampler_stop(struct sampler *sampler);

/* In a forked child, which has the memory of the sampler but not its threads. */
void profil_sampler_forget(struct sampler *sampler);

#endif
