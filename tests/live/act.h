/* A child that is a process of its own from the first instruction on: the test program executed
 * once more, with an act in place of the tests. A forked child would carry the test framework's
 * exit handlers, descriptors and threads' leftovers with it.
 *
 * Linked in, this gives the program its main(). */
#ifndef LIVE_ACT_H
#define LIVE_ACT_H

#include "process.h"

/* What main() does, and returns. */
struct act {
    const char *name;
    int (*play)(const char *argument);
};

/* Each program that links this has its acts here, an empty one at the end. */
extern const struct act acts[];

void act_run(struct outcome *outcome, const char *name, const char *argument);

/* In a child: becomes the act; returns only when that fails. */
void act_become(const char *name, const char *argument);

#endif
