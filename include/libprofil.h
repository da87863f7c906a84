/* libprofil: profil(3) and sprofil(3) over the kernel's perf events.
 *
 * A program needs this header for neither of the two: <unistd.h> and <sys/profil.h> declare them,
 * and -lprofil puts this library's definitions before those of the C library. The header adds
 *
 *   - the prototype of profil() in every compilation mode. <unistd.h> shows it only where
 *     _DEFAULT_SOURCE holds, which is the case by default and with -std=gnu11, but not with
 *     -std=c11 alone;
 *   - the contract of both functions as this library keeps it, in the comments below;
 *   - profiles of one's own, with other events, periods and counters, and their statistics;
 *   - the version, for the preprocessor.
 *
 * profil(3), sprofil(3), profil_open(3) and libprofil(7) say all of it at length. */
#ifndef LIBPROFIL_H
#define LIBPROFIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/profil.h>
#include <unistd.h>

#define PROFIL_VERSION_MAJOR 0
#define PROFIL_VERSION_MINOR 1
#define PROFIL_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The declarations below are those of the C library once more, and go together with them. In C++ a
 * second declaration has to repeat that nothing is thrown. */
#if !defined(__cplusplus)
#define PROFIL_NOTHROW
#elif __cplusplus >= 201103L
#define PROFIL_NOTHROW noexcept
#else
#define PROFIL_NOTHROW throw()
#endif

/* Counts where the CPU time of the process goes.
 *
 * Each thread of the process gives one tick for every 10 ms of CPU time that it uses. A tick adds
 * one to one counter in buf, chosen by the program counter pc at which the thread then was:
 *
 *     i = floor(floor((pc - offset) / 2) * scale / 65536)
 *
 * counted if i < bufsiz / 2 (an integer division). pc - offset wraps around as size_t does;
 * everything after that is exact. The formula is that of the C library: glibc,
 * sysdeps/posix/profil.c.
 *
 *   buf      The counters, from 0 to 65535, where they stay. They are never zeroed here and need
 *            not be aligned; they must remain writable until the profile is off or has moved.
 *            NULL turns the profile off: the other arguments are then ignored, and it is no error
 *            if it was off.
 *   bufsiz   The size of buf in bytes, any value. With 0 or 1 nothing is counted.
 *   offset   The address of the text that the first counter stands for.
 *   scale    Counters per two bytes of text, in units of 1/65536: with 65536 each two bytes of
 *            text have a counter, with 32768 each four. Any value. 0 does not turn the profile
 *            off: every tick then adds to the first counter.
 *
 * There is one profile in a process; sprofil() sets the same one. A call while it is on moves it;
 * no tick is lost or counted twice by that. When a call that moves it or turns it off returns,
 * every tick so far is counted, and the old buffer is not touched again.
 *
 * Returns 0, with errno unchanged, or -1 with errno:
 *
 *   EFAULT   buf is not writable throughout.
 *   ENOMEM   There is no memory for the library or the kernel.
 *   EAGAIN   The library's threads cannot be created.
 *   EBUSY    The kernel refuses the events, and the C library's profil(), which would be used
 *            instead, would take over an ITIMER_PROF or a SIGPROF handler of the program; or
 *            PROFIL_ON_CONFLICT=fail and there is one.
 *   EINVAL   An environment variable of the library has no such value.
 *   EACCES, EPERM, ENOSYS, EMFILE and others: the kernel refuses the events, and there is nothing
 *            to fall back to; see profil(3). profil_reason() says it in words.
 *
 * A failed call leaves the profile as it was.
 *
 * May be called from any thread at any time, but not from a signal handler, nor in a child made by
 * vfork(). Not a cancellation point.
 *
 * <unistd.h> declares that buf is never NULL, so compilers warn at profil(NULL, 0, 0, 0), although
 * it does what is said above. sprofil(NULL, 0, NULL, 0) does the same without a warning. */
int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale) PROFIL_NOTHROW;

/* The same for several ranges of text at once, each an entry of profp. In an entry, pr_base,
 * pr_size, pr_off and pr_scale are what buf, bufsiz, offset and scale are to profil(), with W for
 * the width of a counter:
 *
 *     i = floor(floor((pc - pr_off) / W) * pr_scale / 65536), for pc >= pr_off
 *
 * counted if i < pr_size / W (an integer division). Of the entries that have a counter for pc, the
 * one with the greatest pr_off gets the tick; where several have that pr_off, the first in the
 * array. The formula is that of the C library: glibc, sysdeps/posix/sprofil.c.
 *
 *   profp    The entries, in any order; the call copies them. One with pr_scale 0 or 1 is ignored.
 *            One with pr_off 0 and pr_scale 2 is the overflow entry: its first counter gets the
 *            ticks that no other entry has a counter for. (Of several, the last one does; one
 *            without room for a counter is ignored.) pr_scale may be up to UINT32_MAX.
 *   profcnt  The number of entries. 0 turns the profile off; profp may then be NULL.
 *   tvp      Where to store the CPU time of a tick, 10 ms, when the call succeeds; or NULL.
 *   flags    PROF_UINT: W is 4, the counters are unsigned int and stay at UINT_MAX. Otherwise W
 *            is 2, as with profil(). Other bits, PROF_FAST among them, have no effect.
 *
 * Returns 0, with errno unchanged, or -1 with errno as for profil(), or
 *
 *   EINVAL   profcnt is negative, or a pr_scale is greater than UINT32_MAX.
 *   EFAULT   also: profp is NULL and profcnt is greater than 0.
 *
 * A failed call leaves the profile as it was. Threads, signal handlers, vfork() and cancellation:
 * as for profil(). */
