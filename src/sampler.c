#include "sampler.h"

#include "attach.h"
#include "channel.h"
#include "keeper.h"
#include "kernel.h"
#include "lag.h"
#include "memory.h"
#include "own.h"
#include "sanitizer.h"
#include "table.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* Sanitizers report through descriptor 2, in whichever table the faulty thread has. */
enum { FIRST_CLOSED_DESCRIPTOR = PROFIL_SANITIZED ? 3 : 0 };

struct sampler {
    struct channel channel;
    struct sampler_plan plan;
    struct range_set *requested;   /* argument of COMMAND_CHANGE */
    struct sampler_counts *report; /* argument of COMMAND_READ and COMMAND_STOP */
    struct attachment attachment;
    struct attach_count earlier; /* of events that were closed for finer ones */
    struct tally tally;
    struct lag lag;
    struct sampler_start start;
    bool refined;

    struct service thread;
    struct keeper keeper;
    pid_t own[2];         /* the two, as long as they are known to be the library's own */
    struct sampler *next; /* of those that outlive the program's threads */
};

static size_t drain(struct sampler *sampler)
{
    return profil_tally_drain(&sampler->tally, &sampler->attachment);
}

/* The figures that are not counted sample by sample. */
static void complete_counts(struct sampler *sampler, struct sampler_counts *counts)
{
    struct attach_count kernel;

    profil_conflict_look(&sampler->tally.counts.conflict);
    profil_attach_read(&sampler->attachment, &kernel);
    *counts = sampler->tally.counts;
    counts->subticks = sampler->tally.subticks;
    counts->event_count = sampler->earlier.value + kernel.value;
    counts->event_count -=
        counts->duplicated < counts->event_count ? counts->duplicated : counts->event_count;
    /* A LOST record comes with the next sample that finds room, which may never be. */
    if (kernel.lost_known)
        counts->lost = sampler->earlier.lost + kernel.lost;
    counts->cpu_time = profil_lag_cpu_time(&sampler->lag);
    counts->threads = profil_attach_threads(&sampler->attachment);
    counts->cpus = sampler->attachment.ring_count;
    counts->samples_kernel = profil_event_samples_kernel(&sampler->attachment.spec);
    counts->corrupt = profil_attach_corrupt(&sampler->attachment);
}

/* Counters that can be written, and carries where ticks have parts. */
static int prepare(struct sampler *sampler, struct range_set *ranges)
{
    int result = profil_range_each(ranges, profil_memory_check_writable);

    if (result == 0 && (sampler->plan.subticks > 1 || sampler->plan.fine_subticks > 1))
        result = profil_range_set_prepare(ranges);
    return result;
}

static size_t ring_pages(const struct sampler *sampler)
{
    size_t pages = sampler->plan.ring_bytes / profil_memory_page();

    return pages > 0 ? pages : 1;
}

static int attach(struct sampler *sampler)
{
    static const enum sampler_step steps[] = {[ATTACH_CPUS] = SAMPLER_CPUS,
                                              [ATTACH_THREADS] = SAMPLER_THREADS,
                                              [ATTACH_EVENT] = SAMPLER_EVENT,
                                              [ATTACH_RING] = SAMPLER_RING,
                                              [ATTACH_CONTROL] = SAMPLER_CONTROL};
    enum attach_step failed;
    int result;

    result =
        profil_attach_open(&sampler->attachment, &sampler->plan.spec, ring_pages(sampler), &failed);
    if (result < 0) {
        sampler->start.step = steps[failed];
        return result;
    }
    profil_lag_begin(&sampler->lag);
    result = profil_attach_enable(&sampler->attachment);
    if (result < 0) {
        sampler->start.step = SAMPLER_CONTROL;
        profil_attach_close(&sampler->attachment);
    }
    return result;
}

static int start(struct sampler *sampler)
{
    pid_t keeper = profil_service_tid(&sampler->keeper.service);
    int result;

    if (keeper < 0)
        return -ECANCELED;
    sampler->own[1] = keeper;
    profil_own_add(keeper);
    sampler->start.step = SAMPLER_TABLE;
    result = profil_table_leave(FIRST_CLOSED_DESCRIPTOR);
    if (result < 0)
        return result;
    profil_privilege_look(&sampler->start.facts); /* while numbers are free under any limit */
    sampler->start.step = SAMPLER_SIGNALFD;
    result = profil_channel_attach(&sampler->channel, profil_event_is_clock(&sampler->plan.spec));
    if (result < 0)
        return result;
    sampler->start.step = SAMPLER_BUFFER;
    result = prepare(sampler, sampler->tally.ranges);
    if (result < 0)
        return result;
    return attach(sampler);
}

static int change(struct sampler *sampler)
{
    int result = prepare(sampler, sampler->requested);

    if (result < 0)
        return result;
    drain(sampler);
    sampler->tally.ranges = sampler->requested;
    return 0;
}

