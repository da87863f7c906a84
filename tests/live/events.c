/* Events by name, in options and in the environment. */
#include "act.h"
#include "profile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- Page faults. ---- */

enum { PAGES = 1000 };

/* Fresh pages of the base size, which huge pages are not: a fault for each. */
static void touch_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *pages =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED) {
        process_complain("mmap: %s", strerror(errno));
        return;
    }
    madvise((void *)pages, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++)
        pages[i * page] = 1;
    munmap((void *)pages, PAGES * page);
}

static struct rusage thread_usage(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage;
}

/* What is not the pages' is of the calls that start and stop, and of a sanitizer's bookkeeping. */
enum { STRAY_FAULTS = PROCESS_SANITIZED ? 500 : 100 };

Test(events, page_faults_are_counted_one_by_one)
{
    profil_profile *profile;
    struct profil_stats stats;
    uint64_t faults = 0;
    long outside;

    support_require_perf();
    profile = profile_open((struct profil_options){.event = "page-faults"});
    profile_add_rest(profile, &faults);
    profile_start(profile);
    outside = thread_usage().ru_minflt;
    touch_pages();
    outside = thread_usage().ru_minflt - outside;
    profile_stop(profile);
    stats = profile_stats(profile);
    profile_close(profile);
    cr_assert_geq(outside, PAGES);
    cr_assert_geq(faults, (uint64_t)outside);
    cr_assert_leq(faults, (uint64_t)outside + STRAY_FAULTS);
    cr_expect_str_eq(stats.event, "page-faults");
    cr_expect_eq(stats.period, 1);
    cr_expect_eq(stats.subticks, 1);
    cr_expect_eq(stats.ticks, faults);
    cr_expect_eq(stats.event_count, faults);
    cr_expect_float_eq(stats.coverage, 1, 1e-9);
}

/* The samples that so many faults bring at least: on each CPU that a thread has been on, what is
 * short of a period is left. */
static int samples_at_least(int faults, int period)
{
    return (faults - (period - 1) * (int)sysconf(_SC_NPROCESSORS_ONLN)) / period;
}

/* A tick of 40 faults in 8 samples, so one for 5. */
Test(events, page_faults_have_a_period_and_subticks)
{
    profil_profile *profile;
    struct profil_stats stats;
    uint64_t ticks = 0;

    support_require_perf();
    profile =
        profile_open((struct profil_options){.event = "page-faults", .period = 40, .subticks = 8});
    profile_add_rest(profile, &ticks);
    profile_start(profile);
    touch_pages();
    profile_stop(profile);
    stats = profile_stats(profile);
    profile_close(profile);
    cr_expect_eq(stats.period, 40);
    cr_expect_eq(stats.subticks, 8);
    cr_expect_geq(stats.samples, (uint64_t)samples_at_least(PAGES, 5));
    cr_expect_leq(stats.samples, (PAGES + STRAY_FAULTS) / 5);
    cr_expect_geq(ticks, stats.samples / 8);
    cr_expect_leq(ticks, stats.samples / 8 + 1);
}

static void *touch_in_thread(void *unused)
{
    touch_pages();
    return unused;
}

Test(events, page_faults_of_threads_born_later_are_counted)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    profil_profile *profile;
    uint64_t faults = 0;

    support_require_perf();
    profile = profile_open((struct profil_options){.event = "page-faults"});
    profile_add_rest(profile, &faults);
    profile_start(profile);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, touch_in_thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    profile_close(profile);
    cr_assert_geq(faults, THREADS * PAGES);
    cr_assert_leq(faults, THREADS * (PAGES + STRAY_FAULTS));
}

/* ---- Context switches. ---- */

enum { SLEEPS = 100 };

static void sleep_often(void)
{
    const struct timespec moment = {.tv_nsec = 100000};

    for (int i = 0; i < SLEEPS; i++)
        nanosleep(&moment, NULL);
}

/* They happen in the kernel: an unprivileged process is shown none, and told why. */
Test(events, context_switches_are_counted_where_the_kernel_is_sampled)
{
    profil_profile *profile;
    struct profil_stats stats;
    uint64_t switches = 0;
    struct rusage before, after;
    long outside;

    support_require_perf();
    profile = profile_open((struct profil_options){.event = "context-switches"});
    profile_add_rest(profile, &switches);
    before = thread_usage();
    profile_start(profile);
    sleep_often();
    stats = profile_stats(profile);
    if (!support_kernel_is_sampled())
        cr_expect_not_null(strstr(profile_reason(profile), "perf_event_paranoid"), "%s",
                           profile_reason(profile));
    profile_stop(profile);
    after = thread_usage();
    profile_close(profile);
    outside = after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw;
    if (support_kernel_is_sampled()) {
        cr_expect_geq(switches, SLEEPS);
        cr_expect_leq(switches, (uint64_t)outside);
        cr_expect_eq(stats.unattributed, 0);
    } else {
        cr_expect_eq(switches, 0);
        cr_expect_eq(stats.event_count, 0);
        cr_expect_eq(stats.coverage, 0);
    }
}

