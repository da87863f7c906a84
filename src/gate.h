/* The way into the library: one thread at a time, and by fork() no other than the forking one. A
 * child finds every profile either on or off, and is told to forget them. */
#ifndef PROFIL_GATE_H
#define PROFIL_GATE_H

#include <stdbool.h>

/* Forgets, in a forked child, what only the parent has. `bare`: the child was made by the system
 * call alone, and the C library there still counts on the stacks of its threads. Defined by
 * whoever enters. */
void profil_gate_forget(bool bare);

/* Waits until no other thread is inside, and none that is in a fork(). */
void profil_gate_enter(void);
void profil_gate_leave(void);

/* Enters if that can be done at once. */
bool profil_gate_try(void);

/* With the gate entered: sees to it that a fork() will wait. 0 or -ENOMEM. */
int profil_gate_guard_forks(void);

#endif
