/* The statistics of profiles whose truth is known from elsewhere, and the reason in words. */
#include "process.h"
#include "profile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds * 1e-9;
}

static double samples_expected(const struct profil_stats *stats)
{
    return (double)stats->cpu_time * stats->subticks / (double)stats->period;
}

/* ---- What becomes of each sample. ---- */

static struct profil_stats profile_burning(profil_profile *profile, double burn_seconds)
{
    struct profil_stats stats;

    profile_start(profile);
    support_burn_in(&support_hot_first, burn_seconds);
    profile_stop(profile);
    stats = profile_stats(profile);
    profile_close(profile);
    return stats;
}

Test(statistics, samples_and_their_period_make_the_cpu_time)
{
    struct profil_stats stats;

    support_require_perf();
    stats = profile_burning(profile_open_fast(), 0.5);
    cr_assert_geq(seconds(stats.cpu_time), 0.5);
    support_assert_ticks((unsigned long)(stats.samples + stats.unattributed + stats.lost),
                         samples_expected(&stats));
    /* The event's own clock and the process's differ by what the kernel needs to switch. */
    cr_assert_float_eq(seconds(stats.event_count), seconds(stats.cpu_time),
                       0.02 * seconds(stats.cpu_time) + 0.002);
}

Test(statistics, a_sample_without_a_counter_is_outside)
{
    struct profil_stats stats;
    uint16_t counters[512] = {0};
    profil_profile *profile;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_loop(profile, &support_hot_second, counters, sizeof(counters), 16);
    stats = profile_burning(profile, 0.2);
    cr_assert_geq(stats.outside, 150);
    cr_assert_eq(stats.ticks + stats.outside, stats.samples);
    cr_assert_eq(stats.ticks, support_sum(counters, 512));
}

Test(statistics, without_a_range_every_sample_is_outside)
{
    struct profil_stats stats;

    support_require_perf();
    stats = profile_burning(profile_open_fast(), 0.1);
    cr_assert_geq(stats.samples, 70);
    cr_assert_eq(stats.outside, stats.samples);
    cr_assert_eq(stats.ticks, 0);
}

/* One counter: what is short of a tick is carried, and begins with less than one. */
Test(statistics, ticks_are_samples_by_the_number_of_subticks)
{
    enum { SUBTICKS = 7 };
    struct profil_stats stats;
    profil_profile *profile;
    uint64_t counter = 0;

    support_require_perf();
    profile = profile_open((struct profil_options){.period = 7000000, .subticks = SUBTICKS});
    profile_add_rest(profile, &counter);
    stats = profile_burning(profile, 0.3);
    cr_assert_eq(stats.outside, 0);
    cr_assert_geq(stats.samples, 220);
    cr_assert_eq(stats.ticks, counter);
    cr_assert_leq(imaxabs((intmax_t)(stats.ticks * SUBTICKS - stats.samples)), SUBTICKS - 1,
                  "%ju ticks, %ju samples", (uintmax_t)stats.ticks, (uintmax_t)stats.samples);
}

/* 5 short of the maximum of 16 bits, and at that of each width. */
Test(statistics, a_tick_for_a_counter_at_its_maximum_is_saturated)
{
    const struct {
        uint64_t before;
        unsigned int bits;
        uint64_t ticks;
    } cases[] = {
        {UINT16_MAX - 5, 16, 5}, {UINT16_MAX, 16, 0}, {UINT32_MAX, 32, 0}, {UINT64_MAX, 64, 0}};

    support_require_perf();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t counter = cases[i].before;
        profil_profile *profile = profile_open_fast();
        struct profil_stats stats;

        if (BYTE_ORDER == BIG_ENDIAN)
            counter <<= 64 - cases[i].bits;
        cr_assert_eq(profil_add_range(profile, &counter, cases[i].bits / 8, cases[i].bits, 0, 2),
                     0);
        stats = profile_burning(profile, 0.05);
        cr_expect_geq(stats.samples, 30);
        cr_expect_eq(stats.ticks, cases[i].ticks);
        cr_expect_eq(stats.saturated, stats.samples - cases[i].ticks);
    }
}

