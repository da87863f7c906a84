/* A child is a program of its own: not profiled, nothing left over from its parent's profile, and
 * free to profile itself. */
#include "act.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* At scale 0 every tick goes to the first counter. */
static unsigned short ticks;

static int on(void)
{
    ticks = 0;
    return profil(&ticks, sizeof(ticks), 0, 0);
}

static int read_ticks(void)
{
    return __atomic_load_n(&ticks, __ATOMIC_RELAXED);
}

static void expect_fitting_ticks(double seconds)
{
    cr_expect(process_ticks_fit(ticks, seconds, 1), "%d ticks in %.3f s of CPU time", ticks,
              seconds);
}

static void complain_of_ticks(void *context)
{
    int before = read_ticks();

    (void)context;
    support_burn(0.3);
    if (read_ticks() != before)
        process_complain("%d ticks, and then %d", before, read_ticks());
}

Test(forks, a_forked_child_is_not_profiled_and_its_parent_goes_on)
{
    support_require_perf();
    struct outcome outcome;
    double begin;

    cr_assert_eq(on(), 0);
    begin = support_thread_seconds();
    support_burn(0.2);
    process_fork(&outcome, complain_of_ticks, NULL);
    support_burn(0.3);
    double seconds = support_thread_seconds() - begin;
    support_off();
    process_expect(&outcome, process_exited(0));
    expect_fitting_ticks(seconds);
}

static void print_state(void *context)
{
    struct process_state state;

    (void)context;
    process_read_state(&state); /* once for what a first reading itself brings */
    process_read_state(&state);
    printf("%zu threads, %zu descriptors, %zu mappings, %zu of rings, %zu kB", state.threads,
           state.descriptors, state.mappings, state.rings, state.kilobytes);
    fflush(stdout);
}

/* The child of a profiled program is held against one of the same program at rest. */
Test(forks, a_forked_child_has_one_thread_and_no_mapping_or_descriptor_of_the_profile)
{
    support_require_perf();
    struct outcome off, while_on;
    struct process_state parent;

    process_fork(&off, print_state, NULL);
    cr_assert_eq(on(), 0);
    process_read_state(&parent);
    process_fork(&while_on, print_state, NULL);
    support_off();
    cr_expect_gt(parent.rings, 0, "the profile has no ring: the comparison shows nothing");
    process_expect(&off, process_exited(0));
    process_expect(&while_on, process_exited(0));
    cr_expect_eq(strncmp(off.output, "1 threads, ", 11), 0, "%s", off.output);
    cr_expect_str_eq(while_on.output, off.output, "%s; without a profile %s", while_on.output,
                     off.output);
}

/* `stops_first`: whether the child turns off, which is not on, before it turns on. */
static void profile_itself(void *stops_first)
{
    double begin;

    if (stops_first)
        process_profil_off();
    if (on() != 0)
        process_complain("start in the child: %s", strerror(errno));
    begin = support_thread_seconds();
    support_burn(0.3);
    double seconds = support_thread_seconds() - begin;
    process_profil_off();
    if (!process_ticks_fit(ticks, seconds, 1))
        process_complain("%d ticks in %.3f s of the child's CPU time", ticks, seconds);
}

static void expect_child_that_profiles_itself(void *stops_first)
{
    struct outcome outcome;
    double begin;

    cr_assert_eq(on(), 0);
    begin = support_thread_seconds();
    process_fork(&outcome, profile_itself, stops_first);
    support_burn(0.3);
    double seconds = support_thread_seconds() - begin;
    support_off();
    process_expect(&outcome, process_exited(0));
    expect_fitting_ticks(seconds);
}

Test(forks, a_forked_child_can_profile_itself)
{
    support_require_perf();
    expect_child_that_profiles_itself(NULL);
}

Test(forks, a_forked_child_can_turn_off_what_is_not_on_and_profile_itself)
{
    support_require_perf();
    expect_child_that_profiles_itself("");
}

/* The bare system call: no handler of pthread_atfork() runs. */
static pid_t bare_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int fork_bare(const char *stops_first)
{
    int status = 0;
    pid_t child;

    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    child = bare_fork();
    if (child == 0) {
        alarm(PROCESS_WATCHDOG_SECONDS / 2);
        profile_itself(*stops_first ? "" : NULL);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        process_complain("the child ended with status %#x", status);
    process_profil_off();
    return 0;
}

Test(forks, a_child_of_the_bare_system_call_can_profile_itself)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "fork_bare", "");
    process_expect(&outcome, process_exited(0));
}

