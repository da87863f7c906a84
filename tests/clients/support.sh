# shellcheck shell=sh
# What the client tests share; sourced with top_builddir and top_srcdir set.

libdir=$(cd "${top_builddir:?}/.libs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() {
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -g "$@"
}

fail() {
    echo "$0: $1" >&2
    exit 1
}

# Ends the test as skipped, but fails it where nothing may be missing.
skip() {
    echo "$0: $1" >&2
    [ "${CI:-}" != true ] && [ "${PROFIL_REQUIRE_PERF:-}" != 1 ] || exit 1
    exit 77
}

require_tool() {
    command -v "$1" >/dev/null || skip "no $1 here"
}

require_perf() {
    cat >"$work/probe.c" <<'END'
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    static unsigned short counter;

    if (profil(&counter, sizeof(counter), 0, 65536) == 0)
        return 0;
    perror("profil");
    return 1;
}
END
    # The libraries are words of a variable.
    # shellcheck disable=SC2086
    compile "$work/probe.c" -o "$work/probe" "$libdir/libprofil.a" $PROFIL_LIBS -lpthread
    reason=$(PROFIL_ENGINE=perf "$work/probe" 2>&1) || skip "$reason"
}
