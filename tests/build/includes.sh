#!/bin/sh
# Includes inside src/ go down only. Each line is a layer, the lowest first: a file may include what
# stands on a line above its own, and its own header.
set -eu

: "${top_srcdir:?}"

layers='
sanitizer kernel own reason call
memory bucket cpus conflict gate
threads range ring cover event service channel table
attach fallback keeper eventname privilege lag
tally
sampler
options
engine
statistics
profiler
profil libprofil
'

cd "$top_srcdir/src"
awk -v layers="$layers" '
    BEGIN {
        count = split(layers, line, "\n")
        for (i = 1; i <= count; i++) {
            words = split(line[i], name, " ")
            for (j = 1; j <= words; j++)
                layer[name[j]] = i
        }
    }
    function stem(file) {
        sub(/^\.\//, "", file)
        sub(/\.[ch]$/, "", file)
        return file
    }
    FNR == 1 && !(stem(FILENAME) in layer) {
        print FILENAME ": has no layer in tests/build/includes.sh"
        failed = 1
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\"")
        from = stem(FILENAME)
        to = stem(part[2])
        if (part[2] == "config.h" || (part[2] == "libprofil.h" && from != "libprofil"))
            next
        edges++
        if (FILENAME ~ /\.c$/ && part[2] == from ".h")
            next
        if (!(to in layer) || layer[to] >= layer[from]) {
            print FILENAME ":" FNR ": " part[2] " is not below " from
            failed = 1
        }
    }
    END {
        print edges " includes"
        exit (failed || !edges)
    }
' ./*.c ./*.h
