#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The thread that is in fork() and has the lock meanwhile; 0: none. Other handlers run on it that
 * may enter: those that were registered before the ones here. */
static _Atomic(pthread_t) forking;

/* Whose lock it is; 0 at first. */
enum { IN_REPAIR = -1 };
static _Atomic pid_t process;

static bool is_forking(void)
{
    return atomic_load_explicit(&forking, memory_order_relaxed) == pthread_self();
}

/* fork() waits for a start, change or stop under way in another thread. */
static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&forking, pthread_self());
}

static void unlock_after_fork(void)
{
    atomic_store(&forking, 0);
    pthread_mutex_unlock(&lock);
}

/* Whether the process is one that has not been here yet; true once in each. A thread that comes
 * meanwhile waits until `process` is set. */
static bool is_new_process(void)
{
    pid_t self = getpid(), seen = atomic_load(&process);

    if (seen == self)
        return false;
    if (seen != IN_REPAIR && atomic_compare_exchange_strong(&process, &seen, IN_REPAIR)) {
        if (seen != 0)
            return true;
        atomic_store(&process, self);
    }
    while (atomic_load(&process) != self)
        sched_yield();
    return false;
}

/* A child of fork() does so in its handler, or earlier if another one enters. A child made by the
 * bare system call has run no handlers: there the lock is as somebody had left it who is not there.
 */
static void begin_anew_in_child(void)
{
    if (!is_new_process())
        return;
    if (!is_forking()) {
        lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        atomic_store(&forking, 0);
    }
    profil_gate_forget(!is_forking());
    atomic_store(&process, getpid());
}

static void unlock_in_child(void)
{
    begin_anew_in_child();
    unlock_after_fork();
}

static int guard_forks(void)
{
    static bool guarded;

    if (!guarded && pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child) != 0)
        return -ENOMEM;
    guarded = true;
    return 0;
}

int profil_gate_guard_forks(void)
{
    return guard_forks();
}

/* Before the program registers handlers of its own: these are then run outside of the lock,
 * whatever they call and whatever locks they take. */
__attribute__((constructor(101))) static void guard_forks_early(void)
{
    profil_gate_enter();
    guard_forks();
    profil_gate_leave();
}

void profil_gate_enter(void)
{
    begin_anew_in_child();
    if (!is_forking())
        pthread_mutex_lock(&lock);
}

void profil_gate_leave(void)
{
    if (!is_forking())
        pthread_mutex_unlock(&lock);
}

bool profil_gate_try(void)
{
    return !is_forking() && pthread_mutex_trylock(&lock) == 0;
}