static void stop(struct sampler *sampler)
{
    profil_attach_disable(&sampler->attachment);
    drain(sampler);
    complete_counts(sampler, &sampler->tally.counts);
    profil_attach_close(&sampler->attachment);
}

/* Carries out what the caller asked; false when that was the end. */
static bool obey(struct sampler *sampler)
{
    int result;

    switch (profil_channel_command(&sampler->channel)) {
    case COMMAND_START:
        result = start(sampler);
        profil_channel_answer(&sampler->channel, result);
        return result == 0;
    case COMMAND_CHANGE:
        profil_channel_answer(&sampler->channel, change(sampler));
        return true;
    case COMMAND_READ:
        drain(sampler);
        complete_counts(sampler, sampler->report);
        profil_channel_answer(&sampler->channel, 0);
        return true;
    case COMMAND_STOP:
        stop(sampler);
        profil_channel_answer(&sampler->channel, 0);
        return false;
    default:
        return true;
    }
}

static uint64_t time_since_1970(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Goes over to the finer period: its events are opened beside the others, then the ones are stopped
 * and the others started. Every sample taken until then is counted; what each thread had used of
 * its period is the phase that it would have left at its end. Where there is no room for the new
 * events, the old ones stay. */
static void refine(struct sampler *sampler)
{
    struct attachment fine;
    struct attach_count coarse;
    enum attach_step failed;

    sampler->refined = true;
    if (profil_attach_open(&fine, &sampler->plan.fine_spec, ring_pages(sampler), &failed) < 0)
        return;
    profil_attach_disable(&sampler->attachment);
    if (profil_attach_enable(&fine) < 0) {
        profil_attach_close(&fine);
        profil_attach_enable(&sampler->attachment);
        return;
    }
    drain(sampler);
    profil_attach_read(&sampler->attachment, &coarse);
    sampler->earlier.value += coarse.value;
    sampler->earlier.lost += coarse.lost;
    profil_attach_close(&sampler->attachment);
    sampler->attachment = fine;
    sampler->tally.subticks = sampler->plan.fine_subticks;
    sampler->tally.sample_period = sampler->plan.fine_spec.attr.sample_period;
    sampler->tally.counts.refined_at = time_since_1970();
    sampler->tally.counts.refinement =
        sampler->tally.counts.ended ? REFINED_SHORT_THREADS : REFINED_PHASE;
}

static void refine_if_behind(struct sampler *sampler)
{
    if (sampler->plan.fine_subticks == 0 || sampler->refined)
        return;
    if (profil_lag_is_large(&sampler->lag, sampler->tally.counts.accounted,
                            sampler->tally.sample_period, sampler->attachment.ring_count,
                            profil_event_samples_kernel(&sampler->attachment.spec)))
        refine(sampler);
}

/* For how long the rings are left alone after samples were read. */
enum { HOLD_OFF_NANOSECONDS = 2 * EVENT_TICK_NANOSECONDS };

/* Holds off. Whether another profiler has come is looked at here, when there is work. */
static void rest(struct sampler *sampler)
{
    profil_conflict_look(&sampler->tally.counts.conflict);
    profil_own_account(&sampler->lag.own);
    profil_channel_rest(&sampler->channel, HOLD_OFF_NANOSECONDS);
}

/* Sleeps until a sample is there; false when every thread of the program has gone. A wake-up that
 * brought none is usually the echo of records that were read already. The second one in a row may
 * be a signal that somebody else has sent to the process and that is not ours to take: it must not
 * become a spin. */
static bool await_samples(struct sampler *sampler, unsigned int empty_wakeups)
{
    struct pollfd *descriptors;
    nfds_t count = profil_attach_pollfds(&sampler->attachment, &descriptors);

    if (empty_wakeups > 1)
        rest(sampler);
    profil_own_account(&sampler->lag.own);
    if (profil_channel_poll(&sampler->channel, descriptors, count) <= 0)
        return true;
    return profil_attach_refresh(&sampler->attachment);
}

/* After samples it holds off for two ticks. A busy program then wakes it fifty times a second; one
 * that has less than a tick in that time, twice per tick, which is a hundred at most; an idle one
 * never. A ring that fills up faster is read again at once. False when the program's threads have
 * gone. */
static bool serve(struct sampler *sampler)
{
    unsigned int empty_wakeups = 0;

    while (obey(sampler)) {
        if (drain(sampler) > 0) {
            empty_wakeups = 0;
            refine_if_behind(sampler);
            if (!profil_attach_pressed(&sampler->attachment))
                rest(sampler);
        } else if (!await_samples(sampler, empty_wakeups++)) {
            return false;
        }
    }
    return true;
}

static void leave_to_keeper(struct sampler *sampler)
{
    stop(sampler);
    while (!profil_channel_close(&sampler->channel)) {
        enum command command = profil_channel_command(&sampler->channel);

        profil_channel_answer(&sampler->channel, command == COMMAND_STOP ? 0 : -ESRCH);
        if (command == COMMAND_STOP)
            return;
    }
    profil_keeper_take_over(&sampler->keeper);
}

static void *run_sampler(void *argument)
{
    struct sampler *sampler = argument;

    prctl(PR_SET_NAME, "profil-sampler");
    sampler->own[0] = kernel_gettid();
    profil_own_add(sampler->own[0]);
    sampler->tally.process = getpid();
    if (!serve(sampler))
        leave_to_keeper(sampler);
    profil_own_account(&sampler->lag.own);
    return NULL;
}

/* The keeper is last: in an exit handler after the last thread of the program, the end of these two
 * is an exit() of its own, which in the sampler's table could flush nothing. */
static void join_threads(struct sampler *sampler)
{
    profil_service_join(&sampler->thread);
    profil_keeper_dismiss(&sampler->keeper);
}

/* The sampler comes to life while the keeper is created, and waits for it. */
static int start_threads(struct sampler *sampler)
{
    sigset_t program_mask;
    int result;

    pthread_sigmask(SIG_SETMASK, NULL, &program_mask);
    result =
        profil_service_start(&sampler->thread, profil_service_small_stack, run_sampler, sampler);
    if (result < 0)
        return result;
    result = profil_keeper_start(&sampler->keeper, &program_mask);
    if (result < 0) {
        profil_service_give_up(&sampler->keeper.service);
        profil_channel_await_start(&sampler->channel);
        profil_service_join(&sampler->thread);
        sampler->start.step = SAMPLER_THREAD;
        return result;
    }
    result = profil_channel_await_start(&sampler->channel);
    if (result < 0)
        join_threads(sampler);
    return result;
}

static uint64_t random_seed(const struct sampler *sampler)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_nsec * 1000003 ^ (uintptr_t)sampler) | 1;
}

