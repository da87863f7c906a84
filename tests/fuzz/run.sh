#!/bin/bash
# run.sh [SECONDS]: builds each fuzz target and runs it for that long (20 s), from the kept corpus and
# without changing that. Fails on a crash, a leak, or an input that takes 30 s; shows the input then.
#
# To keep what a longer run has found, smallest set first:
#   TARGET -merge=1 tests/fuzz/corpus/TARGET DIRECTORY-OF-FINDINGS
set -euo pipefail

seconds=${1:-20}
cd "$(dirname "$0")"
here=$PWD
source=$here/../..
work=$(mktemp -d "${TMPDIR:-/tmp}/libprofil-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
export UBSAN_OPTIONS=print_stacktrace=1

# Built without libpfm4 and libcap, which are not what is to be tried.
: >"$work/config.h"

flags=(-std=gnu11 -D_GNU_SOURCE -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all
    -I"$here" -I"$source/include" -I"$source/src" -I"$work")

build() {
    mkdir "$work/objects"
    (cd "$work/objects" &&
        clang "${flags[@]}" -fsanitize=fuzzer-no-link,address,undefined -c "$source"/src/*.c)
    for target in ring environment; do
        clang "${flags[@]}" -fsanitize=fuzzer,address,undefined -o "$work/$target" \
            "$here/$target.c" "$work"/objects/*.o -lpthread
    done
}

run() { # TARGET OPTION...
    local target=$1
    shift
    rm -rf "$work/findings"
    mkdir "$work/findings"
    cp "$here/corpus/$target"/* "$work/findings"
    if ! "$work/$target" "$@" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix="$work/" "$work/findings" >"$work/log" 2>&1; then
        tail -n 60 "$work/log"
        for input in "$work"/{crash,leak,timeout,oom}-*; do
            [ ! -e "$input" ] || base64 "$input"
        done
        echo "not ok - fuzz $target"
        return 1
    fi
    sed -n 's/^stat::number_of_executed_units: */# runs: /p' "$work/log"
    echo "ok - fuzz $target"
}

failed=0
build
run ring -max_len=8300 || failed=1
run environment -max_len=256 -dict="$here/environment.dict" || failed=1
exit "$failed"
