/* A handler in the manner of SIGPROF's at any rate: a signal to the thread at each sample, and a
 * count in the handler. A CPU timer would be no faster than the kernel's tick; a perf event with
 * F_SETSIG is exact. */
#include "backend.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

const bool backend_sees_all_threads = false;

static uint64_t sample_period;
static struct counts sum;
static _Thread_local int event_fd = -1;

static uintptr_t interrupted_at(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* Threads share the counts, as they do in the C library; here no count may be lost by that. */
static void take_sample(int signal, siginfo_t *info, void *context)
{
    size_t function = workload_find(interrupted_at(context));

    (void)signal;
    (void)info;
    __atomic_fetch_add(&sum.total, 1, __ATOMIC_RELAXED);
    if (function < HOT_FUNCTIONS)
        __atomic_fetch_add(&sum.function[function], 1, __ATOMIC_RELAXED);
}

static int send_signals(int fd)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};

    if (fcntl(fd, F_SETOWN_EX, &owner) < 0 || fcntl(fd, F_SETSIG, SIGPROF) < 0 ||
        fcntl(fd, F_SETFL, O_ASYNC) < 0)
        return -errno;
    return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

static int enter(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = sample_period,
                                   .sample_type = PERF_SAMPLE_IP,
                                   .disabled = 1,
                                   .wakeup_events = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        attr.exclude_kernel = 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    if (fd < 0)
        return -errno;
    event_fd = fd;
    return send_signals(fd);
}

int backend_start(uint64_t period, enum scope scope)
{
    struct sigaction action = {.sa_sigaction = take_sample, .sa_flags = SA_SIGINFO | SA_RESTART};

    (void)scope;
    sample_period = period;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, NULL) < 0)
        return -errno;
    return enter();
}

void backend_stop(void)
{
    backend_leave();
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
    enter();
}

void backend_leave(void)
{
    if (event_fd >= 0)
        close(event_fd);
    event_fd = -1;
}
