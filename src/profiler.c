#include "profiler.h"

#include "kernel.h"
#include "sampler.h"

#include <pthread.h>

struct profiler {
    pthread_mutex_t lock;
    struct sampler *sampler; /* NULL: off */
    struct range_set *ranges;
    pid_t process; /* that turned it on */
};

/* Static, so that it can be used before any constructor has run. */
struct profiler profil_profiler_default = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* fork() waits for a start, change or stop under way in another thread: the child, which has only the
 * forking thread, finds the profile either on or off. */
static void lock_for_fork(void)
{
    pthread_mutex_lock(&profil_profiler_default.lock);
}

static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&profil_profiler_default.lock);
}

static void forget(struct profiler *profiler)
{
    if (profiler->sampler)
        profil_sampler_forget(profiler->sampler);
    profil_range_set_free(profiler->ranges);
    profiler->sampler = NULL;
    profiler->ranges = NULL;
}

static void forget_in_child(void)
{
    forget(&profil_profiler_default);
    pthread_mutex_unlock(&profil_profiler_default.lock);
}

static int register_fork_handlers(void)
{
    static bool registered;

    if (!registered && pthread_atfork(lock_for_fork, unlock_in_parent, forget_in_child) != 0)
        return -ENOMEM;
    registered = true;
    return 0;
}

static void enter(struct profiler *profiler)
{
    pthread_mutex_lock(&profiler->lock);
    /* A child made by the bare system call has run no fork handlers. */
    if (profiler->sampler && profiler->process != getpid())
        forget(profiler);
}

static void leave(struct profiler *profiler)
{
    pthread_mutex_unlock(&profiler->lock);
}

static void turn_off(struct profiler *profiler)
{
    if (profiler->sampler)
        profil_sampler_stop(profiler->sampler);
    profil_range_set_free(profiler->ranges);
    profiler->sampler = NULL;
    profiler->ranges = NULL;
}

static int turn_on(struct profiler *profiler, const struct range_set *ranges)
{
    int result = register_fork_handlers();

    if (result < 0)
        return result;
    profiler->process = getpid();
    return profil_sampler_start(&profiler->sampler, ranges);
}

int profil_profiler_set(struct profiler *profiler, struct range_set *ranges)
{
    int result = -ESRCH;

    enter(profiler);
    if (profiler->sampler)
        result = profil_sampler_change(profiler->sampler, ranges);
    if (result == -ESRCH) {
        turn_off(profiler);
        result = turn_on(profiler, ranges);
    }
    if (result == 0) {
        struct range_set *old = profiler->ranges;

        profiler->ranges = ranges;
        ranges = old;
    }
    leave(profiler);
    profil_range_set_free(ranges);
    return result;
}

void profil_profiler_unset(struct profiler *profiler)
{
    enter(profiler);
    turn_off(profiler);
    leave(profiler);
}

/* dlclose() takes away the code that the sampler runs; exit() may come with the profile on, also from
 * a thread that was interrupted inside of it, and must not wait for ever. */
__attribute__((destructor)) static void turn_off_at_unload(void)
{
    struct profiler *profiler = &profil_profiler_default;

    if (pthread_mutex_trylock(&profiler->lock) != 0)
        return;
    if (profiler->sampler && profiler->process == getpid())
        turn_off(profiler);
    pthread_mutex_unlock(&profiler->lock);
}
