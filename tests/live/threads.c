/* Every thread of the program is sampled, by its own CPU time, however it came to be. */
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 400, FEW = 4 };

/* Bound to one CPU each, threads of 15 ms have exactly one tick: half a tick away from none, and
 * from two. The bound is then that of the sum. */
static const double short_life = 0.015;

static void start_bound(struct support_burner *burner, int number, double seconds,
                        pthread_barrier_t *gate)
{
    *burner = (struct support_burner){.hot = &support_hot_first, .seconds = seconds, .gate = gate};
    support_bind(number);
    support_burner_start(burner);
}

static unsigned long join_all(struct support_burner *burners, int count)
{
    unsigned long expected = 0;

    for (int i = 0; i < count; i++)
        expected += support_whole_ticks(support_burner_join(&burners[i]));
    return expected;
}

/* The threads wait at a gate until the profile is on. */
static void profile_existing_threads(int count, double seconds)
{
    struct support_burner *burners = calloc((size_t)count, sizeof(*burners));
    pthread_barrier_t gate;
    unsigned short ticks = 0;
    unsigned long expected;

    support_require_perf();
    pthread_barrier_init(&gate, NULL, (unsigned int)count + 1);
    for (int i = 0; i < count; i++)
        start_bound(&burners[i], i, seconds, &gate);
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0, "profil: %s", strerror(errno));
    pthread_barrier_wait(&gate);
    expected = join_all(burners, count);
    support_off();
    support_assert_ticks(ticks, (double)expected);
    free(burners);
}

Test(threads, threads_that_exist_before_the_call_are_sampled)
{
    profile_existing_threads(FEW, 0.255);
}

Test(threads, four_hundred_threads_that_exist_before_the_call_are_sampled)
{
    profile_existing_threads(MANY, short_life);
}

/* The main thread needs some time to start them. */
Test(threads, four_hundred_threads_that_start_after_the_call_are_sampled)
{
    struct support_burner *burners = calloc(MANY, sizeof(*burners));
    unsigned short ticks = 0;
    unsigned long expected;
    double start;

    /* What is expected below is whole ticks of each thread; short ones would bring finer ones. */
    cr_assert_eq(setenv("PROFIL_SUBTICKS", "1", 1), 0);
    support_require_perf();
    start = support_thread_seconds();
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    for (int i = 0; i < MANY; i++)
        start_bound(&burners[i], i, short_life, NULL);
    expected = join_all(burners, MANY);
    support_off();
    support_assert_ticks_and_up_to(ticks, (double)expected,
                                   100 * (support_thread_seconds() - start));
    free(burners);
}

/* A thread that the C library knows nothing of: it shares the thread-local data of its creator, and
 * does nothing but compute. */
struct raw_thread {
    _Atomic bool stop;
    pid_t tid;
    _Atomic uint32_t alive; /* cleared by the kernel when the thread has gone */
    void *stack;
};

enum { RAW_STACK = 64 << 10 };

static int run_raw(void *argument)
{
    struct raw_thread *thread = argument;

    while (!atomic_load_explicit(&thread->stop, memory_order_relaxed))
        support_hot_second.run(100000);
    return 0;
}

static void start_raw(struct raw_thread *thread)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;

    *thread = (struct raw_thread){.alive = 1};
    thread->stack = mmap(NULL, RAW_STACK, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    cr_assert_neq(thread->stack, MAP_FAILED);
    thread->tid = clone(run_raw, (char *)thread->stack + RAW_STACK, flags, thread, NULL, NULL,
                        &thread->alive);
    cr_assert_gt(thread->tid, 0, "clone: %s", strerror(errno));
}

