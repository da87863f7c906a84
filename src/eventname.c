#include "eventname.h"

#include "config.h"

#include <errno.h>
#include <strings.h>

/* Its own header copies the kernel's, which has to come first. */
#ifdef HAVE_LIBPFM4
#include <perfmon/pfmlib_perf_event.h>

static int find(const char *name, struct event_source *source, struct reason *reason)
{
    struct perf_event_attr attr = {.size = sizeof(attr)};
    pfm_perf_encode_arg_t encoding = {.attr = &attr, .size = sizeof(encoding)};
    int error = pfm_initialize();

    if (error == PFM_SUCCESS)
        error = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &encoding);
    if (error != PFM_SUCCESS) {
        profil_reason_set(reason,
                          "the event \"%s\" is not known: libpfm4 says \"%s\"; its showevtinfo and "
                          "\"perf list\" show the names of this machine",
                          name, pfm_strerror(error));
        return -ENOENT;
    }
    *source = (struct event_source){.type = attr.type,
                                    .config = attr.config,
                                    .config1 = attr.config1,
                                    .config2 = attr.config2,
                                    .exclude_user = attr.exclude_user,
                                    .exclude_kernel = attr.exclude_kernel};
    return 0;
}
#else
static int find(const char *name, struct event_source *source, struct reason *reason)
{
    (void)source;
    profil_reason_set(
        reason,
        "the event \"%s\" is not known: this libprofil was built without libpfm4, and "
        "knows only \"task-clock\"",
        name);
    return -ENOENT;
}
#endif

int profil_eventname_find(const char *name, struct event_source *source, struct reason *reason)
{
    if (strcasecmp(name, "task-clock") != 0)
        return find(name, source, reason);
    *source = profil_event_task_clock;
    return 0;
}
