#include "options.h"

#include "eventname.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- the program's options --- */

static int refuse_option(struct reason *reason, const char *name, unsigned long long value)
{
    profil_reason_set(reason, "struct profil_options: %s cannot be %llu", name, value);
    return -EINVAL;
}

static int check_options(const struct profil_options *options, struct reason *reason)
{
    if (options->engine > PROFIL_ENGINE_LIBC)
        return refuse_option(reason, "engine", options->engine);
    if (options->system > PROFIL_SYSTEM_USER)
        return refuse_option(reason, "system", options->system);
    if (options->on_conflict > PROFIL_ON_CONFLICT_FAIL)
        return refuse_option(reason, "on_conflict", options->on_conflict);
    if (options->subticks > BUCKET_SUBTICKS_MAX)
        return refuse_option(reason, "subticks", options->subticks);
    if (options->period > INT64_MAX)
        return refuse_option(reason, "period", options->period);
    if (options->event && strlen(options->event) >= EVENT_NAME_BYTES) {
        profil_reason_set(reason, "struct profil_options: the event's name is too long");
        return -EINVAL;
    }
    return 0;
}

/* A program built against an older header has a shorter struct: what it lacks is the default. One
 * built against a newer header may have set what this library does not know. */
static int copy_known(struct profil_options *known, const struct profil_options *given,
                      struct reason *reason)
{
    size_t size = given->struct_size;

    if (size < offsetof(struct profil_options, engine) + sizeof(given->engine))
        return refuse_option(reason, "struct_size", size);
    for (size_t at = sizeof(*known); at < size; at++)
        if (((const unsigned char *)given)[at] != 0)
            return refuse_option(reason, "struct_size", size);
    memcpy(known, given, size < sizeof(*known) ? size : sizeof(*known));
    return 0;
}

int profil_settings_from_options(struct settings *settings, const struct profil_options *options,
                                 struct reason *reason)
{
    struct profil_options known = {0};
    int result = options ? copy_known(&known, options, reason) : 0;

    if (result == 0)
        result = check_options(&known, reason);
    if (result < 0)
        return result;
    *settings = (struct settings){.engine = known.engine,
                                  .period = known.period,
                                  .subticks = known.subticks,
                                  .system = known.system,
                                  .on_conflict = known.on_conflict};
    if (known.event)
        strcpy(settings->event, known.event);
    return 0;
}

/* --- the environment --- */

struct word {
    const char *text;
    int value;
};

static const struct word engines[] = {
    {"auto", PROFIL_ENGINE_AUTO}, {"perf", PROFIL_ENGINE_PERF}, {"libc", PROFIL_ENGINE_LIBC}, {0}};
static const struct word systems[] = {{"auto", PROFIL_SYSTEM_AUTO},
                                      {"charge", PROFIL_SYSTEM_CHARGE},
                                      {"user", PROFIL_SYSTEM_USER},
                                      {0}};
static const struct word conflicts[] = {
    {"note", PROFIL_ON_CONFLICT_NOTE}, {"fail", PROFIL_ON_CONFLICT_FAIL}, {0}};

static int refuse_variable(struct reason *reason, const char *name, const char *text)
{
    profil_reason_set(reason, "%s=%.80s: expected ", name, text);
    return -EINVAL;
}

/* Sets *value to what the word stands for; an absent or empty variable changes nothing. */
static int read_word(const char *name, const char *text, const struct word *words, int *value,
                     struct reason *reason)
{
    const struct word *word = words;

    if (!text || !*text)
        return 0;
    while (word->text && strcmp(word->text, text) != 0)
        word++;
    if (word->text) {
        *value = word->value;
        return 0;
    }
    refuse_variable(reason, name, text);
    for (word = words; word->text; word++)
        profil_reason_add(reason, "%s%s", word == words ? "" : " or ", word->text);
    return -EINVAL;
}

