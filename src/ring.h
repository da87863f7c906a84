/* One ring buffer of the kernel: records in, samples out.
 *
 * The kernel writes records of any size that is a multiple of eight between data_tail and
 * data_head, which only grow; they may wrap at the end of the data. */
#ifndef PROFIL_RING_H
#define PROFIL_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ring {
    struct perf_event_mmap_page *page; /* NULL: not mapped */
    const unsigned char *data;
    size_t size; /* of the data, a power of two */
    uint64_t tail;
    size_t id_word;       /* of a sample: where it has the number of its event */
    size_t register_word; /* of a sample: where it has the registers' ABI, if any; 0: nowhere */
    bool corrupt;         /* a record could not be; nothing more is read */
};

struct sample {
    uintptr_t pc;
    bool attributed; /* false: in the kernel, and no user PC is known */
    pid_t process;
    pid_t thread;
    uint64_t event_id; /* of the event that was opened, also for one that inherited it */
};

/* What a reading calls for each record of its kind; the rest is skipped, and so is what has NULL
 * here. */
struct ring_reader {
    void (*sample)(void *context, const struct sample *sample);
    void (*lost)(void *context, uint64_t count);
    void (*throttled)(void *context);
    void (*ended)(void *context); /* a thread */
    void *context;
};

/* Maps a ring of that many data pages, a power of two, over the event. 0 or -errno. */
int profil_ring_map(struct ring *ring, int fd, size_t pages, const struct perf_event_attr *attr);

void profil_ring_unmap(struct ring *ring);

/* Reads what the kernel has published so far; the number of records. */
size_t profil_ring_drain(struct ring *ring, const struct ring_reader *reader);

#endif