/* ---- The hardware's events. ---- */

/* 0, or why perf_event_open(2) refuses it. */
static int cycles_error(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .sample_period = 1000000,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .disabled = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void expect_cycles(profil_profile *profile)
{
    uint64_t millions = 0;
    struct profil_stats stats;

    profile_add_rest(profile, &millions);
    profile_start(profile);
    support_burn_in(&support_hot_first, 0.1);
    profile_stop(profile);
    stats = profile_stats(profile);
    cr_expect_str_eq(stats.event, "cycles:u");
    cr_expect_eq(stats.period, 1000000);
    /* From 200 MHz to 10 GHz. */
    cr_expect_geq(millions, 20);
    cr_expect_leq(millions, 1000);
}

Test(events, cycles_are_counted_or_the_machine_is_said_to_have_none)
{
    int error = cycles_error();
    profil_profile *profile;

    support_require_perf();
    profile = profile_open((struct profil_options){.event = "cycles:u"});
    if (error == 0) {
        expect_cycles(profile);
    } else {
        errno = 0;
        cr_assert_eq(profil_start(profile), -1);
        cr_assert_eq(errno, error, "%s, not %s", strerrorname_np(errno), strerrorname_np(error));
        cr_assert_not_null(strstr(profile_reason(profile), "does not have the event"), "%s",
                           profile_reason(profile));
    }
    profile_close(profile);
}

/* ---- Names. ---- */

Test(events, a_name_that_nobody_knows_is_refused_with_it_in_the_reason)
{
    struct profil_options options = {.struct_size = sizeof(options), .event = "page-fautls"};
    profil_profile *profile;

    errno = 0;
    cr_assert_eq(profil_open(&profile, &options), -1);
    cr_assert_eq(errno, ENOENT, "%s", strerror(errno));
    cr_assert_null(profile);
    cr_assert_not_null(strstr(profile_reason(NULL), "\"page-fautls\" is not known"), "%s",
                       profile_reason(NULL));
}

Test(events, no_name_and_an_empty_one_and_task_clock_are_cpu_time)
{
    static const char *const names[] = {NULL, "", "task-clock", "TASK-CLOCK"};

    support_require_perf();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        profil_profile *profile = profile_open(
            (struct profil_options){.event = names[i], .period = 1000000, .subticks = 1});
        uint64_t ticks = 0;
        double expected;

        profile_add_rest(profile, &ticks);
        profile_start(profile);
        expected = support_burn_in(&support_hot_first, 0.1) * 1000;
        profile_close(profile);
        support_assert_ticks((unsigned long)ticks, expected);
    }
}

/* ---- The environment of a program that knows nothing of it. ---- */

/* Prints the ticks of the pages, or the refusal and its reason. */
static int profile_pages(const char *unused)
{
    unsigned short ticks = 0;
    char reason[PROFILE_REASON_BYTES];

    (void)unused;
    if (profil(&ticks, sizeof(ticks), 0, 0) == 0) {
        touch_pages();
        process_profil_off();
        printf("%d ticks", ticks);
    } else {
        const char *name = strerrorname_np(errno);

        profil_reason(NULL, reason, sizeof(reason));
        printf("%s: %s", name, reason);
    }
    return 0;
}

static void run_with(struct outcome *outcome, const char *name, const char *value)
{
    setenv(name, value, 1);
    act_run(outcome, "profile_pages", "");
    process_expect(outcome, process_exited(0));
}

static void expect_ticks(const struct outcome *outcome, int least, int most)
{
    int ticks = -1;

    cr_expect_eq(sscanf(outcome->output, "%d ticks", &ticks), 1, "%s", outcome->output);
    cr_expect(ticks >= least && ticks <= most, "%d ticks, not %d to %d", ticks, least, most);
}

static void expect_refusal(const struct outcome *outcome, const char *error, const char *named)
{
    cr_expect_eq(strncmp(outcome->output, error, strlen(error)), 0, "not %s: %s", error,
                 outcome->output);
    cr_expect_not_null(strstr(outcome->output, named), "\"%s\" is not in: %s", named,
                       outcome->output);
}

Test(events, a_variable_makes_profil_count_another_event)
{
    struct outcome outcome;

    support_require_perf();
    run_with(&outcome, "PROFIL_EVENT", "page-faults");
    expect_ticks(&outcome, PAGES, PAGES + STRAY_FAULTS);
    run_with(&outcome, "PROFIL_PERIOD", "10");
    expect_ticks(&outcome, samples_at_least(PAGES, 10), (PAGES + STRAY_FAULTS) / 10);
}

