#include "keeper.h"

#include "kernel.h"
#include "own.h"

#include <errno.h>
#include <sys/prctl.h>

enum keeper_word { KEEPER_WAIT, KEEPER_LEAVE, KEEPER_LAST };

static void *run_keeper(void *argument)
{
    struct keeper *keeper = argument;
    uint64_t used = 0;
    uint32_t word;

    prctl(PR_SET_NAME, "profil-keeper");
    profil_own_account(&used);
    while ((word = atomic_load(&keeper->word)) == KEEPER_WAIT)
        kernel_futex_wait(&keeper->word, KEEPER_WAIT, NULL);
    profil_own_account(&used);
    if (word == KEEPER_LAST) {
        /* What the program registered with atexit() runs next, on this thread. */
        pthread_join(keeper->predecessor, NULL);
        profil_own_remove(kernel_gettid());
        pthread_sigmask(SIG_SETMASK, &keeper->program_mask, NULL);
    }
    return NULL;
}

/* The exit handlers may run on the keeper's stack, which is therefore of the usual size. */
int profil_keeper_start(struct keeper *keeper, const sigset_t *program_mask)
{
    int result;

    keeper->program_mask = *program_mask;
    result =
        profil_service_start(&keeper->service, profil_service_default_stack(), run_keeper, keeper);
    if (result == -ENOMEM)
        result =
            profil_service_start(&keeper->service, profil_service_small_stack, run_keeper, keeper);
    return result;
}

static void tell(struct keeper *keeper, enum keeper_word word)
{
    atomic_store(&keeper->word, word);
    kernel_futex_wake(&keeper->word);
}

void profil_keeper_take_over(struct keeper *keeper)
{
    keeper->predecessor = pthread_self();
    tell(keeper, KEEPER_LAST);
}

void profil_keeper_dismiss(struct keeper *keeper)
{
    tell(keeper, KEEPER_LEAVE);
    profil_service_join(&keeper->service);
}
