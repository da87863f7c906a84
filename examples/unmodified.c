/* A program that knows only the profil() of <unistd.h>. It profiles two threads that use the same
 * amount of CPU time, and tells whose profil() that was:
 *
 *     ./unmodified                              the C library's
 *     LD_PRELOAD=libprofil.so.0 ./unmodified    libprofil's
 *
 * An argument is the CPU time of each thread in seconds. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* NULL turns profil() off, but its declaration in glibc says that it is never NULL. */
#pragma GCC diagnostic ignored "-Wnonnull"

enum { THREADS = 2, TICKS_PER_SECOND = 100, SCALE = 65536 };

/* The linker gives a section of such a name two symbols, for its start and its end: ticks can be
 * told apart without a symbol table. */
#define IN_SECTION(name) __attribute__((section(name), noinline))

extern const char __start_text_collatz[], __stop_text_collatz[];
extern const char __start_text_primes[], __stop_text_primes[];

/* About a millisecond of work each. */
static IN_SECTION("text_collatz") unsigned long longest_collatz(void)
{
    unsigned long longest = 0;

    for (unsigned long start = 1; start < 5000; start++) {
        unsigned long steps = 0;

        for (unsigned long value = start; value != 1; steps++)
            value = value % 2 ? 3 * value + 1 : value / 2;
        longest = steps > longest ? steps : longest;
    }
    return longest;
}

static IN_SECTION("text_primes") unsigned long count_primes(void)
{
    unsigned long count = 0;

    for (unsigned long number = 3; number < 20000; number += 2) {
        unsigned long divisor = 3;

        while (divisor * divisor <= number && number % divisor)
            divisor += 2;
        count += divisor * divisor > number;
    }
    return count;
}

struct job {
    const char *name;
    const char *start;
    const char *end;
    unsigned long (*step)(void);
    unsigned long expected;
    double seconds;
    unsigned long ticks;
    pthread_t thread;
};

static struct job jobs[THREADS] = {
    {"collatz", __start_text_collatz, __stop_text_collatz, longest_collatz, 237, 0, 0, 0},
    {"primes", __start_text_primes, __stop_text_primes, count_primes, 2261, 0, 0, 0},
};

static double limit = 2;

static double thread_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *work(void *argument)
{
    struct job *job = argument;

    while ((job->seconds = thread_seconds()) < limit)
        if (job->step() != job->expected)
            abort();
    return NULL;
}

static void count_ticks(struct job *job, const unsigned short *counters, const char *offset)
{
    for (const char *pc = job->start; pc < job->end; pc += 2)
        job->ticks += counters[(pc - offset) / 2];
}

static void print_owner(void)
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "profil");

    printf("profil() of %s\n", symbol && dladdr(symbol, &info) ? info.dli_fname : "this program");
}

/* What profil() has done to the signals and timers of the program. */
static void print_signals(void)
{
    struct sigaction action;
    struct itimerval timer;

    sigaction(SIGPROF, NULL, &action);
    getitimer(ITIMER_PROF, &timer);
    printf("  SIGPROF handler: %s, ITIMER_PROF: %s\n",
           action.sa_handler == SIG_DFL ? "none" : "installed",
           timer.it_interval.tv_sec || timer.it_interval.tv_usec ? "running" : "not running");
}

static void print_ticks(void)
{
    double seconds = jobs[0].seconds + jobs[1].seconds;
    unsigned long ticks = jobs[0].ticks + jobs[1].ticks;
    long apart = labs((long)jobs[0].ticks - (long)jobs[1].ticks);

    for (int i = 0; i < THREADS; i++)
        printf("  %-8s %5.2f s of CPU %5lu ticks\n", jobs[i].name, jobs[i].seconds, jobs[i].ticks);
    printf("  together %5.2f s of CPU %5lu ticks: ratio %.3f; the two differ by %.1f %%\n", seconds,
           ticks, (double)ticks / (TICKS_PER_SECOND * seconds),
           ticks ? 200.0 * (double)apart / (double)ticks : 0.0);
}

static int profile(unsigned short *counters, size_t bytes, const char *offset)
{
    if (profil(counters, bytes, (size_t)offset, SCALE) == -1)
        return -1;
    print_signals();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(jobs[i].thread, NULL);
    if (profil(NULL, 0, 0, 0) == -1)
        return -1;
    for (int i = 0; i < THREADS; i++)
        count_ticks(&jobs[i], counters, offset);
    print_ticks();
    return 0;
}

int main(int argc, char **argv)
{
    const char *offset = jobs[0].start < jobs[1].start ? jobs[0].start : jobs[1].start;
    const char *end = jobs[0].end > jobs[1].end ? jobs[0].end : jobs[1].end;
    size_t bytes = ((size_t)(end - offset) / 2 + 1) * sizeof(unsigned short);
    unsigned short *counters = calloc(1, bytes);

    if (argc > 1)
        limit = atof(argv[1]);
    print_owner();
    if (!counters || profile(counters, bytes, offset) == -1) {
        perror("profil");
        return EXIT_FAILURE;
    }
    free(counters);
    return EXIT_SUCCESS;
}
