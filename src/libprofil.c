/* The face of <libprofil.h>: arguments checked, errno set. */
#include "libprofil.h"

#include "call.h"
#include "profiler.h"

#include <string.h>

PROFIL_PUBLIC int profil_open(profil_profile **profile, const struct profil_options *options)
{
    struct call call = call_begin();

    return call_finish(call, profil_profiler_open(profile, options));
}

static int to_shift(unsigned int counter_bits, enum bucket_shift *shift)
{
    switch (counter_bits) {
    case 16:
        *shift = BUCKET_SHIFT_16;
        return 0;
    case 32:
        *shift = BUCKET_SHIFT_32;
        return 0;
    case 64:
        *shift = BUCKET_SHIFT_64;
        return 0;
    default:
        return -EINVAL;
    }
}

PROFIL_PUBLIC int profil_add_range(profil_profile *profile, void *counters, size_t bytes,
                                   unsigned int counter_bits, size_t offset, unsigned int scale)
{
    struct range range = {.counters = counters, .offset = offset, .scale = scale};
    struct call call = call_begin();
    int result = to_shift(counter_bits, &range.shift);

    range.buckets = bytes >> range.shift;
    if (result < 0)
        result = profil_profiler_refuse(profile, -EINVAL, "counters have 16, 32 or 64 bits");
    else if (scale < 2)
        result = profil_profiler_refuse(profile, -EINVAL, "the scale of a range is at least 2");
    else
        result = profil_profiler_add_range(profile, &range, offset == 0 && scale == 2);
    return call_finish(call, result);
}

PROFIL_PUBLIC int profil_start(profil_profile *profile)
{
    struct call call = call_begin();

    return call_finish(call, profil_profiler_start(profile));
}

PROFIL_PUBLIC int profil_stop(profil_profile *profile)
{
    struct call call = call_begin();

    profil_profiler_unset(profile);
    return call_finish(call, 0);
}

PROFIL_PUBLIC int profil_close(profil_profile *profile)
{
    struct call call = call_begin();

    if (profile)
        profil_profiler_close(profile);
    return call_finish(call, 0);
}

static struct profil_profile *or_default(profil_profile *profile)
{
    return profile ? profile : &profil_profiler_default;
}

PROFIL_PUBLIC int profil_stats(profil_profile *profile, struct profil_stats *stats)
{
    struct call call = call_begin();
    size_t size = stats->struct_size;
    struct profil_stats known;

    if (size < sizeof(stats->struct_size))
        return call_finish(call, -EINVAL);
    profil_profiler_stats(or_default(profile), &known);
    /* A program built against another header has a shorter or a longer struct. */
    known.struct_size = size;
    memset(stats, 0, size);
    memcpy(stats, &known, size < sizeof(known) ? size : sizeof(known));
    return call_finish(call, 0);
}

PROFIL_PUBLIC int profil_reason(profil_profile *profile, char *buffer, size_t size)
{
    struct call call = call_begin();
    int length = profil_profiler_reason(or_default(profile), buffer, size);

    call_finish(call, 0);
    return length;
}