Test(forks, a_child_of_the_bare_system_call_can_turn_off_and_profile_itself)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "fork_bare", "stops first");
    process_expect(&outcome, process_exited(0));
}

enum { EXIT_CODE = 7 };
static char *const shell[] = {"sh", "-c", "exit 7", NULL};

/* The child runs in this memory until it executes; its own CPU time must not count. */
__attribute__((noinline)) static pid_t vfork_burn_and_execute(void)
{
    pid_t child = vfork();

    if (child == 0) {
        support_burn(0.2);
        execv("/bin/sh", shell);
        _exit(127);
    }
    return child;
}

static void expect_exit_code(pid_t child)
{
    int status;

    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, process_exited(EXIT_CODE), "status %#x", status);
}

Test(forks, vfork_and_exec_while_on_work_and_give_no_ticks)
{
    support_require_perf();
    double begin;

    cr_assert_eq(on(), 0);
    begin = support_thread_seconds();
    expect_exit_code(vfork_burn_and_execute());
    support_burn(0.2);
    double seconds = support_thread_seconds() - begin;
    support_off();
    expect_fitting_ticks(seconds);
}

Test(forks, posix_spawn_while_on_works)
{
    support_require_perf();
    double begin;

    cr_assert_eq(on(), 0);
    begin = support_thread_seconds();
    for (int i = 0; i < 10; i++) {
        pid_t child = -1;

        cr_assert_eq(posix_spawn(&child, "/bin/sh", NULL, NULL, shell, environ), 0);
        expect_exit_code(child);
    }
    support_burn(0.3);
    double seconds = support_thread_seconds() - begin;
    support_off();
    expect_fitting_ticks(seconds);
}

enum { FORKING_THREADS = 4 };
static int forking;

static void start_and_stop(void)
{
    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    process_profil_off();
}

