/* The profile sends the program no signal, takes none of its own away, and is not stopped by any.
 */
#include "act.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* At scale 0 every tick goes to the first counter. */
static unsigned short ticks;

static int on(void)
{
    return profil(&ticks, sizeof(ticks), 0, 0);
}

/* ---- Busy threads beside the calling one. ---- */

enum { THREADS = 2 };
static pthread_t threads[THREADS];
static int finished;

static void *burn_until_finished(void *unused)
{
    while (!__atomic_load_n(&finished, __ATOMIC_RELAXED))
        support_burn(0.002);
    return unused;
}

static void start_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, burn_until_finished, NULL) != 0)
            process_complain("no thread %d", i);
}

static void join_threads(void)
{
    __atomic_store_n(&finished, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Calls that a signal would interrupt. ---- */

static const struct timespec pause_time = {.tv_nsec = 50000000};

static void wait_in_nanosleep(void)
{
    cr_expect_eq(nanosleep(&pause_time, NULL), 0, "nanosleep: %s", strerror(errno));
}

static void wait_in_poll(void)
{
    cr_expect_eq(poll(NULL, 0, 50), 0, "poll: %s", strerror(errno));
}

static void wait_in_select(void)
{
    struct timeval timeout = {.tv_usec = 50000};

    cr_expect_eq(select(0, NULL, NULL, NULL, &timeout), 0, "select: %s", strerror(errno));
}

static void *post_after_a_pause(void *semaphore)
{
    nanosleep(&pause_time, NULL);
    sem_post(semaphore);
    return NULL;
}

static void wait_in_sem_wait(void)
{
    pthread_t thread;
    sem_t semaphore;

    sem_init(&semaphore, 0, 0);
    cr_assert_eq(pthread_create(&thread, NULL, post_after_a_pause, &semaphore), 0);
    cr_expect_eq(sem_wait(&semaphore), 0, "sem_wait: %s", strerror(errno));
    pthread_join(thread, NULL);
    sem_destroy(&semaphore);
}

/* As often as it takes to be sure that there was something to interrupt for: on a machine full of
 * other programs a busy thread may have to wait for its ticks. */
Test(signals, no_call_is_interrupted_in_a_busy_program)
{
    support_require_perf();
    start_threads();
    cr_assert_eq(on(), 0);
    for (int i = 0; i < 2 || (i < 50 && __atomic_load_n(&ticks, __ATOMIC_RELAXED) < 20); i++) {
        wait_in_nanosleep();
        wait_in_poll();
        wait_in_select();
        wait_in_sem_wait();
    }
    join_threads();
    support_off();
    cr_expect_geq(ticks, 20, "%d ticks: the program was not busy while it waited", ticks);
}

/* ---- setresuid(), which the C library carries to every thread by a signal. ---- */

struct identities {
    uid_t expected;
    int count, wrong;
};

static void look_at_identity(void *context, pid_t tid)
{
    struct identities *identities = context;
    char expected[64], found[64] = "";
    int uid = (int)identities->expected;

    snprintf(expected, sizeof(expected), "%d\t%d\t%d\t%d", uid, uid, uid, uid);
    process_thread_field(tid, "Uid", found, sizeof(found));
    identities->count++;
    identities->wrong += strcmp(found, expected) != 0;
}

static void complain_unless_sampled(void)
{
    double begin = support_thread_seconds();
    unsigned short before = __atomic_load_n(&ticks, __ATOMIC_RELAXED);

    support_burn(0.1);
    process_profil_off();
    /* The busy threads add theirs. */
    if (ticks - before < (support_thread_seconds() - begin) * 100 * 0.8)
        process_complain("%d ticks before, %d after", before, ticks);
}

static int change_identity(const char *uid)
{
    struct identities identities = {.expected = (uid_t)atoi(uid)};
    uid_t to = identities.expected;

    start_threads();
    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    if (setresuid(to, to, to) != 0)
        process_complain("setresuid: %s", strerror(errno));
    process_each_thread(look_at_identity, &identities);
    if (identities.count < THREADS + 2 || identities.wrong > 0)
        process_complain("%d of %d threads have not become %s", identities.wrong, identities.count,
                         uid);
    complain_unless_sampled();
    if (on() != 0)
        process_complain("start as %s: %s", uid, strerror(errno));
    complain_unless_sampled();
    join_threads();
    return 0;
}

static void expect_change_of_identity(uid_t uid)
{
    struct outcome outcome;
    char argument[32];

    snprintf(argument, sizeof(argument), "%u", uid);
    act_run(&outcome, "change_identity", argument);
    process_expect(&outcome, process_exited(0));
}

Test(signals, setresuid_to_the_same_user_returns_while_on)
{
    support_require_perf();
    expect_change_of_identity(getuid());
}

Test(signals, setresuid_changes_the_threads_of_the_profile_too)
{
    enum { NOBODY = 65534 };

    support_require_perf();
    if (geteuid() != 0)
        cr_skip_test("only the superuser can become another user");
    expect_change_of_identity(NOBODY);
}

/* ---- The program's own profiling timer. ---- */

static volatile sig_atomic_t received_signals;

static void count_signal(int signal)
{
    (void)signal;
    received_signals++;
}

static bool same_signals(const sigset_t *left, const sigset_t *right)
{
    for (int signal = 1; signal < NSIG; signal++)
        if (sigismember(left, signal) != sigismember(right, signal))
            return false;
    return true;
}

static int signals_while_burning(double seconds)
{
    int before = received_signals;

    support_burn(seconds);
    return received_signals - before;
}

Test(signals, the_profiling_timer_and_its_handler_are_the_programs)
{
    support_require_perf();
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART}, before, after;
    struct itimerval timer = {.it_interval.tv_usec = 10000, .it_value.tv_usec = 10000}, armed, left;
    int without, with;
    double begin;

    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGPROF, NULL, &before);
    setitimer(ITIMER_PROF, &timer, NULL);
    getitimer(ITIMER_PROF, &armed); /* the interval as the kernel rounds it */
    without = signals_while_burning(0.3);
    cr_assert_eq(on(), 0);
    begin = support_thread_seconds();
    with = signals_while_burning(0.3);
    double seconds = support_thread_seconds() - begin;
    support_off();
    getitimer(ITIMER_PROF, &left);
    sigaction(SIGPROF, NULL, &after);

    cr_expect_gt(without, 5, "the timer is no good: %d signals without a profile", without);
    /* On a busy machine signals come late, and several as one; and the kernel may only estimate the
     * time by which it sends them. A handler or timer that was taken over gets none, or twice as
     * many. */
    cr_expect(with >= without / 2 && with <= seconds * 150 + 3,
              "%d signals in %.3f s; without a profile %d in as long", with, seconds, without);
    cr_expect(process_ticks_fit(ticks, seconds, 1), "%d ticks in %.3f s", ticks, seconds);
    cr_expect(after.sa_handler == before.sa_handler && after.sa_flags == before.sa_flags &&
                  same_signals(&after.sa_mask, &before.sa_mask),
              "the handler of SIGPROF has changed");
    cr_expect_eq(left.it_interval.tv_usec, armed.it_interval.tv_usec, "%ld us, not %ld",
                 (long)left.it_interval.tv_usec, (long)armed.it_interval.tv_usec);
    cr_expect(left.it_value.tv_sec > 0 || left.it_value.tv_usec > 0, "the timer has stopped");
}