static int read_count(const char *name, const char *text, uint64_t maximum, uint64_t *value,
                      struct reason *reason)
{
    uintmax_t number;
    char *end;

    if (!text || !*text)
        return 0;
    errno = 0;
    number = strtoumax(text, &end, 10);
    /* strtoumax() also takes signs and white space. */
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number >= 1 &&
        number <= maximum) {
        *value = number;
        return 0;
    }
    refuse_variable(reason, name, text);
    profil_reason_add(reason, "a number from 1 to %" PRIu64, maximum);
    return -EINVAL;
}

static int read_event(const char *text, struct settings *settings, struct reason *reason)
{
    if (!text || !*text)
        return 0;
    if (strlen(text) >= sizeof(settings->event)) {
        refuse_variable(reason, "PROFIL_EVENT", text);
        profil_reason_add(reason, "the name of an event");
        return -EINVAL;
    }
    strcpy(settings->event, text);
    return 0;
}

static int read_words(struct settings *settings, char *(*get)(const char *), struct reason *reason)
{
    int engine = PROFIL_ENGINE_AUTO, system = PROFIL_SYSTEM_AUTO;
    int on_conflict = PROFIL_ON_CONFLICT_NOTE;
    const struct {
        const char *name;
        const struct word *words;
        int *value;
    } variables[] = {{"PROFIL_ENGINE", engines, &engine},
                     {"PROFIL_SYSTEM", systems, &system},
                     {"PROFIL_ON_CONFLICT", conflicts, &on_conflict}};

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        int result = read_word(variables[i].name, get(variables[i].name), variables[i].words,
                               variables[i].value, reason);

        if (result < 0)
            return result;
    }
    settings->engine = (enum profil_engine)engine;
    settings->system = (enum profil_system)system;
    settings->on_conflict = (enum profil_on_conflict)on_conflict;
    return 0;
}

/* Any word but 0: this is no reason to fail. */
static bool is_on(const char *text)
{
    return text && *text && strcmp(text, "0") != 0;
}

int profil_settings_from_environment(struct settings *settings, char *(*get)(const char *name),
                                     struct reason *reason)
{
    uint64_t subticks = 0;
    int result;

    /* First, as it may be wanted for what is wrong with the others. */
    *settings = (struct settings){.verbose = is_on(get("PROFIL_VERBOSE"))};
    result = read_words(settings, get, reason);
    if (result == 0)
        result = read_event(get("PROFIL_EVENT"), settings, reason);
    if (result == 0)
        result = read_count("PROFIL_SUBTICKS", get("PROFIL_SUBTICKS"), BUCKET_SUBTICKS_MAX,
                            &subticks, reason);
    if (result == 0)
        result =
            read_count("PROFIL_PERIOD", get("PROFIL_PERIOD"), INT64_MAX, &settings->period, reason);
    settings->subticks = (unsigned int)subticks;
    return result;
}

/* --- the plan --- */

/* The automatic choice begins with one sample to a tick. The finer period that it may go over to
 * cuts the tick into as many samples as leave a millisecond to each, and into ten at most. */
enum { FINE_SUBTICKS = 10, FINE_SAMPLE_NANOSECONDS = 1000000 };

/* A record of a sample takes 64 bytes. A ring has room for the samples of half a second, within
 * what one user's process is given for it at the default kernel.perf_event_mlock_kb of 516 KiB: a
 * page and 512 KiB. */
enum { RECORD_BYTES = 64, SMALLEST_RING = 32 << 10, LARGEST_RING = 512 << 10 };
static const uint64_t ring_nanoseconds = 500000000;

static unsigned int fine_subticks(uint64_t period)
{
    uint64_t subticks = period / FINE_SAMPLE_NANOSECONDS;

    if (subticks > FINE_SUBTICKS)
        return FINE_SUBTICKS;
    return subticks < 1 ? 1 : (unsigned int)subticks;
}