Test(statistics, nothing_is_missing_from_a_plain_profile)
{
    struct profil_stats stats;

    support_require_perf();
    stats = profile_burning(profile_open_fast(), 0.1);
    cr_expect_eq(stats.lost, 0);
    cr_expect_eq(stats.throttled, 0);
    cr_expect_eq(stats.foreign, 0);
    cr_expect_eq(stats.duplicate, 0);
    cr_expect_eq(stats.corrupt, 0);
    cr_expect_eq(stats.conflict_timer, 0);
    cr_expect_eq(stats.conflict_handler, 0);
}

/* ---- A sampler that cannot keep up. ---- */

/* A process that stops one thread of this one, as a debugger does. Starving it by its priority
 * would be left to chance: it wants very little time. */
struct holder {
    pid_t process;
    int orders, answers; /* what is written to it, and what is read of it */
};

static bool hold(pid_t tid)
{
    int status;

    return ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 &&
           waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
}

/* Its end lets the thread go on. */
static void run_holder(int orders, int answers)
{
    pid_t tid;
    char answer;

    alarm(PROCESS_WATCHDOG_SECONDS);
    if (read(orders, &tid, sizeof(tid)) != sizeof(tid))
        _exit(1);
    answer = hold(tid) ? 1 : 0;
    if (write(answers, &answer, 1) != 1 || read(orders, &answer, 1) != 0)
        _exit(1);
    _exit(0);
}

