/* The threads of this process. */
#ifndef PROFIL_THREADS_H
#define PROFIL_THREADS_H

#include <sys/types.h>

/* Calls visit for each thread that a reading of /proc shows and that no earlier one did, and reads
 * again until nothing new comes. `generation` counts the readings, from 0: a thread of a later one
 * was born after the first began. Stops at the first negative result of visit and returns it; else
 * 0 or -errno. May open descriptors for a moment. */
int profil_threads_visit(int (*visit)(void *context, pid_t tid, unsigned int generation),
                         void *context);

/* A descriptor for profil_threads_count(), or -errno. */
int profil_threads_open(void);

/* How many threads there are now. */
unsigned long profil_threads_count(int fd);

#endif
