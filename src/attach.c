#include "attach.h"

#include "kernel.h"
#include "own.h"
#include "threads.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

/* A ring is watched through one event that writes to it; when that event's thread and everything
 * that inherited it are gone, poll(2) says POLLHUP for ever, and the next event takes over. */
struct ring_watch {
    struct ring ring;
    int cpu;
    int owner_fd;   /* the event over which the ring is mapped, which writes nothing; or -1 */
    size_t watched; /* index of an event; event_count: none is left */
};

static struct ring_watch *rings(const struct attachment *attachment)
{
    return attachment->ring_memory.base;
}

static struct event *events(const struct attachment *attachment)
{
    return attachment->event_memory.base;
}

static struct pollfd *pollfds(const struct attachment *attachment)
{
    return attachment->poll_memory.base;
}

static int prepare_rings(struct attachment *attachment)
{
    unsigned int count = 0;
    int result;

    attachment->step = ATTACH_CPUS;
    result = profil_cpus_read(&attachment->cpus);

    for (int cpu = profil_cpus_next(&attachment->cpus, 0); cpu >= 0 && result == 0;
         cpu = profil_cpus_next(&attachment->cpus, cpu + 1)) {
        result =
            profil_memory_grow(&attachment->ring_memory, (count + 1) * sizeof(struct ring_watch));
        if (result == 0)
            rings(attachment)[count++] = (struct ring_watch){.cpu = cpu, .owner_fd = -1};
    }
    attachment->ring_count = count;
    if (result == 0)
        result = profil_memory_grow(&attachment->poll_memory, (count + 1) * sizeof(struct pollfd));
    return result;
}

enum { FOR_RING = 0 };

static int try_event(struct event_spec *spec, pid_t tid, int cpu)
{
    return tid == FOR_RING ? profil_event_open_ring(spec, cpu) : profil_event_open(spec, tid, cpu);
}

/* The soft limit of descriptors is the program's business, and may be small, but the table is this
 * thread's own: the limit is lifted while the event gets its number. */
static int open_event(struct event_spec *spec, pid_t tid, int cpu)
{
    struct rlimit before, lifted;
    int fd = try_event(spec, tid, cpu);

    if (fd != -EMFILE || getrlimit(RLIMIT_NOFILE, &before) < 0 ||
        before.rlim_cur == before.rlim_max)
        return fd;
    lifted = (struct rlimit){.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &lifted) < 0)
        return fd;
    fd = try_event(spec, tid, cpu);
    setrlimit(RLIMIT_NOFILE, &before);
    return fd;
}

/* Once an event of the CPU is open: what its samples consist of is then settled. */
static int map_ring(struct attachment *attachment, struct ring_watch *watch)
{
    attachment->step = ATTACH_EVENT;
    watch->owner_fd = open_event(&attachment->spec, FOR_RING, watch->cpu);
    if (watch->owner_fd < 0)
        return watch->owner_fd;
    attachment->step = ATTACH_RING;
    return profil_ring_map(&watch->ring, watch->owner_fd, attachment->ring_pages,
                           &attachment->spec.attr);
}

/* Lets the event write to its CPU's ring. */
static int join_ring(struct attachment *attachment, struct ring_watch *watch, int fd)
{
    int result = watch->ring.page ? 0 : map_ring(attachment, watch);

    if (result < 0)
        return result;
    attachment->step = ATTACH_CONTROL;
    return (int)kernel_result(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, watch->owner_fd));
}

static int add_event(struct attachment *attachment, pid_t tid, unsigned int ring)
{
    struct ring_watch *watch = &rings(attachment)[ring];
    struct event event = {.tid = tid, .ring = ring};
    int result = profil_memory_grow(&attachment->event_memory,
                                    (attachment->event_count + 1) * sizeof(struct event));

    if (result < 0)
        return result;
    attachment->step = ATTACH_EVENT;
    event.fd = open_event(&attachment->spec, tid, watch->cpu);
    if (event.fd < 0)
        return event.fd == -ENODEV ? 0 : event.fd; /* a CPU that went offline runs nothing */
    result = join_ring(attachment, watch, event.fd);
    if (result == 0) {
        attachment->step = ATTACH_CONTROL;
        result = (int)kernel_result(ioctl(event.fd, PERF_EVENT_IOC_ID, &event.id));
    }
    if (result < 0) {
        close(event.fd);
        return result;
    }
    events(attachment)[attachment->event_count++] = event;
    return 0;
}

/* A thread of a later reading may have inherited the event of a thread that was visited before it
 * was born, or may not. It is given its own in any case, and the samples sort it out. */
static int visit_thread(void *context, pid_t tid, unsigned int generation)
{
    struct attachment *attachment = context;
    size_t events_before = attachment->event_count;
    int result = 0;

    if (profil_own_has(tid))
        return 0;
    if (generation > 0)
        result = profil_memory_grow(&attachment->cover_memory, sizeof(struct cover));
    for (unsigned int ring = 0; ring < attachment->ring_count && result == 0; ring++)
        result = add_event(attachment, tid, ring);
    attachment->thread_count += attachment->event_count > events_before;
    return result == -ESRCH ? 0 : result; /* the thread has gone */
}

static size_t next_event(const struct attachment *attachment, unsigned int ring, size_t from)
{
    while (from < attachment->event_count && events(attachment)[from].ring != ring)
        from++;
    return from;
}

