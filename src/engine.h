/* What samples a profile: perf events, or where those cannot be had the C library's profil(). */
#ifndef PROFIL_ENGINE_H
#define PROFIL_ENGINE_H

#include "options.h"

struct engine {
    enum profil_engine used; /* last; AUTO: none yet */
    bool running;
    pid_t process;                /* that started it */
    struct sampler *sampler;      /* while running on perf events */
    struct sampler *ended;        /* to be freed by profil_engine_discard() */
    struct sampler_counts counts; /* of the run, as of the last reading */
    struct conflict conflict;     /* at the start */
    struct facts facts;           /* at the start, of what the kernel goes by */
};

/* All but forget: under one lock for all engines, as the C library's profil() is only one. 0, or
 * -errno with the reason, which may also have something to say of a success. */

int profil_engine_start(struct engine *engine, const struct settings *settings,
                        const struct plan *plan, struct range_set *ranges, struct reason *reason);

/* -ESRCH: sampling had ended by itself, with the last thread of the program. */
int profil_engine_change(struct engine *engine, struct range_set *ranges, struct reason *reason);

/* Brings the counts up to date. */
void profil_engine_read(struct engine *engine);

/* Followed by profil_engine_discard(). */
void profil_engine_stop(struct engine *engine);

/* When no ring of another engine holds samples of this one's threads any more: frees what the stop
 * has left, or a forget. */
void profil_engine_discard(struct engine *engine);

/* In a forked child; `bare`: one made by the system call alone. Does not call free(): not every
 * allocator can be used in the child of a process with threads. */
void profil_engine_forget(struct engine *engine, bool bare);

/* When each kind of conflict was first seen. */
struct conflict profil_engine_conflict(const struct engine *engine);

#endif
