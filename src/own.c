#include "own.h"

#include <limits.h>
#include <stdatomic.h>

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
