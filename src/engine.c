#include "engine.h"

#include "fallback.h"
#include "kernel.h"
#include "memory.h"
#include "privilege.h"

/* The one that has the C library's profile. */
static struct engine *fallback_user;

static bool conflicts(const struct conflict *conflict)
{
    return conflict->timer_seen || conflict->handler_seen;
}

/* What the program has armed or set up is never taken from it. */
static bool fallback_is_taken(const struct engine *engine)
{
    return fallback_user ? fallback_user != engine : conflicts(&engine->conflict);
}

static int start_fallback(struct engine *engine, const struct range_set *ranges,
                          struct reason *reason)
{
    struct range range;
    bool is_one = profil_range_set_only(ranges, &range);
    int result;

    if (!profil_fallback_exists()) {
        profil_reason_add(reason,
                          "; in a static program there is no other profil() to fall back to");
        return -ENOSYS;
    }
    if (!is_one || range.shift != BUCKET_SHIFT_16) {
        profil_reason_add(reason,
                          "; the C library's profil() has only one range of 16-bit counters");
        return -ENOTSUP;
    }
    if (fallback_is_taken(engine)) {
        profil_reason_add(reason, "; the C library's profil() would take over %s, which is in use",
                          engine->conflict.timer_seen ? "ITIMER_PROF" : "SIGPROF");
        return -EBUSY;
    }
    result = profil_range_each(ranges, profil_memory_check_writable);
    if (result < 0) {
        profil_privilege_explain(REFUSAL_BUFFER, result, &engine->facts, reason);
        return result;
    }
    if (fallback_user)
        profil_fallback_stop();
    result = profil_fallback_start(&range);
    fallback_user = result == 0 ? engine : NULL;
    return result;
}

static enum refusal refusal_at(enum sampler_step step)
{
    static const enum refusal refusals[] = {
        [SAMPLER_MEMORY] = REFUSAL_MEMORY,   [SAMPLER_THREAD] = REFUSAL_THREAD,
        [SAMPLER_TABLE] = REFUSAL_TABLE,     [SAMPLER_SIGNALFD] = REFUSAL_SIGNALFD,
        [SAMPLER_BUFFER] = REFUSAL_BUFFER,   [SAMPLER_CPUS] = REFUSAL_CPUS,
        [SAMPLER_THREADS] = REFUSAL_THREADS, [SAMPLER_EVENT] = REFUSAL_EVENT,
        [SAMPLER_RING] = REFUSAL_RING,       [SAMPLER_CONTROL] = REFUSAL_CONTROL};

    return refusals[step];
}

/* A tick of 10 ms of CPU time is all that the C library's profil() counts, and it says nothing of
 * the kernel's time. */
static bool libc_counts(const struct settings *settings, const struct plan *plan)
{
    return profil_event_is_clock(&plan->sampler.spec) && plan->period == EVENT_TICK_NANOSECONDS &&
           settings->system != PROFIL_SYSTEM_CHARGE;
}

/* A buffer that cannot be written is the program's fault, and nothing to fall back from. */
static bool may_fall_back(const struct settings *settings, const struct plan *plan,
                          enum sampler_step failed, int error)
{
    return settings->engine == PROFIL_ENGINE_AUTO && libc_counts(settings, plan) &&
           !(failed == SAMPLER_BUFFER && error == -EFAULT);
}

static int fall_back(struct engine *engine, struct range_set *ranges, int refused,
                     struct reason *reason)
{
    int result = start_fallback(engine, ranges, reason);

    /* Where there is nothing to fall back to, the kernel's word is the answer. */
    if (result == -ENOSYS || result == -ENOTSUP)
        return refused;
    if (result == 0) {
        engine->used = PROFIL_ENGINE_LIBC;
        profil_reason_add(reason, "; the C library's profil() is used instead");
    }
    return result;
}

