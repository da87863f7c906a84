#include "memory.h"

#include "kernel.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Touching a page to test it makes it resident. Up to here that costs a few milliseconds at most
 * and is exact; the test of a larger buffer, which may well be sparse, reads the memory map
 * instead. */
enum { TOUCH_AT_MOST = 8 << 20 };

size_t profil_memory_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int profil_memory_grow(struct growable *memory, size_t bytes)
{
    size_t page = profil_memory_page();
    size_t wanted = memory->bytes ? memory->bytes : page;
    void *base;

    while (wanted < bytes)
        if (__builtin_mul_overflow(wanted, (size_t)2, &wanted))
            return -ENOMEM;
    if (memory->base && wanted == memory->bytes)
        return 0;
    wanted = (wanted + page - 1) / page * page;
    if (memory->base)
        base = mremap(memory->base, memory->bytes, wanted, MREMAP_MAYMOVE);
    else
        base = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    memory->base = base;
    memory->bytes = wanted;
    return 0;
}

void profil_memory_free(struct growable *memory)
{
    if (memory->base)
        munmap(memory->base, memory->bytes);
    *memory = (struct growable){0};
}

void *profil_memory_reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void profil_memory_release(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

/* Adds 0 to the word, atomically and in the kernel, which reports a fault instead of raising
 * SIGSEGV. FUTEX_WAKE_OP wakes a waiter on that word if its comparison holds: this one holds for
 * few values, and whoever waits on a futex has to expect being woken for nothing. */
static int touch(uintptr_t word)
{
    uint32_t dummy = 0;
    long result =
        kernel_result(syscall(SYS_futex, &dummy, FUTEX_WAKE_OP_PRIVATE, 0, NULL, (uint32_t *)word,
                              FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, -2048)));

    return result == -EFAULT ? -EFAULT : 0;
}

static int touch_pages(uintptr_t start, uintptr_t last)
{
    size_t page = profil_memory_page();
    int result = touch(start & ~(uintptr_t)3);

    for (uintptr_t at = (start & ~(page - 1)) + page; result == 0 && at <= last && at != 0;
         at += page)
        result = touch(at);
    return result;
}

struct map_reader {
    int fd;
    size_t length, position;
    char buffer[2048];
};

/* The next line of the map, cut off at the end of `line`; false at the end. */
static bool read_line(struct map_reader *reader, char *line, size_t size)
{
    size_t used = 0;

    for (;;) {
        if (reader->position == reader->length) {
            ssize_t got = read(reader->fd, reader->buffer, sizeof(reader->buffer));

            if (got <= 0)
                return false;
            reader->length = (size_t)got;
            reader->position = 0;
        }
        char next = reader->buffer[reader->position++];
        if (next == '\n')
            break;
        if (used + 1 < size)
            line[used++] = next;
    }
    line[used] = '\0';
    return true;
}

/* Walks the map, which is in ascending order, as long as writable pieces follow on each other. */
static int walk_map(struct map_reader *reader, uintptr_t start, uintptr_t last)
{
    char line[64];

    while (read_line(reader, line, sizeof(line))) {
        unsigned long from, to;
        char permissions[5];

        if (sscanf(line, "%lx-%lx %4s", &from, &to, permissions) != 3)
            return -EFAULT;
        if (to <= start)
            continue;
        if (from > start || permissions[1] != 'w')
            return -EFAULT;
        if (last < to)
            return 0;
        start = to;
    }
    return -EFAULT;
}

int profil_memory_check_writable(void *start, size_t bytes)
{
    uintptr_t first = (uintptr_t)start, last;
    struct map_reader reader = {0};
    int result;

    if (bytes == 0)
        return 0;
    if (__builtin_add_overflow(first, bytes - 1, &last))
        return -EFAULT;
    if (bytes <= TOUCH_AT_MOST)
        return touch_pages(first, last);
    reader.fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (reader.fd < 0)
        return touch_pages(first, last);
    result = walk_map(&reader, first, last);
    close(reader.fd);
    return result;
}
