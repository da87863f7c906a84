/* System calls that a sandbox keeps from the program, and a /proc that is not its own: each has
 * another way, or the C library's profile in its place, with the reason. */
#include "act.h"
#include "refusal.h"
#include "sanitizer.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void expect_act(const char *name, const char *argument)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, name, argument);
    cr_expect(outcome.status == process_exited(0) && !outcome.complaints[0], "%s: status %#x; %s%s",
              argument, outcome.status, outcome.output, outcome.complaints);
}

/* ---- Calls for which there is another way. ---- */

static void refuse_close_range(void)
{
    refusal_begin(SYS_close_range, EPERM);
}

static void lack_close_range(void)
{
    refusal_begin(SYS_close_range, ENOSYS);
}

static void refuse_affinity_changes(void)
{
    refusal_begin(SYS_sched_setaffinity, EPERM);
}

static void refuse_signals(void)
{
    refusal_begin(SYS_tgkill, EPERM);
}

static void refuse_names(void)
{
    refusal_begin(SYS_prctl, EPERM);
}

/* ---- Calls for which there is none. ---- */

static void refuse_tables(void)
{
    refusal_begin(SYS_close_range, EPERM);
    refusal_begin(SYS_unshare, EPERM);
}

static void refuse_signalfd(void)
{
    refusal_begin(SYS_signalfd4, EPERM);
}

static void refuse_affinity(void)
{
    refusal_begin(SYS_sched_getaffinity, EPERM);
}

static void refuse_directories(void)
{
    refusal_begin(SYS_getdents64, EPERM);
}

static void refuse_threads(void)
{
#ifdef SYS_clone3
    refusal_begin(SYS_clone3, ENOSYS);
#endif
    refusal_begin(SYS_clone, EPERM);
}

/* mmap(addr, length, prot, flags, ...): as rings are mapped, and hardly anything else. */
static void refuse_rings(int error)
{
    refusal_begin_where_both(SYS_mmap, error, 2, PROT_READ | PROT_WRITE, 3, MAP_SHARED);
}

static void refuse_rings_for_memory(void)
{
    refuse_rings(ENOMEM);
}

static void refuse_rings_for_permission(void)
{
    refuse_rings(EPERM);
}

static void refuse_control(void)
{
    refusal_begin(SYS_ioctl, EPERM);
}

/* ioctl(fd, request, ...) */
static void refuse_enabling(void)
{
    refusal_begin_where(SYS_ioctl, EPERM, 1, PERF_EVENT_IOC_ENABLE);
}

static const struct sandbox {
    const char *name;
    void (*enter)(void);
    const char *reason[3]; /* words; none: events are had all the same */
} sandboxes[] = {
    {"close_range", refuse_close_range, {NULL}},
    {"close_range_before_5.9", lack_close_range, {NULL}},
    {"sched_setaffinity", refuse_affinity_changes, {NULL}},
    {"tgkill", refuse_signals, {NULL}},
    {"prctl", refuse_names, {NULL}},
    {"close_range,unshare", refuse_tables, {"descriptor table failed with EPERM", "seccomp"}},
    {"signalfd4", refuse_signalfd, {"signalfd failed with EPERM"}},
    {"sched_getaffinity", refuse_affinity, {"the CPUs failed with EPERM"}},
    {"getdents64", refuse_directories, {"/proc/self/task failed with EPERM"}},
    {"clone", refuse_threads, {"the sampler thread failed with EPERM", "seccomp"}},
    {"mmap", refuse_rings_for_permission, {"a ring buffer failed with EPERM"}},
    {"mmap_memory", refuse_rings_for_memory, {"a ring buffer failed with ENOMEM", "memory"}},
    {"ioctl", refuse_control, {"failed with EPERM", "seccomp"}},
    {"ioctl_enable", refuse_enabling, {"failed with EPERM", "seccomp"}},
};
enum { SANDBOXES = sizeof(sandboxes) / sizeof(sandboxes[0]) };

