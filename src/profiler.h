/* The life cycle of profiles: on, change, off; many threads, fork. All functions return 0 or
 * -errno, and leave a reason in the profile when they fail. */
#ifndef PROFIL_PROFILER_H
#define PROFIL_PROFILER_H

#include "range.h"

struct profil_options;
struct profil_stats;
struct profil_profile;

/* The one behind profil() and sprofil(). */
extern struct profil_profile profil_profiler_default;

int profil_profiler_open(struct profil_profile **profile, const struct profil_options *options);

/* Turns the profile on, or moves it to the new ranges, of which it becomes the owner, also when it
 * fails; a failed change leaves the profile as it was. NULL stands for no memory. */
int profil_profiler_set(struct profil_profile *profile, struct range_set *ranges);

/* Turns the profile off, if it is on. */
void profil_profiler_unset(struct profil_profile *profile);

/* The ranges of a profile that is turned on and off by itself: is_overflow tells the one that takes
 * what no other has a bucket for. */
int profil_profiler_add_range(struct profil_profile *profile, const struct range *range,
                              bool is_overflow);
int profil_profiler_start(struct profil_profile *profile);

/* Leaves that reason for an argument that is refused; the error. */
int profil_profiler_refuse(struct profil_profile *profile, int error, const char *why);

void profil_profiler_close(struct profil_profile *profile);

/* Fills in everything but the size. */
void profil_profiler_stats(struct profil_profile *profile, struct profil_stats *stats);

int profil_profiler_reason(struct profil_profile *profile, char *buffer, size_t size);

#endif