/* A million faults make a tick: there is none. */
Test(events, variables_of_period_and_subticks_go_together)
{
    struct outcome outcome;

    support_require_perf();
    setenv("PROFIL_EVENT", "page-faults", 1);
    setenv("PROFIL_PERIOD", "1000000", 1);
    run_with(&outcome, "PROFIL_SUBTICKS", "1");
    expect_ticks(&outcome, 0, 0);
    setenv("PROFIL_PERIOD", "100", 1);
    run_with(&outcome, "PROFIL_SUBTICKS", "10");
    expect_ticks(&outcome, samples_at_least(PAGES, 10) / 10 - 1, (PAGES + STRAY_FAULTS) / 100 + 1);
    run_with(&outcome, "PROFIL_SUBTICKS", "101");
    expect_refusal(&outcome, "EINVAL", "PROFIL_SUBTICKS");
}

Test(events, an_event_of_the_environment_that_nobody_knows_is_refused)
{
    struct outcome outcome;

    run_with(&outcome, "PROFIL_EVENT", "page-fautls");
    expect_refusal(&outcome, "ENOENT", "page-fautls");
}

Test(events, cycles_of_the_environment_work_or_the_machine_is_said_to_have_none)
{
    int error = cycles_error();
    struct outcome outcome;

    support_require_perf();
    setenv("PROFIL_PERIOD", "1000", 1);
    run_with(&outcome, "PROFIL_EVENT", "cycles:u");
    if (error == 0)
        expect_ticks(&outcome, 1, UINT16_MAX);
    else
        expect_refusal(&outcome, strerrorname_np(error), "does not have the event");
}

Test(events, a_variable_with_a_wrong_value_makes_the_first_profil_fail_and_is_named)
{
    static const char *const names[] = {"PROFIL_ENGINE", "PROFIL_SYSTEM", "PROFIL_ON_CONFLICT",
                                        "PROFIL_PERIOD", "PROFIL_SUBTICKS"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct outcome outcome;
        char expected[64];

        snprintf(expected, sizeof(expected), "%s=wrong: expected", names[i]);
        run_with(&outcome, names[i], "wrong");
        expect_refusal(&outcome, "EINVAL", expected);
        unsetenv(names[i]);
    }
}

Test(events, the_c_librarys_profile_is_refused_an_event_that_it_does_not_count)
{
    struct outcome outcome;

    setenv("PROFIL_ENGINE", "libc", 1);
    run_with(&outcome, "PROFIL_EVENT", "page-faults");
    expect_refusal(&outcome, strerrorname_np(ENOTSUP), "10 ms of CPU time");
    unsetenv("PROFIL_EVENT");
    run_with(&outcome, "PROFIL_PERIOD", "1000000");
    expect_refusal(&outcome, strerrorname_np(ENOTSUP), "10 ms of CPU time");
}

/* The words of standard error. */
static void expect_words(const char *name, const char *value, const char *words)
{
    struct outcome outcome;

    setenv("PROFIL_VERBOSE", "1", 1);
    setenv(name, value, 1);
    act_run(&outcome, "profile_pages", "");
    unsetenv(name);
    cr_expect_eq(outcome.status, process_exited(0));
    cr_expect_not_null(strstr(outcome.complaints, words), "\"%s\" is not in: %s", words,
                       outcome.complaints);
}

Test(events, verbose_shows_figures_or_why_there_are_none)
{
    support_require_perf();
    expect_words("PROFIL_PERIOD", "20000000", "task-clock, 20000000 ns to a tick of ");
    expect_words("PROFIL_EVENT", "page-faults", "page-faults, 1 events to a tick of 1 sample: ");
    expect_words("PROFIL_EVENT", "page-fautls", "no profile: the event \"page-fautls\"");
    expect_words("PROFIL_ENGINE", "none", "no profile: PROFIL_ENGINE=none: expected");
    if (!support_kernel_is_sampled())
        expect_words("PROFIL_PERIOD", "20000000", "time in the kernel is not charged");
}

/* By the library's own word, which is in the environment when the profile is opened. */
Test(events, options_in_code_do_not_look_at_the_environment)
{
    struct profil_options options = {.struct_size = sizeof(options)};
    profil_profile *with_options, *without;

    setenv("PROFIL_EVENT", "page-fautls", 1);
    cr_assert_eq(profil_open(&with_options, &options), 0);
    cr_expect_str_eq(profile_stats(with_options).event, "task-clock");
    profile_close(with_options);
    errno = 0;
    cr_assert_eq(profil_open(&without, NULL), -1);
    cr_assert_eq(errno, ENOENT);
    cr_assert_not_null(strstr(profile_reason(NULL), "page-fautls"), "%s", profile_reason(NULL));
}

Test(events, the_environment_is_that_of_a_profile_opened_without_options)
{
    profil_profile *profile;

    setenv("PROFIL_EVENT", "page-faults", 1);
    setenv("PROFIL_PERIOD", "30", 1);
    setenv("PROFIL_SUBTICKS", "3", 1);
    cr_assert_eq(profil_open(&profile, NULL), 0);
    cr_expect_str_eq(profile_stats(profile).event, "page-faults");
    cr_expect_eq(profile_stats(profile).period, 30);
    cr_expect_eq(profile_stats(profile).subticks, 3);
    profile_close(profile);
}

const struct act acts[] = {
    {"profile_pages", profile_pages},
    {NULL, NULL},
};