Test(signals, sigprof_stays_as_it_was_where_the_program_does_not_use_it)
{
    support_require_perf();
    struct itimerval timer;
    struct sigaction action;

    cr_assert_eq(on(), 0);
    support_burn(0.05);
    sigaction(SIGPROF, NULL, &action);
    getitimer(ITIMER_PROF, &timer);
    support_off();
    cr_expect(action.sa_handler == SIG_DFL, "SIGPROF has a handler");
    cr_expect(timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0, "ITIMER_PROF is armed");
}

/* ---- Signals that are pending. ---- */

static bool is_pending(int signal)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, signal);
}

/* The library wakes its own thread by this signal, which may be the program's too. */

#ifdef SIGSTKFLT
static void complain_unless_pending(const char *when)
{
    if (!is_pending(SIGSTKFLT))
        process_complain("the program's signal is gone %s", when);
}

static void start_change_and_stop(void)
{
    static unsigned short others;

    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    support_burn(0.05);
    complain_unless_pending("after the start");
    if (profil(&others, sizeof(others), 0, 0) != 0)
        process_complain("change: %s", strerror(errno));
    support_burn(0.05);
    complain_unless_pending("after a change");
    if (on() != 0)
        process_complain("change back: %s", strerror(errno));
    complain_unless_sampled();
    complain_unless_pending("after the stop");
}

/* Sent to the process, or to the calling thread alone, before a start or while on. */
static int leave_pending(const char *to)
{
    struct timespec at_once = {0};
    siginfo_t taken = {0};
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGSTKFLT);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    start_threads();
    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    support_burn(0.02);
    if (strcmp(to, "process") == 0)
        kill(getpid(), SIGSTKFLT);
    else
        pthread_kill(pthread_self(), SIGSTKFLT);
    for (int i = 0; i < 2; i++)
        start_change_and_stop();
    if (sigtimedwait(&blocked, &taken, &at_once) != SIGSTKFLT || taken.si_pid != getpid())
        process_complain("not taken: signal %d of process %d", taken.si_signo, taken.si_pid);
    if (is_pending(SIGSTKFLT))
        process_complain("a second signal is pending that the program did not send");
    join_threads();
    return 0;
}