static void disown(struct sampler *sampler)
{
    for (int i = 0; i < 2; i++)
        if (sampler->own[i])
            profil_own_remove(sampler->own[i]);
    memset(sampler->own, 0, sizeof(sampler->own));
}

int profil_sampler_start(struct sampler **sampler, const struct sampler_plan *plan,
                         struct range_set *ranges, struct sampler_start *start)
{
    struct sampler *starting = calloc(1, sizeof(*starting));
    int result;

    *start = (struct sampler_start){.step = SAMPLER_MEMORY,
                                    .facts = {.paranoid = FACT_UNKNOWN, .mlock_kb = FACT_UNKNOWN}};
    if (!starting)
        return -ENOMEM;
    starting->plan = *plan;
    starting->tally.subticks = plan->subticks;
    starting->tally.sample_period = plan->spec.attr.sample_period;
    starting->tally.ranges = ranges;
    starting->start = *start;
    starting->start.step = SAMPLER_THREAD;
    starting->tally.random = random_seed(starting);
    profil_channel_init(&starting->channel);
    result = start_threads(starting);
    *start = starting->start;
    if (result == 0)
        *sampler = starting;
    else
        profil_sampler_free(starting);
    return result;
}

int profil_sampler_change(struct sampler *sampler, struct range_set *ranges)
{
    sampler->requested = ranges;
    return profil_channel_call(&sampler->channel, COMMAND_CHANGE);
}

void profil_sampler_read(struct sampler *sampler, struct sampler_counts *counts)
{
    sampler->report = counts;
    if (profil_channel_call(&sampler->channel, COMMAND_READ) < 0)
        *counts = sampler->tally.counts; /* final: all threads had gone */
}

/* All threads of the program had gone. The keeper is on its way out, and may be the one that runs
 * the exit handlers, of which this call comes: it is not waited for, and what it needs stays. */
static void leave_to_exit(struct sampler *sampler)
{
    static struct sampler *left;

    sampler->next = left;
    left = sampler;
}

bool profil_sampler_stop(struct sampler *sampler, struct sampler_counts *counts)
{
    bool stopped = profil_channel_call(&sampler->channel, COMMAND_STOP) == 0;

    if (stopped)
        join_threads(sampler);
    *counts = sampler->tally.counts;
    if (!stopped)
        leave_to_exit(sampler);
    return stopped;
}

void profil_sampler_forget(struct sampler *sampler, bool bare)
{
    disown(sampler);
    profil_attach_forget(&sampler->attachment);
    if (!bare) {
        profil_service_forget(&sampler->thread);
        profil_service_forget(&sampler->keeper.service);
    }
}

void profil_sampler_free(struct sampler *sampler)
{
    if (sampler)
        disown(sampler);
    free(sampler);
}
