/* Includes no header that declares profil() or dlsym(). The former is never NULL according to
 * <unistd.h>, which is how it is turned off. The latter is declared weak: referring to it must not
 * pull the dynamic loader into a static program, where it is then missing. */
#include "fallback.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* RTLD_NEXT of <dlfcn.h>. */
#define NEXT_OBJECT ((void *)-1L)

enum { HANDLERS_NANOSECONDS = 20000000 };

typedef int profil_function(unsigned short *, size_t, size_t, unsigned int);

static profil_function *original(void)
{
    static profil_function *found;

    if (!found && dlsym)
        found = (profil_function *)dlsym(NEXT_OBJECT, "profil");
    return found;
}

bool profil_fallback_exists(void)
{
    return original() != NULL;
}

int profil_fallback_start(const struct range *range)
{
    if (original()(range->counters, (size_t)range->buckets << range->shift, range->offset,
                   range->scale) < 0)
        return -errno;
    return 0;
}

/* Handlers that are at work in other threads when the C library forgets the buffer would crash, and
 * a signal that is still on its way when it takes the handler away would kill. So nothing more is
 * sent, what is pending is discarded, and a handler has time to end, which it does in microseconds
 * unless its thread has to wait for a CPU. */
void profil_fallback_stop(void)
{
    const struct itimerval never = {0};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct timespec handlers = {.tv_nsec = HANDLERS_NANOSECONDS};

    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGPROF, &ignore, NULL);
    while (nanosleep(&handlers, &handlers) < 0 && errno == EINTR)
        ;
    profil_fallback_forget();
}

void profil_fallback_forget(void)
{
    original()(NULL, 0, 0, 0);
}
