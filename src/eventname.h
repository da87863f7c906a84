/* From the name of an event to the event; the only user of libpfm4. */
#ifndef PROFIL_EVENTNAME_H
#define PROFIL_EVENTNAME_H

#include "event.h"
#include "reason.h"

/* 0, or -ENOENT with the reason. "task-clock" is known without libpfm4. A name that is known need
 * not open on this machine. */
int profil_eventname_find(const char *name, struct event_source *source, struct reason *reason);

#endif