static void watch_event(struct attachment *attachment, unsigned int ring, size_t index)
{
    rings(attachment)[ring].watched = index;
    pollfds(attachment)[ring] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (index < attachment->event_count)
        pollfds(attachment)[ring].fd = events(attachment)[index].fd;
}

static int open_all(struct attachment *attachment)
{
    int result = prepare_rings(attachment);

    if (result == 0) {
        attachment->step = ATTACH_THREADS;
        result = profil_threads_visit(visit_thread, attachment);
        if (result == -ESRCH) /* not of a visit, to which a thread that has gone is no failure */
            attachment->step = ATTACH_THREADS;
    }
    if (result == 0 && attachment->event_count == 0)
        result = -ESRCH;
    return result;
}

int profil_attach_open(struct attachment *attachment, const struct event_spec *spec,
                       size_t ring_pages, enum attach_step *failed)
{
    int result;

    for (;; ring_pages /= 2) {
        *attachment = (struct attachment){.spec = *spec, .ring_pages = ring_pages};
        result = open_all(attachment);
        if (result == 0)
            break;
        *failed = attachment->step;
        profil_attach_close(attachment);
        if (*failed != ATTACH_RING || (result != -EPERM && result != -ENOMEM) || ring_pages == 1)
            return result;
    }
    for (unsigned int ring = 0; ring < attachment->ring_count; ring++)
        watch_event(attachment, ring, next_event(attachment, ring, 0));
    return 0;
}

int profil_attach_enable(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->event_count; i++)
        if (ioctl(events(attachment)[i].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
            return -errno;
    return 0;
}

void profil_attach_disable(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->event_count; i++)
        ioctl(events(attachment)[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

void profil_attach_close(struct attachment *attachment)
{
    for (unsigned int ring = 0; ring < attachment->ring_count; ring++) {
        profil_ring_unmap(&rings(attachment)[ring].ring);
        if (rings(attachment)[ring].owner_fd >= 0)
            close(rings(attachment)[ring].owner_fd);
    }
    for (size_t i = 0; i < attachment->event_count; i++)
        close(events(attachment)[i].fd);
    profil_attach_forget(attachment);
}

void profil_attach_forget(struct attachment *attachment)
{
    profil_memory_free(&attachment->ring_memory);
    profil_memory_free(&attachment->poll_memory);
    profil_memory_free(&attachment->event_memory);
    profil_memory_free(&attachment->cover_memory);
    *attachment = (struct attachment){0};
}

void profil_attach_read(const struct attachment *attachment, struct attach_count *count)
{
    struct {
        uint64_t value, id, lost;
    } read_out;

    *count =
        (struct attach_count){.lost_known = attachment->spec.attr.read_format & PERF_FORMAT_LOST};
    for (size_t i = 0; i < attachment->event_count; i++) {
        read_out.lost = 0;
        if (read(events(attachment)[i].fd, &read_out, sizeof(read_out)) <= 0)
            continue;
        count->value += read_out.value;
        count->lost += read_out.lost;
    }
}

unsigned int profil_attach_threads(const struct attachment *attachment)
{
    return attachment->thread_count;
}

size_t profil_attach_drain(struct attachment *attachment, const struct ring_reader *reader)
{
    size_t count = 0;

    attachment->pressed = false;
    for (unsigned int i = 0; i < attachment->ring_count; i++) {
        struct ring *ring = &rings(attachment)[i].ring;
        uint64_t before = ring->tail;

        if (!ring->page)
            continue;
        count += profil_ring_drain(ring, reader);
        attachment->pressed = attachment->pressed || ring->tail - before > ring->size / 4;
    }
    return count;
}

bool profil_attach_pressed(const struct attachment *attachment)
{
    return attachment->pressed;
}

bool profil_attach_corrupt(const struct attachment *attachment)
{
    for (unsigned int ring = 0; ring < attachment->ring_count; ring++)
        if (rings(attachment)[ring].ring.corrupt)
            return true;
    return false;
}

static int compare_id(const void *key, const void *element)
{
    uint64_t id = *(const uint64_t *)key;
    const struct event *event = element;

    return id < event->id ? -1 : id > event->id;
}

bool profil_attach_accepts(struct attachment *attachment, const struct sample *sample)
{
    const struct event *event;

    if (!attachment->cover_memory.base)
        return true;
    event = bsearch(&sample->event_id, events(attachment), attachment->event_count, sizeof(*event),
                    compare_id);
    return event && profil_cover_accepts(attachment->cover_memory.base, sample->thread, event->tid);
}

nfds_t profil_attach_pollfds(struct attachment *attachment, struct pollfd **descriptors)
{
    *descriptors = pollfds(attachment);
    return attachment->ring_count + 1;
}

bool profil_attach_refresh(struct attachment *attachment)
{
    bool alive = false;

    for (unsigned int ring = 0; ring < attachment->ring_count; ring++) {
        if (pollfds(attachment)[ring].revents & (POLLHUP | POLLERR | POLLNVAL)) {
            size_t next = next_event(attachment, ring, rings(attachment)[ring].watched + 1);

            watch_event(attachment, ring, next);
        }
        alive = alive || pollfds(attachment)[ring].fd >= 0;
    }
    return alive;
}
