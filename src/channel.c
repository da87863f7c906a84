#include "channel.h"

#include "kernel.h"

#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>

/* A signal that nothing sends: the stack fault of a coprocessor that never was, where it exists. */
#ifdef SIGSTKFLT
enum { WAKE_SIGNAL = SIGSTKFLT };
#else
enum { WAKE_SIGNAL = SIGPWR };
#endif

/* Where the signal is refused, the sampler looks for a command by itself that often; and so rarely
 * where the signal may yet be refused and nothing else is sure to wake it. */
enum { LOOK_MILLISECONDS = 20, RARE_LOOK_MILLISECONDS = 1000 };

enum notice { NOTICE_UNDECIDED, NOTICE_SILENT, NOTICE_SIGNALLED };

void profil_channel_init(struct channel *channel)
{
    *channel = (struct channel){.command = COMMAND_START, .notice = NOTICE_SILENT, .signal_fd = -1};
}

static int await_answer(struct channel *channel)
{
    while (!atomic_load_explicit(&channel->answered, memory_order_acquire))
        kernel_futex_wait(&channel->answered, 0, NULL);
    return channel->result;
}

/* A filter that came after the start refuses the signal. The caller is a sampled thread: the CPU
 * time that it uses up here brings a sample, which wakes the sampler. */
static void work_until_answered(struct channel *channel)
{
    while (!atomic_load_explicit(&channel->answered, memory_order_acquire))
        ;
}

int profil_channel_await_start(struct channel *channel)
{
    return await_answer(channel);
}

int profil_channel_call(struct channel *channel, enum command command)
{
    uint32_t none = COMMAND_NONE;
    enum notice notice = NOTICE_SILENT;
    bool refused = false;

    atomic_store(&channel->notice, NOTICE_UNDECIDED);
    atomic_store(&channel->answered, 0);
    if (!atomic_compare_exchange_strong(&channel->command, &none, command))
        return -ESRCH;
    kernel_futex_wake(&channel->command);
    /* The sampler sets `polling` and then looks at `command`; this is the other way round, so one
     * of the two sees the other. */
    if (atomic_load(&channel->polling)) {
        refused = kernel_tgkill(getpid(), channel->sampler, WAKE_SIGNAL) < 0;
        notice = refused ? NOTICE_SILENT : NOTICE_SIGNALLED;
    }
    atomic_store(&channel->notice, notice);
    kernel_futex_wake(&channel->notice);
    if (refused && channel->poll_timeout < 0)
        work_until_answered(channel);
    return await_answer(channel);
}

int profil_channel_attach(struct channel *channel, bool work_wakes)
{
    sigset_t mask;

    channel->sampler = kernel_gettid();
    channel->poll_timeout = work_wakes ? -1 : RARE_LOOK_MILLISECONDS;
    if (kernel_tgkill(getpid(), channel->sampler, 0) < 0)
        channel->poll_timeout = LOOK_MILLISECONDS;
    sigemptyset(&mask);
    sigaddset(&mask, WAKE_SIGNAL);
    channel->signal_fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    return channel->signal_fd < 0 ? -errno : 0;
}

enum command profil_channel_command(struct channel *channel)
{
    return atomic_load(&channel->command);
}

/* Takes the signal that came with this command, and no other. It is certain to be there once the
 * caller has said that it was sent, and a thread's own signals are read before the process's. Left
 * pending, it would swallow the next one. */
static void take_notice(struct channel *channel)
{
    struct signalfd_siginfo taken;
    uint32_t notice;

    while ((notice = atomic_load(&channel->notice)) == NOTICE_UNDECIDED)
        kernel_futex_wait(&channel->notice, NOTICE_UNDECIDED, NULL);
    if (notice == NOTICE_SIGNALLED)
        while (read(channel->signal_fd, &taken, sizeof(taken)) < 0 && errno == EINTR)
            ;
}

void profil_channel_answer(struct channel *channel, int result)
{
    take_notice(channel);
    channel->result = result;
    atomic_store(&channel->command, COMMAND_NONE);
    atomic_store_explicit(&channel->answered, 1, memory_order_release);
    kernel_futex_wake(&channel->answered);
}

bool profil_channel_close(struct channel *channel)
{
    uint32_t none = COMMAND_NONE;

    return atomic_compare_exchange_strong(&channel->command, &none, COMMAND_CLOSED);
}

int profil_channel_poll(struct channel *channel, struct pollfd *descriptors, nfds_t count)
{
    int ready = 0;

    descriptors[count - 1] = (struct pollfd){.fd = channel->signal_fd, .events = POLLIN};
    atomic_store(&channel->polling, true);
    if (profil_channel_command(channel) == COMMAND_NONE)
        ready = poll(descriptors, count, channel->poll_timeout);
    atomic_store(&channel->polling, false);
    return ready;
}

void profil_channel_rest(struct channel *channel, long nanoseconds)
{
    struct timespec timeout = {.tv_nsec = nanoseconds};

    kernel_futex_wait(&channel->command, COMMAND_NONE, &timeout);
}
