/* Where the ticks of time in the kernel go: to the user's program counter, where the kernel lets
 * them be sampled; nowhere, where it does not. Each test holds for one of the two, or says what
 * holds for each. */
#include "support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNTERS = 512 };

/* A system call without the C library, so that the program counter it is made from is in the
 * caller. */
#if defined(__x86_64__)
static inline __attribute__((always_inline)) long call_kernel(long number, long a, long b, long c)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline __attribute__((always_inline)) long call_kernel(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#elif defined(__i386__)
static inline __attribute__((always_inline)) long call_kernel(long number, long a, long b, long c)
{
    long result;

    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
    return result;
}
#else /* the library does not sample the kernel there */
static inline long call_kernel(long number, long a, long b, long c)
{
    return syscall(number, a, b, c);
}
#endif

SUPPORT_SECTION(live_hot_reading);
SUPPORT_SECTION(live_hot_faulting);

SUPPORT_IN_SECTION(live_hot_reading)
static void read_zeros(int fd, char *buffer, size_t bytes, unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++)
        call_kernel(SYS_read, fd, (long)buffer, (long)bytes);
}

/* Touches fresh pages and gives them back. */
SUPPORT_IN_SECTION(live_hot_faulting)
static void fault_pages_in(char *pages, size_t bytes, size_t page, unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++) {
        for (size_t at = 0; at < bytes; at += page)
            *(volatile char *)(pages + at) = 1;
        call_kernel(SYS_madvise, (long)pages, (long)bytes, MADV_DONTNEED);
    }
}

static const struct support_hot reading = {.start = __start_live_hot_reading,
                                           .end = __stop_live_hot_reading};
static const struct support_hot faulting = {.start = __start_live_hot_faulting,
                                            .end = __stop_live_hot_faulting};

static double system_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6;
}

/* Reads for about that much CPU time; returns what it really was. */
static double read_for(double seconds)
{
    static char buffer[1 << 20];
    double start = support_thread_seconds(), used;
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    cr_assert_geq(fd, 0);
    do {
        read_zeros(fd, buffer, sizeof(buffer), 100);
        used = support_thread_seconds() - start;
    } while (used < seconds);
    close(fd);
    return used;
}

/* A system call has one program counter. */
Test(kernel_time, ticks_in_a_system_call_land_on_the_pc_of_the_call)
{
    static unsigned short counters[COUNTERS];
    unsigned short rest = 0;
    struct prof ranges[] = {
        support_range(&reading, counters, sizeof(counters)),
        {.pr_base = &rest, .pr_size = sizeof(rest), .pr_scale = 2},
    };
    unsigned long highest = 0, all;
    double used, in_kernel;

    support_require_perf();
    if (!support_kernel_is_sampled())
        cr_skip_test("only for those who may sample the kernel");
    support_confine(2);
    in_kernel = system_seconds();
    cr_assert_eq(sprofil(ranges, 2, NULL, PROF_USHORT), 0);
    used = read_for(1);
    support_off();
    cr_assert_gt(system_seconds() - in_kernel, 0.5, "reading is no work for this kernel");
    for (int i = 0; i < COUNTERS; i++)
        highest = counters[i] > highest ? counters[i] : highest;
    all = support_sum(counters, COUNTERS) + rest;
    support_assert_ticks(all, used * 100);
    cr_assert_geq((double)highest, 0.9 * (double)all, "%lu of %lu ticks", highest, all);
}

static double fault_for(double seconds)
{
    static char *pages;
    const size_t bytes = 4 << 20;
    double start = support_thread_seconds(), used;

    if (!pages) {
        pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(pages, MAP_FAILED);
        /* With huge pages there would be few faults. */
        madvise(pages, bytes, MADV_NOHUGEPAGE);
    }
    do {
        fault_pages_in(pages, bytes, (size_t)sysconf(_SC_PAGESIZE), 1);
        used = support_thread_seconds() - start;
    } while (used < seconds);
    return used;
}

struct shares {
    double faulting_seconds, computing_seconds;
    unsigned long faulting_ticks, computing_ticks, other_ticks;
};

/* 2 s, half of it each. The stretches are of random length, so that sampling every 10 ms cannot
 * fall into step with them. */
