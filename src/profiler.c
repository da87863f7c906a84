#include "profiler.h"

#include "gate.h"
#include "privilege.h"
#include "statistics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct profil_profile {
    struct profil_profile *next;
    struct settings settings;
    struct plan plan;
    bool settled; /* settings and plan are known */

    struct range *added; /* by profil_add_range() */
    size_t added_count;
    bool has_overflow;
    struct range overflow;

    struct engine engine;
    struct range_set *ranges; /* while running */
    struct reason reason;
    struct reason lasting; /* what there was to say of the start */
};

/* Static, so that it can be used before any constructor has run. */
struct profil_profile profil_profiler_default;

/* Of the last profil_open(), as long as it is the last failure without a profile. */
static struct reason open_reason;

/* One gate for all: starts and stops are rare, and each waits for a thread of its own. */
static struct profil_profile *all = &profil_profiler_default;

/* What malloc() gave stays until the child's first call on the profile, if it comes to that. */
void profil_gate_forget(bool bare)
{
    for (struct profil_profile *profile = all; profile; profile = profile->next) {
        profil_engine_forget(&profile->engine, bare);
        if (profile->ranges)
            profil_range_set_retire(profile->ranges);
    }
}

/* --- settings --- */

/* The environment is read once, when the first profile wants it. */
static int read_environment(struct settings *settings, struct reason *reason)
{
    static struct settings found;
    static struct reason trouble;
    static int result = 1;

    if (result > 0)
        result = profil_settings_from_environment(&found, secure_getenv, &trouble);
    *settings = found;
    if (result < 0)
        *reason = trouble;
    return result;
}

static int settle(struct profil_profile *profile, const struct profil_options *options)
{
    int result;

    if (options)
        result = profil_settings_from_options(&profile->settings, options, &profile->reason);
    else
        result = read_environment(&profile->settings, &profile->reason);
    if (result == 0)
        result = profil_settings_plan(&profile->settings, &profile->plan, &profile->reason);
    profile->settled = result == 0;
    return result;
}

/* --- on, change, off; inside the gate --- */

static int turn_on(struct profil_profile *profile, struct range_set *ranges)
{
    int result = profil_gate_guard_forks();

    profil_reason_clear(&profile->reason);
    if (result == 0 && !profile->settled)
        result = settle(profile, NULL);
    if (result == 0)
        result = profil_engine_start(&profile->engine, &profile->settings, &profile->plan, ranges,
                                     &profile->reason);
    profile->lasting = profile->reason;
    if (result < 0 && profile->settings.verbose)
        profil_statistics_print_failure(&profile->reason);
    return result;
}

/* The kernel's refusal to have itself sampled is no failure, and told only when asked for. */
static bool lacks_kernel(const struct profil_profile *profile)
{
    return profile->engine.used == PROFIL_ENGINE_PERF && profile->engine.counts.threads > 0 &&
           !profile->engine.counts.samples_kernel &&
           profile->settings.system == PROFIL_SYSTEM_AUTO && !profile->plan.names_user_only;
}

static void explain_kernel(struct profil_profile *profile)
{
    if (!profile->reason.text[0] && lacks_kernel(profile))
        profil_privilege_explain_kernel(&profile->engine.facts, &profile->reason);
}

/* Samples that others have taken of the threads of a sampler are known by their numbers, which
 * until then must not be forgotten. */
static void read_all(void)
{
    for (struct profil_profile *profile = all; profile; profile = profile->next)
        profil_engine_read(&profile->engine);
}

static void turn_off(struct profil_profile *profile)
{
    bool was_running = profile->engine.running;
    struct profil_stats stats;

    profil_engine_stop(&profile->engine);
    if (profile->engine.ended)
        read_all();
    profil_engine_discard(&profile->engine);
    profil_range_set_free(profile->ranges);
    profile->ranges = NULL;
    if (!was_running || !profile->settings.verbose)
        return;
    profil_statistics_fill(&profile->engine, &profile->settings, &profile->plan, &stats);
    explain_kernel(profile);
    profil_statistics_print(&stats, profil_event_is_clock(&profile->plan.sampler.spec),
                            &profile->reason);
}

static int set(struct profil_profile *profile, struct range_set *ranges)
{
    int result = -ESRCH;

    if (!ranges)
        return -ENOMEM;
    if (profile->engine.running)
        result = profil_engine_change(&profile->engine, ranges, &profile->reason);
    if (result == 0)
        profile->reason = profile->lasting;
    if (result == -ESRCH) {
        turn_off(profile);
        result = turn_on(profile, ranges);
    }
    if (result == 0) {
        struct range_set *old = profile->ranges;

        profile->ranges = ranges;
        ranges = old;
    }
    profil_range_set_free(ranges);
    return result;
}

