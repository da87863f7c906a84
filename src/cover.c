#include "cover.h"

/* Two events on one thread take turns, but for a change of CPU, when one may come twice. More than
 * that in a row is a new thread under an old number. */
enum { STRANGERS_AT_MOST = 4 };

bool profil_cover_accepts(struct cover *cover, pid_t thread, pid_t owner)
{
    unsigned int at = (unsigned int)thread % COVER_THREADS;

    if (cover->entries[at].thread != thread) {
        cover->entries[at].thread = thread;
        cover->entries[at].owner = owner;
        cover->entries[at].strangers = 0;
    } else if (cover->entries[at].owner == owner) {
        cover->entries[at].strangers = 0;
    } else if (++cover->entries[at].strangers > STRANGERS_AT_MOST) {
        cover->entries[at].owner = owner;
        cover->entries[at].strangers = 0;
    }
    return cover->entries[at].owner == owner;
}
