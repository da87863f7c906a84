/* libprofil, with the options of the environment but for the period. */
#include "backend.h"
#include "ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <libprofil.h>
#include <stdio.h>
#include <stdlib.h>

const bool backend_sees_all_threads = true;

static profil_profile *profile;
static struct range_counters ranges;

static int add_ranges(void)
{
    int result = profil_add_range(profile, &ranges.elsewhere, sizeof(ranges.elsewhere), 32, 0,
                                  OVERFLOW_SCALE);

    for (size_t i = 0; i < HOT_FUNCTIONS && result == 0; i++)
        result = profil_add_range(profile, ranges.function[i], range_bytes(i), 32,
                                  (size_t)workload_hot[i].start, RANGE_SCALE);
    return result;
}

int backend_start(uint64_t period, enum scope scope)
{
    char text[24];

    (void)scope;
    /* In the environment and not in the options, which would take the place of all of it. */
    snprintf(text, sizeof(text), "%" PRIu64, period);
    setenv("PROFIL_PERIOD", text, 1);
    setenv("PROFIL_ENGINE", "perf", 1);
    if (profil_open(&profile, NULL) < 0 || add_ranges() < 0 || profil_start(profile) < 0)
        return -errno;
    return 0;
}

void backend_stop(void)
{
    profil_stop(profile);
}

void backend_read(struct counts *counts)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};

    *counts = (struct counts){0};
    ranges_add(&ranges, counts);
    if (profil_stats(profile, &stats) == 0)
        counts->lost = stats.lost;
}

const char *backend_reason(void)
{
    static char reason[256];

    profil_reason(profile, reason, sizeof(reason));
    return reason;
}

void backend_enter(void)
{
}

void backend_leave(void)
{
}
