/* Options and environment: what is taken, what is refused and in which words, and what comes of it.
 */
#include "options.h"

#include "config.h"
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Not cleared by the functions: a success must not depend on it, nor may it say anything. */
static struct reason reason;

/* --- the environment --- */

struct variable {
    const char *name, *value;
};

static const struct variable *environment;
static size_t environment_size;

static char *get(const char *name)
{
    for (size_t i = 0; i < environment_size; i++)
        if (strcmp(environment[i].name, name) == 0)
            return (char *)environment[i].value;
    return NULL;
}

static int read_environment(struct settings *settings, const struct variable *variables,
                            size_t count)
{
    environment = variables;
    environment_size = count;
    memset(settings, 0x5a, sizeof(*settings));
    return profil_settings_from_environment(settings, get, &reason);
}

static void read_one(struct settings *settings, const char *name, const char *value)
{
    cr_assert_eq(read_environment(settings, &(struct variable){name, value}, 1), 0, "%s=%s: %s",
                 name, value, reason.text);
}

static void assert_defaults(const struct settings *settings)
{
    cr_assert_eq(settings->engine, PROFIL_ENGINE_AUTO);
    cr_assert_str_eq(settings->event, "");
    cr_assert_eq(settings->period, 0);
    cr_assert_eq(settings->subticks, 0);
    cr_assert_eq(settings->system, PROFIL_SYSTEM_AUTO);
    cr_assert_eq(settings->on_conflict, PROFIL_ON_CONFLICT_NOTE);
    cr_assert_not(settings->verbose);
}

static const char *const names[] = {"PROFIL_ENGINE",   "PROFIL_EVENT",  "PROFIL_PERIOD",
                                    "PROFIL_SUBTICKS", "PROFIL_SYSTEM", "PROFIL_ON_CONFLICT",
                                    "PROFIL_VERBOSE"};

Test(options, without_variables_everything_is_the_default)
{
    struct settings settings;

    cr_assert_eq(read_environment(&settings, NULL, 0), 0);
    assert_defaults(&settings);
}

Test(options, an_empty_variable_is_as_good_as_none)
{
    for (size_t i = 0; i < LENGTH_OF(names); i++) {
        struct settings settings;

        read_one(&settings, names[i], "");
        assert_defaults(&settings);
    }
}

Test(options, each_word_of_a_variable_is_its_setting)
{
    struct settings settings;

    read_one(&settings, "PROFIL_ENGINE", "auto");
    cr_expect_eq(settings.engine, PROFIL_ENGINE_AUTO);
    read_one(&settings, "PROFIL_ENGINE", "perf");
    cr_expect_eq(settings.engine, PROFIL_ENGINE_PERF);
    read_one(&settings, "PROFIL_ENGINE", "libc");
    cr_expect_eq(settings.engine, PROFIL_ENGINE_LIBC);
    read_one(&settings, "PROFIL_SYSTEM", "auto");
    cr_expect_eq(settings.system, PROFIL_SYSTEM_AUTO);
    read_one(&settings, "PROFIL_SYSTEM", "charge");
    cr_expect_eq(settings.system, PROFIL_SYSTEM_CHARGE);
    read_one(&settings, "PROFIL_SYSTEM", "user");
    cr_expect_eq(settings.system, PROFIL_SYSTEM_USER);
    read_one(&settings, "PROFIL_ON_CONFLICT", "note");
    cr_expect_eq(settings.on_conflict, PROFIL_ON_CONFLICT_NOTE);
    read_one(&settings, "PROFIL_ON_CONFLICT", "fail");
    cr_expect_eq(settings.on_conflict, PROFIL_ON_CONFLICT_FAIL);
    read_one(&settings, "PROFIL_VERBOSE", "0");
    cr_expect_not(settings.verbose);
    read_one(&settings, "PROFIL_VERBOSE", "");
    cr_expect_not(settings.verbose);
    read_one(&settings, "PROFIL_VERBOSE", "1");
    cr_expect(settings.verbose);
    read_one(&settings, "PROFIL_VERBOSE", "yes");
    cr_expect(settings.verbose, "any word but 0");
}

Test(options, what_is_wrong_with_the_others_does_not_silence_verbose)
{
    const struct variable variables[] = {{"PROFIL_ENGINE", "none"}, {"PROFIL_VERBOSE", "1"}};
    struct settings settings;

    cr_assert_eq(read_environment(&settings, variables, LENGTH_OF(variables)), -EINVAL);
    cr_expect(settings.verbose);
}

