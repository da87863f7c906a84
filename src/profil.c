/* The face of the C library's own profil() and sprofil().
 *
 * <unistd.h> declares profil() as never given NULL, on which a compiler may build: it is not
 * included here, directly or through another header. */
#include "call.h"
#include "profiler.h"

#include <stdlib.h>
#include <sys/profil.h>

PROFIL_PUBLIC int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale);

/* 100 ticks a second. */
static const struct timeval tick_interval = {.tv_sec = 0, .tv_usec = 10000};

static int refuse(int error, const char *why)
{
    return profil_profiler_refuse(&profil_profiler_default, error, why);
}

static int set(struct range_set *ranges)
{
    if (!ranges)
        return refuse(-ENOMEM, "there is no memory for the ranges");
    return profil_profiler_set(&profil_profiler_default, ranges);
}

int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
{
    struct call call = call_begin();
    int result = 0;

    if (buf)
        result = set(profil_range_set_single(&(struct range){.counters = buf,
                                                             .buckets = bufsiz / sizeof(*buf),
                                                             .offset = offset,
                                                             .scale = scale,
                                                             .shift = BUCKET_SHIFT_16}));
    else
        profil_profiler_unset(&profil_profiler_default);
    return call_finish(call, result);
}

/* The name by which the C library's gmon.o calls it, in a static program built with -pg. */
extern __typeof__(profil) __profil __attribute__((alias("profil")));

/* An entry that spans the address space with one counter: it takes what no other entry does. */
static bool is_overflow(const struct prof *entry)
{
    return entry->pr_off == 0 && entry->pr_scale == 2;
}

/* As with the original, an entry of scale 0 or 1 takes part in nothing. */
static bool is_idle(const struct prof *entry)
{
    return entry->pr_scale < 2;
}

static struct range to_range(const struct prof *entry, enum bucket_shift shift)
{
    return (struct range){.counters = entry->pr_base,
                          .buckets = entry->pr_size >> shift,
                          .offset = entry->pr_off,
                          .scale = (uint32_t)entry->pr_scale,
                          .shift = shift};
}

/* Sorts the entries into `ranges`, of which there is room for all; 0 or -EINVAL. */
static int sort_out(const struct prof *entries, size_t count, enum bucket_shift shift,
                    struct range *ranges, size_t *used, struct range *overflow)
{
    *used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct prof *entry = &entries[i];

        if (entry->pr_scale > UINT32_MAX)
            return refuse(-EINVAL, "a pr_scale is greater than UINT32_MAX");
        if (is_overflow(entry) && entry->pr_size >> shift > 0)
            *overflow = to_range(entry, shift);
        else if (!is_overflow(entry) && !is_idle(entry))
            ranges[(*used)++] = to_range(entry, shift);
    }
    return 0;
}

static int set_entries(const struct prof *entries, size_t count, enum bucket_shift shift)
{
    struct range overflow = {0};
    struct range *ranges = calloc(count, sizeof(*ranges));
    size_t used;
    int result = -ENOMEM;

    if (ranges)
        result = sort_out(entries, count, shift, ranges, &used, &overflow);
    if (result == 0)
        result = set(profil_range_set_new(ranges, used, overflow.buckets ? &overflow : NULL));
    free(ranges);
    return result;
}

PROFIL_PUBLIC int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags)
{
    struct call call = call_begin();
    int result = 0;

    if (profcnt < 0)
        result = refuse(-EINVAL, "the number of entries is negative");
    else if (profcnt == 0)
        profil_profiler_unset(&profil_profiler_default);
    else if (!profp)
        result = refuse(-EFAULT, "there are entries, but no table of them");
    else
        result = set_entries(profp, (size_t)profcnt,
                             flags & PROF_UINT ? BUCKET_SHIFT_32 : BUCKET_SHIFT_16);
    if (result == 0 && tvp)
        *tvp = tick_interval;
    return call_finish(call, result);
}
