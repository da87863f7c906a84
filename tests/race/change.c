/* The range moves from buffer to buffer while threads are busy. Half of the buffers are read all
 * the time, as a program may read a running profile; the others are looked at and freed, without
 * atomic accesses, as soon as the range has moved on. */
#include "race.h"

#include <pthread.h>

enum { BUSY_THREADS = 2, READERS = 2, COUNTERS = 4096 };

static unsigned short watched[COUNTERS];

static void *be_busy(void *used)
{
    while (race_goes_on())
        race_work(100000);
    *(double *)used = race_clock(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Counters of a running profile only grow. */
static void *read_watched(void *unused)
{
    unsigned short last = 0;

    while (race_goes_on()) {
        unsigned short now = __atomic_load_n(&watched[0], __ATOMIC_RELAXED);

        RACE_REQUIRE(now >= last, "%d after %d", now, last);
        last = now;
        race_work(1000);
    }
    return unused;
}

static unsigned long change_there_and_back(void)
{
    unsigned short *counters = calloc(COUNTERS, sizeof(*counters));
    unsigned long ticks;

    RACE_REQUIRE(counters, "no memory");
    race_on(counters, COUNTERS * sizeof(*counters));
    race_work(200000);
    race_on(watched, sizeof(watched));
    ticks = counters[0];
    free(counters);
    race_work(200000);
    return ticks;
}

int main(void)
{
    pthread_t busy[BUSY_THREADS], readers[READERS];
    double used[BUSY_THREADS], seconds = 0;
    unsigned long ticks = 0, changes = 0;

    race_begin();
    race_on(watched, sizeof(watched));
    for (int i = 0; i < BUSY_THREADS; i++)
        RACE_REQUIRE(pthread_create(&busy[i], NULL, be_busy, &used[i]) == 0, "no thread %d", i);
    for (int i = 0; i < READERS; i++)
        RACE_REQUIRE(pthread_create(&readers[i], NULL, read_watched, NULL) == 0, "no reader %d", i);
    for (; race_goes_on(); changes += 2)
        ticks += change_there_and_back();
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    for (int i = 0; i < BUSY_THREADS; i++) {
        pthread_join(busy[i], NULL);
        seconds += used[i];
    }
    race_off();
    ticks += watched[0];
    /* No tick is lost at a change, or counted twice: those of the busy threads are there, and all
     * together are no more than the process has used. A tenth, and a tick for each thread and CPU
     * or so, is what the kernel's part in an unprivileged profile and the first periods may take.
     */
    double all = race_clock(CLOCK_PROCESS_CPUTIME_ID);
    RACE_REQUIRE((double)ticks >= seconds * 90 - 10 && (double)ticks <= all * 102 + 1,
                 "%lu ticks with %lu changes in %.3f s of busy threads, %.3f s in all", ticks,
                 changes, seconds, all);
    return 0;
}