static void start_holder(struct holder *holder)
{
    int orders[2], answers[2];

    cr_assert_eq(pipe2(orders, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(answers, O_CLOEXEC), 0);
    holder->process = fork();
    cr_assert_geq(holder->process, 0);
    if (holder->process == 0) {
        close(orders[1]);
        run_holder(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    holder->orders = orders[1];
    holder->answers = answers[0];
}

static void hold_sampler(struct holder *holder)
{
    pid_t sampler = process_thread_named("profil-sampler");
    char held = 0;

    cr_assert_gt(sampler, 0);
    prctl(PR_SET_PTRACER, holder->process); /* fails where everybody may */
    cr_assert_eq(write(holder->orders, &sampler, sizeof(sampler)), (ssize_t)sizeof(sampler));
    cr_assert_eq(read(holder->answers, &held, 1), 1);
    cr_assert(held, "the sampler cannot be stopped by ptrace(2)");
}

static void release_sampler(struct holder *holder)
{
    int status;

    close(holder->orders);
    cr_assert_eq(waitpid(holder->process, &status, 0), holder->process);
    cr_assert_eq(status, process_exited(0));
    close(holder->answers);
}

/* The greatest ring, 512 KiB, is full after 1.1 s at most of 100 us samples, of which each takes 48
 * bytes at least. */
Test(statistics, lost_samples_are_reported_and_make_up_the_cpu_time_with_the_others)
{
    struct profil_stats stats;
    profil_profile *profile;
    struct holder holder;
    uint64_t counter = 0;

    support_require_perf();
    support_bind(0);
    start_holder(&holder);
    profile = profile_open((struct profil_options){.period = 100000, .subticks = 1});
    profile_add_rest(profile, &counter);
    profile_start(profile);
    hold_sampler(&holder);
    support_burn_in(&support_hot_first, 1.5);
    release_sampler(&holder);
    profile_stop(profile);
    stats = profile_stats(profile);
    profile_close(profile);
    cr_assert_gt(stats.lost, 3000);
    cr_assert_gt(stats.samples, 3000);
    cr_assert_eq(stats.ticks, stats.samples);
    support_assert_ticks((unsigned long)(stats.samples + stats.lost + stats.unattributed),
                         samples_expected(&stats));
    cr_assert_float_eq(stats.coverage, (double)stats.samples * 1e-4 / seconds(stats.cpu_time),
                       0.001);
}

static double cpu_seconds(profil_profile *profile)
{
    return (double)profile_stats(profile).cpu_time * 1e-9;
}

/* Thirty samplers use a tenth of the time, which is not the program's. One that is asked knows of
 * the others what they had used when they last looked, before they went to sleep: what is missing
 * since, some 50 us of each, makes 2 ms of either sign. To that comes what it takes to ask the
 * others. */
Test(statistics, the_cpu_time_is_without_that_of_any_sampler)
{
    enum { PROFILES = 30 };
    profil_profile *profiles[PROFILES];
    double used, before[PROFILES];

    support_require_perf();
    for (int i = 0; i < PROFILES; i++) {
        profiles[i] = profile_open((struct profil_options){.subticks = 1});
        profile_start(profiles[i]);
    }
    for (int i = 0; i < PROFILES; i++)
        before[i] = cpu_seconds(profiles[i]);
    used = support_thread_seconds();
    support_burn(1);
    used = support_thread_seconds() - used;
    for (int i = 0; i < PROFILES; i++) {
        double counted = cpu_seconds(profiles[i]) - before[i];

        cr_expect(counted >= 0.99 * used && counted <= 1.01 * used + 0.01, "%.4f of %.4f s",
                  counted, used);
    }
    for (int i = 0; i < PROFILES; i++)
        profile_close(profiles[i]);
}

static void touch_again_and_again(volatile char *pages, size_t bytes, int times)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (int i = 0; i < times; i++) {
        for (size_t at = 0; at < bytes; at += page)
            pages[at] = 1;
        madvise((void *)pages, bytes, MADV_DONTNEED);
    }
}

/* Each fault is a sample, and the kernel's own figure says to the last one how many there are. */
Test(statistics, samples_and_lost_ones_make_up_the_events_exactly)
{
    enum { PAGES = 2000, TIMES = 15 };
    size_t bytes = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct profil_stats stats;
    profil_profile *profile;
    struct holder holder;

    support_require_perf();
    cr_assert_neq((void *)pages, MAP_FAILED);
    madvise(pages, bytes, MADV_NOHUGEPAGE);
    support_bind(0);
    start_holder(&holder);
    profile = profile_open((struct profil_options){.event = "page-faults"});
    profile_start(profile);
    hold_sampler(&holder);
    touch_again_and_again(pages, bytes, TIMES);
    release_sampler(&holder);
    profile_stop(profile);
    stats = profile_stats(profile);
    profile_close(profile);
    cr_assert_geq(stats.event_count, PAGES * TIMES);
    cr_assert_gt(stats.lost, 0);
    cr_assert_eq(stats.samples + stats.unattributed + stats.foreign + stats.lost,
                 stats.event_count);
    cr_assert_float_eq(stats.coverage, (double)stats.samples / (double)stats.event_count, 0.001);
}

/* ---- Coverage, measured from outside as well. ---- */

struct coverage {
    double reported, measured;
};

/* From outside: the ticks of a counter for everything, against the clock of the process without the
 * sampler. */
static struct coverage coverage_of(struct profil_options options, void (*work)(void))
{
    profil_profile *profile;
    struct coverage coverage;
    struct profil_stats stats;
    uint64_t ticks = 0;
    double used;

    profile = profile_open(options);
    profile_add_rest(profile, &ticks);
    profile_start(profile);
    used = profile_program_seconds();
    work();
    used = profile_program_seconds() - used;
    profile_stop(profile);
    stats = profile_stats(profile);
    profile_close(profile);
    coverage.reported = stats.coverage;
    coverage.measured = (double)ticks * seconds(stats.period) / used;
    return coverage;
}

static void expect_agreement(const struct coverage *coverage)
{
    cr_expect_float_eq(coverage->reported, coverage->measured, 0.02, "%.3f; from outside %.3f",
                       coverage->reported, coverage->measured);
}

static void burn_half_a_second(void)
{
    support_burn_in(&support_hot_first, 0.5);
}

static void read_zeroes(void)
{
    static char zeroes[1 << 20];
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    double end = support_thread_seconds() + 0.5;
    ssize_t bytes = 0;

    while (support_thread_seconds() < end)
        for (int i = 0; i < 20; i++)
            bytes += read(fd, zeroes, sizeof(zeroes));
    cr_assert_gt(bytes, 0);
    close(fd);
}

static void run_short_threads(void)
{
    for (int i = 0; i < 100; i++) {
        struct support_burner burner = {.hot = &support_hot_first, .seconds = 0.004};

        support_burner_start(&burner);
        support_burner_join(&burner);
    }
}

/* What switches and an unsampled kernel take is measured by both; on a busy machine that is up to
 * 6 %, and more by chance. */
Test(statistics, coverage_of_a_user_mode_program_is_1)
{
    struct coverage coverage;

    support_require_perf();
    coverage =
        coverage_of((struct profil_options){.period = 1000000, .subticks = 1}, burn_half_a_second);
    expect_agreement(&coverage);
    cr_expect_geq(coverage.reported, support_kernel_is_sampled() ? 0.97 : 0.90);
    cr_expect_leq(coverage.reported, 1.02);
}

/* Nine tenths of this program's time and more are the kernel's. */
Test(statistics, coverage_of_a_program_that_calls_the_kernel_is_1_or_what_it_leaves)
{
    struct coverage coverage;

    support_require_perf();
    coverage = coverage_of((struct profil_options){.period = 1000000, .subticks = 1}, read_zeroes);
    expect_agreement(&coverage);
    if (support_kernel_is_sampled())
        cr_expect_geq(coverage.reported, 0.97, "%.3f", coverage.reported);
    else
        cr_expect_leq(coverage.reported, 0.25, "%.3f", coverage.reported);
    cr_expect_leq(coverage.reported, 1.02);
}

/* Where the kernel is not sampled, the births and ends of so many threads are missing too. */
Test(statistics, coverage_of_short_threads_shows_what_they_leave_unseen)
{
    struct coverage coverage;

    support_require_perf();
    /* A thread of 4 ms never fills a period of 10. */
    coverage = coverage_of((struct profil_options){.subticks = 1}, run_short_threads);
    expect_agreement(&coverage);
    cr_expect_leq(coverage.reported, 0.05, "%.3f", coverage.reported);
    coverage = coverage_of((struct profil_options){.subticks = 40}, run_short_threads);
    expect_agreement(&coverage);
    cr_expect_geq(coverage.reported, support_kernel_is_sampled() ? 0.9 : 0.8, "%.3f",
                  coverage.reported);
}

Test(statistics, coverage_is_0_when_there_was_nothing_to_cover)
{
    profil_profile *profile = profile_open((struct profil_options){0});
    struct profil_stats stats = profile_stats(profile);

    cr_expect_eq(stats.coverage, 0);
    cr_expect_eq(stats.cpu_time, 0);
    cr_expect_eq(stats.event_count, 0);
    profile_close(profile);
}

/* ---- What is said of the profile itself. ---- */

static void *wait_at(void *gate)
{
    pthread_barrier_wait(gate);
    return NULL;
}

/* The test's own threads that are here anyway are among them. */
Test(statistics, threads_and_cpus_are_those_at_the_start)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    pthread_barrier_t gate;
    size_t expected;
    profil_profile *profile;
    struct profil_stats stats;

    support_require_perf();
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    expected = support_thread_count() + THREADS;
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, wait_at, &gate), 0);
    profile = profile_open_fast();
    profile_start(profile);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    stats = profile_stats(profile);
    profile_close(profile);
    cr_expect_eq(stats.threads, expected, "%u", stats.threads);
    cr_expect_geq(stats.cpus, (unsigned int)support_cpu_count(), "%u", stats.cpus);
    cr_expect_leq(stats.cpus, (unsigned int)sysconf(_SC_NPROCESSORS_CONF), "%u", stats.cpus);
}

