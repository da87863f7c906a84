#include "sampler.h"

#include "attach.h"
#include "channel.h"
#include "kernel.h"
#include "sanitizer.h"
#include "service.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* 32 KiB of records: more than 6 s of samples, should the sampler not be scheduled. */
enum { RING_BYTES = 32 << 10 };

/* Sanitizers report through descriptor 2, in whichever table the faulty thread has. */
enum { FIRST_CLOSED_DESCRIPTOR = PROFIL_SANITIZED ? 3 : 0 };

/* The keeper is a second thread, asleep, that shares the program's descriptor table. A process whose
 * threads all end by pthread_exit() calls exit(0) on the last of them. The sampler is a thread more,
 * and with its own table it could flush nothing: it leaves that to the keeper, which is then last. */
enum keeper_word { KEEPER_WAIT, KEEPER_LEAVE, KEEPER_LAST };

struct sampler {
    struct channel channel;
    const struct range_set *ranges;
    const struct range_set *requested; /* argument of COMMAND_CHANGE */
    struct attachment attachment;
    pid_t process;
    pthread_t self;

    struct service thread;
    struct service keeper;
    sigset_t program_mask;
    _Atomic uint32_t keeper_word; /* enum keeper_word */
};

static void count_sample(void *context, const struct sample *sample)
{
    struct sampler *sampler = context;
    const struct range *range;
    uint64_t index;

    /* A child made by vfork() inherits the event on kernels without inherit_thread. */
    if (sample->process != sampler->process || !sample->attributed ||
        !profil_attach_accepts(&sampler->attachment, sample))
        return;
    range = profil_range_find(sampler->ranges, sample->pc, &index);
    if (range)
        profil_bucket_count(range->counters, (size_t)index, range->shift);
}

static size_t drain(struct sampler *sampler)
{
    const struct ring_reader reader = {.sample = count_sample, .context = sampler};

    return profil_attach_drain(&sampler->attachment, &reader);
}

static bool is_own_thread(void *context, pid_t tid)
{
    struct sampler *sampler = context;

    return tid == sampler->channel.sampler || tid == profil_service_tid(&sampler->keeper);
}

static int start(struct sampler *sampler)
{
    const size_t pages = RING_BYTES / profil_memory_page();
    struct event_spec spec;
    int result = kernel_close_range(FIRST_CLOSED_DESCRIPTOR, ~0U, CLOSE_RANGE_UNSHARE);

    if (result == 0)
        result = profil_channel_attach(&sampler->channel);
    if (result == 0)
        result = profil_range_each(sampler->ranges, profil_memory_check_writable);
    if (result < 0)
        return result;
    profil_event_describe(&spec, EVENT_TICK_NANOSECONDS);
    return profil_attach_open(&sampler->attachment, &spec, pages > 0 ? pages : 1, is_own_thread,
                              sampler);
}

static int change(struct sampler *sampler)
{
    int result = profil_range_each(sampler->requested, profil_memory_check_writable);

    if (result < 0)
        return result;
    drain(sampler);
    sampler->ranges = sampler->requested;
    return 0;
}

static void stop(struct sampler *sampler)
{
    profil_attach_disable(&sampler->attachment);
    drain(sampler);
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
    case COMMAND_STOP:
        stop(sampler);
        profil_channel_answer(&sampler->channel, 0);
        return false;
    default:
        return true;
    }
}

/* Sleeps until a sample is there; false when every thread of the program has gone. A wake-up that
 * brought none is usually the echo of records that were read already. The second one in a row may be
 * a signal that somebody else has sent to the process and that is not ours to take: it must not
 * become a spin. */
static bool await_samples(struct sampler *sampler, unsigned int empty_wakeups)
{
    struct pollfd *descriptors;
    nfds_t count = profil_attach_pollfds(&sampler->attachment, &descriptors);

    if (empty_wakeups > 1)
        profil_channel_rest(&sampler->channel, EVENT_TICK_NANOSECONDS);
    if (profil_channel_poll(&sampler->channel, descriptors, count) <= 0)
        return true;
    return profil_attach_refresh(&sampler->attachment);
}

/* After samples it holds off for a tick, so that a busy program wakes it no more than a hundred times
 * a second; an idle one never does. False when the program's threads have gone. */
