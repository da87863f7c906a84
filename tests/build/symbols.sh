#!/bin/sh
# The shared library exports what src/libprofil.symbols lists and nothing else; what the static one
# defines for all to see begins with a name of ours, and includes the __profil of the C library's
# gmon.o.
set -eu

# NM may have options.
: "${NM:=nm}" "${top_srcdir:?}" "${top_builddir:?}"

shared=$top_builddir/.libs/libprofil.so
static=$top_builddir/.libs/libprofil.a
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

sort "$top_srcdir/src/libprofil.symbols" >"$directory/listed"
$NM -D --defined-only "$shared" | awk '{ print $NF }' | sort >"$directory/exported"
if ! diff -u "$directory/listed" "$directory/exported"; then
    echo "the symbols that $shared exports are not those of src/libprofil.symbols"
    exit 1
fi

$NM -g --defined-only "$static" | awk 'NF == 3 { print $3 }' | sort >"$directory/defined"
if grep -vE '^(profil|sprofil|__profil)' "$directory/defined"; then
    echo "$static defines the symbols above, which may be a program's"
    exit 1
fi
for name in profil sprofil __profil; do
    if ! grep -qx "$name" "$directory/defined"; then
        echo "$static does not define $name"
        exit 1
    fi
done
