/* The other user of the process's one profiling timer and its signal. */
#ifndef PROFIL_CONFLICT_H
#define PROFIL_CONFLICT_H

#include <stdint.h>

struct conflict {
    uint64_t timer_seen;   /* ITIMER_PROF armed: when first seen, ns since 1970; 0: never */
    uint64_t handler_seen; /* SIGPROF handled by a function */
};

/* Notes what is there now and was not noted before. Neither the timer nor the signal is touched. */
void profil_conflict_look(struct conflict *conflict);

#endif
