#include "cpus.h"

#include "kernel.h"

#include <string.h>

/* The system calls themselves: the wrappers of the C library know masks of 1024 CPUs. */
static long get_affinity(struct cpu_mask *mask)
{
    memset(mask, 0, sizeof(*mask));
    return kernel_result(syscall(SYS_sched_getaffinity, 0, sizeof(*mask), mask));
}

static long set_affinity(const struct cpu_mask *mask)
{
    return kernel_result(syscall(SYS_sched_setaffinity, 0, sizeof(*mask), mask));
}

/* There is no direct question for the cpuset, but the kernel cuts any wish down to it: this thread
 * asks for every CPU, looks at what it was given, and goes back to the mask it had. */
int profil_cpus_read(struct cpu_mask *mask)
{
    struct cpu_mask before, all;
    long result = get_affinity(&before);

    if (result < 0)
        return (int)result;
    memset(&all, 0xff, sizeof(all));
    *mask = before;
    if (set_affinity(&all) == 0) {
        if (get_affinity(mask) < 0)
            *mask = before;
        set_affinity(&before);
    }
    return 0;
}

int profil_cpus_next(const struct cpu_mask *mask, int cpu)
{
    const int bits = CHAR_BIT * sizeof(mask->words[0]);

    for (; cpu < CPUS_LIMIT; cpu++)
        if (mask->words[cpu / bits] >> (cpu % bits) & 1)
            return cpu;
    return -1;
}