Test(signals, a_blocked_sigstkflt_to_the_process_stays_pending_for_the_program)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "leave_pending", "process");
    process_expect(&outcome, process_exited(0));
}

Test(signals, a_blocked_sigstkflt_to_a_thread_stays_pending_for_it)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "leave_pending", "thread");
    process_expect(&outcome, process_exited(0));
}
#endif

/* A thread that did not block them would take them, and run the program's handler on its own small
 * stack, or end the process. */
static int block_and_send(const char *unused)
{
    static const int sent[] = {SIGUSR1, SIGTERM, SIGPROF, SIGALRM, SIGCHLD, SIGPIPE};
    struct sigaction action = {.sa_handler = count_signal};
    sigset_t all;

    (void)unused;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGCHLD, &action, NULL);
    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        kill(getpid(), sent[i]);
    support_burn(0.05);
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        if (!is_pending(sent[i]))
            process_complain("signal %d was taken", sent[i]);
    process_profil_off();
    _exit(0);
}

Test(signals, no_thread_of_the_profile_takes_a_signal_of_the_program)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "block_and_send", "");
    process_expect(&outcome, process_exited(0));
}

/* ---- The mask of the caller. ---- */

static void expect_mask(const sigset_t *expected, const char *when)
{
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int signal = 1; signal < NSIG; signal++)
        cr_expect_eq(sigismember(&mask, signal), sigismember(expected, signal),
                     "signal %d is%s blocked %s", signal, sigismember(&mask, signal) ? "" : " not",
                     when);
}

static void expect_mask_stays(const sigset_t *wanted)
{
    unsigned short *volatile nowhere = (unsigned short *)(uintptr_t)8;
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, wanted, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &mask); /* without the signals that cannot be blocked */
    cr_expect_eq(profil(nowhere, 2, 0, 0), -1);
    expect_mask(&mask, "after a start that failed");
    cr_expect_eq(on(), 0);
    expect_mask(&mask, "after a start");
    cr_expect_eq(profil(nowhere, 2, 0, 0), -1);
    expect_mask(&mask, "after a change that failed");
    cr_expect_eq(on(), 0);
    expect_mask(&mask, "after a change");
    support_off();
    expect_mask(&mask, "after a stop");
}

Test(signals, the_callers_mask_is_the_same_after_each_call)
{
    support_require_perf();
    sigset_t mask;

    sigemptyset(&mask);
    expect_mask_stays(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGRTMAX);
    expect_mask_stays(&mask);
    sigfillset(&mask);
    expect_mask_stays(&mask);
}

/* ---- A storm. ---- */

static void storm(pid_t target)
{
    const struct timespec gap = {.tv_nsec = 20000};

    while (kill(target, SIGUSR1) == 0)
        nanosleep(&gap, NULL);
}

static double user_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
}

Test(signals, a_storm_of_signals_does_not_stop_the_sampling)
{
    support_require_perf();
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    pid_t target = getpid(), sender;
    double begin, user_begin;

    sigaction(SIGUSR1, &action, NULL);
    sender = fork();
    if (sender == 0) {
        storm(target);
        _exit(0);
    }
    while (received_signals == 0)
        support_burn(0.001);
    cr_assert_eq(on(), 0);
    begin = support_thread_seconds();
    user_begin = user_seconds();
    int received = signals_while_burning(0.5);
    double seconds = support_thread_seconds() - begin;
    double user = user_seconds() - user_begin;
    support_off();
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
    cr_expect_gt(received, 500, "%d signals are no storm", received);
    /* Delivery may take more time in the kernel than the program takes itself, and an unprivileged
     * profile does not see that. Some kernels know the user time only by sampling, too. */
    cr_expect(ticks >= user * 100 * 0.7 - 3 && ticks <= seconds * 100 * 1.02 + 1,
              "%d ticks in %.3f s of CPU time, %.3f s of them the user's, with %d signals", ticks,
              seconds, user, received);
}

/* ---- Standard error is a pipe that nobody reads. ---- */

static int lose_standard_error(const char *unused)
{
    int ends[2];
    sigset_t pending;

    (void)unused;
    setenv("PROFIL_VERBOSE", "1", 1);
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        return 2;
    close(ends[0]);
    if (profil(&ticks, sizeof(ticks), 0, 0) != 0)
        return 3;
    process_profil_off();
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) ? 4 : 0;
}

Test(signals, figures_for_a_broken_pipe_do_not_end_the_program)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, "lose_standard_error", "");
    cr_expect_eq(outcome.status, process_exited(0), "status %#x", outcome.status);
}

const struct act acts[] = {
    {"block_and_send", block_and_send},
    {"change_identity", change_identity},
    {"lose_standard_error", lose_standard_error},
#ifdef SIGSTKFLT
    {"leave_pending", leave_pending},
#endif
    {NULL, NULL},
};
