#include "profile.h"

#include "process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <time.h>

static const char *last_reason(profil_profile *profile)
{
    static char reason[PROFILE_REASON_BYTES];

    profil_reason(profile, reason, sizeof(reason));
    return reason;
}

profil_profile *profile_open(struct profil_options options)
{
    profil_profile *profile;

    options.struct_size = sizeof(options);
    options.engine = PROFIL_ENGINE_PERF;
    cr_assert_eq(profil_open(&profile, &options), 0, "open: %s; %s", strerror(errno),
                 last_reason(NULL));
    cr_assert_not_null(profile);
    return profile;
}

profil_profile *profile_open_fast(void)
{
    return profile_open((struct profil_options){.period = 1000000, .subticks = 1});
}

void profile_add_loop(profil_profile *profile, const struct support_hot *hot, void *counters,
                      size_t bytes, unsigned int counter_bits)
{
    size_t width = counter_bits / 8;
    size_t text = ((size_t)(hot->end - hot->start) + width - 1) / width * width;

    cr_assert_geq(bytes, text, "the loop's text needs more counters");
    cr_assert_eq(profil_add_range(profile, counters, text, counter_bits, (size_t)hot->start, 65536),
                 0, "add: %s; %s", strerror(errno), last_reason(profile));
}

/* Bucket 0 ends where the distance in words, times the scale, reaches 65536. */
void profile_add_loop_as_one(profil_profile *profile, const struct support_hot *hot,
                             uint64_t *counter)
{
    size_t words = ((size_t)(hot->end - hot->start) + 7) / 8;

    cr_assert_eq(profil_add_range(profile, counter, sizeof(*counter), 64, (size_t)hot->start,
                                  (unsigned int)(65536 / words)),
                 0, "add: %s; %s", strerror(errno), last_reason(profile));
}

void profile_add_rest(profil_profile *profile, uint64_t *counter)
{
    cr_assert_eq(profil_add_range(profile, counter, sizeof(*counter), 64, 0, 2), 0, "add: %s; %s",
                 strerror(errno), last_reason(profile));
}

void profile_start(profil_profile *profile)
{
    cr_assert_eq(profil_start(profile), 0, "start: %s; %s", strerror(errno), last_reason(profile));
}

void profile_stop(profil_profile *profile)
{
    cr_assert_eq(profil_stop(profile), 0);
}

void profile_close(profil_profile *profile)
{
    cr_assert_eq(profil_close(profile), 0);
}

struct profil_stats profile_stats(profil_profile *profile)
{
    struct profil_stats stats = {.struct_size = sizeof(stats)};

    cr_assert_eq(profil_stats(profile, &stats), 0);
    return stats;
}

const char *profile_reason(profil_profile *profile)
{
    return last_reason(profile);
}

/* The clock of any thread of this process, by the kernel's numbering of clocks: that of
 * pthread_getcpuclockid(), which wants a pthread_t. */
static clockid_t clock_of(pid_t tid)
{
    enum { PER_THREAD = 4, SCHEDULED = 2 };

    return (clockid_t)(~(unsigned int)tid << 3 | PER_THREAD | SCHEDULED);
}

static void take_away_sampler(void *seconds, pid_t tid)
{
    struct timespec used;
    char name[64];

    if (process_thread_field(tid, "Name", name, sizeof(name)) &&
        strcmp(name, "profil-sampler") == 0 && clock_gettime(clock_of(tid), &used) == 0)
        *(double *)seconds -= (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

double profile_program_seconds(void)
{
    double seconds = support_process_seconds();

    process_each_thread(take_away_sampler, &seconds);
    return seconds;
}
