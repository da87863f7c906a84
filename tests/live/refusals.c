/* perf_event_open() is refused: an unchanged program has the C library's profile and its ticks, or,
 * where that would take something from it, an error. */
#include "act.h"
#include "refusal.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* What the kernel or a filter may say, and words of the cause that the user is to be told. */
static const struct error {
    int number;
    const char *cause;
} errors[] = {{EPERM, "seccomp filter"},
              {EACCES, "seccomp filter"},
              {ENOSYS, "seccomp filter"},
              {EMFILE, "RLIMIT_NOFILE"},
              {ENOMEM, "no memory"},
              {EINVAL, "does not take the event"},
              {E2BIG, "does not take the event"},
              {ENOENT, "does not have the event"}};

static const struct error *find_error(const char *number)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].number == atoi(number))
            return &errors[i];
    process_complain("no error %s", number);
    abort();
}

static const struct error *refuse(const char *number)
{
    const struct error *error = find_error(number);

    refusal_begin(SYS_perf_event_open, error->number);
    return error;
}

static void expect_reason(const struct error *error, const char *consequence)
{
    refusal_expect_reason((const char *const[]){"perf_event_open", strerrorname_np(error->number),
                                                error->cause, consequence, NULL});
}

/* Plays the act once for each error. */
static void act_for_each_error(const char *name)
{
    support_require_perf();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct outcome outcome;
        char number[16];

        snprintf(number, sizeof(number), "%d", errors[i].number);
        act_run(&outcome, name, number);
        cr_expect(outcome.status == process_exited(0) && !outcome.complaints[0],
                  "%s: status %#x; %s", strerrorname_np(errors[i].number), outcome.status,
                  outcome.complaints);
    }
}

static void expect_act(const char *name, int number)
{
    struct outcome outcome;
    char argument[16];

    support_require_perf();
    snprintf(argument, sizeof(argument), "%d", number);
    act_run(&outcome, name, argument);
    process_expect(&outcome, process_exited(0));
}

static bool timer_is_armed(void)
{
    struct itimerval timer;

    getitimer(ITIMER_PROF, &timer);
    return timer.it_value.tv_sec || timer.it_value.tv_usec;
}

static int fall_back(const char *number)
{
    const struct error *error = refuse(number);
    struct refusal_state state;
    struct sigaction action;

    for (int round = 0; round < 2; round++) {
        if (round > 0)
            refusal_read_state(&state, 1); /* with what the C library has allocated for good */
        refusal_expect_start(PROFIL_ENGINE_LIBC);
        expect_reason(error, "the C library's profil() is used instead");
        if (round == 0)
            refusal_expect_ticks_and_stop();
        else
            process_profil_off();
    }
    refusal_expect_state(&state, "after a stop");
    sigaction(SIGPROF, NULL, &action);
    if (action.sa_handler != SIG_DFL || timer_is_armed())
        process_complain("SIGPROF or its timer were left set");
    return 0;
}

Test(refusals, an_unchanged_program_has_its_ticks_and_the_reason_names_the_cause)
{
    act_for_each_error("fall_back");
}

static int fail(const char *number)
{
    const struct error *error = refuse(number);
    struct refusal_state state;

    setenv("PROFIL_ENGINE", "perf", 1);
    refusal_expect_failure(error->number);
    refusal_read_state(&state, 1);
    refusal_expect_failure(error->number);
    expect_reason(error, ": ");
    refusal_expect_state(&state, "after a failure");
    return 0;
}

Test(refusals, with_the_engine_perf_the_error_is_that_of_the_kernel_and_nothing_is_left)
{
    act_for_each_error("fail");
}

/* ---- The program has its own use for the timer or the signal. ---- */

static volatile sig_atomic_t received_signals;

static void count_signal(int signal)
{
    (void)signal;
    received_signals++;
}

