/* The life cycle of a profile: on, change, off; many threads, fork. */
#ifndef PROFIL_PROFILER_H
#define PROFIL_PROFILER_H

#include "range.h"

struct profiler;

/* The one behind profil() and sprofil(). */
extern struct profiler profil_profiler_default;

/* Turns the profile on, or moves it to the new ranges, of which it becomes the owner, also when it
 * fails. 0 or -errno; a failed change leaves the profile as it was. */
int profil_profiler_set(struct profiler *profiler, struct range_set *ranges);

/* Turns the profile off, if it is on. */
void profil_profiler_unset(struct profiler *profiler);

#endif
