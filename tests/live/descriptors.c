/* The sampler's descriptors are nobody else's: they take no number of the program's table, and
 * nothing that is done there reaches them. */
#include "act.h"
#include "libprofil.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* At scale 0 every tick goes to the first counter. */
static unsigned short ticks;

static int on(void)
{
    return profil(&ticks, sizeof(ticks), 0, 0);
}

static int lowest_free_number(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static void expect_number(int expected, const char *when)
{
    int number = lowest_free_number();

    cr_expect_eq(number, expected, "open() gives %d, not %d, %s", number, expected, when);
}

Test(descriptors, the_next_open_returns_the_lowest_free_number)
{
    support_require_perf();
    int before = lowest_free_number();

    cr_assert_eq(on(), 0);
    expect_number(before, "after start");
    support_burn(0.05);
    expect_number(before, "while on");
    cr_assert_eq(on(), 0);
    expect_number(before, "after a change");
    support_off();
    expect_number(before, "after stop");
}

struct cycles {
    int count;
    int failures;
    int done;
};

static void *start_change_and_stop(void *argument)
{
    struct cycles *cycles = argument;

    for (int i = 0; i < cycles->count; i++) {
        cycles->failures += on() != 0;
        cycles->failures += on() != 0;
        process_profil_off();
    }
    __atomic_store_n(&cycles->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void expect_no_number_taken(void *(*cycle)(void *cycles))
{
    support_require_perf();
    struct cycles cycles = {.count = 50};
    int before = lowest_free_number();
    unsigned long looks = 0, wrong = 0;
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, cycle, &cycles), 0);
    while (!__atomic_load_n(&cycles.done, __ATOMIC_ACQUIRE)) {
        wrong += lowest_free_number() != before;
        looks++;
    }
    pthread_join(thread, NULL);
    cr_expect_eq(cycles.failures, 0, "%d calls failed", cycles.failures);
    cr_expect_eq(wrong, 0, "%lu of %lu looks found a number taken", wrong, looks);
}

Test(descriptors, no_number_is_taken_even_for_a_moment)
{
    expect_no_number_taken(start_change_and_stop);
}

/* Whose time in the kernel is not sampled has a reason made each time, and a failed call has one.
 */
static void *ask_for_reasons(void *argument)
{
    struct cycles *cycles = argument;
    char reason[256];

    for (int i = 0; i < cycles->count; i++) {
        cycles->failures += on() != 0;
        profil_reason(NULL, reason, sizeof(reason));
        process_profil_off();
        cycles->failures += sprofil(NULL, 1, NULL, 0) == 0;
        profil_reason(NULL, reason, sizeof(reason));
    }
    __atomic_store_n(&cycles->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

Test(descriptors, no_number_is_taken_for_a_reason)
{
    expect_no_number_taken(ask_for_reasons);
}

/* Files at all the numbers from 3 on that the sampler's descriptors could have. */
enum { FIRST = 3, LAST = 200 };

static void occupy(ino_t inodes[])
{
    for (int number = FIRST; number <= LAST; number++) {
        char path[] = "/tmp/profil-XXXXXX";
        int fd = mkstemp(path);
        struct stat status;

        unlink(path);
        if (fd != number || fstat(fd, &status) != 0)
            process_complain("a new file got number %d, not %d", fd, number);
        inodes[number] = status.st_ino;
    }
}

static void check_occupied(const ino_t inodes[])
{
    for (int number = FIRST; number <= LAST; number++) {
        struct stat status;

        if (fstat(number, &status) != 0 || status.st_ino != inodes[number])
            process_complain("number %d is not the file that was opened there", number);
    }
}

static void close_all(const char *how)
{
    if (strcmp(how, "closefrom") == 0)
        closefrom(3);
    else if (close_range(3, ~0U, 0) != 0)
        process_complain("close_range: %s", strerror(errno));
}

static int close_in_mid_profile(const char *how)
{
    static ino_t inodes[LAST + 1];
    double begin;

    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    begin = support_thread_seconds();
    support_burn(0.2);
    close_all(how);
    support_burn(1.0);
    double seconds = support_thread_seconds() - begin;
    occupy(inodes);
    process_profil_off();
    check_occupied(inodes);
    if (!process_ticks_fit(ticks, seconds, 1))
        process_complain("%d ticks in %.3f s of CPU time", ticks, seconds);
    return 0;
}

Test(descriptors, closefrom_in_mid_profile_loses_no_ticks_and_stop_closes_no_file)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "close_in_mid_profile", "closefrom");
    process_expect(&outcome, process_exited(0));
}

Test(descriptors, close_range_in_mid_profile_loses_no_ticks_and_stop_closes_no_file)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "close_in_mid_profile", "close_range");
    process_expect(&outcome, process_exited(0));
}

