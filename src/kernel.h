/* The system calls that the C library has no function for, and the orderings of the ring protocol.
 *
 * Each call returns the kernel's result, or -errno. */
#ifndef PROFIL_KERNEL_H
#define PROFIL_KERNEL_H

#include <errno.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

/* Linux 6.0: read(2) of an event also gives the number of its records that found no room. */
#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)
#endif

static inline long kernel_result(long result)
{
    return result == -1 ? -errno : result;
}

static inline int kernel_perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
    return (int)kernel_result(
        syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

static inline int kernel_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
#ifdef SYS_close_range
    return (int)kernel_result(syscall(SYS_close_range, first, last, flags));
#else
    (void)first, (void)last, (void)flags;
    return -ENOSYS;
#endif
}

static inline long kernel_getdents64(int fd, void *buffer, size_t size)
{
    return kernel_result(syscall(SYS_getdents64, fd, buffer, size));
}

static inline int kernel_tgkill(pid_t process, pid_t thread, int signal)
{
    return (int)kernel_result(syscall(SYS_tgkill, process, thread, signal));
}

static inline pid_t kernel_gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* Sleeps while *word == value; timeout is relative, NULL for none. */
static inline int kernel_futex_wait(_Atomic uint32_t *word, uint32_t value,
                                    const struct timespec *timeout)
{
    return (int)kernel_result(
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0));
}

static inline int kernel_futex_wake(_Atomic uint32_t *word)
{
    return (int)kernel_result(
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0));
}

/* The kernel publishes records by moving data_head; they may be read after this load. */
static inline uint64_t kernel_ring_head(const struct perf_event_mmap_page *page)
{
    return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* The kernel may overwrite what lies before data_tail; every read of it comes before this store. */
static inline void kernel_ring_release(struct perf_event_mmap_page *page, uint64_t tail)
{
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

#endif
