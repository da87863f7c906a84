/* A thread of the library: all signals blocked, a stack of its own that goes when it does. */
#ifndef PROFIL_SERVICE_H
#define PROFIL_SERVICE_H

#include <pthread.h>
#include <stddef.h>

struct service {
    pthread_t thread;
    void *stack; /* with its guard page */
    size_t stack_bytes;
};

/* The room that the thread's functions need, besides the thread-local data of the program. */
extern const size_t profil_service_small_stack;

/* As much as the program gives its own threads. */
size_t profil_service_default_stack(void);

/* 0 or -errno (EAGAIN, ENOMEM). */
int profil_service_start(struct service *service, size_t stack, void *(*run)(void *), void *argument);

void profil_service_join(struct service *service);

/* In a forked child, where the thread does not exist: gives its stack back. */
void profil_service_forget(struct service *service);

#endif
