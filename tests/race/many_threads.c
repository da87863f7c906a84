/* Threads come and go in a storm while the profile starts, finds them, and stops. */
#include "race.h"

#include <pthread.h>

enum { PARENTS = 2, CHILDREN = 8 };

static void *live_briefly(void *rounds)
{
    race_work(*(const unsigned long *)rounds);
    return NULL;
}

static void *have_children(void *seed)
{
    unsigned int random = *(unsigned int *)seed;

    while (race_goes_on()) {
        pthread_t children[CHILDREN];
        unsigned long rounds[CHILDREN];

        for (int i = 0; i < CHILDREN; i++) {
            rounds[i] = race_random(&random) % 50000;
            RACE_REQUIRE(pthread_create(&children[i], NULL, live_briefly, &rounds[i]) == 0,
                         "no thread %d", i);
        }
        for (int i = 0; i < CHILDREN; i++)
            pthread_join(children[i], NULL);
    }
    return NULL;
}

/* Its buffer is its own, and goes, when the profile is off. */
static unsigned long profile_for_a_moment(unsigned int *random)
{
    unsigned short *counters = calloc(1, sizeof(*counters));
    unsigned long ticks;

    RACE_REQUIRE(counters, "no memory");
    race_on(counters, sizeof(*counters));
    race_work(race_random(random) % 50000 * 10);
    race_off();
    ticks = counters[0];
    free(counters);
    return ticks;
}

int main(void)
{
    unsigned int seeds[PARENTS], random = 99;
    pthread_t parents[PARENTS];
    unsigned long ticks = 0;

    race_begin();
    for (unsigned int i = 0; i < PARENTS; i++) {
        seeds[i] = i + 1;
        RACE_REQUIRE(pthread_create(&parents[i], NULL, have_children, &seeds[i]) == 0,
                     "no thread %u", i);
    }
    while (race_goes_on())
        ticks += profile_for_a_moment(&random);
    for (int i = 0; i < PARENTS; i++)
        pthread_join(parents[i], NULL);
    double all = race_clock(CLOCK_PROCESS_CPUTIME_ID);
    RACE_REQUIRE((double)ticks <= all * 102 + 1, "%lu ticks in %.3f s of CPU time", ticks, all);
    return 0;
}
