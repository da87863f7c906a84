#include "support.h"

#include "process.h"

#include "libprofil.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double support_process_seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double support_thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Reading the clock is a system call, whose time an unprivileged profile does not see: one for a
 * few milliseconds of work. */
void support_burn(double seconds)
{
    double end = support_thread_seconds() + seconds;
    volatile unsigned long sum = 0;

    while (support_thread_seconds() < end)
        for (unsigned long i = 0; i < 500000; i++)
            sum = sum + i;
}

void *support_burn_thread(void *seconds)
{
    support_burn(*(const double *)seconds);
    return NULL;
}

/* <unistd.h> says that profil() is never given NULL, and compilers warn of it. */
void support_off(void)
{
    unsigned short *volatile off = NULL;

    cr_assert_eq(profil(off, 0, 0, 0), 0);
}

static int is_set(const char *name, const char *value)
{
    const char *found = getenv(name);

    return found && strcmp(found, value) == 0;
}

void support_require_perf(void)
{
    struct profil_options options = {.struct_size = sizeof(options), .engine = PROFIL_ENGINE_PERF};
    profil_profile *profile;
    int error;

    cr_assert_eq(profil_open(&profile, &options), 0);
    error = profil_start(profile) == 0 ? 0 : errno;
    profil_close(profile);
    if (error == 0)
        return;
    errno = error;
    if (is_set("CI", "true") || is_set("PROFIL_REQUIRE_PERF", "1"))
        cr_assert_fail("perf events must be available here: %s", strerror(errno));
    cr_skip_test("no perf events here: %s", strerror(errno));
}

unsigned long support_sum(const unsigned short *counters, size_t count)
{
    unsigned long sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += counters[i];
    return sum;
}

/* The two differ, or a compiler could make them one. */
SUPPORT_SECTION(live_hot_first);
SUPPORT_SECTION(live_hot_second);

SUPPORT_IN_SECTION(live_hot_first) static void run_first(unsigned long rounds)
{
    volatile unsigned long sum = 0;

    for (unsigned long i = 0; i < rounds; i++)
        sum = sum + i;
}

SUPPORT_IN_SECTION(live_hot_second) static void run_second(unsigned long rounds)
{
    volatile unsigned long mix = 1;

    for (unsigned long i = rounds; i > 0; i--)
        mix = mix ^ i << 3;
}

const struct support_hot support_hot_first = {
    .run = run_first, .start = __start_live_hot_first, .end = __stop_live_hot_first};
const struct support_hot support_hot_second = {
    .run = run_second, .start = __start_live_hot_second, .end = __stop_live_hot_second};

struct prof support_range(const struct support_hot *hot, void *counters, size_t bytes)
{
    size_t text = (size_t)(hot->end - hot->start) & ~(size_t)3;

    cr_assert_geq(bytes, text, "the loop's text needs more counters");
    return (struct prof){
        .pr_base = counters, .pr_size = text, .pr_off = (uintptr_t)hot->start, .pr_scale = 65536};
}

/* Reads the clock a few times only: each reading is time outside of the loop, and a point at which
 * the kernel likes to switch to another thread. Half of what is left each time, because the speed
 * of the loop changes with what the other CPUs do. */
double support_burn_in(const struct support_hot *hot, double seconds)
{
    enum { FIRST_ROUNDS = 100000, LEAST_ROUNDS = 50000 };
    double start = support_thread_seconds(), used = 0, done = 0;
    double rounds = FIRST_ROUNDS;

    while (used < seconds) {
        hot->run((unsigned long)rounds);
        done += rounds;
        used = support_thread_seconds() - start;
        rounds = fmax(done / used * (seconds - used) / 2, LEAST_ROUNDS);
    }
    return used;
}

static void *run_burner(void *argument)
{
    struct support_burner *burner = argument;

    if (burner->gate)
        pthread_barrier_wait(burner->gate);
    burner->used = support_burn_in(burner->hot, burner->seconds);
    return NULL;
}

void support_burner_start(struct support_burner *burner)
{
    int error = pthread_create(&burner->thread, NULL, run_burner, burner);

    cr_assert_eq(error, 0, "pthread_create: %s", strerror(error));
}

double support_burner_join(struct support_burner *burner)
{
    pthread_join(burner->thread, NULL);
    return burner->used;
}

/* The processors for which the library asks the kernel for the user's program counter. */
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
static const bool knows_program_counter = true;
#else
static const bool knows_program_counter = false;
#endif

bool support_kernel_is_sampled(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .disabled = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

    if (fd >= 0)
        close(fd);
    return fd >= 0 && knows_program_counter;
}

double support_most_ticks(double seconds)
{
    return seconds * 100 * 1.02 + 1;
}

void support_assert_ticks(unsigned long ticks, double expected)
{
    support_assert_ticks_and_up_to(ticks, expected, 0);
}

void support_assert_ticks_and_up_to(unsigned long ticks, double expected, double more)
{
    const double phase_and_switches = 0.03, in_kernel = 0.03;
    double least = expected * (1 - phase_and_switches),
           most = support_most_ticks((expected + more) / 100);

    if (!support_kernel_is_sampled())
        least -= in_kernel * expected + 4 * sqrt(in_kernel * expected);
    /* There, calls take long and so do their page faults; it is there for faults of another kind.
     */
    if (PROCESS_SANITIZED) {
        least -= 0.15 * expected;
        most += 0.15 * expected;
    }
    least = floor(least);
    cr_assert((double)ticks >= least && (double)ticks <= most,
              "%lu ticks, expected %.1f, between %.1f and %.1f", ticks, expected, least, most);
}

unsigned long support_whole_ticks(double seconds)
{
    return (unsigned long)(seconds * 100);
}

/* The CPUs that the program was started on: a thread that has bound itself no longer sees them. */
static cpu_set_t allowed;

__attribute__((constructor)) static void read_allowed(void)
{
    sched_getaffinity(0, sizeof(allowed), &allowed);
}

int support_cpu_count(void)
{
    return CPU_COUNT(&allowed);
}

static void set_cpus(int first, int count)
{
    cpu_set_t chosen;
    int number = 0;

    CPU_ZERO(&chosen);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        if (number >= first && number < first + count)
            CPU_SET(cpu, &chosen);
        number++;
    }
    cr_assert_eq(sched_setaffinity(0, sizeof(chosen), &chosen), 0, "sched_setaffinity: %s",
                 strerror(errno));
}

void support_confine(int count)
{
    set_cpus(0, count);
}

void support_bind(int number)
{
    set_cpus(number % support_cpu_count(), 1);
}

size_t support_thread_count(void)
{
    DIR *directory = opendir("/proc/self/task");
    size_t count = 0;

    cr_assert_not_null(directory, "/proc/self/task: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

bool support_thread_count_becomes(size_t count)
{
    for (int i = 0; i < 1000 && support_thread_count() != count; i++)
        usleep(1000);
    return support_thread_count() == count;
}
