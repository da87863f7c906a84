/* Errors, errno, buffers that are none, and callers that come at once. */
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ERRNO_BEFORE = 4711 };

static const double burn_seconds = 0.1;

/* 100 ticks a second; of ten, two may be lost to the phase, and few to the kernel. */
enum { TICKS_AT_LEAST = 4 };

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *map(size_t bytes, int protection)
{
    char *base = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    cr_assert_neq(base, MAP_FAILED, "mmap: %s", strerror(errno));
    return base;
}

static void assert_success_leaves_errno(int result, const char *call)
{
    cr_assert_eq(result, 0, "%s: %s", call, strerror(errno));
    cr_assert_eq(errno, ERRNO_BEFORE, "%s changes errno to %d", call, errno);
}

Test(arguments, a_successful_call_leaves_errno_alone)
{
    unsigned short *volatile null = NULL;
    unsigned short counters[2];
    struct prof range = {.pr_base = counters, .pr_size = sizeof(counters), .pr_scale = 65536};
    struct timeval interval;

    support_require_perf();
    errno = ERRNO_BEFORE;
    assert_success_leaves_errno(profil(counters, sizeof(counters), 0, 0), "start");
    assert_success_leaves_errno(profil(counters + 1, 2, 0, 65536), "change");
    assert_success_leaves_errno(sprofil(&range, 1, &interval, PROF_USHORT), "change by sprofil");
    assert_success_leaves_errno(sprofil(NULL, 0, NULL, 0), "off by sprofil");
    assert_success_leaves_errno(sprofil(&range, 1, NULL, PROF_USHORT), "start by sprofil");
    assert_success_leaves_errno(profil(null, 0, 0, 0), "off");
    assert_success_leaves_errno(profil(null, 0, 0, 0), "off while off");
}

/* A large buffer is looked up in the memory map instead of being touched. */
Test(arguments, a_large_buffer_leaves_errno_alone)
{
    size_t bytes = (size_t)64 << 20;
    char *large = map(bytes, PROT_READ | PROT_WRITE);

    support_require_perf();
    errno = ERRNO_BEFORE;
    assert_success_leaves_errno(profil((void *)large, bytes, 0, 65536), "start");
    support_off();
}

/* The address of a hole in the memory, where the kernel hands out nothing by itself: the threads
 * that a call starts, and a sanitizer, map memory of their own. */
