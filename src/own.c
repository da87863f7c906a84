#include "own.h"

#include <limits.h>
#include <stdatomic.h>
#include <time.h>

/* One bit per thread id, of which the kernel has at most 2^22 (PID_MAX_LIMIT). Read at every
 * sample, by every sampler, without a lock; only the touched pages are ever there. */
enum { THREAD_IDS = 1 << 22, WORD_BITS = CHAR_BIT * sizeof(unsigned long) };

static _Atomic unsigned long own[THREAD_IDS / WORD_BITS];

static unsigned long bit(pid_t tid)
{
    return 1UL << (unsigned int)tid % WORD_BITS;
}

static _Atomic unsigned long *word(pid_t tid)
{
    return &own[(unsigned int)tid % THREAD_IDS / WORD_BITS];
}

void profil_own_add(pid_t tid)
{
    atomic_fetch_or(word(tid), bit(tid));
}

void profil_own_remove(pid_t tid)
{
    atomic_fetch_and(word(tid), ~bit(tid));
}

bool profil_own_has(pid_t tid)
{
    return atomic_load_explicit(word(tid), memory_order_relaxed) & bit(tid);
}

static _Atomic uint64_t cpu_time;

void profil_own_account(uint64_t *known)
{
    struct timespec now;
    uint64_t used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    used = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    atomic_fetch_add(&cpu_time, used - *known);
    *known = used;
}

uint64_t profil_own_cpu_time(void)
{
    return atomic_load(&cpu_time);
}
