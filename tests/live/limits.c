/* Descriptors, locked memory, processes and address space are short: a profile makes do with less,
 * or the C library's takes its place, with a reason; the limits stay the program's. */
#include "act.h"
#include "refusal.h"
#include "sanitizer.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_act(const char *name, const char *argument)
{
    struct outcome outcome;

    support_require_perf();
    act_run(&outcome, name, argument);
    process_expect(&outcome, process_exited(0));
}

/* Only the superuser can become a user whose budgets nobody else uses. */
static void require_root(void)
{
    if (geteuid() != 0)
        cr_skip_test("only the superuser can become another user");
}

static void become_somebody(void)
{
    if (!refusal_become_somebody())
        process_complain("the user cannot be changed: %s", strerror(errno));
}

/* ---- Descriptors: an event for each thread and CPU. ---- */

enum { THREADS = 40 };
static pthread_barrier_t gate;

static void *wait_at_gate(void *unused)
{
    pthread_barrier_wait(&gate);
    return unused;
}

static void start_threads(pthread_t threads[THREADS])
{
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, wait_at_gate, NULL) != 0)
            process_complain("no thread %d", i);
}

static void join_threads(const pthread_t threads[THREADS])
{
    pthread_barrier_wait(&gate);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The hard limit is too low, whatever the soft one is. */
static int run_out_of_descriptors(const char *soft)
{
    enum { HARD = 32 };
    pthread_t threads[THREADS];
    struct refusal_state state;

    start_threads(threads);
    refusal_lower_limit(RLIMIT_NOFILE, (rlim_t)atoi(soft), HARD);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    process_profil_off();
    refusal_read_state(&state, THREADS + 1);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    refusal_expect_reason((const char *const[]){"perf_event_open", "EMFILE", "RLIMIT_NOFILE is 32",
                                                "the C library's profil() is used instead", NULL});
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    join_threads(threads);
    return 0;
}

Test(limits, too_few_descriptors_for_the_threads_mean_the_c_librarys_profile)
{
    expect_act("run_out_of_descriptors", "32");
}

Test(limits, the_reason_names_the_limit_that_was_reached_not_the_one_that_was_lifted)
{
    expect_act("run_out_of_descriptors", "16");
}

static int lift_soft_limit(const char *unused)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    pthread_t threads[THREADS];
    struct refusal_state state;
    struct rlimit limit;

    (void)unused;
    start_threads(threads);
    getrlimit(RLIMIT_NOFILE, &limit);
    refusal_lower_limit(RLIMIT_NOFILE, 16, limit.rlim_max);
    refusal_read_state(&state, THREADS + 1);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    profil_stats(NULL, &stats);
    if (stats.threads != THREADS + 1)
        process_complain("%u threads have events", stats.threads);
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur != 16)
        process_complain("the limit is %lu while on", (unsigned long)limit.rlim_cur);
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    join_threads(threads);
    return 0;
}

Test(limits, a_low_soft_limit_of_descriptors_is_no_hindrance_and_stays)
{
    expect_act("lift_soft_limit", "");
}

/* What the reason says of the system was read while there was a number for the file. */
static int have_two_descriptors(const char *unused)
{
    bool is_whole = support_kernel_is_sampled();
    struct rlimit limit;
    char reason[512];

    (void)unused;
    getrlimit(RLIMIT_NOFILE, &limit);
    refusal_lower_limit(RLIMIT_NOFILE, 2, limit.rlim_max);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    profil_reason(NULL, reason, sizeof(reason));
    if (!is_whole && !strstr(reason, "kernel.perf_event_paranoid is "))
        process_complain("the reason: %s", reason);
    refusal_expect_ticks_and_stop();
    return 0;
}

Test(limits, with_two_descriptors_it_is_profiled_and_the_reason_has_its_figures)
{
    expect_act("have_two_descriptors", "");
}

/* Without close_range(2) the table is copied, full as it is. */
static int fill_table(const char *close_range)
{
    enum { LIMIT = 64 };

    if (strcmp(close_range, "refused") == 0)
        refusal_begin(SYS_close_range, ENOSYS);
    refusal_lower_limit(RLIMIT_NOFILE, LIMIT, LIMIT);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        ;
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    closefrom(3); /* a sanitizer wants one at exit */
    return 0;
}

Test(limits, a_program_without_a_free_descriptor_is_profiled)
{
    expect_act("fill_table", "");
}

Test(limits, a_program_without_a_free_descriptor_is_profiled_without_close_range_too)
{
    expect_act("fill_table", "refused");
}

