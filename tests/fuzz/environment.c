/* The settings that an environment of any contents gives, and the plan that is made of them: in
 * bounds, or refused with a reason. */
#include "options.h"

#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* An input: the values of these, one after the other, each ended by a zero. */
static const char *const names[] = {"PROFIL_ENGINE",   "PROFIL_EVENT",  "PROFIL_PERIOD",
                                    "PROFIL_SUBTICKS", "PROFIL_SYSTEM", "PROFIL_ON_CONFLICT",
                                    "PROFIL_VERBOSE"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static char *values[NAMES];

static char *get(const char *name)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return values[i];
    return NULL;
}

/* Those that the input is too short for are not set. */
static void set_values(char *text, size_t size)
{
    char *end = text + size;

    for (int i = 0; i < NAMES; i++) {
        values[i] = text < end ? text : NULL;
        text += text < end ? strlen(text) + 1 : 0;
    }
}

static void check_refusal(int result, const struct reason *reason)
{
    bool named = false;

    FUZZ_EXPECT(result == -EINVAL);
    FUZZ_EXPECT(memchr(reason->text, '\0', sizeof(reason->text)));
    for (int i = 0; i < NAMES; i++)
        named = named || strstr(reason->text, names[i]);
    FUZZ_EXPECT(named);
}

static void check_settings(const struct settings *settings)
{
    FUZZ_EXPECT(settings->engine <= PROFIL_ENGINE_LIBC);
    FUZZ_EXPECT(settings->system <= PROFIL_SYSTEM_USER);
    FUZZ_EXPECT(settings->on_conflict <= PROFIL_ON_CONFLICT_FAIL);
    FUZZ_EXPECT(settings->subticks <= BUCKET_SUBTICKS_MAX);
    FUZZ_EXPECT(settings->period <= INT64_MAX);
    FUZZ_EXPECT(memchr(settings->event, '\0', sizeof(settings->event)));
    FUZZ_EXPECT(!get("PROFIL_EVENT") || strcmp(settings->event, get("PROFIL_EVENT")) == 0);
}

static void check_spec(const struct event_spec *spec)
{
    FUZZ_EXPECT(profil_event_is_clock(spec));
    FUZZ_EXPECT(spec->attr.sample_period >= EVENT_SHORTEST_CLOCK_PERIOD);
    FUZZ_EXPECT(spec->attr.wakeup_events >= 1);
    FUZZ_EXPECT(spec->attr.disabled && spec->attr.inherit);
}

static void check_plan(const struct settings *settings, const struct plan *plan)
{
    const struct sampler_plan *sampler = &plan->sampler;

    FUZZ_EXPECT(settings->period == 0 || plan->period == settings->period);
    FUZZ_EXPECT(settings->subticks == 0 || sampler->subticks == settings->subticks);
    FUZZ_EXPECT(sampler->subticks >= 1 && sampler->subticks <= BUCKET_SUBTICKS_MAX);
    FUZZ_EXPECT(sampler->ring_bytes >= 4096 && sampler->ring_bytes <= 1 << 20);
    FUZZ_EXPECT((sampler->ring_bytes & (sampler->ring_bytes - 1)) == 0);
    check_spec(&sampler->spec);
    FUZZ_EXPECT(sampler->spec.attr.sample_period == plan->period / sampler->subticks);
}

/* Other names are libpfm4's to understand. */
static bool is_task_clock(const char *event)
{
    return !event[0] || strcasecmp(event, "task-clock") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reason reason = {{0}};
    struct settings settings;
    struct plan plan;
    char *text = calloc(1, size + 1); /* of its own, so that a step outside is seen */
    int result;

    memcpy(text, data, size);
    set_values(text, size);
    result = profil_settings_from_environment(&settings, get, &reason);
    if (result != 0) {
        check_refusal(result, &reason);
    } else {
        check_settings(&settings);
        if (is_task_clock(settings.event)) {
            result = profil_settings_plan(&settings, &plan, &reason);
            if (result != 0)
                check_refusal(result, &reason);
            else
                check_plan(&settings, &plan);
        }
    }
    free(text);
    return 0;
}
