#include "conflict.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static bool timer_is_armed(void)
{
    struct itimerval timer;

    return getitimer(ITIMER_PROF, &timer) == 0 &&
           (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0);
}

static bool signal_is_handled(void)
{
    struct sigaction action;

    return sigaction(SIGPROF, NULL, &action) == 0 &&
           (action.sa_flags & SA_SIGINFO ||
            (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN));
}

void profil_conflict_look(struct conflict *conflict)
{
    if (!conflict->timer_seen && timer_is_armed())
        conflict->timer_seen = now();
    if (!conflict->handler_seen && signal_is_handled())
        conflict->handler_seen = now();
}
