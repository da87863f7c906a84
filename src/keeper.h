/* The keeper: a second thread beside the sampler, asleep, that shares the program's descriptor
 * table. A process whose threads all end by pthread_exit() calls exit(0) on the last of them. The
 * sampler is a thread more, and with its own table it could flush nothing: it leaves that to the
 * keeper, which is then last. */
#ifndef PROFIL_KEEPER_H
#define PROFIL_KEEPER_H

#include "service.h"

#include <signal.h>

struct keeper {
    struct service service;
    _Atomic uint32_t word; /* what it is to do */
    pthread_t predecessor; /* whom to wait for, as the last thread of the process */
    sigset_t program_mask; /* for what then runs on it */
};

/* 0 or -errno (EAGAIN, ENOMEM). The keeper, zero before, must stay where it is until it is
 * dismissed. `program_mask`: the signals that the program has blocked. */
int profil_keeper_start(struct keeper *keeper, const sigset_t *program_mask);

/* The calling thread, which is about to end, leaves the end of the process to the keeper. */
void profil_keeper_take_over(struct keeper *keeper);

/* Ends the keeper and waits for that. */
void profil_keeper_dismiss(struct keeper *keeper);

#endif