static void *hole(size_t bytes)
{
    void *at = mmap((void *)(uintptr_t)(UINT64_C(1) << 45), bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(at, MAP_FAILED);
    munmap(at, bytes);
    return at;
}

/* Fails at the call, when nothing was on and nothing is on afterwards. */
static void assert_fault(void *buffer, size_t bytes, const char *what)
{
    size_t threads = support_thread_count();

    errno = 0;
    cr_expect_eq(profil(buffer, bytes, 0, 65536), -1, "%s is taken", what);
    cr_expect_eq(errno, EFAULT, "%s: errno is %s", what, strerror(errno));
    cr_expect(support_thread_count_becomes(threads), "%s: something is left running", what);
}

Test(arguments, memory_that_cannot_be_written_is_a_fault)
{
    size_t page = page_size(), large = (size_t)32 << 20;
    char *read_only = map(page, PROT_READ), *none = map(page, PROT_NONE);
    char *large_read_only = map(large, PROT_READ);
    size_t threads = support_thread_count();

    support_require_perf();
    cr_assert(support_thread_count_becomes(threads));
    assert_fault(read_only, page, "read-only memory");
    assert_fault(none, page, "memory without access");
    assert_fault(hole(page), page, "unmapped memory");
    assert_fault((void *)2, 2, "an address near 0");
    assert_fault((void *)(uintptr_t)-4096, 4, "an address near the top");
    assert_fault(large_read_only, large, "much read-only memory");
    assert_fault(hole(large), large, "much unmapped memory");
    assert_fault((void *)(uintptr_t)support_hot_first.start, 16, "the program's text");
}

static void assert_unchanged(const char *memory, size_t bytes, char pattern)
{
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(memory[i], pattern, "byte %zu has changed", i);
}

/* The part that could be written has not been. */
Test(arguments, memory_that_can_be_written_in_part_is_a_fault)
{
    size_t page = page_size(), large = (size_t)32 << 20;
    char *pages = map(3 * page, PROT_READ | PROT_WRITE), *many = map(large, PROT_READ | PROT_WRITE);
    size_t threads = support_thread_count();

    support_require_perf();
    cr_assert(support_thread_count_becomes(threads));
    memset(pages, 'x', 3 * page);
    mprotect(pages + page, page, PROT_READ);
    munmap(many + large / 2, page);
    assert_fault(pages + page - 2, 4, "a buffer that ends in a read-only page");
    assert_fault(pages + page - 1, 2, "a counter that ends in a read-only page");
    assert_fault(pages, 3 * page, "a buffer with a read-only page in it");
    assert_fault(pages + 2 * page - 2, page, "a buffer that begins in a read-only page");
    assert_fault(many, large, "a large buffer with a hole");
    assert_unchanged(pages, 3 * page, 'x');
}

/* The byte after the last counter is not asked for. */
Test(arguments, a_buffer_may_end_where_memory_does)
{
    size_t page = page_size();
    char *pages = map(2 * page, PROT_READ | PROT_WRITE);
    unsigned short *last = (unsigned short *)(void *)(pages + page - 2);

    support_require_perf();
    munmap(pages + page, page);
    cr_assert_eq(profil(last, 3, 0, 0), 0, "profil: %s", strerror(errno));
    support_burn(burn_seconds);
    support_off();
    cr_assert_geq(*last, TICKS_AT_LEAST);
}

Test(arguments, a_buffer_that_wraps_around_is_a_fault)
{
    unsigned short counter = 0;
    size_t threads = support_thread_count();

    support_require_perf();
    cr_assert(support_thread_count_becomes(threads));
    assert_fault(&counter, SIZE_MAX, "a buffer of SIZE_MAX bytes");
    assert_fault(&counter, SIZE_MAX - 1, "a buffer of SIZE_MAX - 1 bytes");
    assert_fault(&counter, SIZE_MAX / 2, "a buffer of half the address space");
}

/* Runs a call that must fail, with the first profile on, and asserts that this goes on. */
static void assert_refused(int (*call)(void *argument), void *argument, int error)
{
    unsigned short ticks = 0;
    double used;

    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    used = support_burn_in(&support_hot_first, burn_seconds);
    errno = 0;
    cr_assert_eq(call(argument), -1);
    cr_assert_eq(errno, error, "errno is %s", strerror(errno));
    unsigned short ticks_before = ticks;
    used += support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    cr_assert_geq(ticks, ticks_before + TICKS_AT_LEAST, "the profile does not go on");
    cr_assert_leq(ticks, support_most_ticks(used));
}

struct profil_arguments {
    void *buffer;
    size_t bytes;
};

static int call_profil(void *argument)
{
    const struct profil_arguments *arguments = argument;

    return profil(arguments->buffer, arguments->bytes, 0, 65536);
}

Test(arguments, after_a_fault_the_profile_goes_on)
{
    struct profil_arguments read_only = {map(4096, PROT_READ), 4096};
    struct profil_arguments wrapping = {&read_only, SIZE_MAX};

    support_require_perf();
    assert_refused(call_profil, &read_only, EFAULT);
    assert_refused(call_profil, &wrapping, EFAULT);
}

struct sprofil_arguments {
    struct prof *ranges;
    int count;
};

static int call_sprofil(void *argument)
{
    const struct sprofil_arguments *arguments = argument;

    return sprofil(arguments->ranges, arguments->count, NULL, PROF_USHORT);
}

Test(arguments, sprofil_with_one_bad_buffer_is_a_fault)
{
    static unsigned short counters[512];
    struct prof ranges[] = {
        support_range(&support_hot_first, counters, sizeof(counters)),
        support_range(&support_hot_second, map(page_size(), PROT_READ), page_size()),
        {.pr_base = counters, .pr_size = 2, .pr_off = 0, .pr_scale = 2},
    };
    struct sprofil_arguments arguments = {ranges, 3};

    support_require_perf();
    assert_refused(call_sprofil, &arguments, EFAULT);
    ranges[1] = ranges[0];
    ranges[2].pr_base = (void *)2;
    assert_refused(call_sprofil, &arguments, EFAULT);
    cr_assert_eq(support_sum(counters, 512), 0);
}

Test(arguments, sprofil_refuses_a_negative_count)
{
    struct prof range = {0};
    struct sprofil_arguments arguments = {&range, -1};

    support_require_perf();
    assert_refused(call_sprofil, &arguments, EINVAL);
    arguments.count = INT_MIN;
    assert_refused(call_sprofil, &arguments, EINVAL);
}

Test(arguments, sprofil_without_a_table_is_a_fault)
{
    struct sprofil_arguments arguments = {NULL, 3};

    support_require_perf();
    assert_refused(call_sprofil, &arguments, EFAULT);
}

#if ULONG_MAX > UINT_MAX
Test(arguments, sprofil_refuses_a_scale_beyond_32_bits)
{
    static unsigned short counters[512];
    struct prof range = support_range(&support_hot_first, counters, sizeof(counters));
    struct sprofil_arguments arguments = {&range, 1};

    support_require_perf();
    range.pr_scale = (unsigned long)UINT_MAX + 1;
    assert_refused(call_sprofil, &arguments, EINVAL);
}

/* 4 GiB, of which the ticks reach one counter in each 128 KiB. Wherever one falls, a page becomes
 * resident, or with huge pages 2 MiB: a few dozen of those at most, of some 2000. */
Test(arguments, a_huge_sparse_buffer_does_not_become_resident)
{
    size_t bytes = (size_t)4 << 30, page = page_size(), resident = 0;
    char *huge = map(bytes, PROT_READ | PROT_WRITE);
    unsigned char *present = (unsigned char *)map(bytes / page, PROT_READ | PROT_WRITE);
    unsigned long ticks = 0;

    support_require_perf();
    cr_assert_eq(profil((void *)huge, bytes, (uintptr_t)support_hot_first.start, UINT_MAX), 0,
                 "profil: %s", strerror(errno));
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    cr_assert_eq(mincore(huge, bytes, present), 0);
    for (size_t i = 0; i < bytes / page; i++) {
        if (!(present[i] & 1))
            continue;
        resident += page;
        ticks += support_sum((unsigned short *)(void *)(huge + i * page), page / 2);
    }
    cr_assert_geq(ticks, TICKS_AT_LEAST);
    cr_assert_leq(resident, (size_t)64 << 20);
}
#endif

enum { CALLERS = 4, CALLS = 90 };

struct caller {
    pthread_t thread;
    void *read_only;
    unsigned short counter;
    int failures;
};

static void *call_again_and_again(void *argument)
{
    struct caller *caller = argument;
    struct prof range = {.pr_base = &caller->counter, .pr_size = 2, .pr_off = 0, .pr_scale = 2};
    unsigned short *volatile null = NULL;

    for (int i = 0; i < CALLS; i++) {
        caller->failures += profil(&caller->counter, sizeof(caller->counter), 0, 0) != 0;
        caller->failures += profil(caller->read_only, 4096, 0, 0) != -1 || errno != EFAULT;
        usleep(2000);
        caller->failures += sprofil(&range, 1, NULL, PROF_USHORT) != 0;
        if (i % 30 == 29)
            caller->failures += profil(null, 0, 0, 0) != 0;
    }
    return NULL;
}

/* Whoever comes last has it; no tick is counted twice, and afterwards all is as after one caller.
 * The burners take care that there are ticks. */
Test(arguments, many_threads_may_call_at_once)
{
    struct caller callers[CALLERS] = {0};
    struct support_burner burners[] = {
        {.hot = &support_hot_first, .seconds = 0.3},
        {.hot = &support_hot_second, .seconds = 0.3},
    };
    size_t threads = support_thread_count();
    unsigned long ticks = 0;
    unsigned short after = 0;
    double start, used;

    support_require_perf();
    start = support_process_seconds();
    for (int i = 0; i < 2; i++)
        support_burner_start(&burners[i]);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].read_only = map(4096, PROT_READ);
        cr_assert_eq(pthread_create(&callers[i].thread, NULL, call_again_and_again, &callers[i]),
                     0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < 2; i++)
        support_burner_join(&burners[i]);
    support_off();
    used = support_process_seconds() - start;
    for (int i = 0; i < CALLERS; i++) {
        cr_expect_eq(callers[i].failures, 0);
        ticks += callers[i].counter;
    }
    cr_assert_gt(ticks, 0);
    cr_assert_leq((double)ticks, support_most_ticks(used));
    cr_assert(support_thread_count_becomes(threads), "a thread of a profile is left");
    cr_assert_eq(profil(&after, sizeof(after), 0, 0), 0);
    support_burn(burn_seconds);
    support_off();
    cr_assert_geq(after, TICKS_AT_LEAST);
}
