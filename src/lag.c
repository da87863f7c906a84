#include "lag.h"

#include "own.h"
#include "threads.h"

#include <sys/resource.h>
#include <time.h>

/* A thread moves about, but not over every CPU of a large machine between two of its ticks. */
enum { CPUS_OF_A_THREAD = 4 };

/* One part in that many of the CPU time is too little to pay for a finer period. */
enum { NEGLIGIBLE_PART = 50 };

/* Standard deviations. The question is asked fifty times a second, for hours. */
enum { SIGMAS = 5 };

/* Of the process, without what the samplers have used; the others as of when they last looked. */
static uint64_t cpu_time(struct lag *lag)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    profil_own_account(&lag->own);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - profil_own_cpu_time();
}

static uint64_t system_time_of(int who)
{
    struct rusage usage;

    if (getrusage(who, &usage) < 0)
        return 0;
    return (uint64_t)usage.ru_stime.tv_sec * 1000000000 + (uint64_t)usage.ru_stime.tv_usec * 1000;
}

static uint64_t system_time(void)
{
    uint64_t process = system_time_of(RUSAGE_SELF), own = system_time_of(RUSAGE_THREAD);

    return process > own ? process - own : 0;
}

/* Without the sampler and its keeper. */
static unsigned long program_threads(const struct lag *lag)
{
    unsigned long threads = lag->task_fd < 0 ? 0 : profil_threads_count(lag->task_fd);

    return threads > 3 ? threads - 2 : 1;
}

void profil_lag_begin(struct lag *lag)
{
    *lag = (struct lag){.task_fd = profil_threads_open()};
    lag->cpu_time_before = cpu_time(lag);
    lag->system_time_before = system_time();
}

/* The difference of two differences, which may all go round. */
uint64_t profil_lag_cpu_time(struct lag *lag)
{
    uint64_t used = cpu_time(lag) - lag->cpu_time_before;

    return used < UINT64_MAX / 2 ? used : 0;
}

/* Where the kernel is not sampled, the samples say by chance how much of the time was the
 * program's, and so does the system time, which is an estimate by the kernel's own ticks: whether
 * the time `missing` is beyond what chance makes of both. The variance is that of a binomial
 * distribution. */
static bool is_beyond_chance(double missing, double visible, double used, double sample_period)
{
    double variance = visible * (used - visible) / used * sample_period;

    return missing * missing > SIGMAS * SIGMAS * 2 * variance;
}

bool profil_lag_is_large(struct lag *lag, uint64_t accounted, uint64_t sample_period,
                         unsigned int cpus, bool samples_kernel)
{
    unsigned long threads = program_threads(lag);
    uint64_t used = profil_lag_cpu_time(lag), visible = used, phase, missing;

    if (threads > lag->most_threads)
        lag->most_threads = threads;
    if (!samples_kernel)
        visible -= system_time() - lag->system_time_before;
    phase = lag->most_threads * (cpus < CPUS_OF_A_THREAD ? cpus : CPUS_OF_A_THREAD) * sample_period;
    /* Unsigned, but visible may be the smaller: the clocks are not read at one instant. */
    if (visible <= accounted || visible >= UINT64_MAX / 2)
        return false;
    missing = visible - accounted;
    return missing > phase && missing > used / NEGLIGIBLE_PART &&
           (samples_kernel || is_beyond_chance((double)(missing - phase), (double)visible,
                                               (double)used, (double)sample_period));
}