static size_t clock_ring(uint64_t sample_period)
{
    uint64_t wanted = ring_nanoseconds / sample_period * RECORD_BYTES;
    size_t bytes = SMALLEST_RING;

    while (bytes < wanted && bytes < LARGEST_RING)
        bytes *= 2;
    return bytes;
}

static void choose_defaults(bool is_clock, uint32_t type, struct plan *plan)
{
    if (is_clock) {
        if (plan->period == 0)
            plan->period = EVENT_TICK_NANOSECONDS;
        if (plan->sampler.subticks == 0)
            plan->sampler.fine_subticks = fine_subticks(plan->period);
    }
    if (plan->sampler.subticks == 0)
        plan->sampler.subticks = 1;
    if (is_clock)
        return;
    /* Software events and tracepoints are counted one by one; hardware events come by the million.
     */
    if (plan->period == 0)
        plan->period = type == PERF_TYPE_SOFTWARE || type == PERF_TYPE_TRACEPOINT ? 1 : 1000000;
}

/* One waking for each tick of CPU time; of other events nobody knows how often they come. */
static uint32_t samples_per_waking(bool is_clock, uint64_t sample_period)
{
    if (!is_clock || sample_period >= EVENT_TICK_NANOSECONDS)
        return 1;
    return (uint32_t)(EVENT_TICK_NANOSECONDS / sample_period);
}

static enum event_kernel kernel_demand(enum profil_system system)
{
    switch (system) {
    case PROFIL_SYSTEM_CHARGE:
        return EVENT_KERNEL_REQUIRED;
    case PROFIL_SYSTEM_USER:
        return EVENT_KERNEL_EXCLUDED;
    default:
        return EVENT_KERNEL_IF_PERMITTED;
    }
}

static void describe(struct event_spec *spec, const struct event_source *source,
                     uint64_t sample_period, enum profil_system system)
{
    bool is_clock = profil_event_source_is_clock(source);

    profil_event_describe(spec, source, sample_period, samples_per_waking(is_clock, sample_period),
                          kernel_demand(system));
}

int profil_settings_plan(const struct settings *settings, struct plan *plan, struct reason *reason)
{
    struct event_source source = profil_event_task_clock;
    uint64_t sample_period;
    bool is_clock;
    int result = 0;

    if (settings->event[0])
        result = profil_eventname_find(settings->event, &source, reason);
    if (result < 0)
        return result;
    *plan = (struct plan){.period = settings->period, .sampler.subticks = settings->subticks};
    is_clock = profil_event_source_is_clock(&source);
    choose_defaults(is_clock, source.type, plan);
    sample_period = plan->period / plan->sampler.subticks;
    if (sample_period < (is_clock ? EVENT_SHORTEST_CLOCK_PERIOD : 1)) {
        profil_reason_set(
            reason,
            "a period of %" PRIu64 " with %u sub-ticks (PROFIL_PERIOD, PROFIL_SUBTICKS) "
            "is too short: samples come 10 us of CPU time, or one event, apart at least",
            plan->period, plan->sampler.subticks);
        return -EINVAL;
    }
    if (plan->sampler.fine_subticks <= plan->sampler.subticks)
        plan->sampler.fine_subticks = 0;
    plan->names_user_only = source.exclude_kernel;
    plan->sampler.ring_bytes = is_clock ? clock_ring(sample_period) : LARGEST_RING;
    describe(&plan->sampler.spec, &source, sample_period, settings->system);
    if (settings->system == PROFIL_SYSTEM_CHARGE && !source.exclude_kernel &&
        !profil_event_samples_kernel(&plan->sampler.spec)) {
        profil_reason_set(reason, "time in the kernel cannot be charged: which register holds the "
                                  "program counter of user mode is not known for this machine");
        return -EACCES;
    }
    if (plan->sampler.fine_subticks) {
        describe(&plan->sampler.fine_spec, &source, plan->period / plan->sampler.fine_subticks,
                 settings->system);
        profil_event_watch_threads(&plan->sampler.spec);
    }
    return 0;
}
