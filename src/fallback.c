/* Includes no header that declares profil() or dlsym(). The former is never NULL according to
 * <unistd.h>, which is how it is turned off. The latter is declared weak: referring to it must not
 * pull the dynamic loader into a static program, where it is then missing. */
#include "fallback.h"

#include <errno.h>

extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* RTLD_NEXT of <dlfcn.h>. */
#define NEXT_OBJECT ((void *)-1L)

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

void profil_fallback_stop(void)
{
    original()(NULL, 0, 0, 0);
}
