#include "threads.h"

#include "kernel.h"
#include "memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Where threads are born faster than they can be visited there is always a new one. Those born of a
 * visited thread are its visitor's already; a reading finds the rest, fewer each time. */
enum { READINGS_AT_MOST = 32 };

struct visited {
    struct growable bits; /* one per thread id, of which the kernel has at most 2^22 */
};

/* Marks the thread; 1 if it was not marked before, 0 if it was, or -ENOMEM. */
static int mark(struct visited *visited, pid_t tid)
{
    size_t byte = (size_t)tid / CHAR_BIT;
    unsigned char bit = (unsigned char)(1 << tid % CHAR_BIT);
    unsigned char *bits;
    int result = profil_memory_grow(&visited->bits, byte + 1);

    if (result < 0)
        return result;
    bits = visited->bits.base;
    if (bits[byte] & bit)
        return 0;
    bits[byte] |= bit;
    return 1;
}

struct reading {
    int fd;
    unsigned int generation;
    unsigned long listed;
    unsigned long fresh;
    bool trusted; /* it is the /proc of this process's namespace */
};

static pid_t entry_tid(const struct dirent64 *entry)
{
    return (pid_t)strtol(entry->d_name, NULL, 10);
}

static int visit_entry(struct reading *reading, struct visited *visited, pid_t tid,
                       int (*visit)(void *, pid_t, unsigned int), void *context)
{
    int result;

    if (tid <= 0)
        return 0;
    result = mark(visited, tid);
    if (result <= 0)
        return result;
    reading->fresh++;
    return visit(context, tid, reading->generation);
}

/* All names first, visits afterwards: the kernel ends a listing early when the thread it has
 * reached is gone by the next call, and visits take time. */
static int read_entries(struct reading *reading, struct growable *names, size_t *used)
{
    enum { AT_ONCE = 32768 };

    *used = 0;
    for (;;) {
        long got;
        int result = 0;

        if (names->bytes < *used + AT_ONCE) /* twice: the call that finds the end needs room, too */
            result = profil_memory_grow(names, *used + 2 * AT_ONCE);
        if (result < 0)
            return result;
        got = kernel_getdents64(reading->fd, (char *)names->base + *used, names->bytes - *used);
        if (got <= 0)
            return (int)got;
        *used += (size_t)got;
    }
}

static const struct dirent64 *entry_at(const struct growable *names, size_t at)
{
    return (const void *)((const char *)names->base + at);
}

static bool look_over(struct reading *reading, const struct growable *names, size_t used)
{
    pid_t self = kernel_gettid();
    bool found = false;

    for (size_t at = 0; at < used; at += entry_at(names, at)->d_reclen) {
        pid_t tid = entry_tid(entry_at(names, at));

        reading->listed += tid > 0;
        found = found || tid == self;
    }
    return found;
}

/* Fewer names than there are threads means that the listing ended early. */
static bool complete(const struct reading *reading)
{
    return reading->listed >= profil_threads_count(reading->fd);
}

/* The /proc of another process namespace shows other numbers than the system calls take: before the
 * calling thread was seen by its own, nothing is visited. A listing that ended early may lack it.
 */
static int read_once(struct reading *reading, struct visited *visited, struct growable *names,
                     int (*visit)(void *, pid_t, unsigned int), void *context)
{
    size_t used;
    int result;

    if (lseek(reading->fd, 0, SEEK_SET) < 0)
        return -errno;
    result = read_entries(reading, names, &used);
    if (result < 0)
        return result;
    reading->trusted = look_over(reading, names, used) || reading->trusted;
    if (!reading->trusted)
        return 0;
    for (size_t at = 0; at < used && result >= 0; at += entry_at(names, at)->d_reclen)
        result = visit_entry(reading, visited, entry_tid(entry_at(names, at)), visit, context);
    return result;
}

int profil_threads_open(void)
{
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* The directory's link count is the number of threads plus two. */
unsigned long profil_threads_count(int fd)
{
    struct stat status;

    return fstat(fd, &status) < 0 || status.st_nlink < 2 ? 0 : status.st_nlink - 2;
}

int profil_threads_visit(int (*visit)(void *context, pid_t tid, unsigned int generation),
                         void *context)
{
    struct reading reading = {0};
    struct visited visited = {0};
    struct growable names = {0};
    int result, readings = 0;

    reading.fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (reading.fd < 0)
        return -errno;
    do {
        reading.listed = reading.fresh = 0;
        result = read_once(&reading, &visited, &names, visit, context);
        reading.generation += reading.trusted;
        readings++;
    } while (result >= 0 && (!reading.trusted || reading.fresh > 0 || !complete(&reading)) &&
             readings < READINGS_AT_MOST);
    close(reading.fd);
    profil_memory_free(&names);
    profil_memory_free(&visited.bits);
    if (result >= 0 && !reading.trusted)
        return -ESRCH;
    return result < 0 ? result : 0;
}
