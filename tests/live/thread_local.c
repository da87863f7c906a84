/* A program with much thread-local data: the C library takes it out of the stack of each thread,
 * and so also out of the library's small ones. */
#include "support.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static __thread unsigned char data[BYTES];

/* Works on all of it; what it holds in the end depends on the thread's own number only. */
static void *fill(void *argument)
{
    double seconds = *(const double *)argument, start = support_thread_seconds();
    unsigned char number = 0;

    while (support_thread_seconds() - start < seconds)
        memset(data, ++number, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        if (((volatile unsigned char *)data)[i] != number)
            return NULL;
    return argument;
}

Test(thread_local, a_program_with_1_mib_of_it_is_profiled)
{
    enum { THREADS = 2 };
    pthread_t threads[THREADS];
    double seconds = 0.5;
    unsigned short ticks = 0;

    support_require_perf();
    support_confine(2);
    memset(data, 'm', BYTES);
    cr_assert_eq(profil(&ticks, sizeof(ticks), 0, 0), 0);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, fill, &seconds), 0);
    for (int i = 0; i < THREADS; i++) {
        void *intact;

        pthread_join(threads[i], &intact);
        cr_assert_not_null(intact, "a thread's data was changed by something else");
    }
    support_off();
    for (size_t i = 0; i < BYTES; i++)
        cr_assert_eq(data[i], 'm', "the main thread's data was changed");
    /* 1 s of CPU time, of which the phase may take two ticks from each thread; and those in the
     * kernel, first touching the data among them, may be lost. */
    cr_assert_geq(ticks, 80);
    cr_assert_leq(ticks, 104);
}
