/* A thread of the library: all signals blocked, a stack of its own that goes when it does. */
#ifndef PROFIL_SERVICE_H
#define PROFIL_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct service {
    pthread_t thread;
    _Atomic uint32_t tid; /* 0 until the thread runs; -1: it never will */
    void *(*run)(void *argument);
    void *argument;
    void *stack; /* with its guard page */
    size_t stack_bytes;
};

/* The room that the thread's functions need, besides the thread-local data of the program. */
extern const size_t profil_service_small_stack;

/* As much as the program gives its own threads. */
size_t profil_service_default_stack(void);

/* 0 or -errno (EAGAIN, ENOMEM). The service, zero before, must stay where it is until it is joined.
 */
int profil_service_start(struct service *service, size_t stack, void *(*run)(void *),
                         void *argument);

/* Tells whoever waits for the thread that there will be none. */
void profil_service_give_up(struct service *service);

/* The thread id, once the thread has begun; waits for that. -1: there will be none. */
pid_t profil_service_tid(struct service *service);

/* On return the thread is gone in the kernel's eyes too. */
void profil_service_join(struct service *service);

/* In a forked child, where the thread does not exist: gives its stack back. */
void profil_service_forget(struct service *service);

#endif