static int keep_timer(const char *number)
{
    const struct itimerval timer = {.it_interval.tv_usec = 10000, .it_value.tv_usec = 10000};
    const struct error *error = refuse(number);
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART}, after;

    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    refusal_expect_failure(EBUSY);
    expect_reason(error, "ITIMER_PROF");
    if (!refusal_timer_fires(&received_signals) || !refusal_timer_fires(&received_signals))
        process_complain("the timer no longer fires");
    sigaction(SIGPROF, NULL, &after);
    if (after.sa_handler != count_signal || !(after.sa_flags & SA_RESTART))
        process_complain("the handler has changed");
    return 0;
}

Test(refusals, under_an_armed_timer_it_is_busy_and_the_timer_goes_on_firing)
{
    act_for_each_error("keep_timer");
}

static int keep_handler(const char *number)
{
    const struct error *error = refuse(number);
    int before;

    signal(SIGPROF, count_signal);
    refusal_expect_failure(EBUSY);
    expect_reason(error, "SIGPROF");
    before = received_signals;
    raise(SIGPROF);
    if (received_signals != before + 1)
        process_complain("the handler is no longer the program's");
    if (timer_is_armed())
        process_complain("the timer is armed");
    return 0;
}

Test(refusals, with_a_handler_of_the_programs_it_is_busy_and_the_handler_stays)
{
    act_for_each_error("keep_handler");
}

static int fall_back_from_ignored(const char *number)
{
    refuse(number);
    signal(SIGPROF, SIG_IGN);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    refusal_expect_ticks_and_stop();
    return 0;
}

Test(refusals, a_program_that_ignores_sigprof_has_no_handler_to_lose)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, "fall_back_from_ignored", "1");
    process_expect(&outcome, process_exited(0));
}

/* ---- What the C library's profile cannot do. ---- */

static void complain_unless_refused(int count, unsigned int flags)
{
    static unsigned int counters[2][64];
    struct prof ranges[] = {{counters[0], sizeof(counters[0]), 0x1000, 65536},
                            {counters[1], sizeof(counters[1]), 0x2000, 65536}};
    int result;

    errno = 0;
    result = sprofil(ranges, count, NULL, flags);
    if (result != -1 || errno != EACCES)
        process_complain("%d ranges, flags %u: %d with %s", count, flags, result,
                         strerrorname_np(errno));
    refusal_expect_reason((const char *const[]){"perf_event_open", "EACCES", "seccomp filter",
                                                "only one range of 16-bit counters", NULL});
}

static int ask_too_much(const char *number)
{
    refuse(number);
    complain_unless_refused(2, PROF_USHORT);
    complain_unless_refused(1, PROF_UINT);
    return 0;
}

Test(refusals, several_ranges_or_wider_counters_have_the_error_of_the_kernel)
{
    expect_act("ask_too_much", EACCES);
}

/* An entry that takes what no other one does, and has no other one. */
static int take_all(const char *number)
{
    static unsigned short counter;
    struct prof all = {&counter, sizeof(counter), 0, 2};

    refuse(number);
    if (sprofil(&all, 1, NULL, PROF_USHORT) != 0)
        process_complain("sprofil: %s", strerrorname_np(errno));
    support_burn(0.5);
    if (counter < 30)
        process_complain("%d ticks in 0.5 s", counter);
    process_profil_off();
    return 0;
}

/* A program that must have the kernel's time has no use for the C library's profile. */
static int demand_kernel_time(const char *number)
{
    refusal_begin(SYS_perf_event_open, atoi(number));
    setenv("PROFIL_SYSTEM", "charge", 1);
    refusal_expect_failure(atoi(number));
    refusal_expect_reason((const char *const[]){"perf_event_open", strerrorname_np(atoi(number)),
                                                "seccomp filter", NULL});
    return 0;
}

static int demand_kernel_time_of_libc(const char *unused)
{
    (void)unused;
    setenv("PROFIL_SYSTEM", "charge", 1);
    setenv("PROFIL_ENGINE", "libc", 1);
    refusal_expect_failure(ENOTSUP);
    refusal_expect_reason((const char *const[]){"the C library's profil()", "kernel", NULL});
    return 0;
}

Test(refusals, an_overflow_entry_alone_falls_back_like_one_counter)
{
    expect_act("take_all", EPERM);
}

Test(refusals, who_must_have_kernel_time_is_told_of_the_filter_and_does_not_fall_back)
{
    expect_act("demand_kernel_time", EPERM);
}