/* Events are opened on the CPUs that the program may be given, not on those that it asks for. */
Test(statistics, a_program_that_binds_itself_to_another_cpu_goes_on_being_sampled)
{
    profil_profile *profile;

    support_require_perf();
    support_bind(0);
    profile = profile_open_fast();
    profile_start(profile);
    support_burn_in(&support_hot_first, 0.1);
    support_bind(1);
    support_burn_in(&support_hot_first, 0.1);
    profile_stop(profile);
    cr_expect_geq(profile_stats(profile).samples, 150);
    profile_close(profile);
}

Test(statistics, they_name_engine_event_period_and_subticks)
{
    struct profil_stats stats;
    profil_profile *profile;

    support_require_perf();
    profile = profile_open((struct profil_options){.period = 6000000, .subticks = 3});
    stats = profile_stats(profile);
    cr_expect_eq(stats.engine, PROFIL_ENGINE_AUTO, "never started");
    cr_expect_eq(stats.running, 0);
    cr_expect_str_eq(stats.event, "task-clock");
    cr_expect_eq(stats.period, 6000000);
    cr_expect_eq(stats.subticks, 3);
    profile_start(profile);
    stats = profile_stats(profile);
    cr_expect_eq(stats.engine, PROFIL_ENGINE_PERF);
    cr_expect_eq(stats.running, 1);
    profile_stop(profile);
    stats = profile_stats(profile);
    cr_expect_eq(stats.engine, PROFIL_ENGINE_PERF, "last used");
    cr_expect_eq(stats.running, 0);
    profile_close(profile);

    profile = profile_open((struct profil_options){.event = "page-faults", .period = 8});
    stats = profile_stats(profile);
    cr_expect_str_eq(stats.event, "page-faults");
    cr_expect_eq(stats.period, 8);
    cr_expect_eq(stats.subticks, 1);
    profile_close(profile);
}

