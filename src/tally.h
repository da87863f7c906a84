/* From samples to ticks in counters, and the count of what became of each sample. */
#ifndef PROFIL_TALLY_H
#define PROFIL_TALLY_H

#include "attach.h"
#include "conflict.h"
#include "range.h"

/* Why the automatic choice went over to the finer period. */
enum refinement { REFINED_NOT, REFINED_SHORT_THREADS, REFINED_PHASE };

/* Since the start. All but `ticks`, `saturated` and the times are in samples. */
struct sampler_counts {
    uint64_t ticks;        /* counted in a bucket */
    uint64_t saturated;    /* ticks whose counter was at its maximum */
    uint64_t samples;      /* of the program, at a known user PC */
    uint64_t outside;      /* of those, the ones that no range has a bucket for */
    uint64_t unattributed; /* in the kernel, without a user PC */
    uint64_t foreign;      /* of other processes, or of the library's threads */
    uint64_t duplicate;    /* of a thread that has two events */
    uint64_t lost;         /* found no room in their ring */
    uint64_t throttled;    /* times that the kernel paused an event */
    uint64_t ended;        /* threads, while the automatic choice watches */
    uint64_t sampled;      /* ns or events that `samples` stand for */
    uint64_t accounted;    /* ns or events that all samples stand for, the lost ones too */
    uint64_t duplicated;   /* ns or events that `duplicate` stand for */
    uint64_t event_count;  /* ns of the task clock, or events, as the kernel counted them, but for
                            * the duplicates */
    uint64_t cpu_time;     /* ns, of the process without the sampler */
    unsigned int subticks; /* now */
    unsigned int threads;  /* that were there at the start */
    unsigned int cpus;
    struct conflict conflict;
    bool samples_kernel;
    bool corrupt; /* a ring held what could not be a record, and is no longer read */
    enum refinement refinement;
    uint64_t refined_at; /* ns since 1970 */
};

struct tally {
    struct range_set *ranges;
    unsigned int subticks;
    uint64_t sample_period;
    uint64_t random; /* for profil_bucket_carry(), not 0 */
    pid_t process;
    struct sampler_counts counts;
};

/* Reads the rings of the attachment into the tally; the number of records. */
size_t profil_tally_drain(struct tally *tally, struct attachment *attachment);

#endif
