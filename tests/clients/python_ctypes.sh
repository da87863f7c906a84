#!/bin/sh
# A Python program that loads libprofil by ctypes finds the function of zlib that it keeps busy.
set -eu

top_builddir=${top_builddir:-.}
top_srcdir=${top_srcdir:-.}

. "$top_srcdir/tests/clients/support.sh"

require_tool python3
require_tool nm
require_tool readelf
require_perf

LIBPROFIL_SO=$libdir/libprofil.so python3 "$top_srcdir/tests/clients/python_ctypes.py"