static void profile_faulting_and_computing(struct shares *shares)
{
    static unsigned short in_faulting[COUNTERS], in_computing[COUNTERS];
    unsigned short rest = 0;
    struct prof ranges[] = {
        support_range(&faulting, in_faulting, sizeof(in_faulting)),
        support_range(&support_hot_first, in_computing, sizeof(in_computing)),
        {.pr_base = &rest, .pr_size = sizeof(rest), .pr_scale = 2},
    };

    *shares = (struct shares){0};
    srandom(1);
    cr_assert_eq(sprofil(ranges, 3, NULL, PROF_USHORT), 0);
    while (shares->faulting_seconds + shares->computing_seconds < 2) {
        shares->faulting_seconds += fault_for(0.002 * (double)(random() % 8 + 1));
        shares->computing_seconds +=
            support_burn_in(&support_hot_first,
                            fmax(shares->faulting_seconds - shares->computing_seconds, 0) + 0.001);
    }
    support_off();
    shares->faulting_ticks = support_sum(in_faulting, COUNTERS);
    shares->computing_ticks = support_sum(in_computing, COUNTERS);
    shares->other_ticks = rest;
}

/* A share of one half has the largest deviation: sqrt(ticks) / 2. What lands outside of the two
 * functions is what the clocks cost. */
Test(kernel_time, a_program_that_faults_half_its_time_keeps_its_shares)
{
    struct shares shares;
    double all, share, seconds;

    support_require_perf();
    if (!support_kernel_is_sampled())
        cr_skip_test("only for those who may sample the kernel");
    support_confine(2);
    profile_faulting_and_computing(&shares);
    seconds = shares.faulting_seconds + shares.computing_seconds;
    share = shares.computing_seconds / seconds;
    all = (double)(shares.faulting_ticks + shares.computing_ticks + shares.other_ticks);
    support_assert_ticks((unsigned long)all, seconds * 100);
    cr_assert_leq((double)shares.other_ticks, 0.15 * all);
    cr_assert_float_eq((double)shares.computing_ticks, share * all, 4 * sqrt(all) / 2,
                       "%lu of %.0f ticks for %.3f of the time", shares.computing_ticks, all,
                       share);
    cr_assert_float_eq((double)shares.faulting_ticks, (1 - share) * all, 4 * sqrt(all) / 2,
                       "%lu of %.0f ticks for %.3f of the time", shares.faulting_ticks, all,
                       1 - share);
}

/* The computing function is in the kernel only where it is interrupted: it has its ticks, but for 3
 * % on average and 6 % at most, by the same deviation. The faulting one has those of its user time,
 * which are fewer than all. */
Test(kernel_time, without_the_kernel_user_time_has_its_ticks_and_nothing_is_invented)
{
    struct shares shares;
    double computing, faulted, deviation;

    support_require_perf();
    if (support_kernel_is_sampled())
        cr_skip_test("only for those who may not sample the kernel");
    support_confine(2);
    profile_faulting_and_computing(&shares);
    computing = shares.computing_seconds * 100;
    faulted = shares.faulting_seconds * 100;
    deviation = sqrt(computing + faulted) / 2;
    cr_assert_float_eq((double)shares.computing_ticks, 0.97 * computing,
                       0.03 * computing + 4 * deviation, "%lu ticks, expected %.0f",
                       shares.computing_ticks, computing);
    cr_assert_leq((double)shares.faulting_ticks, faulted + 4 * deviation);
    cr_assert_leq((double)(shares.faulting_ticks + shares.computing_ticks + shares.other_ticks),
                  support_most_ticks(shares.faulting_seconds + shares.computing_seconds));
}

/* Reading /dev/zero is kernel time nearly all of it, and a second on two CPUs leaves at most two
 * ticks out: what comes is what the call itself costs in user mode. */
Test(kernel_time, without_the_kernel_a_system_call_has_no_ticks)
{
    unsigned short ticks = 0;
    double used;

    support_require_perf();
    if (support_kernel_is_sampled())
        cr_skip_test("only for those who may not sample the kernel");
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    used = read_for(1);
    support_off();
    cr_assert_leq((double)ticks, 0.2 * used * 100);
}
