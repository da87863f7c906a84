#!/bin/sh
# A program that is built with -pg -static and libprofil.a has its gmon.out filled by libprofil, for
# all of its threads.
set -eu

top_builddir=${top_builddir:-.}
top_srcdir=${top_srcdir:-.}
. "$top_srcdir/tests/clients/support.sh"

require_tool gprof
require_perf

cat >"$work/program.c" <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Three of four rounds are spent in `heavy`. */
__attribute__((noinline)) void heavy(void)
{
    for (volatile int i = 0; i < 1500000; i++)
        ;
}

__attribute__((noinline)) void light(void)
{
    for (volatile int i = 0; i < 500000; i++)
        ;
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *work(void *unused)
{
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < 0.5) {
        heavy();
        light();
    }
    return unused;
}

int main(void)
{
    struct sigaction action;
    pthread_t threads[2];

    /* Whose profil() serves: the C library's would have installed a handler. */
    sigaction(SIGPROF, NULL, &action);
    if (action.sa_handler != SIG_DFL)
        return 3;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
END

# Nothing refers to profil() yet where the linker meets libprofil.a: -u makes it look there.
# shellcheck disable=SC2086
compile -pg -static -Wl,-u,__profil "$work/program.c" -o "$work/program" "$libdir/libprofil.a" $PROFIL_LIBS -lpthread
status=0
(cd "$work" && ./program) || status=$?
[ $status -ne 3 ] || fail "the C library's profil() serves the program"
[ $status -eq 0 ] || fail "the program ended with status $status"
gprof -b -p "$work/program" "$work/gmon.out" >"$work/profile"
cat "$work/profile"

# 1 s of CPU in two threads, three quarters of it in `heavy`: 0.75 s and 0.25 s. With 100 ticks a
# share has a standard error of 0.043; the bounds are three of those wide.
awk '
    $NF == "heavy" { heavy = $3 }
    $NF == "light" { light = $3 }
    END {
        if (heavy < 0.62 || heavy > 0.88 || light < 0.12 || light > 0.38 || heavy + light < 0.9)
            exit 1
    }
' "$work/profile" || fail "heavy should have 0.75 s, light 0.25 s"