int sprofil(struct prof *profp, int profcnt, struct timeval *tvp,
            unsigned int flags) PROFIL_NOTHROW;

#undef PROFIL_NOTHROW

/* --- Profiles of one's own ---
 *
 * profil() and sprofil() share one profile with 16- and 32-bit counters and one tick of 10 ms. The
 * functions below make any number of profiles, each with its own event, period and counters, at the
 * same time. They may be called from any thread at any time, except from a signal handler, and not
 * after vfork(). A profile may be used by several threads at once, except that profil_close() must
 * be the last call on it. They return 0, or -1 with errno; profil_reason() then says why in words.
 * A successful call leaves errno alone. A pointer is never NULL, except where that is said.
 *
 * A forked child has the profiles of its parent, stopped: it may start them again or close them.
 */

/* A profile; opaque. */
typedef struct profil_profile profil_profile;

/* Where ticks come from. */
enum profil_engine {
    PROFIL_ENGINE_AUTO, /* perf events; where they cannot be had, the C library's profil() */
    PROFIL_ENGINE_PERF, /* perf events, or fail */
    PROFIL_ENGINE_LIBC /* the C library's profil(): SIGPROF, one such profile in a process, with one
                        * range of 16-bit counters, a tick of 10 ms, and its faults */
};

/* What becomes of a tick that falls into the kernel (a system call, a page fault). */
enum profil_system {
    PROFIL_SYSTEM_AUTO, /* charged to the user PC that entered the kernel, where the kernel permits
                         * (CAP_PERFMON, or kernel.perf_event_paranoid <= 1), else not sampled */
    PROFIL_SYSTEM_CHARGE, /* charged, or fail: with EACCES where the kernel does not let itself be
                           * sampled. Never by the C library's profil(): ENOTSUP if that was asked
                           * for */
    PROFIL_SYSTEM_USER    /* not sampled */
};

/* What to do when ITIMER_PROF is armed, or SIGPROF has a handler, at the start: another profiler is
 * at work, which perf events do not disturb, and which PROFIL_ENGINE_LIBC would put out of work. */
enum profil_on_conflict {
    PROFIL_ON_CONFLICT_NOTE, /* go on and note it in the statistics */
    PROFIL_ON_CONFLICT_FAIL  /* fail with EBUSY */
};

/* Zero stands for the default in each field. Set struct_size to sizeof(struct profil_options): by
 * it the library knows the fields that the program knows. */
struct profil_options {
    size_t struct_size;
    enum profil_engine engine;
    enum profil_system system;
    enum profil_on_conflict on_conflict;

    /* Samples to a tick, 1 to 1000. Each bucket carries what is short of a tick, starting from a
     * number drawn evenly, so that its count is right on average however few its samples are;
     * threads shorter than a tick count. 0, the default, is automatic: 1, and when ticks are seen
     * to be lost, mostly to threads that end before their first, from then on 10 (fewer, if that
     * would leave a sample less than 1 ms of CPU time); see `refined` in struct profil_stats. For
     * events other than CPU time it is 1. */
    unsigned int subticks;

    /* The length of a tick: ns of CPU time (default 10,000,000), or a number of events (default 1
     * for software events, 1,000,000 for others). period / subticks must be at least 10,000 ns,
     * or 1. Below 100,000 ns the interrupts of sampling can take most of the time, on a virtual
     * machine all of it. */
    uint64_t period;

    /* The name of an event as libpfm4 knows it, at most 63 bytes, with its modifiers:
     * "page-faults", "context-switches", "cycles:u". NULL, "" or "task-clock": CPU time. */
    const char *event;
};

/* Makes a profile, stopped and without ranges. options NULL: those of the environment, which are
 * also those of profil() and sprofil(): see libprofil(7).
 *
 * EINVAL: an option or a variable has no such value. ENOENT: the event's name is not known.
 * ENOMEM. On failure *profile is NULL, and profil_reason(NULL, ...) gives the reason. */
int profil_open(profil_profile **profile, const struct profil_options *options);