static bool serve(struct sampler *sampler)
{
    unsigned int empty_wakeups = 0;

    while (obey(sampler)) {
        if (drain(sampler) > 0) {
            empty_wakeups = 0;
            profil_channel_rest(&sampler->channel, EVENT_TICK_NANOSECONDS);
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
        bool stopped = profil_channel_command(&sampler->channel) == COMMAND_STOP;

        profil_channel_answer(&sampler->channel, stopped ? 0 : -ESRCH);
        if (stopped)
            return;
    }
    sampler->self = pthread_self();
    atomic_store(&sampler->keeper_word, KEEPER_LAST);
    kernel_futex_wake(&sampler->keeper_word);
}

static void *run_sampler(void *argument)
{
    struct sampler *sampler = argument;

    prctl(PR_SET_NAME, "profil-sampler");
    sampler->process = getpid();
    if (!serve(sampler))
        leave_to_keeper(sampler);
    return NULL;
}

static void *run_keeper(void *argument)
{
    struct sampler *sampler = argument;
    uint32_t word;

    prctl(PR_SET_NAME, "profil-keeper");
    while ((word = atomic_load(&sampler->keeper_word)) == KEEPER_WAIT)
        kernel_futex_wait(&sampler->keeper_word, KEEPER_WAIT, NULL);
    if (word == KEEPER_LAST) {
        /* What the program registered with atexit() runs next, on this thread. */
        pthread_join(sampler->self, NULL);
        pthread_sigmask(SIG_SETMASK, &sampler->program_mask, NULL);
    }
    return NULL;
}

/* The exit handlers may run on the keeper's stack, which is therefore of the usual size. */
static int start_keeper(struct sampler *sampler)
{
    int result = profil_service_start(&sampler->keeper, profil_service_default_stack(), run_keeper,
                                      sampler);

    if (result == -ENOMEM)
        result = profil_service_start(&sampler->keeper, profil_service_small_stack, run_keeper,
                                      sampler);
    return result;
}

static void dismiss_keeper(struct sampler *sampler)
{
    atomic_store(&sampler->keeper_word, KEEPER_LEAVE);
    kernel_futex_wake(&sampler->keeper_word);
    profil_service_join(&sampler->keeper);
}

static int start_threads(struct sampler *sampler)
{
    int result = start_keeper(sampler);

    if (result < 0)
        return result;
    result = profil_service_start(&sampler->thread, profil_service_small_stack, run_sampler, sampler);
    if (result == 0) {
        result = profil_channel_await_start(&sampler->channel);
        if (result == 0)
            return 0;
        profil_service_join(&sampler->thread);
    }
    dismiss_keeper(sampler);
    return result;
}

int profil_sampler_start(struct sampler **sampler, const struct range_set *ranges)
{
    struct sampler *starting = calloc(1, sizeof(*starting));
    int result;

    if (!starting)
        return -ENOMEM;
    starting->ranges = ranges;
    profil_channel_init(&starting->channel);
    pthread_sigmask(SIG_SETMASK, NULL, &starting->program_mask);
    result = start_threads(starting);
    if (result < 0) {
        free(starting);
        return result;
    }
    *sampler = starting;
    return 0;
}

int profil_sampler_change(struct sampler *sampler, const struct range_set *ranges)
{
    sampler->requested = ranges;
    return profil_channel_call(&sampler->channel, COMMAND_CHANGE);
}

void profil_sampler_stop(struct sampler *sampler)
{
    if (profil_channel_call(&sampler->channel, COMMAND_STOP) == 0) {
        profil_service_join(&sampler->thread);
        dismiss_keeper(sampler);
    } else if (pthread_equal(sampler->keeper.thread, pthread_self())) {
        return; /* an exit handler, run by the keeper: the process is about to end */
    } else {
        profil_service_join(&sampler->keeper);
        profil_service_forget(&sampler->thread);
    }
    free(sampler);
}

void profil_sampler_forget(struct sampler *sampler)
{
    profil_attach_forget(&sampler->attachment);
    profil_service_forget(&sampler->thread);
    profil_service_forget(&sampler->keeper);
    free(sampler);
}
