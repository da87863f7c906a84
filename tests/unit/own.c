#include "own.h"

#include "support.h"

#include <pthread.h>

/* The kernel's greatest thread id: PID_MAX_LIMIT, 2^22, is the first that it does not give. */
enum { GREATEST = (1 << 22) - 1 };

static const pid_t edges[] = {1, 2, 31, 32, 63, 64, 65, 32767, 32768, GREATEST - 1, GREATEST};

Test(own, a_thread_is_ones_own_from_its_adding_to_its_removal)
{
    for (size_t i = 0; i < LENGTH_OF(edges); i++) {
        cr_expect_not(profil_own_has(edges[i]), "%d", edges[i]);
        profil_own_add(edges[i]);
        profil_own_add(edges[i]);
        cr_expect(profil_own_has(edges[i]), "%d", edges[i]);
        profil_own_remove(edges[i]);
        cr_expect_not(profil_own_has(edges[i]), "%d", edges[i]);
    }
}

Test(own, adding_and_removing_touches_no_other_thread)
{
    for (size_t i = 0; i < LENGTH_OF(edges); i++)
        profil_own_add(edges[i]);
    for (size_t i = 0; i < LENGTH_OF(edges); i += 2)
        profil_own_remove(edges[i]);
    for (size_t i = 0; i < LENGTH_OF(edges); i++)
        cr_expect_eq(profil_own_has(edges[i]), i % 2 == 1, "%d", edges[i]);
    cr_expect_not(profil_own_has(0));
    cr_expect_not(profil_own_has(33));
    cr_expect_not(profil_own_has(GREATEST - 2));
}

enum { THREADS = 4, IDS = 64, ROUNDS = 20000 };

/* Each has its own ids, of which many share a word. */
static void *add_and_remove(void *number)
{
    pid_t first = (pid_t)(intptr_t)number;

    for (int round = 0; round < ROUNDS; round++)
        for (pid_t id = first; id < IDS; id += THREADS) {
            profil_own_add(id);
            if (!profil_own_has(id))
                return number;
            if (round < ROUNDS - 1)
                profil_own_remove(id);
        }
    return NULL;
}

Test(own, threads_that_add_and_remove_at_once_lose_nothing)
{
    pthread_t threads[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, add_and_remove, (void *)(i + 1)), 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        cr_expect_null(failed, "a thread of group %td was not there", (intptr_t)failed);
    }
    for (pid_t id = 1; id < IDS; id++)
        cr_expect(profil_own_has(id), "%d", id);
}
