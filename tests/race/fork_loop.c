/* Threads that fork all the time beside one that turns the profile on and off: each child finds the
 * profile off and usable, and nobody hangs. */
#include "race.h"

#include <pthread.h>
#include <sys/wait.h>

enum { FORKING_THREADS = 4 };

/* A sanitizer does not let the child of a program with threads have threads of its own, and its
 * allocator may be locked there for ever: that child does nothing. */
static void live_as_child(bool profiles)
{
    static unsigned short counter;

    alarm(RACE_WATCHDOG / 2);
    if (PROFIL_SANITIZED)
        _exit(0);
    race_off();
    if (profiles) {
        race_on(&counter, sizeof(counter));
        race_work(1000);
        race_off();
    }
    _exit(0);
}

static void *fork_all_the_time(void *unused)
{
    for (int i = 0; race_goes_on(); i++) {
        int status = -1;
        pid_t child = fork();

        RACE_REQUIRE(child >= 0, "fork: %s", strerror(errno));
        if (child == 0)
            live_as_child(i % 4 == 0);
        RACE_REQUIRE(waitpid(child, &status, 0) == child && status == 0,
                     "a child ended with status %#x", (unsigned int)status);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[FORKING_THREADS];
    unsigned short counter = 0;

    race_begin();
    for (int i = 0; i < FORKING_THREADS; i++)
        RACE_REQUIRE(pthread_create(&threads[i], NULL, fork_all_the_time, NULL) == 0,
                     "no thread %d", i);
    while (race_goes_on()) {
        race_on(&counter, sizeof(counter));
        race_work(10000);
        race_off();
        counter = 0;
    }
    for (int i = 0; i < FORKING_THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
