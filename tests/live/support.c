#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double support_process_seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double support_thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Reading the clock is a system call, whose time an unprivileged profile does not see: one for a few
 * milliseconds of work. */
void support_burn(double seconds)
{
    double end = support_thread_seconds() + seconds;
    volatile unsigned long sum = 0;

    while (support_thread_seconds() < end)
        for (unsigned long i = 0; i < 500000; i++)
            sum += i;
}

void *support_burn_thread(void *seconds)
{
    support_burn(*(const double *)seconds);
    return NULL;
}

/* <unistd.h> says that profil() is never given NULL, and compilers warn of it. */
void support_off(void)
{
    unsigned short *volatile off = NULL;

    cr_assert_eq(profil(off, 0, 0, 0), 0);
}

static int is_set(const char *name, const char *value)
{
    const char *found = getenv(name);

    return found && strcmp(found, value) == 0;
}

void support_require_perf(void)
{
    unsigned short counter = 0;

    if (profil(&counter, sizeof(counter), 0, 0) == 0) {
        support_off();
        return;
    }
    if (is_set("CI", "true") || is_set("PROFIL_REQUIRE_PERF", "1"))
        cr_assert_fail("perf events must be available here: %s", strerror(errno));
    cr_skip_test("no perf events here: %s", strerror(errno));
}

unsigned long support_sum(const unsigned short *counters, size_t count)
{
    unsigned long sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += counters[i];
    return sum;
}
