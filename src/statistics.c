#include "statistics.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double coverage(const struct plan *plan, const struct sampler_counts *counts)
{
    uint64_t whole =
        profil_event_is_clock(&plan->sampler.spec) ? counts->cpu_time : counts->event_count;

    if (whole == 0)
        return 0;
    return (double)counts->sampled / (double)whole;
}

void profil_statistics_fill(const struct engine *engine, const struct settings *settings,
                            const struct plan *plan, struct profil_stats *stats)
{
    const struct sampler_counts *counts = &engine->counts;
    struct conflict conflict = profil_engine_conflict(engine);

    *stats = (struct profil_stats){.engine = engine->used,
                                   .running = engine->running,
                                   .period = plan->period,
                                   .subticks =
                                       counts->subticks ? counts->subticks : plan->sampler.subticks,
                                   .refined = (enum profil_refined)counts->refinement,
                                   .refined_at = counts->refined_at,
                                   .charges_system = counts->samples_kernel,
                                   .threads = counts->threads,
                                   .cpus = counts->cpus,
                                   .ticks = counts->ticks,
                                   .saturated = counts->saturated,
                                   .samples = counts->samples,
                                   .outside = counts->outside,
                                   .unattributed = counts->unattributed,
                                   .foreign = counts->foreign,
                                   .duplicate = counts->duplicate,
                                   .lost = counts->lost,
                                   .throttled = counts->throttled,
                                   .corrupt = counts->corrupt,
                                   .event_count = counts->event_count,
                                   .cpu_time = counts->cpu_time,
                                   .coverage = coverage(plan, counts),
                                   .conflict_timer = conflict.timer_seen,
                                   .conflict_handler = conflict.handler_seen};
    strcpy(stats->event, settings->event[0] ? settings->event : "task-clock");
}

/* Nothing may come of a standard error that cannot be written to. */
struct silence {
    sigset_t mask;
    bool was_pending;
};

static struct silence silence_begin(void)
{
    struct silence silence;
    sigset_t pipe, pending;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &silence.mask);
    sigpending(&pending);
    silence.was_pending = sigismember(&pending, SIGPIPE);
    return silence;
}

static void silence_end(const struct silence *silence)
{
    const struct timespec now = {0};
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!silence->was_pending)
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &silence->mask, NULL);
}

/* dprintf() and a descriptor: at exit the streams may be closed already. */
__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
    struct silence silence = silence_begin();
    va_list arguments;

    va_start(arguments, format);
    vdprintf(STDERR_FILENO, format, arguments);
    va_end(arguments);
    silence_end(&silence);
}

void profil_statistics_print(const struct profil_stats *stats, bool counts_time,
                             const struct reason *reason)
{
    const char *separator = reason->text[0] ? "; " : "";

    if (stats->engine == PROFIL_ENGINE_LIBC) {
        print("libprofil: engine libc%s%s\n", separator, reason->text);
        return;
    }
    print("libprofil: engine perf, %s, %" PRIu64 " %s to a tick of %u sample%s: %" PRIu64
          " ticks, %" PRIu64 " saturated; %" PRIu64 " samples, %" PRIu64 " outside, %" PRIu64
          " in the kernel, %" PRIu64 " lost; %.3f s of CPU time, coverage %.3f%s%s\n",
          stats->event, stats->period, counts_time ? "ns" : "events", stats->subticks,
          stats->subticks == 1 ? "" : "s", stats->ticks, stats->saturated, stats->samples,
          stats->outside, stats->unattributed, stats->lost, (double)stats->cpu_time * 1e-9,
          stats->coverage, separator, reason->text);
}

void profil_statistics_print_failure(const struct reason *reason)
{
    print("libprofil: no profile: %s\n", reason->text);
}
