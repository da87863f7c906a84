/* What the tests on real perf events share. */
#ifndef LIVE_SUPPORT_H
#define LIVE_SUPPORT_H

#include <stddef.h>

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

#endif
