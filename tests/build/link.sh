#!/bin/sh
# A program builds against the installed library, and profil() works in it: linked in each way, at each
# level of optimisation, as C and as C++, and in a program built without it.
#
# The library's own sources are compiled into the program at each level too: <unistd.h> declares that
# profil() is never given NULL, and an optimiser that believes it could delete what NULL is for.
set -eu

: "${PROFIL_LIBS?}" "${MAKE:=make}" "${CC:=cc}" "${CXX:=c++}" "${top_srcdir:?}" "${top_builddir:?}"

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
program=$top_srcdir/tests/build/program.c
wanted=3
failed=0
passed=0
skipped=0

# Make is not to take part in the jobs of the make that runs this.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u TESTS \
    "$MAKE" -C "$top_builddir" install DESTDIR="$directory/root" >"$directory/install" 2>&1 || {
    cat "$directory/install"
    exit 1
}
pc=$(find "$directory/root" -name libprofil.pc)
export PKG_CONFIG_SYSROOT_DIR="$directory/root" PKG_CONFIG_LIBDIR="${pc%/*}"
lib=$(dirname "${pc%/*}")
version="-DEXPECT_VERSION=\"$(pkg-config --modversion libprofil)\" $(pkg-config --cflags libprofil)"
shared=$(pkg-config --libs libprofil)
static=$(pkg-config --libs --static libprofil)

# Builds and runs a program, in a directory of its own, where the verdict can be read.
# Words of a variable are separate arguments.
# shellcheck disable=SC2086
try() { # COMPILER FLAGS SOURCES LIBRARIES [VARIABLE=VALUE]
    work=$(mktemp -d "$directory/try.XXXXXX")
    echo "$*" >"$work/what"
    status=0
    $1 $2 -Wno-nonnull -o "$work/program" $3 $4 >"$work/output" 2>&1 &&
        env ${5-LD_LIBRARY_PATH="$lib"} "$work/program" >>"$work/output" 2>&1 || status=$?
    echo "$status" >"$work/status"
}

for optimise in -O0 -O1 -O3 "-O2 -flto" -O2; do
    {
        try "$CC" "$optimise $version" "$program" "$shared"
        try "$CC" "$optimise $version -static" "$program" "$static"
        try "$CC" "$optimise $version -static-pie -fPIE" "$program" "$static"
        try "$CC" "$optimise -D_GNU_SOURCE -I$top_srcdir/src -I$top_srcdir/include -I$top_builddir" \
            "$program $top_srcdir/src/*.c" "$PROFIL_LIBS -lpthread"
    } &
    wanted=$((wanted + 4))
done
wait
try "$CXX -x c++ -std=c++98" "$optimise $version" "$program" "$shared"
try "$CXX -x c++ -std=c++20" "$optimise $version" "$program" "$shared"
try "$CC" "$optimise" "$program" "" "LD_PRELOAD=$lib/libprofil.so"

for work in "$directory"/try.*; do
    case $(cat "$work/status") in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *)
        failed=$((failed + 1))
        echo "FAILED with status $(cat "$work/status"): $(cat "$work/what")"
        cat "$work/output"
        ;;
    esac
done

echo "$passed passed, $failed failed, $skipped without perf events"
[ "$failed" -eq 0 ] || exit 1
[ $((passed + skipped)) -eq "$wanted" ] || exit 1
[ "$passed" -gt 0 ] || exit 77
