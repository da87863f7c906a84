/* Each scale puts the ticks of a program counter into the bucket that the formula says:
 * floor(floor((pc - offset) / 2) * scale / 65536), where pc - offset wraps. */
#include "support.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

static const double burn_seconds = 0.2;

/* 100 ticks a second. Two may be lost to the phase on two CPUs, and on a busy machine 3 % on
 * average to the kernel, where it is not sampled: six more are far beyond chance. */
enum { TICKS_AT_LEAST = 12 };

/* What the rest of the program may have where it has text in the range: the clock, starting and
 * stopping, which on a busy machine take their time. */
enum { STRAY_AT_MOST = 5 };

/* Holds any distance times any scale. */
#ifdef __SIZEOF_INT128__
typedef unsigned __int128 product;
#else
typedef uint64_t product;
#endif

static product bucket_of(uintptr_t pc, uintptr_t offset, unsigned int scale)
{
    return (product)((uintptr_t)(pc - offset) / 2) * scale / 65536;
}

struct buffer {
    unsigned short *counters;
    size_t count;
};

static struct buffer map_buffer(size_t count)
{
    struct buffer buffer = {.count = count};

    buffer.counters = mmap(NULL, count * sizeof(*buffer.counters), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(buffer.counters, MAP_FAILED);
    return buffer;
}

/* Returns the most ticks that there can be, by the CPU time of the whole process. */
static double profile_first(const struct buffer *buffer, uintptr_t offset, unsigned int scale)
{
    double start;

    support_require_perf();
    start = support_process_seconds();
    cr_assert_eq(profil(buffer->counters, buffer->count * sizeof(*buffer->counters), offset, scale),
                 0);
    support_burn_in(&support_hot_first, burn_seconds);
    support_off();
    return support_most_ticks(support_process_seconds() - start);
}

/* The ticks in the buckets of the loop, which are taken out of the buffer. */
static unsigned long take_ticks_of_first(const struct buffer *buffer, uintptr_t offset,
                                         unsigned int scale)
{
    unsigned long ticks = 0;

    for (const char *at = support_hot_first.start; at < support_hot_first.end; at++) {
        product bucket = bucket_of((uintptr_t)at, offset, scale);

        if (bucket < buffer->count) {
            ticks += buffer->counters[bucket];
            buffer->counters[bucket] = 0;
        }
    }
    return ticks;
}

/* The buffer ends with the loop, and begins not much before it. */
static void assert_formula(uintptr_t offset, unsigned int scale)
{
    uintptr_t last = (uintptr_t)support_hot_first.end - 1;
    struct buffer buffer = map_buffer((size_t)bucket_of(last, offset, scale) + 1);
    double most = profile_first(&buffer, offset, scale);
    unsigned long ticks = take_ticks_of_first(&buffer, offset, scale);

    cr_expect_geq(ticks, TICKS_AT_LEAST);
    cr_expect_leq((double)ticks, most);
    cr_expect_leq(support_sum(buffer.counters, buffer.count), STRAY_AT_MOST,
                  "ticks in other buckets");
    munmap(buffer.counters, buffer.count * sizeof(*buffer.counters));
}

static uintptr_t first_minus(size_t bytes)
{
    return (uintptr_t)support_hot_first.start - bytes;
}

/* At this distance the loop begins with a new bucket; one byte further away it does not. */
Test(scales, at_1_a_bucket_spans_131072_bytes)
{
    assert_formula(first_minus(5 * 131072), 1);
    assert_formula(first_minus(6 * 131072 - 1000), 1);
}

Test(scales, at_2_a_bucket_spans_65536_bytes)
{
    assert_formula(first_minus(7 * 65536), 2);
}

Test(scales, at_3_a_bucket_spans_a_third_of_131072_bytes)
{
    assert_formula(first_minus(100000), 3);
}

Test(scales, at_32768_a_bucket_spans_4_bytes)
{
    assert_formula(first_minus(2), 32768);
    assert_formula(first_minus(64), 32768);
}

Test(scales, at_65536_a_bucket_spans_2_bytes)
{
    assert_formula(first_minus(0), 65536);
    assert_formula(first_minus(1), 65536);
    assert_formula(first_minus(4096), 65536);
}

/* Two counters for each two bytes, of which every other one can be hit. */
Test(scales, at_131072_every_other_bucket_is_used)
{
    struct buffer buffer =
        map_buffer((size_t)(support_hot_first.end - support_hot_first.start) + 2);
    unsigned long even = 0, odd = 0;

    profile_first(&buffer, first_minus(0), 131072);
    for (size_t i = 0; i < buffer.count; i++)
        *(i % 2 ? &odd : &even) += buffer.counters[i];
    cr_assert_geq(even, TICKS_AT_LEAST);
    cr_assert_eq(odd, 0);
    assert_formula(first_minus(10), 131072);
}

Test(scales, at_the_greatest_scale_the_formula_holds)
{
    assert_formula(first_minus(0), UINT_MAX);
    assert_formula(first_minus(100), UINT_MAX);
}

/* The distance wraps to nearly the whole address space: a difference taken as signed, or a product
 * that wraps, would find a bucket. */
Test(scales, a_pc_below_the_offset_is_not_counted)
{
    static const unsigned int scales[] = {1, 2, 65536, 131072, UINT_MAX};
    struct buffer buffer = map_buffer(1 << 20);

    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        unsigned long before = support_sum(buffer.counters, buffer.count);

        profile_first(&buffer, (uintptr_t)support_hot_first.end, scales[i]);
        cr_expect_leq(support_sum(buffer.counters, buffer.count), before + STRAY_AT_MOST,
                      "scale %u", scales[i]);
    }
}