Test(statistics, without_a_handle_they_are_those_of_profil)
{
    unsigned short ticks = 0;
    struct profil_stats stats;

    support_require_perf();
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    support_burn_in(&support_hot_first, 0.2);
    stats = profile_stats(NULL);
    cr_expect_eq(stats.running, 1);
    support_off();
    stats = profile_stats(NULL);
    cr_expect_eq(stats.running, 0);
    cr_expect_eq(stats.engine, PROFIL_ENGINE_PERF);
    cr_expect_str_eq(stats.event, "task-clock");
    cr_expect_eq(stats.period, 10000000);
    cr_expect_gt(ticks, 0);
    cr_expect_eq(stats.ticks, ticks);
}

Test(statistics, reading_them_while_running_brings_the_counters_up_to_date)
{
    struct profil_stats first, second;
    profil_profile *profile;
    uint64_t counter = 0;

    support_require_perf();
    profile = profile_open_fast();
    profile_add_rest(profile, &counter);
    profile_start(profile);
    support_burn_in(&support_hot_first, 0.1);
    first = profile_stats(profile);
    cr_expect_geq(first.ticks, 70);
    cr_expect_geq(__atomic_load_n(&counter, __ATOMIC_RELAXED), first.ticks);
    support_burn_in(&support_hot_first, 0.1);
    second = profile_stats(profile);
    cr_expect_geq(second.ticks, first.ticks + 70);
    cr_expect_geq(seconds(second.cpu_time), seconds(first.cpu_time) + 0.099);
    cr_expect_geq(seconds(second.event_count), seconds(first.event_count) + 0.095);
    profile_close(profile);
}

/* ---- Programs built against another header. ---- */

Test(statistics, a_struct_too_short_for_its_size_is_refused)
{
    struct profil_stats stats;

    for (size_t size = 0; size < sizeof(stats.struct_size); size++) {
        memset(&stats, 0x5a, sizeof(stats));
        stats.struct_size = size;
        errno = 0;
        cr_expect_eq(profil_stats(NULL, &stats), -1);
        cr_expect_eq(errno, EINVAL);
        cr_expect_eq(stats.running, 0x5a5a5a5a);
    }
}

Test(statistics, a_shorter_struct_is_filled_to_its_end_and_no_further)
{
    struct profil_stats stats;
    size_t size = offsetof(struct profil_stats, subticks);
    profil_profile *profile = profile_open((struct profil_options){.period = 6000000});

    memset(&stats, 0x5a, sizeof(stats));
    stats.struct_size = size;
    cr_assert_eq(profil_stats(profile, &stats), 0);
    cr_expect_eq(stats.struct_size, size);
    cr_expect_str_eq(stats.event, "task-clock");
    cr_expect_eq(stats.period, 6000000);
    for (size_t at = size; at < sizeof(stats); at++)
        cr_assert_eq(((unsigned char *)&stats)[at], 0x5a, "byte %zu", at);
    profile_close(profile);
}

Test(statistics, a_longer_struct_has_zeroes_behind_what_is_known)
{
    struct {
        struct profil_stats known;
        unsigned char rest[40], behind;
    } newer;

    memset(&newer, 0x5a, sizeof(newer));
    newer.known.struct_size = offsetof(__typeof__(newer), behind);
    cr_assert_eq(profil_stats(NULL, &newer.known), 0);
    cr_expect_eq(newer.known.struct_size, offsetof(__typeof__(newer), behind));
    cr_expect_str_eq(newer.known.event, "task-clock");
    for (size_t at = 0; at < sizeof(newer.rest); at++)
        cr_assert_eq(newer.rest[at], 0, "byte %zu", at);
    cr_expect_eq(newer.behind, 0x5a);
}