Test(refusals, kernel_time_is_not_to_be_had_of_the_c_librarys_profile)
{
    expect_act("demand_kernel_time_of_libc", 0);
}

static int misname_buffer(const char *number)
{
    unsigned short *volatile nowhere = (unsigned short *)(uintptr_t)8;

    refuse(number);
    if (profil(nowhere, 64, 0, 65536) != -1 || errno != EFAULT)
        process_complain("not EFAULT but %s", strerrorname_np(errno));
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    if (profil(nowhere, 64, 0, 65536) != -1 || errno != EFAULT)
        process_complain("not EFAULT while on, but %s", strerrorname_np(errno));
    refusal_expect_ticks_and_stop();
    return 0;
}

Test(refusals, a_buffer_that_cannot_be_written_is_found_at_the_call_all_the_same)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, "misname_buffer", "1");
    process_expect(&outcome, process_exited(0));
}

/* ---- While the C library's profile runs. ---- */

static int change_buffer(const char *number)
{
    static unsigned short other;
    unsigned short counted;

    refuse(number);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    if (profil(&other, sizeof(other), 0, 0) != 0)
        process_complain("change: %s", strerror(errno));
    for (int i = 0; i < 200 && __atomic_load_n(&other, __ATOMIC_RELAXED) < 3; i++)
        support_burn(0.01);
    counted = other;
    if (counted < 3)
        process_complain("%d ticks in 2 s after the change", counted);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    counted = other;
    refusal_expect_ticks_and_stop();
    if (other != counted)
        process_complain("%d ticks in a buffer that was given up", other - counted);
    return 0;
}

Test(refusals, the_buffer_can_be_changed_as_with_perf_events)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, "change_buffer", "1");
    process_expect(&outcome, process_exited(0));
}

/* ---- Not every event is refused. ---- */

static pthread_barrier_t gate;
static pid_t other_thread;

static void *wait_at_gate(void *unused)
{
    other_thread = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return unused;
}

/* perf_event_open(attr, pid, cpu, ...) */
enum { PID_ARGUMENT = 1, CPU_ARGUMENT = 2 };

static void refuse_last_cpu(void)
{
    cpu_set_t cpus;
    int last = 0;

    sched_getaffinity(0, sizeof(cpus), &cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            last = cpu;
    refusal_begin_where(SYS_perf_event_open, ENOMEM, CPU_ARGUMENT, (uint64_t)last);
}

static int refuse_some(const char *which)
{
    struct refusal_state state;
    pthread_t thread;

    pthread_barrier_init(&gate, NULL, 2);
    pthread_create(&thread, NULL, wait_at_gate, NULL);
    pthread_barrier_wait(&gate);
    if (strcmp(which, "cpu") == 0)
        refuse_last_cpu();
    else
        refusal_begin_where(SYS_perf_event_open, ENOMEM, PID_ARGUMENT, (uint64_t)other_thread);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    process_profil_off();
    refusal_read_state(&state, 2);
    if (state.process.rings > 0)
        process_complain("%zu rings are left", state.process.rings);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    refusal_expect_reason((const char *const[]){"perf_event_open", "ENOMEM", NULL});
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    pthread_barrier_wait(&gate);
    pthread_join(thread, NULL);
    return 0;
}

Test(refusals, the_events_before_a_refused_one_do_not_stay)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, "refuse_some", "cpu");
    process_expect(&outcome, process_exited(0));
    act_run(&outcome, "refuse_some", "thread");
    process_expect(&outcome, process_exited(0));
}

const struct act acts[] = {
    {"ask_too_much", ask_too_much},
    {"change_buffer", change_buffer},
    {"demand_kernel_time", demand_kernel_time},
    {"demand_kernel_time_of_libc", demand_kernel_time_of_libc},
    {"fail", fail},
    {"fall_back", fall_back},
    {"fall_back_from_ignored", fall_back_from_ignored},
    {"keep_handler", keep_handler},
    {"keep_timer", keep_timer},
    {"misname_buffer", misname_buffer},
    {"refuse_some", refuse_some},
    {"take_all", take_all},
    {NULL, NULL},
};