Test(options, numbers_are_taken_up_to_their_limits)
{
    struct settings settings;

    read_one(&settings, "PROFIL_SUBTICKS", "1");
    cr_expect_eq(settings.subticks, 1);
    read_one(&settings, "PROFIL_SUBTICKS", "1000");
    cr_expect_eq(settings.subticks, 1000);
    read_one(&settings, "PROFIL_PERIOD", "1");
    cr_expect_eq(settings.period, 1);
    read_one(&settings, "PROFIL_PERIOD", "010");
    cr_expect_eq(settings.period, 10, "decimal, whatever it begins with");
    read_one(&settings, "PROFIL_PERIOD", "9223372036854775807");
    cr_expect_eq(settings.period, INT64_MAX);
}

Test(options, all_variables_together_are_all_taken)
{
    const struct variable variables[] = {
        {"PROFIL_ENGINE", "perf"}, {"PROFIL_EVENT", "page-faults"}, {"PROFIL_PERIOD", "20"},
        {"PROFIL_SUBTICKS", "5"},  {"PROFIL_SYSTEM", "user"},       {"PROFIL_ON_CONFLICT", "fail"},
        {"PROFIL_VERBOSE", "1"},
    };
    struct settings settings;

    cr_assert_eq(read_environment(&settings, variables, LENGTH_OF(variables)), 0);
    cr_expect_eq(settings.engine, PROFIL_ENGINE_PERF);
    cr_expect_str_eq(settings.event, "page-faults");
    cr_expect_eq(settings.period, 20);
    cr_expect_eq(settings.subticks, 5);
    cr_expect_eq(settings.system, PROFIL_SYSTEM_USER);
    cr_expect_eq(settings.on_conflict, PROFIL_ON_CONFLICT_FAIL);
    cr_expect(settings.verbose);
}

/* The reason names the variable, what it is set to, and what it may be set to. */
static void expect_refusal(const char *name, const char *value, const char *expected)
{
    struct settings settings;
    char beginning[256];

    snprintf(beginning, sizeof(beginning), "%s=%s: ", name, value);
    profil_reason_clear(&reason);
    cr_expect_eq(read_environment(&settings, &(struct variable){name, value}, 1), -EINVAL, "%s=%s",
                 name, value);
    cr_expect_eq(strncmp(reason.text, beginning, strlen(beginning)), 0, "%s", reason.text);
    cr_expect_not_null(strstr(reason.text, expected), "%s: not \"%s\"", reason.text, expected);
}

Test(options, a_word_that_a_variable_does_not_know_is_refused_with_those_that_it_knows)
{
    static const char *const words[] = {"x", "PERF", "perf ", " perf", "per", "perff", "-1", "2"};

    for (size_t i = 0; i < LENGTH_OF(words); i++) {
        expect_refusal("PROFIL_ENGINE", words[i], "auto or perf or libc");
        expect_refusal("PROFIL_SYSTEM", words[i], "auto or charge or user");
        expect_refusal("PROFIL_ON_CONFLICT", words[i], "note or fail");
    }
}

Test(options, what_is_no_number_of_the_right_size_is_refused_with_the_limits)
{
    static const char *const words[] = {
        "0",   "-1",   "+1",  " 1",   "1 ",   "1.0",
        "1e3", "0x10", "ten", "10ms", "1\n2", "99999999999999999999999999",
    };

    for (size_t i = 0; i < LENGTH_OF(words); i++) {
        expect_refusal("PROFIL_SUBTICKS", words[i], "a number from 1 to 1000");
        expect_refusal("PROFIL_PERIOD", words[i], "a number from 1 to 9223372036854775807");
    }
    expect_refusal("PROFIL_SUBTICKS", "1001", "a number from 1 to 1000");
    /* 2^32 + 1 must not pass for 1. */
    expect_refusal("PROFIL_SUBTICKS", "4294967297", "a number from 1 to 1000");
    expect_refusal("PROFIL_PERIOD", "9223372036854775808", "9223372036854775807");
    expect_refusal("PROFIL_PERIOD", "18446744073709551617", "9223372036854775807");
}

Test(options, the_name_of_an_event_may_have_63_bytes_and_no_more)
{
    char name[EVENT_NAME_BYTES + 1];
    struct settings settings;

    memset(name, 'e', sizeof(name));
    name[EVENT_NAME_BYTES - 1] = '\0';
    read_one(&settings, "PROFIL_EVENT", name);
    cr_expect_str_eq(settings.event, name);
    name[EVENT_NAME_BYTES - 1] = 'e';
    name[EVENT_NAME_BYTES] = '\0';
    expect_refusal("PROFIL_EVENT", name, "name of an event");
}