/* A sanitizer's own threads need that call. */
static bool is_possible(const struct sandbox *sandbox)
{
    return !PROFIL_SANITIZED || sandbox->enter != refuse_affinity;
}

static bool is_harmless(const struct sandbox *sandbox)
{
    return !sandbox->reason[0];
}

static const struct sandbox *find_sandbox(const char *name)
{
    for (size_t i = 0; i < SANDBOXES; i++)
        if (strcmp(sandboxes[i].name, name) == 0)
            return &sandboxes[i];
    process_complain("there is no sandbox of the name %s", name);
    abort();
}

/* What a sanitizer does at exit is not possible in every sandbox. */
static int leave_sandbox(void)
{
    if (PROFIL_SANITIZED)
        _exit(0);
    return 0;
}

static int profile_inside(const char *name)
{
    const struct sandbox *sandbox = find_sandbox(name);
    enum profil_engine engine = is_harmless(sandbox) ? PROFIL_ENGINE_PERF : PROFIL_ENGINE_LIBC;
    struct refusal_state state;

    sandbox->enter();
    refusal_expect_start(engine);
    process_profil_off();
    refusal_read_state(&state, 1);
    if (state.process.threads > 1 || state.process.rings > 0)
        process_complain("%zu threads and %zu rings are left", state.process.threads,
                         state.process.rings);
    refusal_expect_start(engine);
    if (!is_harmless(sandbox))
        refusal_expect_reason(sandbox->reason);
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    return leave_sandbox();
}

Test(sandbox, a_call_for_which_there_is_another_way_is_not_missed)
{
    for (size_t i = 0; i < SANDBOXES; i++)
        if (is_harmless(&sandboxes[i]))
            expect_act("profile_inside", sandboxes[i].name);
}

Test(sandbox, without_a_call_that_is_needed_it_is_the_c_librarys_profile_and_the_reason_says_why)
{
    for (size_t i = 0; i < SANDBOXES; i++)
        if (!is_harmless(&sandboxes[i]) && is_possible(&sandboxes[i]))
            expect_act("profile_inside", sandboxes[i].name);
}

static int fail_inside(const char *name)
{
    const struct sandbox *sandbox = find_sandbox(name);
    int error = strcmp(name, "mmap_memory") == 0 ? ENOMEM : EPERM;
    struct refusal_state state;

    sandbox->enter();
    setenv("PROFIL_ENGINE", "perf", 1);
    refusal_expect_failure(error);
    refusal_read_state(&state, 1);
    refusal_expect_failure(error);
    refusal_expect_reason(sandbox->reason);
    refusal_expect_state(&state, "after a failure");
    return leave_sandbox();
}

Test(sandbox, with_the_engine_perf_the_error_is_that_of_the_call_and_nothing_is_left)
{
    for (size_t i = 0; i < SANDBOXES; i++)
        if (!is_harmless(&sandboxes[i]) && is_possible(&sandboxes[i]))
            expect_act("fail_inside", sandboxes[i].name);
}

/* ---- The signal that wakes the sampler. ---- */

static void rest(void)
{
    const struct timespec pause = {.tv_nsec = 100000000};

    nanosleep(&pause, NULL);
}

