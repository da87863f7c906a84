/* Several threads turn the one profile on, over and off beside busy threads. Whatever the others
 * do, the buffer of a caller is its own again when its call has turned it off or away: it reads it
 * without an atomic access, and frees it. */
#include "race.h"

#include <pthread.h>

enum { CALLERS = 4, BUSY_THREADS = 2, COUNTERS = 64 };

static void *be_busy(void *unused)
{
    while (race_goes_on())
        race_work(100000);
    return unused;
}

static unsigned short *new_counters(void)
{
    unsigned short *counters = calloc(COUNTERS, sizeof(*counters));

    RACE_REQUIRE(counters, "no memory");
    return counters;
}

/* Turns it off, or away to the other buffer, at random; the ticks in the first one, which goes. */
static unsigned long round_of_calls(unsigned int *random, unsigned short *other)
{
    unsigned short *counters = new_counters();
    unsigned long ticks;

    race_on(counters, COUNTERS * sizeof(*counters));
    race_work(race_random(random) % 20000);
    if (race_random(random) % 2)
        race_off();
    else
        race_on(other, COUNTERS * sizeof(*other));
    ticks = counters[0];
    free(counters);
    return ticks;
}

static void *call_at_random(void *seed)
{
    unsigned int random = *(unsigned int *)seed;
    unsigned short *other = new_counters();
    unsigned long ticks = 0;

    while (race_goes_on())
        ticks += round_of_calls(&random, other);
    race_off();
    ticks += other[0];
    free(other);
    RACE_REQUIRE(ticks < 100 * RACE_WATCHDOG, "%lu ticks in one caller's buffers", ticks);
    return NULL;
}

int main(void)
{
    unsigned int seeds[CALLERS];
    pthread_t threads[CALLERS + BUSY_THREADS];

    race_begin();
    for (unsigned int i = 0; i < CALLERS + BUSY_THREADS; i++) {
        if (i < CALLERS)
            seeds[i] = i + 1;
        RACE_REQUIRE(pthread_create(&threads[i], NULL, i < CALLERS ? call_at_random : be_busy,
                                    i < CALLERS ? &seeds[i] : NULL) == 0,
                     "no thread %u", i);
    }
    for (int i = 0; i < CALLERS + BUSY_THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