/* --- the profile behind profil() and sprofil() --- */

int profil_profiler_set(struct profil_profile *profile, struct range_set *ranges)
{
    int result;

    profil_gate_enter();
    profil_reason_clear(&open_reason);
    result = set(profile, ranges);
    profil_gate_leave();
    return result;
}

void profil_profiler_unset(struct profil_profile *profile)
{
    profil_gate_enter();
    turn_off(profile);
    profil_gate_leave();
}

/* --- profiles with a handle --- */

int profil_profiler_open(struct profil_profile **profile, const struct profil_options *options)
{
    struct profil_profile *opened = calloc(1, sizeof(*opened));
    int result;

    profil_gate_enter();
    profil_reason_clear(&open_reason);
    result = opened ? settle(opened, options) : -ENOMEM;
    *profile = NULL;
    if (result == 0) {
        opened->next = all;
        all = opened;
        *profile = opened;
    } else if (opened) {
        if (opened->settings.verbose)
            profil_statistics_print_failure(&opened->reason);
        open_reason = opened->reason;
        free(opened);
    }
    profil_gate_leave();
    return result;
}

static struct range_set *new_set(const struct profil_profile *profile)
{
    return profil_range_set_new(profile->added, profile->added_count,
                                profile->has_overflow ? &profile->overflow : NULL);
}

/* Makes the range the last one of those added. */
static int append(struct profil_profile *profile, const struct range *range)
{
    struct range *grown =
        reallocarray(profile->added, profile->added_count + 1, sizeof(*profile->added));

    if (!grown)
        return -ENOMEM;
    profile->added = grown;
    profile->added[profile->added_count++] = *range;
    return 0;
}

static int add_bucketed(struct profil_profile *profile, const struct range *range)
{
    int result = append(profile, range);

    if (result < 0 || !profile->engine.running)
        return result;
    result = set(profile, new_set(profile));
    if (result < 0)
        profile->added_count--;
    return result;
}

static int add_overflow(struct profil_profile *profile, const struct range *range)
{
    bool had_overflow = profile->has_overflow;
    struct range before = profile->overflow;
    int result = 0;

    profile->has_overflow = range->buckets > 0;
    profile->overflow = *range;
    if (profile->engine.running)
        result = set(profile, new_set(profile));
    if (result < 0) {
        profile->has_overflow = had_overflow;
        profile->overflow = before;
    }
    return result;
}

int profil_profiler_add_range(struct profil_profile *profile, const struct range *range,
                              bool is_overflow)
{
    int result;

    profil_gate_enter();
    result = is_overflow ? add_overflow(profile, range) : add_bucketed(profile, range);
    profil_gate_leave();
    return result;
}

int profil_profiler_refuse(struct profil_profile *profile, int error, const char *why)
{
    profil_gate_enter();
    profil_reason_clear(&open_reason);
    profil_reason_set(&profile->reason, "%s", why);
    profil_gate_leave();
    return error;
}

int profil_profiler_start(struct profil_profile *profile)
{
    int result;

    profil_gate_enter();
    result = profile->engine.running ? 0 : set(profile, new_set(profile));
    profil_gate_leave();
    return result;
}

void profil_profiler_close(struct profil_profile *profile)
{
    struct profil_profile **link = &all;

    profil_gate_enter();
    turn_off(profile);
    while (*link != profile)
        link = &(*link)->next;
    *link = profile->next;
    profil_gate_leave();
    free(profile->added);
    free(profile);
}

/* --- questions --- */

void profil_profiler_stats(struct profil_profile *profile, struct profil_stats *stats)
{
    profil_gate_enter();
    profil_engine_read(&profile->engine);
    profil_statistics_fill(&profile->engine, &profile->settings, &profile->plan, stats);
    profil_gate_leave();
}

int profil_profiler_reason(struct profil_profile *profile, char *buffer, size_t size)
{
    const struct reason *reason = &profile->reason;
    int length;

    profil_gate_enter();
    profil_engine_read(&profile->engine);
    explain_kernel(profile);
    if (profile == &profil_profiler_default && open_reason.text[0])
        reason = &open_reason;
    length = snprintf(buffer, size, "%s", reason->text);
    profil_gate_leave();
    return length;
}

/* dlclose() takes away the code that the samplers run; exit() may come with a profile on, also from
 * a thread that was interrupted inside of it, and must not wait for ever. */
__attribute__((destructor)) static void turn_off_at_unload(void)
{
    if (!profil_gate_try())
        return;
    for (struct profil_profile *profile = all; profile; profile = profile->next)
        if (profile->engine.process == getpid())
            turn_off(profile);
    profil_gate_leave();
}
