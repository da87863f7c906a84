/* Which event counts for a thread that may have two.
 *
 * A thread born while events are opened for its process may have inherited its creator's event and
 * then be given one of its own, which nothing can tell apart; and what it creates inherits both.
 * Each thread is then counted by the one whose sample came first. */
#ifndef PROFIL_COVER_H
#define PROFIL_COVER_H

#include <stdbool.h>
#include <sys/types.h>

/* A power of two: thread ids are handed out in order, so that many living neighbours do not meet.
 */
enum { COVER_THREADS = 4096 };

struct cover {
    struct {
        pid_t thread;
        pid_t owner;
        unsigned int strangers; /* samples from other owners since the last of this one */
    } entries[COVER_THREADS];
};

/* Whether a sample of this thread counts when it was taken by an event opened for `owner`. */
bool profil_cover_accepts(struct cover *cover, pid_t thread, pid_t owner);

#endif