/* ---- Locked memory: kernel.perf_event_mlock_kb for each CPU, by user, and RLIMIT_MEMLOCK beyond.
 * ---- */

static int open_event(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = 10000000,
                                   .exclude_kernel = 1,
                                   .disabled = 1};

    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static size_t ring_bytes(size_t pages)
{
    return (1 + pages) * (size_t)sysconf(_SC_PAGESIZE);
}

static void *map_ring(size_t pages)
{
    int fd = open_event();
    void *ring = mmap(NULL, ring_bytes(pages), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    close(fd);
    return ring;
}

/* Maps rings until not even a single page is left to the user. */
static void use_up_budget(void)
{
    for (size_t pages = 64; pages > 0; pages /= 2)
        while (map_ring(pages) != MAP_FAILED)
            ;
}

/* Says when it is done, and holds until it is killed, or left alone by a test that was ended.
 * `left` rings of one page are given back. */
static void hold_budget(int done, size_t left)
{
    void *reserve[64];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(PROCESS_WATCHDOG_SECONDS);
    for (size_t i = 0; i < left; i++)
        if ((reserve[i] = map_ring(1)) == MAP_FAILED)
            process_complain("there is no budget to begin with");
    use_up_budget();
    for (size_t i = 0; i < left; i++)
        munmap(reserve[i], ring_bytes(1));
    if (write(done, "", 1) != 1)
        process_complain("write: %s", strerror(errno));
    for (;;)
        pause();
}

static pid_t start_holder(size_t left)
{
    int done[2];
    char byte;
    pid_t holder;

    if (pipe2(done, O_CLOEXEC) < 0)
        process_complain("pipe2: %s", strerror(errno));
    holder = fork();
    if (holder == 0)
        hold_budget(done[1], left);
    close(done[1]);
    if (read(done[0], &byte, 1) != 1)
        process_complain("the budget could not be used up");
    close(done[0]);
    return holder;
}

static void end_holder(pid_t holder)
{
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

static void expect_no_rings(const struct refusal_state *state)
{
    static const char *const cause[] = {"mapping a ring buffer",
                                        "EPERM",
                                        "kernel.perf_event_mlock_kb is ",
                                        "RLIMIT_MEMLOCK is 0 KiB",
                                        "the C library's profil() is used instead",
                                        NULL};

    refusal_expect_start(PROFIL_ENGINE_LIBC);
    refusal_expect_reason(cause);
    refusal_expect_ticks_and_stop();
    refusal_expect_state(state, "after a stop");
}

static int have_no_rings(const char *unused)
{
    struct refusal_state state;
    pid_t holder;

    (void)unused;
    become_somebody();
    refusal_lower_limit(RLIMIT_MEMLOCK, 0, 0);
    holder = start_holder(0);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    process_profil_off();
    refusal_read_state(&state, 1);
    expect_no_rings(&state);
    end_holder(holder);
    /* With the budget back, so are the rings. */
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    return 0;
}

Test(limits, without_locked_memory_it_is_the_c_librarys_profile_until_there_is_some)
{
    require_root();
    expect_act("have_no_rings", "");
}

/* Room for a ring on each CPU, and for half as much again: the first CPUs must not take it all. */
static int have_small_rings(const char *unused)
{
    size_t cpus = (size_t)support_cpu_count();
    pid_t holder;

    (void)unused;
    become_somebody();
    refusal_lower_limit(RLIMIT_MEMLOCK, 0, 0);
    holder = start_holder(cpus + cpus / 2);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    end_holder(holder);
    return 0;
}

Test(limits, with_locked_memory_for_a_page_on_each_cpu_the_rings_are_that_small)
{
    require_root();
    expect_act("have_small_rings", "");
}

/* ---- Processes, of which a thread is one. ---- */

static int have_no_threads(const char *others)
{
    struct refusal_state state;

    if (geteuid() == 0)
        become_somebody();
    refusal_lower_limit(RLIMIT_NPROC, (rlim_t)(1 + atoi(others)), 1000);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    process_profil_off();
    refusal_read_state(&state, 1);
    refusal_expect_start(PROFIL_ENGINE_LIBC);
    refusal_expect_reason(
        (const char *const[]){"creating the sampler thread", "EAGAIN", "RLIMIT_NPROC is ", NULL});
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    refusal_lower_limit(RLIMIT_NPROC, 1000, 1000);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    return 0;
}

Test(limits, where_no_thread_can_be_created_it_is_the_c_librarys_profile)
{
    expect_act("have_no_threads", "0");
}

Test(limits, where_one_thread_can_be_created_and_not_two_none_stays)
{
    require_root();
    expect_act("have_no_threads", "1");
}

/* ---- Address space. ---- */

static size_t kilobytes(void)
{
    struct process_state state;

    process_read_state(&state);
    return state.kilobytes;
}

/* One start with that much room. The buffer needs none, and the C library's profile neither. */
static void start_in_little_room(size_t room, unsigned int counts[])
{
    static unsigned short counter;
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    struct rlimit before;
    char reason[512];
    int result;

    getrlimit(RLIMIT_AS, &before);
    refusal_lower_limit(RLIMIT_AS, (kilobytes() + room) << 10, before.rlim_max);
    result = profil(&counter, sizeof(counter), 0, 0);
    if (result < 0 && errno != ENOMEM)
        process_complain("with %zu KiB: %s", room, strerrorname_np(errno));
    profil_stats(NULL, &stats);
    profil_reason(NULL, reason, sizeof(reason));
    process_profil_off();
    setrlimit(RLIMIT_AS, &before);
    if (result == 0 && stats.engine == PROFIL_ENGINE_LIBC && !reason[0])
        process_complain("no reason with %zu KiB", room);
    counts[result < 0 ? PROFIL_ENGINE_AUTO : stats.engine]++;
}

/* In steps of a page, and then larger ones, up to where there is room for everything. */
static int need_room(const char *unused)
{
    unsigned int counts[3] = {0};
    struct refusal_state state;

    (void)unused;
    for (int round = 0; round < 2; round++) {
        for (size_t room = 0; room < 512; room += 4)
            start_in_little_room(room, counts);
        for (size_t room = 512; room < 16384; room += 256)
            start_in_little_room(room, counts);
        if (round == 0)
            refusal_read_state(&state, 1);
    }
    refusal_expect_state(&state, "after all that");
    if (counts[PROFIL_ENGINE_LIBC] == 0 || counts[PROFIL_ENGINE_PERF] == 0)
        process_complain("%u failures, %u by the C library, %u with events", counts[0],
                         counts[PROFIL_ENGINE_LIBC], counts[PROFIL_ENGINE_PERF]);
    return 0;
}

Test(limits, whatever_the_room_in_the_address_space_it_starts_or_falls_back_and_leaves_nothing)
{
    if (PROFIL_SANITIZED)
        cr_skip_test("a sanitizer takes all of the address space");
    expect_act("need_room", "");
}

/* ---- One CPU. ---- */

static int run_on_one_cpu(const char *unused)
{
    struct refusal_state state;

    (void)unused;
    support_confine(1);
    refusal_read_state(&state, 1);
    refusal_expect_start(PROFIL_ENGINE_PERF);
    refusal_expect_ticks_and_stop();
    refusal_expect_state(&state, "after a stop");
    return 0;
}

Test(limits, a_program_confined_to_one_cpu_is_profiled_and_stays_there)
{
    expect_act("run_on_one_cpu", "");
}

/* ---- Many processes of one user, which share a budget of locked memory. ---- */

static void be_one_of_many(void)
{
    static unsigned short counter;
    struct profil_stats stats = {.struct_size = sizeof(stats)};
    char reason[512];

    if (profil(&counter, sizeof(counter), 0, 0) != 0)
        process_complain("start: %s", strerror(errno));
    support_burn(0.01);
    profil_stats(NULL, &stats);
    profil_reason(NULL, reason, sizeof(reason));
    if (stats.engine == PROFIL_ENGINE_LIBC && !strstr(reason, "failed with"))
        process_complain("fallen back without a reason: \"%s\"", reason);
    process_profil_off();
    _exit(0);
}

static int be_many(const char *count)
{
    int status, ended = 0;

    if (geteuid() == 0)
        become_somebody();
    for (int i = 0; i < atoi(count); i++)
        if (fork() == 0)
            be_one_of_many();
    for (; wait(&status) > 0; ended++)
        if (status != 0)
            process_complain("a process ended with status %#x", status);
    if (ended != atoi(count))
        process_complain("%d processes", ended);
    return 0;
}

Test(limits, two_hundred_processes_of_one_user_are_sampled_or_have_a_reason)
{
    expect_act("be_many", "200");
}

const struct act acts[] = {
    {"be_many", be_many},
    {"fill_table", fill_table},
    {"have_no_rings", have_no_rings},
    {"have_no_threads", have_no_threads},
    {"have_small_rings", have_small_rings},
    {"have_two_descriptors", have_two_descriptors},
    {"lift_soft_limit", lift_soft_limit},
    {"need_room", need_room},
    {"run_on_one_cpu", run_on_one_cpu},
    {"run_out_of_descriptors", run_out_of_descriptors},
    {NULL, NULL},
};
