/* The CPUs that a thread of the program can ever run on. */
#ifndef PROFIL_CPUS_H
#define PROFIL_CPUS_H

#include <limits.h>

enum { CPUS_LIMIT = 8192 }; /* the largest CONFIG_NR_CPUS of the kernel */

struct cpu_mask {
    unsigned long words[CPUS_LIMIT / (CHAR_BIT * sizeof(unsigned long))];
};

/* The online CPUs of the cpuset. They can be more than the threads' present affinity: a thread may
 * widen its own at any time. 0 or -errno. */
int profil_cpus_read(struct cpu_mask *mask);

/* The first CPU >= cpu in the mask, or -1. */
int profil_cpus_next(const struct cpu_mask *mask, int cpu);

#endif
