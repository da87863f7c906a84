/* Making the kernel refuse, and looking at what a profile makes of it. All of it is for acts (see
 * act.h), which complain where a test would assert: a filter or a limit stays for the rest of a
 * process, and the environment is read at its first profile. */
#ifndef LIVE_REFUSAL_H
#define LIVE_REFUSAL_H

#include "libprofil.h"
#include "process.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

/* From now on the calling thread, and those that it creates, have this error from that call. `call`
 * is a number as in <sys/syscall.h>, or -1 for nothing. */
void refusal_begin(int call, int error);

/* The same where one argument of the call has that value, or two have. */
void refusal_begin_where(int call, int error, unsigned int argument, uint64_t value);
void refusal_begin_where_both(int call, int error, unsigned int first, uint64_t first_value,
                              unsigned int second, uint64_t second_value);

/* Becomes an unprivileged user that runs nothing else, as if started by it; false when that is not
 * permitted. */
bool refusal_become_somebody(void);

void refusal_lower_limit(int resource, rlim_t soft, rlim_t hard);

/* --- A profile in which every tick goes to one counter. --- */

/* profil() succeeds, on that engine. */
void refusal_expect_start(enum profil_engine engine);

/* The calling thread's CPU time gives as many ticks as it should; then stops the profile. */
void refusal_expect_ticks_and_stop(void);

/* profil() fails with that error. */
void refusal_expect_failure(int error);

/* The reason has each of these words; a NULL ends them. */
void refusal_expect_reason(const char *const words[]);
void refusal_expect_no_reason(void);

/* Uses CPU time until the program's handler of SIGPROF has counted one more; false when two seconds
 * were not enough. The timer behind it advances only when an interrupt finds the process running.
 */
bool refusal_timer_fires(const volatile sig_atomic_t *count);

/* --- What must not change. --- */

struct refusal_state {
    struct process_state process;
    struct rlimit limits[RLIM_NLIMITS];
    sigset_t mask;
    cpu_set_t affinity;
};

/* As soon as no more threads are left than that. */
void refusal_read_state(struct refusal_state *state, size_t threads);

/* Complains of threads, descriptors, rings, mappings, limits, blocked signals or CPUs that are not
 * as they were. */
void refusal_expect_state(const struct refusal_state *expected, const char *when);

#endif
