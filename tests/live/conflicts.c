/* Another profiler, on ITIMER_PROF and SIGPROF: it is not disturbed, and noted with the time at
 * which it was seen, or, on request, a reason to fail. */
#include "act.h"
#include "refusal.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static unsigned short ticks;

static void on(void)
{
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0, "%s", strerror(errno));
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct profil_stats stats(void)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};

    cr_assert_eq(profil_stats(NULL, &stats), 0);
    return stats;
}

static volatile sig_atomic_t received_signals;

static void count_signal(int signal)
{
    (void)signal;
    received_signals++;
}

static void handle_signal(void)
{
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};

    sigaction(SIGPROF, &action, NULL);
}

static void set_timer(long microseconds)
{
    const struct itimerval timer = {.it_interval.tv_usec = microseconds,
                                    .it_value.tv_usec = microseconds};

    setitimer(ITIMER_PROF, &timer, NULL);
}

static void check_time(uint64_t seen, uint64_t from, uint64_t to, const char *what)
{
    cr_expect(seen >= from && seen <= to, "%s seen at %llu, and not between %llu and %llu", what,
              (unsigned long long)seen, (unsigned long long)from, (unsigned long long)to);
}

Test(conflicts, there_are_none_in_a_program_that_has_no_other_profiler)
{
    support_require_perf();
    signal(SIGPROF, SIG_IGN); /* which is no handler */
    on();
    support_burn(0.05);
    cr_expect_eq(stats().conflict_timer, 0);
    cr_expect_eq(stats().conflict_handler, 0);
    support_off();
    cr_expect_eq(stats().conflict_timer, 0);
    cr_expect_eq(stats().conflict_handler, 0);
}

Test(conflicts, those_at_the_start_are_noted_with_its_time)
{
    support_require_perf();
    uint64_t before;

    handle_signal();
    set_timer(10000);
    before = now();
    on();
    uint64_t after = now();
    check_time(stats().conflict_timer, before, after, "the timer was");
    check_time(stats().conflict_handler, before, after, "the handler was");
    support_off();
    check_time(stats().conflict_timer, before, after, "after the stop the timer was");
}

Test(conflicts, a_handler_without_a_timer_is_noted_as_such)
{
    support_require_perf();
    handle_signal();
    on();
    cr_expect_eq(stats().conflict_timer, 0);
    cr_expect_neq(stats().conflict_handler, 0);
    support_off();
}

/* While the program works it is looked at after every tick; a second is what may pass before a
 * thread runs on a machine that is full of others. The times are those of the sampler, not of the
 * question: the conflict is over before that comes. */
Test(conflicts, a_timer_and_a_handler_that_come_later_and_go_are_noted_within_a_second)
{
    support_require_perf();
    const uint64_t second = 1000000000;
    uint64_t timer_at, handler_at;

    on();
    support_burn(0.03);
    handler_at = now();
    handle_signal();
    support_burn(0.05);
    timer_at = now();
    set_timer(10000);
    cr_expect(refusal_timer_fires(&received_signals), "the timer does not fire");
    support_burn(0.1);
    set_timer(0);
    signal(SIGPROF, SIG_IGN);
    uint64_t gone_at = now();
    support_burn(0.03);
    support_off();
    check_time(stats().conflict_handler, handler_at, handler_at + second, "the handler was");
    check_time(stats().conflict_timer, timer_at, timer_at + second, "the timer was");
    cr_expect_leq(stats().conflict_timer, gone_at, "the timer was seen after it had gone");
}

Test(conflicts, in_a_program_that_sleeps_the_question_itself_looks)
{
    support_require_perf();
    uint64_t before, seen;

    on();
    before = now();
    handle_signal();
    seen = stats().conflict_handler;
    check_time(seen, before, now(), "the handler was");
    support_off();
}

Test(conflicts, a_new_start_forgets_those_of_the_last_one)
{
    support_require_perf();
    handle_signal();
    on();
    support_off();
    cr_expect_neq(stats().conflict_handler, 0);
    signal(SIGPROF, SIG_DFL);
    on();
    cr_expect_eq(stats().conflict_handler, 0);
    support_off();
}

