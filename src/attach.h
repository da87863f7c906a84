/* The events of every thread on every CPU, and the rings they write to: one event per thread and
 * CPU, because the kernel maps no ring over an inherited event that follows its thread; one ring
 * per CPU.
 *
 * All of it belongs to the thread that opens it, in whose descriptor table it is. */
#ifndef PROFIL_ATTACH_H
#define PROFIL_ATTACH_H

#include "cover.h"
#include "cpus.h"
#include "event.h"
#include "memory.h"
#include "ring.h"

#include <poll.h>

struct attachment;

/* What was being done when the kernel refused. */
enum attach_step { ATTACH_CPUS, ATTACH_THREADS, ATTACH_EVENT, ATTACH_RING, ATTACH_CONTROL };

/* Opens the event, disabled, for every thread that is not the library's own, with rings of at most
 * that many pages; all of them are smaller where locked memory is short. 0 or -errno, with `failed`
 * set and nothing left behind. */
int profil_attach_open(struct attachment *attachment, const struct event_spec *spec,
                       size_t ring_pages, enum attach_step *failed);

/* 0 or -errno. */
int profil_attach_enable(struct attachment *attachment);

/* Stops the clocks; what is in the rings stays. */
void profil_attach_disable(struct attachment *attachment);

void profil_attach_close(struct attachment *attachment);

/* In a forked child: gives back the memory; rings and descriptors were never there. */
void profil_attach_forget(struct attachment *attachment);

/* What the kernel counted since the opening, over all threads that are or were. */
struct attach_count {
    uint64_t value; /* ns of the task clock, or events */
    uint64_t lost;  /* samples that found no room; only where the kernel says (6.0) */
    bool lost_known;
};

void profil_attach_read(const struct attachment *attachment, struct attach_count *count);

/* The number of threads that have events of their own, and of CPUs. */
unsigned int profil_attach_threads(const struct attachment *attachment);

/* Reads all rings; the number of records. */
size_t profil_attach_drain(struct attachment *attachment, const struct ring_reader *reader);

/* Whether a ring was more than a quarter full at the last reading. */
bool profil_attach_pressed(const struct attachment *attachment);

/* Whether a ring held what could not be a record. */
bool profil_attach_corrupt(const struct attachment *attachment);

/* Whether the sample counts, or stands for a tick that another event of its thread also gave. */
bool profil_attach_accepts(struct attachment *attachment, const struct sample *sample);

/* One pollfd per ring, and one more entry at the end for the caller's own use; the total. */
nfds_t profil_attach_pollfds(struct attachment *attachment, struct pollfd **descriptors);

/* After poll(2): stops watching the events of threads that have gone. False when no event is left
 * that could ever write again, which is when all threads have gone. */
bool profil_attach_refresh(struct attachment *attachment);

struct event {
    uint64_t id;
    int fd;
    pid_t tid;
    unsigned int ring;
};

struct attachment {
    struct event_spec spec;
    size_t ring_pages;
    enum attach_step step;

    struct cpu_mask cpus;
    unsigned int ring_count;
    struct growable ring_memory; /* struct ring_watch[ring_count] */
    struct growable poll_memory; /* struct pollfd[ring_count + 1] */

    unsigned int thread_count;
    bool pressed;
    size_t event_count;
    struct growable event_memory; /* struct event[event_count], by ascending id */
    struct growable cover_memory; /* struct cover, once a thread may have two events */
};

#endif
