/* A process ends while it is profiled as it ends without a profile, whichever way it takes. */
#include "act.h"
#include "support.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { THREADS = 3, EXIT_CODE = 7 };
static const double thread_seconds = 0.2;

/* At scale 0 every tick goes to the first counter. */
static unsigned short ticks;

static void on(void)
{
    if (profil(&ticks, sizeof(ticks), 0, 0) != 0)
        process_complain("start: %s", strerror(errno));
}

/* ---- The last thread leaves by pthread_exit(), which is exit(0). ---- */

static void *burn_and_leave(void *unused)
{
    support_burn(thread_seconds);
    pthread_exit(unused);
}

static void start_threads(void *(*run)(void *))
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, run, NULL) != 0)
            process_complain("no thread %d", i);
        pthread_detach(thread);
    }
}

static void complain_unless_ticks_fit(double seconds, unsigned int threads)
{
    if (!process_ticks_fit(ticks, seconds, threads))
        process_complain("%d ticks in %.3f s of CPU time", ticks, seconds);
}

static void look(void)
{
    printf("handler");
}

static void stop_and_look(void)
{
    process_profil_off();
    complain_unless_ticks_fit(THREADS * thread_seconds, THREADS);
    look();
}

static void start_again_and_look(void)
{
    stop_and_look();
    ticks = 0;
    on();
    support_burn(0.3);
    process_profil_off();
    complain_unless_ticks_fit(0.3, 1);
}

static void change_and_look(void)
{
    on();
    look();
}

static void start_again_and_leave_on(void)
{
    stop_and_look();
    on();
    support_burn(0.02);
}

static void *stop_in_thread(void *unused)
{
    process_profil_off();
    look();
    return unused;
}

/* That thread is the last one once more, so that its end is another exit(0). */
static void let_a_thread_stop_and_look(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, stop_in_thread, NULL);
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*handler)(void);
} handlers[] = {
    {"look", look},
    {"stop_and_look", stop_and_look},
    {"start_again_and_look", start_again_and_look},
    {"change_and_look", change_and_look},
    {"let_a_thread_stop_and_look", let_a_thread_stop_and_look},
    {"start_again_and_leave_on", start_again_and_leave_on},
};

static void register_handler(const char *name)
{
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
        if (strcmp(handlers[i].name, name) == 0)
            atexit(handlers[i].handler);
}

/* The file is one that the test has opened, and finds again, as its environment says. */
static int leave_by_pthread_exit(const char *handler)
{
    FILE *file = fopen(getenv("LIVE_FILE"), "w");

    if (!file || fputs("in the file", file) < 0)
        process_complain("no file: %s", strerror(errno));
    printf("in stdout, ");
    register_handler(handler);
    on();
    start_threads(burn_and_leave);
    pthread_exit(NULL);
}

static void expect_end_by_pthread_exit(const char *handler)
{
    char path[] = "/tmp/profil-XXXXXX", text[64] = "";
    int fd = mkstemp(path);
    struct outcome outcome;

    setenv("LIVE_FILE", path, 1);
    act_run(&outcome, "leave_by_pthread_exit", handler);
    cr_assert_geq(read(fd, text, sizeof(text) - 1), 0);
    close(fd);
    unlink(path);
    process_expect(&outcome, process_exited(0));
    cr_expect_str_eq(outcome.output, "in stdout, handler", "the output is \"%s\"", outcome.output);
    cr_expect_str_eq(text, "in the file", "the file has \"%s\"", text);
}

Test(endings, the_last_pthread_exit_flushes_and_runs_the_exit_handlers)
{
    support_require_perf();
    expect_end_by_pthread_exit("look");
}

Test(endings, an_exit_handler_after_the_last_pthread_exit_finds_the_ticks)
{
    support_require_perf();
    expect_end_by_pthread_exit("stop_and_look");
}

Test(endings, an_exit_handler_after_the_last_pthread_exit_can_profile)
{
    support_require_perf();
    expect_end_by_pthread_exit("start_again_and_look");
}

Test(endings, an_exit_handler_after_the_last_pthread_exit_can_change_the_profile)
{
    support_require_perf();
    expect_end_by_pthread_exit("change_and_look");
}

Test(endings, an_exit_handler_after_the_last_pthread_exit_can_leave_a_profile_on)
{
    support_require_perf();
    expect_end_by_pthread_exit("start_again_and_leave_on");
}

Test(endings, a_thread_of_an_exit_handler_after_the_last_pthread_exit_can_stop)
{
    support_require_perf();
    expect_end_by_pthread_exit("let_a_thread_stop_and_look");
}

/* ---- Endings while other threads are busy. ---- */

static void *burn_for_ever(void *unused)
{
    for (;;)
        support_burn(1);
    return unused;
}

static void be_busy_and_profiled(void)
{
    struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    printf("in stdout, ");
    atexit(look);
    start_threads(burn_for_ever);
    on();
    support_burn(0.05);
}

static int end_by_return(const char *unused)
{
    (void)unused;
    be_busy_and_profiled();
    return EXIT_CODE;
}

static int end_by_exit(const char *unused)
{
    (void)unused;
    be_busy_and_profiled();
    exit(EXIT_CODE);
}

static void *exit_in_thread(void *unused)
{
    support_burn(0.05);
    exit(EXIT_CODE);
    return unused;
}

static int end_by_exit_in_a_thread(const char *main_goes_first)
{
    pthread_t thread;

    be_busy_and_profiled();
    pthread_create(&thread, NULL, exit_in_thread, NULL);
    if (*main_goes_first)
        pthread_exit(NULL);
    pthread_join(thread, NULL);
    return 0;
}

