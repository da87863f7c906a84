#!/bin/sh
# A program that knows only the C library's profil() is served by libprofil under LD_PRELOAD: no
# SIGPROF handler, no ITIMER_PROF, and two threads with the same CPU time get the same ticks.
set -eu

top_builddir=${top_builddir:-.}
top_srcdir=${top_srcdir:-.}
. "$top_srcdir/tests/clients/support.sh"

require_perf

compile "$top_srcdir/examples/unmodified.c" -o "$work/unmodified" -lpthread -ldl

ticks_of() {
    sed -n "s/^  $1 .* \([0-9]*\) ticks.*/\1/p" "$work/out"
}

# 3 %, or the 3 ticks that the beginning and the end of each thread on each CPU are worth in 1 s.
ticks_agree() {
    collatz=$(ticks_of collatz)
    primes=$(ticks_of primes)
    apart=$((collatz > primes ? collatz - primes : primes - collatz))
    [ "$collatz" -ge 95 ] && [ "$collatz" -le 103 ] && [ "$primes" -ge 95 ] &&
        [ "$primes" -le 103 ] && [ "$apart" -le 3 ]
}

# A host that takes a virtual CPU away for longer than a tick takes ticks with it: the best of three.
for _ in 1 2 3; do
    LD_PRELOAD=$libdir/libprofil.so "$work/unmodified" 1 >"$work/out"
    cat "$work/out"
    grep -q '^profil() of .*libprofil\.so' "$work/out" || fail "another profil() served"
    grep -q 'SIGPROF handler: none, ITIMER_PROF: not running' "$work/out" || fail "a signal is used"
    ticks_agree && exit 0
done
fail "the two threads differ, or ticks are missing"
