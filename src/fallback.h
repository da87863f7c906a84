/* The C library's own profil(), for where perf events cannot be had. There is one in a process. */
#ifndef PROFIL_FALLBACK_H
#define PROFIL_FALLBACK_H

#include "range.h"

/* Whether the C library's profil() can be found: not in a static program. */
bool profil_fallback_exists(void);

/* Counts into the one range, 16 bits wide, or moves to it. 0 or -errno. */
int profil_fallback_start(const struct range *range);

void profil_fallback_stop(void);

#endif
