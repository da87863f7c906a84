/* What the tests on real perf events share. */
#ifndef LIVE_SUPPORT_H
#define LIVE_SUPPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/profil.h>

/* CPU time so far, in seconds: of the process, of the calling thread. */
double support_process_seconds(void);
double support_thread_seconds(void);

/* Uses that much CPU time of the calling thread, nearly all of it in user mode. */
void support_burn(double seconds);

/* The same as the start function of a thread; the argument points to the seconds. */
void *support_burn_thread(void *seconds);

/* Skips the calling test, with the reason, where perf events cannot be had; fails it instead when
 * the environment says that they must be there (CI=true or PROFIL_REQUIRE_PERF=1). */
void support_require_perf(void);

/* profil(NULL, 0, 0, 0), which must succeed. */
void support_off(void);

unsigned long support_sum(const unsigned short *counters, size_t count);

/* A function alone in a section of its own, which must be named as a C identifier: the linker then
 * knows where it starts and ends, whatever a compiler makes of it. */
#define SUPPORT_IN_SECTION(name) __attribute__((noinline, section(#name)))

/* Declares the ends of such a section. */
#define SUPPORT_SECTION(name) extern const char __start_##name[], __stop_##name[]

/* A busy loop with its extent. Two of them, so that ticks can be told apart. */
struct support_hot {
    void (*run)(unsigned long rounds);
    const char *start, *end;
};

extern const struct support_hot support_hot_first, support_hot_second;

/* The range for sprofil() with a counter for each piece of the loop's text that is as wide as one,
 * and for nothing behind it. There is room for that many bytes of counters. */
struct prof support_range(const struct support_hot *hot, void *counters, size_t bytes);

/* Uses that much CPU time of the calling thread in the loop; returns what it really was. */
double support_burn_in(const struct support_hot *hot, double seconds);

/* A thread that does so, and then ends; with a gate, not before it has passed that barrier. */
struct support_burner {
    const struct support_hot *hot;
    double seconds;
    pthread_barrier_t *gate;
    double used; /* after the gate; valid once joined */
    pthread_t thread;
};

void support_burner_start(struct support_burner *burner);
double support_burner_join(struct support_burner *burner);

/* Whether samples that fall into the kernel are to be had, as perf_event_open(2) itself answers,
 * and the library knows whom to charge them to. */
bool support_kernel_is_sampled(void);

/* The most ticks that so much CPU time may have. None is invented; but the clock of a thread may
 * leave out what interrupts and the host of a virtual machine take from it, which that of an event
 * does not, and the threads of the test itself may have one. */
double support_most_ticks(double seconds);

/* Fails if that many ticks are not what was expected, by these bounds.
 *
 * Above: support_most_ticks().
 *
 * Below: on each CPU that a thread runs on, the part of its time that does not fill a tick is never
 * seen; that is 5 ms on average, and in a second on two CPUs 2 % at most. And the thread's clock
 * runs while the kernel switches to it and the event's does not yet, which makes 1 % on a busy
 * machine.
 *
 * Where the kernel is not sampled, a tick that comes due in it is lost: while a thread is switched
 * to and from, or interrupted. On a busy machine that is up to 3 % of a busy thread's time; that it
 * happens to more ticks by chance is bounded by four standard deviations of a binomial count. */
void support_assert_ticks(unsigned long ticks, double expected);

/* The same, where other threads, which are not looked at more closely, may add that many at most.
 */
void support_assert_ticks_and_up_to(unsigned long ticks, double expected, double more);

/* The ticks that the CPU time of one thread on one CPU gives: each event starts with a full period.
 */
unsigned long support_whole_ticks(double seconds);

/* The CPUs that the program may run on. */
int support_cpu_count(void);

/* Confines the calling thread, and those that it creates, to the first `count` of these CPUs. */
void support_confine(int count);

/* Binds the calling thread, and those that it creates, to one of these CPUs; goes round at the end.
 */
void support_bind(int number);

/* The threads that /proc shows. One that has been joined may be among them for a moment. */
size_t support_thread_count(void);

/* Whether there are that many in the end; waits up to a second for it. */
bool support_thread_count_becomes(size_t count);

#endif