/* The clock of a thread, by the kernel's numbering of clocks: see clock_getres(2). */
static double raw_seconds(const struct raw_thread *thread)
{
    struct timespec used;
    clockid_t clock = (clockid_t)(~(unsigned int)thread->tid << 3 | 6);

    cr_assert_eq(clock_gettime(clock, &used), 0, "clock_gettime: %s", strerror(errno));
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* Lets it run until it has used that much from now on; returns what it really was. */
static double run_raw_for(const struct raw_thread *thread, double seconds)
{
    double start = raw_seconds(thread), used;

    while ((used = raw_seconds(thread) - start) < seconds)
        usleep(5000);
    return used;
}

static void stop_raw(struct raw_thread *thread)
{
    uint32_t alive;

    thread->stop = true;
    while ((alive = thread->alive))
        syscall(SYS_futex, &thread->alive, FUTEX_WAIT, alive, NULL, NULL, 0);
    munmap(thread->stack, RAW_STACK);
}

static void profile_raw_thread(bool exists_before)
{
    static unsigned short counters[512];
    struct prof range = support_range(&support_hot_second, counters, sizeof(counters));
    struct raw_thread thread;
    double used;

    support_require_perf();
    support_confine(2);
    if (exists_before)
        start_raw(&thread);
    cr_assert_eq(sprofil(&range, 1, NULL, PROF_USHORT), 0);
    if (!exists_before)
        start_raw(&thread);
    used = run_raw_for(&thread, 1);
    support_off();
    stop_raw(&thread);
    support_assert_ticks(support_sum(counters, 512), used * 100);
}

Test(threads, a_bare_clone_that_exists_before_the_call_is_sampled)
{
    profile_raw_thread(true);
}

Test(threads, a_bare_clone_that_starts_after_the_call_is_sampled)
{
    profile_raw_thread(false);
}

/* What a process reports whose main thread leaves; in memory that both processes have. */
struct report {
    unsigned short ticks;
    bool main_left;
    double used;
};

static struct report *shared_report(void)
{
    struct report *report =
        mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(report, MAP_FAILED);
    return report;
}

/* The third field of stat, behind the name in parentheses. */
static char state_of_main(void)
{
    char path[64], line[512] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
    file = fopen(path, "r");
    if (file) {
        line[fread(line, 1, sizeof(line) - 1, file)] = '\0';
        fclose(file);
    }
    return strrchr(line, ')') ? strrchr(line, ')')[2] : '?';
}

static void wait_until_main_has_left(struct report *report)
{
    for (int i = 0; i < 1000 && state_of_main() != 'Z'; i++)
        usleep(1000);
    report->main_left = state_of_main() == 'Z';
}

static void *work_on(void *argument)
{
    struct report *report = argument;
    unsigned short *volatile off = NULL;

    wait_until_main_has_left(report);
    report->used = support_burn_in(&support_hot_first, 1);
    _exit(profil(off, 0, 0, 0));
}

static void *turn_on_and_work(void *argument)
{
    struct report *report = argument;

    wait_until_main_has_left(report);
    if (profil(&report->ticks, sizeof(report->ticks), 0, 0) != 0)
        _exit(2);
    return work_on(argument);
}

static void profile_without_main(void *(*work)(void *), bool turn_on)
{
    struct report *report = shared_report();
    int status;
    pid_t child;

    support_require_perf();
    support_confine(2);
    child = fork();
    if (child == 0) {
        pthread_t thread;

        if (turn_on && profil(&report->ticks, sizeof(report->ticks), 0, 0) != 0)
            _exit(3);
        if (pthread_create(&thread, NULL, work, report) != 0)
            _exit(4);
        pthread_exit(NULL);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0);
    cr_assert(report->main_left);
    support_assert_ticks(report->ticks, report->used * 100);
}

Test(threads, threads_are_sampled_when_main_has_left_by_pthread_exit)
{
    profile_without_main(work_on, true);
}

Test(threads, a_profile_may_be_turned_on_when_main_has_left)
{
    profile_without_main(turn_on_and_work, false);
}

static void require_two_cpus(void)
{
    if (support_cpu_count() < 2)
        cr_skip_test("a second CPU is needed to move to");
}

/* The same bounds as for any thread on two CPUs. */
Test(threads, a_thread_that_moves_between_cpus_is_sampled)
{
    unsigned short ticks = 0;
    double used = 0;

    support_require_perf();
    require_two_cpus();
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    for (int i = 0; i < 20; i++) {
        support_bind(i % 2);
        used += support_burn_in(&support_hot_first, 0.05);
    }
    support_off();
    support_assert_ticks(ticks, used * 100);
}

Test(threads, a_program_confined_to_one_cpu_may_use_another_later)
{
    struct support_burner burner = {.hot = &support_hot_first, .seconds = 0.505};
    unsigned short ticks = 0;
    double used;

    support_require_perf();
    require_two_cpus();
    support_bind(0);
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    support_bind(1);
    used = support_burn_in(&support_hot_first, 0.505);
    support_burner_start(&burner);
    used += support_burner_join(&burner);
    support_off();
    support_assert_ticks(ticks, used * 100);
}