static void *start_and_stop_for_ever(void *unused)
{
    for (;;) {
        on();
        process_profil_off();
        pthread_testcancel();
    }
    return unused;
}

static int end_beside_start_and_stop(const char *unused)
{
    (void)unused;
    start_threads(start_and_stop_for_ever);
    be_busy_and_profiled();
    return EXIT_CODE;
}

static int end_by__exit(const char *unused)
{
    (void)unused;
    be_busy_and_profiled();
    _exit(EXIT_CODE);
}

static int end_by_abort(const char *unused)
{
    (void)unused;
    be_busy_and_profiled();
    abort();
}

static int end_by_sigkill(const char *unused)
{
    (void)unused;
    be_busy_and_profiled();
    kill(getpid(), SIGKILL);
    pause();
    return 0;
}

static void expect_end(const char *act, const char *argument, int status, const char *output)
{
    struct outcome outcome;

    act_run(&outcome, act, argument);
    process_expect(&outcome, status);
    cr_expect_str_eq(outcome.output, output, "the output is \"%s\"", outcome.output);
}

Test(endings, main_returns_while_on)
{
    support_require_perf();
    expect_end("end_by_return", "", process_exited(EXIT_CODE), "in stdout, handler");
}

Test(endings, main_calls_exit_while_on)
{
    support_require_perf();
    expect_end("end_by_exit", "", process_exited(EXIT_CODE), "in stdout, handler");
}

/* One that comes in the midst of a start or stop, at another place each time. */
Test(endings, main_returns_while_other_threads_start_and_stop)
{
    support_require_perf();
    for (int i = 0; i < 5; i++)
        expect_end("end_beside_start_and_stop", "", process_exited(EXIT_CODE),
                   "in stdout, handler");
}

Test(endings, another_thread_calls_exit_while_on)
{
    support_require_perf();
    expect_end("end_by_exit_in_a_thread", "", process_exited(EXIT_CODE), "in stdout, handler");
}

Test(endings, another_thread_calls_exit_when_main_has_gone)
{
    support_require_perf();
    expect_end("end_by_exit_in_a_thread", "main goes first", process_exited(EXIT_CODE),
               "in stdout, handler");
}

Test(endings, _exit_while_on_flushes_nothing)
{
    support_require_perf();
    expect_end("end_by__exit", "", process_exited(EXIT_CODE), "");
}

Test(endings, abort_while_on_ends_by_sigabrt)
{
    support_require_perf();
    expect_end("end_by_abort", "", process_killed(SIGABRT), "");
}

Test(endings, sigkill_while_on_ends_the_process)
{
    support_require_perf();
    expect_end("end_by_sigkill", "", process_killed(SIGKILL), "");
}

/* ---- The library goes while it is on. ---- */

typedef int profil_function(unsigned short *, size_t, size_t, unsigned int);

static void load_profile_and_unload(const char *path)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned short *buffer =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    profil_function *loaded_profil = library ? (profil_function *)dlsym(library, "profil") : NULL;

    if (!loaded_profil) {
        process_complain("%s", dlerror());
        _exit(1);
    }
    if (loaded_profil(buffer, bytes, 0, 0) != 0)
        process_complain("start: %s", strerror(errno));
    support_burn(0.005);
    dlclose(library);
    munmap(buffer, bytes);
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD))
        process_complain("the library is still there");
}

static int unload_while_on(const char *path)
{
    static double for_ever = 1000;
    struct process_state before, after;
    pthread_t busy;

    pthread_create(&busy, NULL, support_burn_thread, &for_ever);
    load_profile_and_unload(path);
    process_read_settled_state(&before, 2);
    for (int i = 0; i < 50; i++)
        load_profile_and_unload(path);
    process_read_settled_state(&after, 2);
    if (after.threads != before.threads || after.mappings != before.mappings ||
        after.descriptors != before.descriptors)
        process_complain("%zu, %zu, %zu threads, mappings, descriptors; before %zu, %zu, %zu",
                         after.threads, after.mappings, after.descriptors, before.threads,
                         before.mappings, before.descriptors);
    return 0;
}

Test(endings, dlclose_while_on_leaves_nothing_that_runs_or_writes)
{
    const char *path = getenv("LIBPROFIL_SO");
    struct outcome outcome;

    support_require_perf();
    if (!path)
        cr_skip_test("LIBPROFIL_SO does not name the shared library");
    act_run(&outcome, "unload_while_on", path);
    process_expect(&outcome, process_exited(0));
}

/* ---- A thread is cancelled. ---- */

static int cancel_callers(const char *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        struct timespec moment = {.tv_nsec = (i * 73 % 50) * 40000}; /* up to 2 ms */
        pthread_t thread;

        pthread_create(&thread, NULL, start_and_stop_for_ever, NULL);
        nanosleep(&moment, NULL);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        on();
        process_profil_off();
    }
    return 0;
}

Test(endings, a_cancelled_caller_leaves_no_lock_behind)
{
    support_require_perf();
    expect_end("cancel_callers", "", process_exited(0), "");
}

const struct act acts[] = {
    {"leave_by_pthread_exit", leave_by_pthread_exit},
    {"end_by_return", end_by_return},
    {"end_by_exit", end_by_exit},
    {"end_by_exit_in_a_thread", end_by_exit_in_a_thread},
    {"end_beside_start_and_stop", end_beside_start_and_stop},
    {"end_by__exit", end_by__exit},
    {"end_by_abort", end_by_abort},
    {"end_by_sigkill", end_by_sigkill},
    {"unload_while_on", unload_while_on},
    {"cancel_callers", cancel_callers},
    {NULL, NULL},
};