/* However long it is, the end of the sentence has its place. */
Test(options, a_very_long_value_does_not_push_out_what_was_expected)
{
    static char value[100000];
    struct settings settings;

    memset(value, 'v', sizeof(value) - 1);
    for (size_t i = 0; i < LENGTH_OF(names); i++) {
        if (strcmp(names[i], "PROFIL_VERBOSE") == 0)
            continue; /* takes any word */
        cr_expect_eq(read_environment(&settings, &(struct variable){names[i], value}, 1), -EINVAL);
        cr_expect_eq(strncmp(reason.text, names[i], strlen(names[i])), 0, "%s", reason.text);
        cr_expect_not_null(strstr(reason.text, ": expected "), "%s", reason.text);
    }
}

/* --- the program's options --- */

static int read_options(struct settings *settings, const struct profil_options *options)
{
    memset(settings, 0x5a, sizeof(*settings));
    return profil_settings_from_options(settings, options, &reason);
}

Test(options, no_options_and_zeroed_options_are_the_defaults)
{
    struct settings settings;

    cr_assert_eq(read_options(&settings, NULL), 0);
    assert_defaults(&settings);
    cr_assert_eq(read_options(&settings, &(struct profil_options){.struct_size = sizeof(
                                                                      struct profil_options)}),
                 0);
    assert_defaults(&settings);
}

Test(options, every_option_is_taken)
{
    const struct profil_options options = {.struct_size = sizeof(options),
                                           .engine = PROFIL_ENGINE_LIBC,
                                           .system = PROFIL_SYSTEM_CHARGE,
                                           .on_conflict = PROFIL_ON_CONFLICT_FAIL,
                                           .subticks = 1000,
                                           .period = INT64_MAX,
                                           .event = "context-switches"};
    struct settings settings;

    cr_assert_eq(read_options(&settings, &options), 0);
    cr_expect_eq(settings.engine, PROFIL_ENGINE_LIBC);
    cr_expect_eq(settings.system, PROFIL_SYSTEM_CHARGE);
    cr_expect_eq(settings.on_conflict, PROFIL_ON_CONFLICT_FAIL);
    cr_expect_eq(settings.subticks, 1000);
    cr_expect_eq(settings.period, INT64_MAX);
    cr_expect_str_eq(settings.event, "context-switches");
}

static void expect_refused_option(struct profil_options options, const char *name)
{
    struct settings settings;

    options.struct_size = sizeof(options);
    profil_reason_clear(&reason);
    cr_expect_eq(read_options(&settings, &options), -EINVAL, "%s", name);
    cr_expect_not_null(strstr(reason.text, name), "%s: not \"%s\"", reason.text, name);
}