static int start_perf(struct engine *engine, const struct settings *settings,
                      const struct plan *plan, struct range_set *ranges, struct reason *reason)
{
    struct sampler_start start;
    int result = profil_sampler_start(&engine->sampler, &plan->sampler, ranges, &start);

    engine->facts = start.facts;
    if (result == 0) {
        engine->used = PROFIL_ENGINE_PERF;
        return 0;
    }
    if (start.step == SAMPLER_EVENT && settings->system == PROFIL_SYSTEM_CHARGE &&
        profil_privilege_lacks_kernel(result, &start.facts))
        profil_privilege_explain_kernel(&start.facts, reason);
    else
        profil_privilege_explain(refusal_at(start.step), result, &start.facts, reason);
    if (may_fall_back(settings, plan, start.step, result))
        return fall_back(engine, ranges, result, reason);
    return result;
}

static int start_libc(struct engine *engine, const struct settings *settings,
                      const struct plan *plan, struct range_set *ranges, struct reason *reason)
{
    int result;

    if (!libc_counts(settings, plan)) {
        profil_reason_set(reason,
                          "the C library's profil() was asked for, and it counts nothing but ticks "
                          "of 10 ms of CPU time, and does not promise to charge the kernel's");
        return -ENOTSUP;
    }
    profil_reason_set(reason, "the C library's profil() was asked for");
    result = start_fallback(engine, ranges, reason);
    if (result == 0) {
        profil_reason_clear(reason);
        engine->used = PROFIL_ENGINE_LIBC;
    }
    return result;
}

int profil_engine_start(struct engine *engine, const struct settings *settings,
                        const struct plan *plan, struct range_set *ranges, struct reason *reason)
{
    int result;

    *engine = (struct engine){.used = engine->used, .process = getpid()};
    profil_conflict_look(&engine->conflict);
    if (settings->on_conflict == PROFIL_ON_CONFLICT_FAIL && conflicts(&engine->conflict)) {
        profil_reason_set(reason, "%s, and a profile is to fail on such a conflict",
                          engine->conflict.timer_seen ? "ITIMER_PROF is armed"
                                                      : "SIGPROF has a handler");
        return -EBUSY;
    }
    if (settings->engine == PROFIL_ENGINE_LIBC)
        result = start_libc(engine, settings, plan, ranges, reason);
    else
        result = start_perf(engine, settings, plan, ranges, reason);
    engine->running = result == 0;
    return result;
}

int profil_engine_change(struct engine *engine, struct range_set *ranges, struct reason *reason)
{
    int result;

    if (!engine->sampler) {
        profil_reason_set(reason, "the C library's profil() is used");
        return start_fallback(engine, ranges, reason);
    }
    result = profil_sampler_change(engine->sampler, ranges);
    if (result < 0 && result != -ESRCH)
        profil_privilege_explain(result == -EFAULT ? REFUSAL_BUFFER : REFUSAL_MEMORY, result,
                                 &engine->facts, reason);
    return result;
}

void profil_engine_read(struct engine *engine)
{
    if (engine->sampler)
        profil_sampler_read(engine->sampler, &engine->counts);
}

static void ended(struct engine *engine)
{
    engine->sampler = NULL;
    engine->running = false;
    if (fallback_user == engine)
        fallback_user = NULL;
}

void profil_engine_stop(struct engine *engine)
{
    if (!engine->running)
        return;
    if (engine->sampler && profil_sampler_stop(engine->sampler, &engine->counts))
        engine->ended = engine->sampler;
    if (!engine->sampler)
        profil_fallback_stop();
    ended(engine);
}

void profil_engine_discard(struct engine *engine)
{
    profil_sampler_free(engine->ended);
    engine->ended = NULL;
}

void profil_engine_forget(struct engine *engine, bool bare)
{
    if (!engine->running)
        return;
    engine->ended = engine->sampler;
    if (engine->sampler)
        profil_sampler_forget(engine->sampler, bare);
    else
        profil_fallback_forget();
    ended(engine);
}

/* Of two times, 0 standing for never. */
static uint64_t earlier(uint64_t first, uint64_t second)
{
    if (!first || !second)
        return first | second;
    return first < second ? first : second;
}

struct conflict profil_engine_conflict(const struct engine *engine)
{
    const struct conflict *start = &engine->conflict, *later = &engine->counts.conflict;

    return (struct conflict){.timer_seen = earlier(start->timer_seen, later->timer_seen),
                             .handler_seen = earlier(start->handler_seen, later->handler_seen)};
}