static double stop_seconds(void)
{
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    process_profil_off();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

/* Asleep, the sampler has nothing else to wake it. It looks 50 times a second by itself, or the
 * caller's own CPU time wakes it; more than a second could only be the machine's. */
static int stop_while_asleep(const char *when)
{
    bool before = strcmp(when, "before") == 0;
    double seconds;

    if (before)
        refuse_signals();
    for (int round = 0; round < 3; round++) {
        refusal_expect_start(PROFIL_ENGINE_PERF);
        if (!before && round == 0)
            refuse_signals();
        rest();
        seconds = stop_seconds();
        if (seconds > 1)
            process_complain("round %d: the stop took %.3f s", round, seconds);
    }
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    return 0;
}

Test(sandbox, a_stop_comes_through_to_a_sampler_that_sleeps_and_cannot_be_signalled)
{
    expect_act("stop_while_asleep", "before");
}

Test(sandbox, a_stop_comes_through_also_when_signals_are_refused_after_the_start)
{
    expect_act("stop_while_asleep", "after");
}

/* An event that does not come while the caller waits cannot wake the sampler. */
static int stop_rare_event(const char *event)
{
    double seconds;

    alarm(10); /* the caller may be spinning, which it should not for a whole minute */
    setenv("PROFIL_EVENT", event, 1);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refuse_signals();
    rest();
    seconds = stop_seconds();
    if (seconds > 1)
        process_complain("the stop took %.3f s", seconds);
    return 0;
}

Test(sandbox, a_stop_comes_through_also_when_the_event_is_a_rare_one)
{
    profil_profile *profile;
    const struct profil_options options = {.struct_size = sizeof(options), .event = "page-faults"};

    if (profil_open(&profile, &options) != 0)
        cr_skip_test("events have no names here");
    profil_close(profile);
    expect_act("stop_rare_event", "page-faults");
}

/* ---- /proc ---- */

enum { CANNOT = 77 };

/* As the superuser, or as that of a user namespace. */
static bool leave_namespace(int kinds)
{
    if (unshare(kinds) == 0 || unshare(CLONE_NEWUSER | kinds) == 0)
        return true;
    printf("unshare: %s\n", strerror(errno));
    fflush(stdout);
    return false;
}

static void expect_act_in_namespace(const char *name)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, name, "");
    if (outcome.status == process_exited(CANNOT))
        cr_skip_test("this user cannot have a namespace here: %s", outcome.output);
    process_expect(&outcome, process_exited(0));
}

static int hide_proc(const char *unused)
{
    (void)unused;
    if (!leave_namespace(CLONE_NEWNS))
        return CANNOT;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) < 0) {
        printf("mount: %s\n", strerror(errno));
        return CANNOT;
    }
    for (int round = 0; round < 2; round++) {
        refusal_expect_start(PROFIL_ENGINE_LIBC);
        refusal_expect_reason(
            (const char *const[]){"/proc/self/task failed with ENOENT", "mount the /proc", NULL});
        refusal_expect_ticks_and_stop();
    }
    fflush(stdout);
    _exit(0); /* some sanitizers look into /proc at exit */
}

Test(sandbox, without_a_proc_it_is_the_c_librarys_profile_and_the_reason_says_why)
{
    expect_act_in_namespace("hide_proc");
}

/* Its threads have numbers there that it does not know itself by. */
static int keep_outer_proc(const char *unused)
{
    int status;
    pid_t child;

    (void)unused;
    if (!leave_namespace(CLONE_NEWPID))
        return CANNOT;
    child = fork();
    if (child < 0)
        return CANNOT;
    if (child == 0) {
        alarm(PROCESS_WATCHDOG_SECONDS);
        refusal_expect_start(PROFIL_ENGINE_LIBC);
        refusal_expect_reason((const char *const[]){"/proc/self/task", "mount the /proc", NULL});
        refusal_expect_ticks_and_stop();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        process_complain("the first process of the namespace ended with status %#x", status);
    return leave_sandbox();
}

Test(sandbox, with_the_proc_of_another_process_namespace_it_is_the_c_librarys_profile)
{
    expect_act_in_namespace("keep_outer_proc");
}

const struct act acts[] = {
    {"fail_inside", fail_inside},
    {"hide_proc", hide_proc},
    {"keep_outer_proc", keep_outer_proc},
    {"profile_inside", profile_inside},
    {"stop_rare_event", stop_rare_event},
    {"stop_while_asleep", stop_while_asleep},
    {NULL, NULL},
};