/* A child that hangs ends itself before the watchdog ends its parent. */
static void *fork_in_a_loop(void *count)
{
    for (int i = 0; i < *(const int *)count; i++) {
        int status = -1;
        pid_t child = fork();

        if (child == 0) {
            alarm(PROCESS_WATCHDOG_SECONDS / 2);
            process_profil_off();
            if (i % 4 == 0)
                start_and_stop();
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            process_complain("child %d ended with status %#x", i, status);
    }
    __atomic_fetch_sub(&forking, 1, __ATOMIC_RELEASE);
    return NULL;
}

static int fork_beside_start_and_stop(const char *forks_each)
{
    pthread_t threads[FORKING_THREADS];
    int count = atoi(forks_each);

    forking = FORKING_THREADS;
    for (int i = 0; i < FORKING_THREADS; i++)
        pthread_create(&threads[i], NULL, fork_in_a_loop, &count);
    while (__atomic_load_n(&forking, __ATOMIC_ACQUIRE) > 0)
        start_and_stop();
    for (int i = 0; i < FORKING_THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

Test(forks, threads_that_fork_beside_start_and_stop_never_hang)
{
    support_require_perf();
    if (PROCESS_SANITIZED)
        cr_skip_test("the sanitizer's allocator may hang in the child");
    struct outcome outcome;

    act_run(&outcome, "fork_beside_start_and_stop", "40");
    process_expect(&outcome, process_exited(0));
}

/* The first start of a process is a chance that comes but once in it. */
Test(forks, threads_that_fork_beside_the_first_start_never_hang)
{
    support_require_perf();
    if (PROCESS_SANITIZED)
        cr_skip_test("the sanitizer's allocator may hang in the child");
    for (int i = 0; i < 20; i++) {
        struct outcome outcome;

        act_run(&outcome, "fork_beside_start_and_stop", "4");
        process_expect(&outcome, process_exited(0));
    }
}

/* ---- The program's own fork handlers use the profile. ---- */

enum handlers { HANDLERS_NONE, HANDLERS_EARLY, HANDLERS_LATE };

static enum handlers handlers;
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;

static void turn_off_and_lock(enum handlers which)
{
    if (handlers != which)
        return;
    pthread_mutex_lock(&program_lock);
    process_profil_off();
}

static void turn_on_and_unlock(enum handlers which)
{
    if (handlers != which)
        return;
    if (on() != 0)
        process_complain("start in a handler: %s", strerror(errno));
    pthread_mutex_unlock(&program_lock);
}

/* Early: from before the library's own constructor, as those of another library may be. */
static void early_before(void)
{
    turn_off_and_lock(HANDLERS_EARLY);
}

static void early_after(void)
{
    turn_on_and_unlock(HANDLERS_EARLY);
}

__attribute__((constructor(101))) static void register_early(void)
{
    pthread_atfork(early_before, early_after, early_after);
}

static void late_before(void)
{
    turn_off_and_lock(HANDLERS_LATE);
}

static void late_after(void)
{
    turn_on_and_unlock(HANDLERS_LATE);
}

static _Atomic bool changes_go_on;

/* A lock of the program's is held around calls, and taken by its fork handler. */
static void *change_with_lock(void *unused)
{
    while (changes_go_on) {
        pthread_mutex_lock(&program_lock);
        if (on() != 0)
            process_complain("change: %s", strerror(errno));
        pthread_mutex_unlock(&program_lock);
    }
    return unused;
}

static void wait_for_ticks(const char *whose)
{
    int before = read_ticks();

    support_burn(0.2);
    if (read_ticks() < before + 10)
        process_complain("%d ticks of the %s, and then %d", before, whose, read_ticks());
}

static int fork_with_handlers(const char *which)
{
    bool is_late = strcmp(which, "late") == 0;
    pthread_t thread;

    handlers = is_late ? HANDLERS_LATE : HANDLERS_EARLY;
    pthread_atfork(late_before, late_after, late_after);
    on();
    changes_go_on = is_late;
    if (is_late)
        pthread_create(&thread, NULL, change_with_lock, NULL);
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t child = fork();

        if (child == 0) {
            alarm(PROCESS_WATCHDOG_SECONDS / 2);
            if (i == 0)
                wait_for_ticks("child");
            process_profil_off();
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            process_complain("child %d ended with status %#x", i, status);
    }
    changes_go_on = false;
    if (is_late)
        pthread_join(thread, NULL);
    wait_for_ticks("parent");
    process_profil_off();
    return 0;
}

static void expect_handlers_to_work(const char *which)
{
    struct outcome outcome;

    support_require_perf();
    if (PROCESS_SANITIZED)
        cr_skip_test("the sanitizer's allocator may hang in the child");
    act_run(&outcome, "fork_with_handlers", which);
    process_expect(&outcome, process_exited(0));
}

Test(forks, handlers_of_the_program_turn_it_off_and_on_and_take_their_locks)
{
    expect_handlers_to_work("late");
}

Test(forks, handlers_from_before_those_of_the_library_turn_it_off_and_on)
{
    expect_handlers_to_work("early");
}

/* The new image: alone, undisturbed for long enough that ticks would have come, and able to
 * profile. */
static int live_on(const char *descriptors)
{
    struct process_state state;

    process_read_state(&state);
    if (state.threads != 1 || state.rings != 0 || state.descriptors != (size_t)atoi(descriptors))
        process_complain("%zu threads, %zu rings, %zu descriptors", state.threads, state.rings,
                         state.descriptors);
    support_burn(0.1);
    profile_itself(NULL);
    return EXIT_CODE;
}

static void *become_another(void *unused)
{
    support_burn(0.05);
    act_become("live_on", "3");
    process_complain("exec: %s", strerror(errno));
    return unused;
}

static int execute_while_on(const char *from)
{
    static double seconds = 10;
    pthread_t busy, thread;

    pthread_create(&busy, NULL, support_burn_thread, &seconds);
    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    if (strcmp(from, "main") == 0)
        become_another(NULL);
    pthread_create(&thread, NULL, become_another, NULL);
    pthread_join(thread, NULL);
    return 0;
}

Test(forks, an_image_executed_while_on_lives)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "execute_while_on", "main");
    process_expect(&outcome, process_exited(EXIT_CODE));
}

Test(forks, an_image_executed_from_another_thread_while_on_lives)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "execute_while_on", "another thread");
    process_expect(&outcome, process_exited(EXIT_CODE));
}

const struct act acts[] = {
    {"fork_bare", fork_bare},
    {"fork_beside_start_and_stop", fork_beside_start_and_stop},
    {"fork_with_handlers", fork_with_handlers},
    {"live_on", live_on},
    {"execute_while_on", execute_while_on},
    {NULL, NULL},
};
