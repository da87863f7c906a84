/* The frame of every public function. */
#ifndef PROFIL_CALL_H
#define PROFIL_CALL_H

#include <errno.h>
#include <pthread.h>

#define PROFIL_PUBLIC __attribute__((visibility("default")))

/* What a call leaves as it was: errno unless it fails, and the thread's readiness to be cancelled,
 * of which there is none while locks are held, here and in malloc(). */
struct call {
    int errno_before;
    int cancel_state;
};

static inline struct call call_begin(void)
{
    struct call call = {.errno_before = errno};

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call.cancel_state);
    return call;
}

/* From the 0 or -errno of the inside to the 0 or -1 of the outside. */
static inline int call_finish(struct call call, int result)
{
    pthread_setcancelstate(call.cancel_state, NULL);
    errno = result < 0 ? -result : call.errno_before;
    return result < 0 ? -1 : 0;
}

#endif