Test(options, a_value_that_an_option_does_not_have_is_refused_by_name)
{
    char name[EVENT_NAME_BYTES + 1];

    memset(name, 'e', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    expect_refused_option((struct profil_options){.engine = (enum profil_engine)3}, "engine");
    expect_refused_option((struct profil_options){.engine = (enum profil_engine) - 1}, "engine");
    expect_refused_option((struct profil_options){.system = (enum profil_system)3}, "system");
    expect_refused_option((struct profil_options){.on_conflict = (enum profil_on_conflict)2},
                          "on_conflict");
    expect_refused_option((struct profil_options){.subticks = 1001}, "subticks");
    expect_refused_option((struct profil_options){.period = (uint64_t)INT64_MAX + 1}, "period");
    expect_refused_option((struct profil_options){.event = name}, "event");
}

Test(options, the_name_of_an_event_in_the_options_may_have_63_bytes)
{
    struct profil_options options = {.struct_size = sizeof(options)};
    struct settings settings;
    char name[EVENT_NAME_BYTES];

    memset(name, 'e', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    options.event = name;
    cr_assert_eq(read_options(&settings, &options), 0);
    cr_assert_str_eq(settings.event, name);
}

/* An older program's struct ends earlier; what lies behind it is none of the library's business. */
Test(options, what_a_shorter_struct_lacks_is_the_default)
{
    struct profil_options options = {.engine = PROFIL_ENGINE_PERF,
                                     .system = PROFIL_SYSTEM_USER,
                                     .on_conflict = PROFIL_ON_CONFLICT_FAIL,
                                     .subticks = 7,
                                     .period = 20000000,
                                     .event = (const char *)1};
    struct settings settings;

    options.struct_size = offsetof(struct profil_options, subticks);
    cr_assert_eq(read_options(&settings, &options), 0);
    cr_expect_eq(settings.on_conflict, PROFIL_ON_CONFLICT_FAIL);
    cr_expect_eq(settings.subticks, 0);
    cr_expect_eq(settings.period, 0);
    cr_expect_str_eq(settings.event, "");

    options.struct_size = offsetof(struct profil_options, event);
    cr_assert_eq(read_options(&settings, &options), 0);
    cr_expect_eq(settings.subticks, 7);
    cr_expect_eq(settings.period, 20000000);
    cr_expect_str_eq(settings.event, "");
}

Test(options, a_struct_too_short_for_its_first_option_is_refused)
{
    struct profil_options options = {.engine = PROFIL_ENGINE_PERF};
    struct settings settings;

    for (size_t size = 0; size < offsetof(struct profil_options, system); size++) {
        options.struct_size = size;
        profil_reason_clear(&reason);
        cr_expect_eq(read_options(&settings, &options), -EINVAL, "struct_size %zu", size);
        cr_expect_not_null(strstr(reason.text, "struct_size"), "%s", reason.text);
    }
    options.struct_size = offsetof(struct profil_options, system);
    cr_assert_eq(read_options(&settings, &options), 0);
    cr_assert_eq(settings.engine, PROFIL_ENGINE_PERF);
}

/* A newer program's struct goes on: what this library does not know may be there, but not be set.
 */
Test(options, a_longer_struct_is_taken_when_the_rest_is_zero)
{
    struct {
        struct profil_options known;
        unsigned char rest[40];
    } newer = {.known = {.struct_size = sizeof(newer), .subticks = 3}};
    struct settings settings;

    cr_assert_eq(read_options(&settings, &newer.known), 0);
    cr_assert_eq(settings.subticks, 3);
    for (size_t i = 0; i < sizeof(newer.rest); i++) {
        newer.rest[i] = 1;
        profil_reason_clear(&reason);
        cr_expect_eq(read_options(&settings, &newer.known), -EINVAL, "byte %zu", i);
        cr_expect_not_null(strstr(reason.text, "struct_size"), "%s", reason.text);
        newer.rest[i] = 0;
    }
    /* Behind the struct's end anything may be. */
    newer.known.struct_size = sizeof(newer.known);
    memset(newer.rest, 0xff, sizeof(newer.rest));
    cr_assert_eq(read_options(&settings, &newer.known), 0);
}

/* --- the plan --- */

static struct plan plan_of(struct settings settings)
{
    struct plan plan;

    memset(&plan, 0x5a, sizeof(plan));
    cr_assert_eq(profil_settings_plan(&settings, &plan, &reason), 0, "%s", reason.text);
    return plan;
}

static uint64_t sample_period(const struct plan *plan)
{
    return plan->sampler.spec.attr.sample_period;
}

static uint64_t fine_period(const struct plan *plan)
{
    return plan->sampler.fine_spec.attr.sample_period;
}

Test(options, the_default_is_a_tick_of_10_ms_of_task_clock_in_one_sample_and_later_in_10)
{
    struct plan plan = plan_of((struct settings){0});

    cr_expect_eq(plan.sampler.spec.attr.type, PERF_TYPE_SOFTWARE);
    cr_expect_eq(plan.sampler.spec.attr.config, PERF_COUNT_SW_TASK_CLOCK);
    cr_expect_eq(plan.period, 10000000);
    cr_expect_eq(plan.sampler.subticks, 1);
    cr_expect_eq(sample_period(&plan), 10000000);
    cr_expect_eq(plan.sampler.fine_subticks, 10);
    cr_expect_eq(fine_period(&plan), 1000000);
    cr_expect_eq(plan.sampler.fine_spec.attr.config, PERF_COUNT_SW_TASK_CLOCK);
    cr_expect_not(plan.names_user_only);
}

/* 0 stands for no finer period to go over to. */
Test(options, a_finer_period_cuts_the_tick_into_milliseconds_but_into_ten_at_most)
{
    static const struct {
        uint64_t period;
        unsigned int subticks;
    } cases[] = {{100000, 0},  {1000000, 0},   {1999999, 0},    {2000000, 2},
                 {9999999, 9}, {10000000, 10}, {100000000, 10}, {INT64_MAX, 10}};

    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct plan plan = plan_of((struct settings){.period = cases[i].period});

        cr_expect_eq(plan.period, cases[i].period);
        cr_expect_eq(plan.sampler.subticks, 1);
        cr_expect_eq(sample_period(&plan), cases[i].period);
        cr_expect_eq(plan.sampler.fine_subticks, cases[i].subticks, "%ju ns: %u",
                     (uintmax_t)cases[i].period, plan.sampler.fine_subticks);
        if (cases[i].subticks)
            cr_expect_eq(fine_period(&plan), cases[i].period / cases[i].subticks);
    }
}

Test(options, a_number_of_subticks_that_was_asked_for_is_kept)
{
    static const unsigned int counts[] = {1, 3, 100, 1000};

    for (size_t i = 0; i < LENGTH_OF(counts); i++) {
        struct plan plan = plan_of((struct settings){.subticks = counts[i]});

        cr_expect_eq(plan.period, 10000000);
        cr_expect_eq(plan.sampler.subticks, counts[i]);
        cr_expect_eq(plan.sampler.fine_subticks, 0);
        cr_expect_eq(sample_period(&plan), 10000000 / counts[i]);
    }
}

static void expect_too_short(struct settings settings)
{
    struct plan plan;

    profil_reason_clear(&reason);
    cr_expect_eq(profil_settings_plan(&settings, &plan, &reason), -EINVAL, "period %ju, %u",
                 (uintmax_t)settings.period, settings.subticks);
    cr_expect_not_null(strstr(reason.text, "PROFIL_PERIOD"), "%s", reason.text);
    cr_expect_not_null(strstr(reason.text, "PROFIL_SUBTICKS"), "%s", reason.text);
    cr_expect_not_null(strstr(reason.text, "too short"), "%s", reason.text);
}

Test(options, samples_less_than_10_us_apart_are_refused)
{
    struct plan plan = plan_of((struct settings){.period = 10000});

    cr_expect_eq(sample_period(&plan), 10000);
    plan = plan_of((struct settings){.period = 100000, .subticks = 10});
    cr_expect_eq(sample_period(&plan), 10000);
    expect_too_short((struct settings){.period = 9999});
    expect_too_short((struct settings){.period = 1});
    expect_too_short((struct settings){.period = 99999, .subticks = 10});
    expect_too_short((struct settings){.period = 1000000, .subticks = 101});
}

/* A record is 40 bytes; the ring must hold those of 0.5 s, for a reader that comes late, as far as
 * 512 KiB go: an unprivileged process is given no more by default. */
Test(options, a_ring_has_room_for_half_a_second_or_is_as_large_as_is_given)
{
    static const uint64_t periods[] = {10000,   50000,    100000,    500000,
                                       1000000, 10000000, 100000000, 10000000000};

    for (size_t i = 0; i < LENGTH_OF(periods); i++) {
        struct plan plan = plan_of((struct settings){.period = periods[i], .subticks = 1});
        size_t bytes = plan.sampler.ring_bytes;
        uint64_t needed = 500000000 / periods[i] * 40;

        cr_expect(bytes >= needed || bytes == 512 << 10, "%ju ns: %zu bytes", (uintmax_t)periods[i],
                  bytes);
        cr_expect_leq(bytes, 512 << 10);
        cr_expect_geq(bytes, 4096);
        cr_expect_eq(bytes & (bytes - 1), 0, "%zu is no power of two", bytes);
    }
}

Test(options, a_faster_clock_has_no_smaller_ring)
{
    size_t before = 0;

    for (uint64_t period = UINT64_C(10000000000); period >= 10000; period /= 2) {
        struct plan plan = plan_of((struct settings){.period = period, .subticks = 1});

        cr_expect_geq(plan.sampler.ring_bytes, before, "%ju ns", (uintmax_t)period);
        before = plan.sampler.ring_bytes;
    }
    cr_expect_eq(before, 512 << 10);
}

Test(options, the_sampler_is_woken_once_for_a_tick_of_the_clock)
{
    struct plan plan = plan_of((struct settings){0});

    cr_expect(plan.sampler.spec.attr.task);
    cr_expect_not(plan.sampler.spec.attr.watermark);
    cr_expect_eq(plan.sampler.spec.attr.wakeup_events, 1);
    cr_expect_not(plan.sampler.fine_spec.attr.task);
    cr_expect_not(plan.sampler.fine_spec.attr.watermark);
    cr_expect_eq(plan.sampler.fine_spec.attr.wakeup_events, 10);

    plan = plan_of((struct settings){.subticks = 1});
    cr_expect_not(plan.sampler.spec.attr.task);
    cr_expect_not(plan.sampler.spec.attr.watermark);
    cr_expect_eq(plan.sampler.spec.attr.wakeup_events, 1);
    plan = plan_of((struct settings){.subticks = 10});
    cr_expect_eq(plan.sampler.spec.attr.wakeup_events, 10);
    plan = plan_of((struct settings){.period = 100000});
    cr_expect_eq(plan.sampler.spec.attr.wakeup_events, 100);
    plan = plan_of((struct settings){.period = 100000000, .subticks = 1});
    cr_expect_eq(plan.sampler.spec.attr.wakeup_events, 1);
}

Test(options, the_kernel_is_sampled_unless_the_user_alone_is_wanted)
{
    struct plan plan = plan_of((struct settings){.system = PROFIL_SYSTEM_AUTO});

    cr_expect_not(plan.sampler.spec.attr.exclude_kernel);
    cr_expect_not(plan.sampler.spec.kernel_required);
    plan = plan_of((struct settings){.system = PROFIL_SYSTEM_CHARGE});
    cr_expect_not(plan.sampler.spec.attr.exclude_kernel);
    cr_expect(plan.sampler.spec.kernel_required);
    plan = plan_of((struct settings){.system = PROFIL_SYSTEM_USER});
    cr_expect(plan.sampler.spec.attr.exclude_kernel);
    cr_expect_not(plan.sampler.spec.kernel_required);
}

Test(options, task_clock_by_its_name_is_the_default_event)
{
    struct plan plan = plan_of((struct settings){.event = "task-clock"});

    cr_expect_eq(plan.sampler.spec.attr.config, PERF_COUNT_SW_TASK_CLOCK);
    cr_expect_eq(plan.period, 10000000);
    cr_expect_eq(plan.sampler.subticks, 1);
    cr_expect_eq(plan.sampler.fine_subticks, 10);
}

#ifdef HAVE_LIBPFM4
Test(options, a_software_event_is_counted_one_by_one)
{
    struct plan plan = plan_of((struct settings){.event = "page-faults"});

    cr_expect_eq(plan.sampler.spec.attr.type, PERF_TYPE_SOFTWARE);
    cr_expect_eq(plan.sampler.spec.attr.config, PERF_COUNT_SW_PAGE_FAULTS);
    cr_expect_eq(plan.period, 1);
    cr_expect_eq(plan.sampler.subticks, 1);
    cr_expect_eq(plan.sampler.fine_subticks, 0);
    cr_expect_eq(sample_period(&plan), 1);
    cr_expect_eq(plan.sampler.spec.attr.wakeup_events, 1);
    /* Nobody knows how fast they come. */
    cr_expect_eq(plan.sampler.ring_bytes, 512 << 10);
}

Test(options, a_hardware_event_is_counted_by_the_million)
{
    struct plan plan = plan_of((struct settings){.event = "cycles:u"});

    cr_expect_eq(plan.sampler.spec.attr.type, PERF_TYPE_HARDWARE);
    cr_expect_eq(plan.sampler.spec.attr.config, PERF_COUNT_HW_CPU_CYCLES);
    cr_expect_eq(plan.period, 1000000);
    cr_expect_eq(plan.sampler.subticks, 1);
    cr_expect(plan.names_user_only);
    cr_expect(plan.sampler.spec.attr.exclude_kernel);
}

Test(options, an_event_may_have_a_period_and_subticks_of_its_own)
{
    struct plan plan =
        plan_of((struct settings){.event = "page-faults", .period = 20, .subticks = 4});

    cr_expect_eq(plan.period, 20);
    cr_expect_eq(plan.sampler.subticks, 4);
    cr_expect_eq(sample_period(&plan), 5);
    expect_too_short((struct settings){.event = "page-faults", .period = 3, .subticks = 4});
}
#endif

Test(options, an_event_that_nobody_knows_is_refused_by_name)
{
    static const char *const unknown[] = {"no-such-event", "task-clock:nonsense", "page_faults_",
                                          ":", "cycles:q"};

    for (size_t i = 0; i < LENGTH_OF(unknown); i++) {
        struct settings settings = {0};
        struct plan plan;

        strcpy(settings.event, unknown[i]);
        profil_reason_clear(&reason);
        cr_expect_eq(profil_settings_plan(&settings, &plan, &reason), -ENOENT, "%s", unknown[i]);
        cr_expect_not_null(strstr(reason.text, unknown[i]), "%s", reason.text);
    }
}
