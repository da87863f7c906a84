/* The C library's own profil(), for where perf events cannot be had. There is one in a process. */
#ifndef PROFIL_FALLBACK_H
#define PROFIL_FALLBACK_H

#include "range.h"

/* Whether the C library's profil() can be found: not in a static program. */
bool profil_fallback_exists(void);

/* Counts into the one range, 16 bits wide. Not while it is on. 0 or -errno. */
int profil_fallback_start(const struct range *range);

/* Takes 20 ms. */
void profil_fallback_stop(void);

/* In a forked child, which has the handler, but no timer and no other threads. */
void profil_fallback_forget(void);

#endif
