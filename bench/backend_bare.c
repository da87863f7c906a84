/* The limit: the events that libprofil opens, and a ring with room for everything that nobody reads
 * and nobody is woken for, until the end. BENCH_BARE_WAKEUPS=1 has them ask for a reader as often
 * as libprofil's do. */
#include "attach.h"
#include "backend.h"

#include <stdlib.h>

const bool backend_sees_all_threads = true;

/* Powers of two: room for 20 s of a busy CPU at 10 ms, and for 6 s at 100 us. */
enum { RING_PAGES = 32, FINE_RING_PAGES = 1024, NEVER = 1 << 30 };

static struct attachment attachment;
static struct counts sum;

int backend_start(uint64_t period, enum scope scope)
{
    uint32_t often =
        period < EVENT_TICK_NANOSECONDS ? (uint32_t)(EVENT_TICK_NANOSECONDS / period) : 1;
    struct event_spec spec;
    enum attach_step failed;
    int result;

    (void)scope;
    profil_event_describe(&spec, &profil_event_task_clock, period,
                          getenv("BENCH_BARE_WAKEUPS") ? often : NEVER, EVENT_KERNEL_IF_PERMITTED);
    result =
        profil_attach_open(&attachment, &spec,
                           period < EVENT_TICK_NANOSECONDS ? FINE_RING_PAGES : RING_PAGES, &failed);
    return result < 0 ? result : profil_attach_enable(&attachment);
}

static void count_sample(void *context, const struct sample *sample)
{
    counts_add(context, sample->pc, 1);
}

static void count_lost(void *context, uint64_t count)
{
    ((struct counts *)context)->lost += count;
}

void backend_stop(void)
{
    const struct ring_reader reader = {.sample = count_sample, .lost = count_lost, .context = &sum};

    profil_attach_disable(&attachment);
    profil_attach_drain(&attachment, &reader);
    profil_attach_close(&attachment);
}

void backend_read(struct counts *counts)
{
    *counts = sum;
}

const char *backend_reason(void)
{
    return "";
}

void backend_enter(void)
{
}

void backend_leave(void)
{
}
