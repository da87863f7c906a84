/* From the options of the program or the environment to settings that have been checked, and from
 * those to a plan for the sampler. */
#ifndef PROFIL_OPTIONS_H
#define PROFIL_OPTIONS_H

#include "libprofil.h"
#include "reason.h"
#include "sampler.h"

enum { EVENT_NAME_BYTES = 64 };

struct settings {
    enum profil_engine engine;
    char event[EVENT_NAME_BYTES]; /* empty: the task clock */
    uint64_t period;              /* 0: automatic */
    unsigned int subticks;        /* 0: automatic */
    enum profil_system system;
    enum profil_on_conflict on_conflict;
    bool verbose;
};

/* All return 0, or -EINVAL (-ENOENT for the name of an event) with the reason. */

/* NULL stands for the defaults. */
int profil_settings_from_options(struct settings *settings, const struct profil_options *options,
                                 struct reason *reason);

/* `get` is secure_getenv(3) or stands in for it. */
int profil_settings_from_environment(struct settings *settings, char *(*get)(const char *name),
                                     struct reason *reason);

struct plan {
    struct sampler_plan sampler;
    uint64_t period;      /* of a tick, in ns or events */
    bool names_user_only; /* the event's name leaves the kernel out, as in "cycles:u" */
};

int profil_settings_plan(const struct settings *settings, struct plan *plan, struct reason *reason);

#endif
