#include "refusal.h"

#include "support.h"

#include <errno.h>
#include <grp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

static void load(int call, int error, unsigned int count, const struct scmp_arg_cmp *comparisons)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int result;

    if (!filter) {
        process_complain("no filter can be made");
        return;
    }
    result = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((unsigned int)error), call, count,
                                    comparisons);
    if (result == 0)
        result = seccomp_load(filter);
    if (result < 0)
        process_complain("call %d cannot be filtered: %s", call, strerror(-result));
    seccomp_release(filter);
}

void refusal_begin(int call, int error)
{
    if (call >= 0)
        load(call, error, 0, NULL);
}

void refusal_begin_where(int call, int error, unsigned int argument, uint64_t value)
{
    const struct scmp_arg_cmp comparison = {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value};

    load(call, error, 1, &comparison);
}

void refusal_begin_where_both(int call, int error, unsigned int first, uint64_t first_value,
                              unsigned int second, uint64_t second_value)
{
    const struct scmp_arg_cmp comparisons[] = {
        {.arg = first, .op = SCMP_CMP_EQ, .datum_a = first_value},
        {.arg = second, .op = SCMP_CMP_EQ, .datum_a = second_value}};

    load(call, error, 2, comparisons);
}

/* Numbers that no distribution hands out, a different one for each process that asks: what is
 * counted for a user is then counted for this process and its children alone, also when the tests
 * run twice at the same time. */
enum { FIRST_NUMBER = 61184, NUMBERS = 4096 };

bool refusal_become_somebody(void)
{
    unsigned int somebody = FIRST_NUMBER + (unsigned int)getpid() % NUMBERS;

    if (setgroups(0, NULL) < 0 || setresgid(somebody, somebody, somebody) < 0 ||
        setresuid(somebody, somebody, somebody) < 0)
        return false;
    /* Which the change has taken away, and the user's own programs have. */
    prctl(PR_SET_DUMPABLE, 1);
    return true;
}

void refusal_lower_limit(int resource, rlim_t soft, rlim_t hard)
{
    const struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};

    if (setrlimit((__rlimit_resource_t)resource, &limit) < 0)
        process_complain("limit %d cannot be %lu: %s", resource, (unsigned long)soft,
                         strerror(errno));
}

/* --- The profile. --- */

static unsigned short ticks;

static enum profil_engine engine_in_use(void)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};

    profil_stats(NULL, &stats);
    return stats.running ? stats.engine : PROFIL_ENGINE_AUTO;
}

static const char *reason(void)
{
    static char text[1024];

    profil_reason(NULL, text, sizeof(text));
    return text;
}

static int start(void)
{
    ticks = 0;
    return profil(&ticks, sizeof(ticks), 0, 0);
}

void refusal_expect_start(enum profil_engine engine)
{
    if (start() < 0)
        process_complain("start: %s; %s", strerror(errno), reason());
    else if (engine_in_use() != engine)
        process_complain("engine %d, not %d; %s", engine_in_use(), engine, reason());
}

/* The clock of this timer and that of the C library's profil() advance together: at each interrupt
 * of the kernel's timer that finds the process running, by the whole time since the last one. This
 * one leaves out those that find it in the kernel. */
static double virtual_timer_seconds(void)
{
    struct itimerval timer;

    getitimer(ITIMER_VIRTUAL, &timer);
    return -((double)timer.it_value.tv_sec + (double)timer.it_value.tv_usec * 1e-6);
}