/* Adds a range of text: `bytes` bytes of counters, each of counter_bits bits (16, 32 or 64), the
 * first of them for the PC `offset`. A PC at or above the offset belongs to counter
 *
 *     floor(floor((pc - offset) / W) * scale / 65536)       W = counter_bits / 8
 *
 * if there is one, as with sprofil(3), whose formula this is: a scale of 65536 gives each counter
 * W bytes of text. Where ranges overlap, the one with the greatest offset that has a counter for
 * the PC takes the tick; of equal offsets, the first added. A range with offset 0 and scale 2
 * takes, in its first counter, the ticks of every PC that no other range has a counter for; the
 * last such range counts. Counters are never cleared, and stop at their maximum. They must remain
 * until profil_stop() or profil_close() has returned. Takes effect at once in a running profile,
 * whose ranges are all sorted anew by each call: thousands of them are better added before the
 * start.
 *
 * EINVAL: counter_bits, or a scale of 0 or 1. EFAULT: the counters are not writable memory (found
 * at profil_start() when the profile is stopped). ENOTSUP: the engine is the C library's, which has
 * one range of 16 bits (found at profil_start() likewise). ENOMEM. */
int profil_add_range(profil_profile *profile, void *counters, size_t bytes,
                     unsigned int counter_bits, size_t offset, unsigned int scale);

/* Starts sampling every thread, present and to come. No effect on a running profile.
 *
 * EFAULT: counters are not writable. EBUSY: a conflict, see enum profil_on_conflict. ENOENT: the
 * machine does not have the event. ENOTSUP: the C library's profil() was asked for, and this is not
 * one range of 16 bits with ticks of 10 ms of CPU time, or kernel time must be charged. EACCES,
 * EPERM, ENOSYS, EMFILE, ENOMEM, EAGAIN and others: what the kernel said where there was nothing to
 * fall back to. */
int profil_start(profil_profile *profile);

/* Stops; on return every tick so far is counted and the counters are the program's own again. No
 * effect on a stopped profile. */
int profil_stop(profil_profile *profile);

/* Stops and frees. NULL is allowed. */
int profil_close(profil_profile *profile);

/* Whether and why the automatic choice of sub-ticks went over to the finer period. */
enum profil_refined {
    PROFIL_REFINED_NOT,
    PROFIL_REFINED_SHORT_THREADS, /* threads had ended, and CPU time was missing from the samples */
    PROFIL_REFINED_PHASE          /* CPU time was missing, and no thread had ended */
};

/* What a profile did since it was last started. Set struct_size to sizeof(struct profil_stats). All
 * counts but ticks and saturated are in samples; a tick is `subticks` samples. With the engine
 * PROFIL_ENGINE_LIBC, which counts nothing itself, they are 0. */
struct profil_stats {
    size_t struct_size;
    enum profil_engine engine; /* in use, or last used; PROFIL_ENGINE_AUTO: never started */
    int running;
    char event[64];        /* what is counted: "task-clock" for CPU time */
    uint64_t period;       /* of a tick: ns, or events */
    unsigned int subticks; /* now, or last */
    enum profil_refined refined;
    uint64_t refined_at;  /* ns since 1970 */
    int charges_system;   /* whether ticks in the kernel are charged to the user PC */
    unsigned int threads; /* that were there at the start */
    unsigned int cpus;    /* on which events were opened */

    uint64_t ticks;        /* counted in a counter */
    uint64_t saturated;    /* ticks not counted, their counter being at its maximum */
    uint64_t samples;      /* taken of the program, at a known user PC */
    uint64_t outside;      /* of these, at a PC that no range has a counter for */
    uint64_t unattributed; /* taken in the kernel, where no user PC was known */
    uint64_t foreign;      /* not counted: of another process, or of the library's own threads */
    uint64_t duplicate;    /* not counted: of a thread that has two events, since it was born during
                            * the start */
    uint64_t lost;         /* not taken: the ring buffer was full */
    uint64_t throttled;    /* times that the kernel paused an event for coming too fast */
    int corrupt;           /* whether a ring buffer held nonsense and is no longer read */

    uint64_t event_count; /* ns or events, as the kernel counted them for all threads, without
                           * what duplicate samples stand for */
    uint64_t cpu_time;    /* ns of CPU time of the process, without that of the samplers */

    /* The part of the CPU time (of the event count, for other events) that samples with a user PC
     * stand for; where the sub-ticks did not change, samples * period / subticks / cpu_time. 1 but
     * for chance when nothing is missing; less where threads are shorter than a sample's period,
     * where time in the kernel is not sampled, or where samples were lost. 0 when there was no CPU
     * time. */
    double coverage;

    /* When ITIMER_PROF was first seen armed, and SIGPROF first seen handled by a function, since
     * the start: ns since 1970; 0: never. */
    uint64_t conflict_timer;
    uint64_t conflict_handler;
};

/* profile NULL: the one behind profil() and sprofil(). EINVAL: struct_size. */
int profil_stats(profil_profile *profile, struct profil_stats *stats);

/* Writes a sentence, cut off to size bytes with its final zero: why the last start or change
 * failed, or why another engine or less than everything is used; empty when there is nothing to
 * say. profile NULL: the one behind profil() and sprofil(), and profil_open(). Returns the length
 * of the whole sentence, as snprintf(3) does. */
int profil_reason(profil_profile *profile, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
