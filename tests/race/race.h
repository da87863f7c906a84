/* What the race programs share. They have no test framework, which the thread sanitizer does not
 * bear: exit status 0 is a pass, 77 a skip, anything else a failure. */
#ifndef RACE_H
#define RACE_H

#include "sanitizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <time.h>
#include <unistd.h>

enum {
    RACE_SECONDS = 2,   /* of wall time: a race is a matter of chances, not of work done */
    RACE_WATCHDOG = 120 /* seconds: whatever else the machine does, longer is a hang */
};

#define RACE_REQUIRE(condition, ...)                                                               \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline double race_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double race_end;

static inline bool race_goes_on(void)
{
    return race_clock(CLOCK_MONOTONIC) < race_end;
}

static inline unsigned int race_random(unsigned int *state)
{
    *state = *state * 1103515245U + 12345U;
    return *state >> 16;
}

static inline void race_on(unsigned short *counters, size_t bytes)
{
    /* At scale 0 every tick goes to the first counter. */
    RACE_REQUIRE(profil(counters, bytes, 0, 0) == 0, "start: %s", strerror(errno));
}

static inline void race_off(void)
{
    /* Not profil(NULL, ...), of which <unistd.h> and a sanitizer say that it cannot be. */
    RACE_REQUIRE(sprofil(NULL, 0, NULL, 0) == 0, "stop: %s", strerror(errno));
}

static inline void race_work(unsigned long rounds)
{
    volatile unsigned long sum = 0;

    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
    (void)sum;
}

static inline bool race_is_set(const char *name, const char *value)
{
    const char *found = getenv(name);

    return found && strcmp(found, value) == 0;
}

/* Skips the program where perf events cannot be had and need not be. */
static inline void race_begin(void)
{
    static unsigned short counter;

    alarm(RACE_WATCHDOG);
    if (profil(&counter, sizeof(counter), 0, 0) != 0) {
        printf("no perf events here: %s\n", strerror(errno));
        exit(race_is_set("CI", "true") || race_is_set("PROFIL_REQUIRE_PERF", "1") ? 1 : 77);
    }
    race_off();
    race_end = race_clock(CLOCK_MONOTONIC) + RACE_SECONDS;
}

#endif