Test(descriptors, a_pipe_whose_write_end_is_closed_gives_its_reader_the_end)
{
    support_require_perf();
    int ends[2];
    char byte;

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(on(), 0);
    close(ends[1]);
    /* It is there at once, if no copy of the write end is left anywhere. */
    struct pollfd reader = {.fd = ends[0], .events = POLLIN};
    cr_assert_eq(poll(&reader, 1, 1000), 1, "no end of file within a second");
    cr_expect_eq(read(ends[0], &byte, 1), 0);
    support_off();
}

/* A lock belongs to the process that forks: its child sees it as somebody else's. */
static void expect_locked(int fd, const char *when)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid == getppid());
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, process_exited(1), "the lock is gone %s", when);
}

Test(descriptors, a_posix_lock_stays_through_start_change_and_stop)
{
    support_require_perf();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[] = "/tmp/profil-XXXXXX";
    int fd = mkstemp(path);

    unlink(path);
    cr_assert_eq(fcntl(fd, F_SETLK, &lock), 0);
    expect_locked(fd, "before the start");
    cr_assert_eq(on(), 0);
    expect_locked(fd, "after the start");
    cr_assert_eq(on(), 0);
    expect_locked(fd, "after a change");
    support_off();
    expect_locked(fd, "after the stop");
    lock.l_type = F_UNLCK;
    cr_assert_eq(fcntl(fd, F_SETLK, &lock), 0);
    close(fd);
}

static int complain_of_others(const char *given)
{
    for (int number = 0; number < 1024; number++) {
        bool open = fcntl(number, F_GETFD) >= 0;

        if (open != (number <= atoi(given)))
            process_complain("number %d is %s", number, open ? "open" : "closed");
    }
    return 0;
}

/* Number 3 is for the child, 4 is not. */
static int execute_children(const char *argument)
{
    char *arguments[] = {"act", "--act", "complain_of_others", "3", NULL};
    struct cycles cycles = {.count = 50};
    pthread_t thread;

    (void)argument;
    if (open("/dev/null", O_RDONLY) != 3 || open("/dev/null", O_RDONLY | O_CLOEXEC) != 4)
        process_complain("descriptors were left open");
    pthread_create(&thread, NULL, start_change_and_stop, &cycles);
    do {
        int status = -1;
        pid_t child;

        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0 ||
            waitpid(child, &status, 0) != child || status != 0)
            process_complain("the executed child ended with status %#x", status);
    } while (!__atomic_load_n(&cycles.done, __ATOMIC_ACQUIRE));
    pthread_join(thread, NULL);
    return 0;
}

Test(descriptors, an_executed_child_has_what_the_program_gave_it_and_no_more)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "execute_children", "");
    process_expect(&outcome, process_exited(0));
}

enum { THREADS = 30, LOW_LIMIT = 8 };
static const double thread_seconds = 0.04;
static pthread_barrier_t all_are_there;

static void *wait_and_burn(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&all_are_there); /* so that they exist before the start */
    pthread_barrier_wait(&all_are_there);
    support_burn(thread_seconds);
    return NULL;
}

static void complain_unless_limit(struct rlimit expected, const char *when)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur != expected.rlim_cur || limit.rlim_max != expected.rlim_max)
        process_complain("the limits are %lu and %lu %s", (unsigned long)limit.rlim_cur,
                         (unsigned long)limit.rlim_max, when);
}

static int profile_under_a_low_limit(const char *argument)
{
    pthread_t threads[THREADS];
    struct rlimit limit;

    (void)argument;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = LOW_LIMIT;
    setrlimit(RLIMIT_NOFILE, &limit);
    pthread_barrier_init(&all_are_there, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, wait_and_burn, NULL) != 0)
            process_complain("no thread %d", i);
    pthread_barrier_wait(&all_are_there);
    if (on() != 0)
        process_complain("start: %s", strerror(errno));
    complain_unless_limit(limit, "after the start");
    pthread_barrier_wait(&all_are_there);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    process_profil_off();
    complain_unless_limit(limit, "after the stop");
    /* Each thread leaves half a period unseen on each CPU that it has been on: two, and more are
     * possible. Sampling only as many as there are descriptors would give a tenth of the ticks. */
    if (ticks < THREADS * thread_seconds * 100 / 2)
        process_complain("%d ticks of %d threads, %.2f s each", ticks, THREADS, thread_seconds);
    return 0;
}

Test(descriptors, a_low_limit_of_descriptors_does_not_limit_the_threads_and_stays)
{
    support_require_perf();
    struct outcome outcome;

    act_run(&outcome, "profile_under_a_low_limit", "");
    process_expect(&outcome, process_exited(0));
}

const struct act acts[] = {
    {"close_in_mid_profile", close_in_mid_profile},
    {"complain_of_others", complain_of_others},
    {"execute_children", execute_children},
    {"profile_under_a_low_limit", profile_under_a_low_limit},
    {NULL, NULL},
};
