/* libprofil: profil(3) and sprofil(3) over the kernel's perf events.
 *
 * A program needs this header for neither of the two: <unistd.h> and <sys/profil.h> declare them,
 * and -lprofil puts this library's definitions before those of the C library. The header adds
 *
 *   - the prototype of profil() in every compilation mode. <unistd.h> shows it only where
 *     _DEFAULT_SOURCE holds, which is the case by default and with -std=gnu11, but not with
 *     -std=c11 alone;
 *   - the contract of both functions as this library keeps it, in the comments below;
 *   - the version, for the preprocessor.
 *
 * profil(3), sprofil(3) and libprofil(7) say all of it at length. */
#ifndef LIBPROFIL_H
#define LIBPROFIL_H

#include <stddef.h>
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
 *   EACCES, EPERM, ENOSYS, EMFILE and others: the kernel refuses the events; see profil(3).
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

#ifdef __cplusplus
}
#endif

#endif
