/* How the calling threads speak to the sampler thread: one command at a time, each answered.
 *
 * The sampler sleeps in one of two ways. Resting, it waits on the command itself. Polling its
 * events, it can only be woken by a descriptor; a signal that it keeps blocked and sees on a
 * signalfd is the one way that needs no descriptor in the program's own table. No handler ever
 * runs. */
#ifndef PROFIL_CHANNEL_H
#define PROFIL_CHANNEL_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum command {
    COMMAND_NONE,
    COMMAND_START,
    COMMAND_CHANGE,
    COMMAND_READ,
    COMMAND_STOP,
    COMMAND_CLOSED, /* the sampler takes no more */
};

struct channel {
    _Atomic uint32_t command;
    _Atomic uint32_t notice; /* how the caller woke the sampler for this command */
    _Atomic uint32_t answered;
    _Atomic bool polling;
    int result;
    pid_t sampler;
    int signal_fd; /* in the sampler's descriptor table */
    int poll_timeout;
};

/* Before the sampler exists: the first command is START. */
void profil_channel_init(struct channel *channel);

/* Caller: waits for the answer to START. */
int profil_channel_await_start(struct channel *channel);

/* Caller: gives a command and waits for its answer. -ESRCH if the sampler has closed the channel.
 */
int profil_channel_call(struct channel *channel, enum command command);

/* Sampler: from its own thread and descriptor table. `work_wakes`: a caller that uses up CPU time
 * brings samples, and by that the sampler out of its poll. 0 or -errno. */
int profil_channel_attach(struct channel *channel, bool work_wakes);

/* Sampler: the command that waits to be answered, or COMMAND_NONE. */
enum command profil_channel_command(struct channel *channel);

/* Sampler: answers the command that profil_channel_command() gave. */
void profil_channel_answer(struct channel *channel, int result);

/* Sampler: takes no more commands; false if one has come first, which is then to be answered. */
bool profil_channel_close(struct channel *channel);

/* Sampler: sleeps until one of the descriptors has something or a command comes; the last of the
 * count entries is set by this function. */
int profil_channel_poll(struct channel *channel, struct pollfd *descriptors, nfds_t count);

/* Sampler: sleeps for that long unless a command comes. */
void profil_channel_rest(struct channel *channel, long nanoseconds);

#endif