static void arm_virtual_timer(void)
{
    const struct itimerval timer = {.it_value.tv_sec = 100000};

    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

struct usage {
    double user, kernel;
};

/* Exact in the sum, and divided by what those interrupts found. */
static struct usage read_usage(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (struct usage){
        .user = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6,
        .kernel = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6};
}

/* The share of the user since then. */
static double user_share(struct usage before)
{
    struct usage now = read_usage();
    double user = now.user - before.user, kernel = now.kernel - before.kernel;

    return user / (user + kernel);
}

/* By that clock, and not the exact one, from which it differs by up to two thirds on a busy
 * machine. The rest: a tick that has begun, and an interval that some kernels round up to their
 * timer's, 4 ms or 10. */
static bool libc_ticks_fit(double seconds)
{
    return ticks >= seconds * 100 * 0.85 - 1 && ticks <= seconds * 100 * 1.1 + 1;
}

static const double busy_seconds = 0.4;

void refusal_expect_ticks_and_stop(void)
{
    bool by_libc = engine_in_use() == PROFIL_ENGINE_LIBC;
    struct usage usage = read_usage();
    double begin, virtual_begin;

    arm_virtual_timer();
    virtual_begin = virtual_timer_seconds();
    begin = support_thread_seconds();
    support_burn(busy_seconds);
    process_profil_off();
    double seconds = support_thread_seconds() - begin;
    double timer_seconds = (virtual_timer_seconds() - virtual_begin) / user_share(usage);
    if (by_libc ? !libc_ticks_fit(timer_seconds) : !process_ticks_fit(ticks, seconds, 1))
        process_complain("%d ticks in %.3f s, or %.3f s by the timer's clock", ticks, seconds,
                         timer_seconds);
}

void refusal_expect_failure(int error)
{
    int result;

    errno = 0;
    result = start();
    if (result != -1 || errno != error)
        process_complain("profil() is %d with %s, not -1 with %s; %s", result,
                         strerrorname_np(errno), strerrorname_np(error), reason());
    if (result == 0)
        process_profil_off();
}

void refusal_expect_reason(const char *const words[])
{
    for (; *words; words++)
        if (!strstr(reason(), *words))
            process_complain("no \"%s\" in the reason \"%s\"", *words, reason());
}

void refusal_expect_no_reason(void)
{
    if (reason()[0])
        process_complain("a reason for nothing: \"%s\"", reason());
}

bool refusal_timer_fires(const volatile sig_atomic_t *count)
{
    sig_atomic_t before = *count;

    for (int i = 0; i < 200 && *count == before; i++)
        support_burn(0.01);
    return *count > before;
}

/* --- What must not change. --- */

void refusal_read_state(struct refusal_state *state, size_t threads)
{
    memset(state, 0, sizeof(*state));
    process_read_settled_state(&state->process, threads);
    for (int resource = 0; resource < RLIM_NLIMITS; resource++)
        getrlimit((__rlimit_resource_t)resource, &state->limits[resource]);
    pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
    sched_getaffinity(0, sizeof(state->affinity), &state->affinity);
}

static void compare(const char *what, size_t before, size_t after, const char *when)
{
    if (before != after)
        process_complain("%s: %zu before, %zu %s", what, before, after, when);
}

void refusal_expect_state(const struct refusal_state *expected, const char *when)
{
    struct refusal_state state;

    refusal_read_state(&state, expected->process.threads);
    compare("threads", expected->process.threads, state.process.threads, when);
    compare("descriptors", expected->process.descriptors, state.process.descriptors, when);
    compare("rings", expected->process.rings, state.process.rings, when);
    compare("mappings", expected->process.mappings, state.process.mappings, when);
    for (int resource = 0; resource < RLIM_NLIMITS; resource++)
        if (state.limits[resource].rlim_cur != expected->limits[resource].rlim_cur ||
            state.limits[resource].rlim_max != expected->limits[resource].rlim_max)
            process_complain("limit %d has changed %s", resource, when);
    for (int signal = 1; signal < NSIG; signal++)
        compare("a blocked signal", (size_t)sigismember(&expected->mask, signal),
                (size_t)sigismember(&state.mask, signal), when);
    if (!CPU_EQUAL(&expected->affinity, &state.affinity))
        process_complain("the CPUs of the thread have changed %s", when);
}