/* ---- The reason. ---- */

/* Whether the kernel is sampled is asked of perf_event_open(2) itself. */
Test(statistics, the_reason_is_empty_or_says_why_the_kernel_is_not_sampled)
{
    profil_profile *profile;

    support_require_perf();
    profile = profile_open_fast();
    profile_start(profile);
    cr_expect_eq(profile_stats(profile).charges_system, support_kernel_is_sampled());
    if (support_kernel_is_sampled()) {
        cr_expect_str_eq(profile_reason(profile), "");
    } else {
        cr_expect_not_null(strstr(profile_reason(profile), "kernel.perf_event_paranoid is "), "%s",
                           profile_reason(profile));
        cr_expect_not_null(strstr(profile_reason(profile), "CAP_PERFMON"), "%s",
                           profile_reason(profile));
    }
    profile_close(profile);
}

/* Whether or not it was asked for before. */
Test(statistics, the_reason_is_the_same_when_the_profile_has_stopped)
{
    static char running[PROFILE_REASON_BYTES];
    profil_profile *asked, *not_asked;

    support_require_perf();
    asked = profile_open_fast();
    not_asked = profile_open_fast();
    profile_start(asked);
    profile_start(not_asked);
    strcpy(running, profile_reason(asked));
    profile_stop(asked);
    profile_stop(not_asked);
    cr_expect_str_eq(profile_reason(asked), running, "%s", profile_reason(asked));
    cr_expect_str_eq(profile_reason(not_asked), running, "%s", profile_reason(not_asked));
    profile_close(asked);
    profile_close(not_asked);
}

Test(statistics, leaving_out_the_kernel_by_choice_needs_no_reason)
{
    profil_profile *profile;

    support_require_perf();
    profile =
        profile_open((struct profil_options){.period = 1000000, .system = PROFIL_SYSTEM_USER});
    profile_start(profile);
    cr_expect_str_eq(profile_reason(profile), "", "%s", profile_reason(profile));
    cr_expect_eq(profile_stats(profile).charges_system, 0);
    profile_close(profile);
}

Test(statistics, charging_the_kernel_works_or_is_refused_with_the_reason)
{
    profil_profile *profile;

    support_require_perf();
    profile = profile_open((struct profil_options){.system = PROFIL_SYSTEM_CHARGE});
    if (support_kernel_is_sampled()) {
        profile_start(profile);
        cr_expect_eq(profile_stats(profile).charges_system, 1);
        cr_expect_str_eq(profile_reason(profile), "");
    } else {
        errno = 0;
        cr_expect_eq(profil_start(profile), -1);
        cr_expect_eq(errno, EACCES, "%s", strerror(errno));
        cr_expect_not_null(strstr(profile_reason(profile), "perf_event_paranoid"), "%s",
                           profile_reason(profile));
        cr_expect_not_null(strstr(profile_reason(profile), "CAP_PERFMON"), "%s",
                           profile_reason(profile));
        cr_expect_eq(profile_stats(profile).running, 0);
    }
    profile_close(profile);
}

Test(statistics, a_reason_that_does_not_fit_is_cut_off_and_its_length_told)
{
    struct profil_options options = {.struct_size = sizeof(options), .event = "no-such-event"};
    char whole[PROFILE_REASON_BYTES], part[20];
    profil_profile *profile;
    int length;

    cr_assert_eq(profil_open(&profile, &options), -1);
    length = profil_reason(NULL, whole, sizeof(whole));
    cr_assert_eq((size_t)length, strlen(whole));
    cr_assert_gt(length, 20);
    memset(part, 'x', sizeof(part));
    cr_expect_eq(profil_reason(NULL, part, 10), length);
    cr_expect_eq(strncmp(part, whole, 9), 0);
    cr_expect_eq(part[9], '\0');
    cr_expect_eq(part[10], 'x');
    cr_expect_eq(profil_reason(NULL, part, 0), length);
    cr_expect_eq(part[0], whole[0]);
}
