#include "service.h"

#include "kernel.h"
#include "memory.h"
#include "sanitizer.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>

const size_t profil_service_small_stack = PROFIL_SANITIZED ? 1 << 20 : 48 << 10;

/* A thread whose stack is refused as too small is tried again with twice as much, up to here. */
static const size_t largest_stack = (size_t)1 << 30;

static int add_tls(struct dl_phdr_info *object, size_t size, void *total)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];

        if (header->p_type == PT_TLS)
            *(size_t *)total += header->p_memsz + header->p_align;
    }
    return 0;
}

/* The C library takes a thread's static thread-local data out of its stack. */
static size_t thread_local_bytes(void)
{
    size_t total = 0;

    dl_iterate_phdr(add_tls, &total);
    return total;
}

size_t profil_service_default_stack(void)
{
    pthread_attr_t attributes;
    size_t bytes = profil_service_small_stack;

    if (pthread_getattr_default_np(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &bytes);
        pthread_attr_destroy(&attributes);
    }
    return bytes;
}

static void *run_service(void *argument)
{
    struct service *service = argument;

    atomic_store(&service->tid, (uint32_t)kernel_gettid());
    kernel_futex_wake(&service->tid);
    return service->run(service->argument);
}

static int create(struct service *service)
{
    size_t guard = profil_memory_page();
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);

    if (error)
        return error;
    error = pthread_attr_setstack(&attributes, (char *)service->stack + guard,
                                  service->stack_bytes - guard);
    if (!error)
        error = pthread_create(&service->thread, &attributes, run_service, service);
    pthread_attr_destroy(&attributes);
    return error;
}

static int start_with_stack(struct service *service, size_t bytes)
{
    size_t guard = profil_memory_page();
    int error;

    service->stack_bytes = bytes + guard;
    service->stack = mmap(NULL, service->stack_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (service->stack == MAP_FAILED)
        return ENOMEM;
    error = mprotect(service->stack, guard, PROT_NONE) ? errno : create(service);
    if (error)
        munmap(service->stack, service->stack_bytes);
    return error;
}

int profil_service_start(struct service *service, size_t stack, void *(*run)(void *),
                         void *argument)
{
    size_t page = profil_memory_page();
    size_t bytes = (stack + thread_local_bytes() + page - 1) / page * page;
    sigset_t all, before;
    int error;

    service->run = run;
    service->argument = argument;
    /* The new thread inherits the mask. It is set through the C library, which leaves out the
     * signal by which setuid(2) reaches every thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    do {
        error = start_with_stack(service, bytes);
        bytes *= 2;
    } while (error == EINVAL && bytes <= largest_stack);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

void profil_service_give_up(struct service *service)
{
    atomic_store(&service->tid, (uint32_t)-1);
    kernel_futex_wake(&service->tid);
}

pid_t profil_service_tid(struct service *service)
{
    uint32_t tid;

    while ((tid = atomic_load(&service->tid)) == 0)
        kernel_futex_wait(&service->tid, 0, NULL);
    return (pid_t)tid;
}

enum { BLIND_LOOKS = 50 };

/* pthread_join() returns when the thread has left the C library, and for some microseconds more it
 * is still listed and counted, as by unshare(CLONE_NEWUSER), which wants a single thread. */
void profil_service_join(struct service *service)
{
    const struct timespec moment = {.tv_nsec = 10000};
    pid_t tid = profil_service_tid(service);
    int result, blind_looks = 0;

    pthread_join(service->thread, NULL);
    /* A sandbox may refuse the question: then some time is all that can be given. */
    while ((result = kernel_tgkill(getpid(), tid, 0)) != -ESRCH &&
           (result == 0 || blind_looks++ < BLIND_LOOKS))
        nanosleep(&moment, NULL); /* not sched_yield(): a caller of real-time priority starves it */
    profil_service_forget(service);
}

void profil_service_forget(struct service *service)
{
    munmap(service->stack, service->stack_bytes);
}
