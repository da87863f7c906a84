#include "tally.h"

#include "own.h"

struct reading {
    struct tally *tally;
    struct attachment *attachment;
};

static void count_in_range(struct tally *tally, const struct range *range, uint64_t index)
{
    if (tally->subticks > 1 &&
        !profil_bucket_carry(&range->carries[index], tally->subticks, &tally->random))
        return;
    if (profil_bucket_count(range->counters, (size_t)index, range->shift))
        tally->counts.ticks++;
    else
        tally->counts.saturated++;
}

static void count_attributed(struct tally *tally, uintptr_t pc)
{
    const struct range *range;
    uint64_t index;

    tally->counts.samples++;
    tally->counts.sampled += tally->sample_period;
    range = profil_range_find(tally->ranges, pc, &index);
    if (range)
        count_in_range(tally, range, index);
    else
        tally->counts.outside++;
}

/* A child made by vfork() inherits the event on kernels without inherit_thread, and a thread of
 * another profile is created by one that may have this profile's events. */
static bool is_foreign(const struct tally *tally, const struct sample *sample)
{
    return sample->process != tally->process || profil_own_has(sample->thread);
}

static void count_sample(void *context, const struct sample *sample)
{
    const struct reading *reading = context;
    struct tally *tally = reading->tally;

    if (is_foreign(tally, sample)) {
        tally->counts.foreign++;
        return;
    }
    if (!profil_attach_accepts(reading->attachment, sample)) {
        tally->counts.duplicate++;
        tally->counts.duplicated += tally->sample_period;
        return;
    }
    tally->counts.accounted += tally->sample_period;
    if (sample->attributed)
        count_attributed(tally, sample->pc);
    else
        tally->counts.unattributed++;
}

static void count_lost(void *context, uint64_t count)
{
    const struct reading *reading = context;

    reading->tally->counts.lost += count;
    reading->tally->counts.accounted += count * reading->tally->sample_period;
}

static void count_throttled(void *context)
{
    const struct reading *reading = context;

    reading->tally->counts.throttled++;
}

static void count_ended(void *context)
{
    const struct reading *reading = context;

    reading->tally->counts.ended++;
}

size_t profil_tally_drain(struct tally *tally, struct attachment *attachment)
{
    struct reading reading = {.tally = tally, .attachment = attachment};
    const struct ring_reader reader = {.sample = count_sample,
                                       .lost = count_lost,
                                       .throttled = count_throttled,
                                       .ended = count_ended,
                                       .context = &reading};

    return profil_attach_drain(attachment, &reader);
}