Test(conflicts, a_profile_of_ones_own_can_be_told_to_fail)
{
    const struct profil_options options = {.struct_size = sizeof(options),
                                           .on_conflict = PROFIL_ON_CONFLICT_FAIL};
    profil_profile *profile;
    char reason[512];

    support_require_perf();
    cr_assert_eq(profil_open(&profile, &options), 0);
    handle_signal();
    errno = 0;
    cr_expect_eq(profil_start(profile), -1);
    cr_expect_eq(errno, EBUSY, "%s", strerror(errno));
    profil_reason(profile, reason, sizeof(reason));
    cr_expect(strstr(reason, "SIGPROF"), "no word of the signal: \"%s\"", reason);
    signal(SIGPROF, SIG_DFL);
    cr_expect_eq(profil_start(profile), 0, "without the handler: %s", strerror(errno));
    profil_close(profile);
}

/* ---- By the environment. ---- */

static int fail_on_conflict(const char *kind)
{
    struct refusal_state state;
    bool timer = strcmp(kind, "timer") == 0;

    setenv("PROFIL_ON_CONFLICT", "fail", 1);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    process_profil_off();
    refusal_read_state(&state, 1);
    handle_signal();
    if (timer)
        set_timer(10000);
    refusal_expect_failure(EBUSY);
    refusal_expect_reason((const char *const[]){timer ? "ITIMER_PROF" : "SIGPROF", NULL});
    refusal_expect_state(&state, "after a failure");
    if (timer && !refusal_timer_fires(&received_signals))
        process_complain("the timer did not fire");
    set_timer(0);
    signal(SIGPROF, SIG_DFL);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    return 0;
}

static void expect_act(const char *name, const char *argument)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, name, argument);
    process_expect(&outcome, process_exited(0));
}

Test(conflicts, an_unchanged_program_can_be_told_to_fail_by_the_environment)
{
    expect_act("fail_on_conflict", "timer");
    expect_act("fail_on_conflict", "handler");
}

static int want_libc(const char *unused)
{
    (void)unused;
    setenv("PROFIL_ENGINE", "libc", 1);
    handle_signal();
    set_timer(10000);
    refusal_expect_failure(EBUSY);
    refusal_expect_reason((const char *const[]){"ITIMER_PROF", NULL});
    if (!refusal_timer_fires(&received_signals))
        process_complain("the timer did not fire");
    set_timer(0);
    refusal_expect_failure(EBUSY);
    refusal_expect_reason((const char *const[]){"SIGPROF", NULL});
    signal(SIGPROF, SIG_DFL);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    refusal_expect_no_reason();
    refusal_expect_ticks_and_stop();
    return 0;
}

Test(conflicts, the_c_librarys_profile_on_request_takes_no_timer_and_no_handler)
{
    expect_act("want_libc", "");
}

static void *burn_on(void *unused)
{
    for (;;)
        support_burn(0.01);
    return unused;
}

/* The C library's own crashes when it is turned off while its handler runs in another thread, and a
 * signal that is still on its way then kills. */
static int switch_libc_beside_busy_threads(const char *unused)
{
    enum { THREADS = 4, ROUNDS = 40 };
    static unsigned short counters[2];

    (void)unused;
    setenv("PROFIL_ENGINE", "libc", 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, burn_on, NULL) != 0)
            process_complain("no thread");
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec moment = {.tv_nsec = 5000000 + i % 7 * 1000000};

        if (profil(counters, 2, 0, 0) != 0)
            process_complain("on: %s", strerror(errno));
        nanosleep(&moment, NULL);
        if (profil(counters + 1, 2, 0, 0) != 0)
            process_complain("moved: %s", strerror(errno));
        nanosleep(&moment, NULL);
        process_profil_off();
    }
    if (counters[0] == 0 || counters[1] == 0)
        process_complain("%u and %u ticks", counters[0], counters[1]);
    return 0;
}

Test(conflicts, the_c_librarys_profile_is_moved_and_turned_off_beside_busy_threads)
{
    expect_act("switch_libc_beside_busy_threads", "");
}

const struct act acts[] = {
    {"switch_libc_beside_busy_threads", switch_libc_beside_busy_threads},
    {"fail_on_conflict", fail_on_conflict},
    {"want_libc", want_libc},
    {NULL, NULL},
};
