/* Looking at this process from inside, and watching another one run. */
#ifndef LIVE_PROCESS_H
#define LIVE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The address sanitizer: its own memory grows as it goes, and its allocator is not made for a
 * fork() beside threads that allocate: the child may hang in it. */
#if defined(__SANITIZE_ADDRESS__)
#define PROCESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PROCESS_SANITIZED 1
#endif
#endif
#ifndef PROCESS_SANITIZED
#define PROCESS_SANITIZED 0
#endif

/* What profiles could leave behind, or take along. A count is 0 when /proc cannot be read;
 * mappings and kilobytes also where a sanitizer makes them meaningless. */
struct process_state {
    size_t threads;
    size_t descriptors;
    size_t mappings;
    size_t rings; /* mappings of perf events */
    size_t kilobytes;
};

void process_read_state(struct process_state *state);

/* The same when no more threads are left than that, or two seconds later: the kernel lists a thread
 * for a moment after pthread_join() has returned. */
void process_read_settled_state(struct process_state *state, size_t threads);

/* A line of /proc/self/task/<tid>/status after "<field>:", white space at both ends cut off. False
 * when the thread or the field is not there. */
bool process_thread_field(pid_t tid, const char *field, char *value, size_t size);

/* The thread of this process that has this name, or 0. */
pid_t process_thread_named(const char *name);

/* Calls visit for each thread of this process. */
void process_each_thread(void (*visit)(void *context, pid_t tid), void *context);

/* Whether so many ticks are what so much CPU time of so many threads gives. A thread leaves up to
 * one period unseen on each CPU that it has been on; few live long enough to see more than four. Of
 * the rest, a few hundredths may be lost where threads are switched and stopped; and a fifth where
 * the kernel's part of the CPU time is not sampled, which grows with what else runs on the machine.
 */
bool process_ticks_fit(unsigned long ticks, double seconds, unsigned int threads);

struct outcome {
    int status; /* as waitpid(2) gives it */
    char output[8192];
    char complaints[8192]; /* standard error */
};

/* A child that has not ended after so many seconds hangs, since none uses more than a few seconds
 * of CPU time, whatever else runs on the machine. It is killed, which its status shows. */
enum { PROCESS_WATCHDOG_SECONDS = 60 };

/* Runs the body in a forked child, which then ends by _exit(0). */
void process_fork(struct outcome *outcome, void (*body)(void *context), void *context);

/* Runs the program in a child whose descriptors are 0, 1 and 2 and no more. */
void process_execute(struct outcome *outcome, const char *path, char *const arguments[]);

/* In a child, where no assertion of the test framework can be made: profil(NULL, 0, 0, 0). */
void process_profil_off(void);

/* In a child: says on standard error what is not as it should be. */
void process_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* In a test: the child ended as waitpid(2) shows by this status, and did not complain. */
void process_expect(const struct outcome *outcome, int status);

/* The status of exit(code), and that of a signal. */
int process_exited(int code);
int process_killed(int signal);

#endif
