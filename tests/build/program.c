/* Exits with 0 if its profil() is libprofil's, counts, and is off after a NULL; with 77 if the
 * kernel gives no perf events, and with 1 otherwise. To be compiled as C and as C++. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef EXPECT_VERSION
#include <libprofil.h>
#endif

static unsigned short counter;

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void burn(double seconds)
{
    double end = cpu_seconds() + seconds;
    volatile unsigned long sum = 0;

    while (cpu_seconds() < end)
        for (unsigned long i = 0; i < 500000; i++)
            sum = sum + i;
}

static int expect(int holds, const char *claim)
{
    if (!holds)
        fprintf(stderr, "not so: %s\n", claim);
    return holds;
}

/* The C library's profil() arms this timer. */
static int timer_is_idle(void)
{
    struct itimerval timer;

    getitimer(ITIMER_PROF, &timer);
    return timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0 &&
           timer.it_interval.tv_sec == 0 && timer.it_interval.tv_usec == 0;
}

static int cannot_start(void)
{
    const char *ci = getenv("CI");
    const char *require = getenv("PROFIL_REQUIRE_PERF");

    fprintf(stderr, "profil: %s\n", strerror(errno));
    return (ci && strcmp(ci, "true") == 0) || (require && strcmp(require, "1") == 0) ? 1 : 77;
}

/* With scale 0 every tick hits the first counter. Of the 5 ticks in 50 ms of CPU the first may be
 * missed and some may fall in the kernel. */
int main(void)
{
    int good = 1;
    unsigned short before;

    if (profil(&counter, sizeof(counter), 0, 0) != 0)
        return cannot_start();
    good &= expect(timer_is_idle(), "ITIMER_PROF is idle");
    burn(0.05);
    /* With a size: without the test for NULL, a buffer of no bytes would be one that counts
     * nothing. */
    good &= expect(profil((unsigned short *)0, sizeof(counter), 0, 0) == 0, "NULL turns it off");
    before = counter;
    good &= expect(before >= 1 && before <= 10, "50 ms of CPU are 1 to 10 ticks");
    burn(0.03);
    good &= expect(counter == before, "nothing is counted after that");
#ifdef EXPECT_VERSION
    {
        char version[64];

        snprintf(version, sizeof(version), "%d.%d.%d", PROFIL_VERSION_MAJOR, PROFIL_VERSION_MINOR,
                 PROFIL_VERSION_PATCH);
        good &=
            expect(strcmp(version, EXPECT_VERSION) == 0, "the header's version is the package's");
    }
#endif
    return good ? 0 : 1;
}
