# PROFIL_KNOWN_FLAGS(VARIABLE, FLAGS)
# Sets VARIABLE to those of the flags that the compiler knows.
AC_DEFUN([PROFIL_KNOWN_FLAGS], [
    AC_LANG_PUSH([C])
    $1=
    profil_cflags_before=$CFLAGS
    m4_foreach_w([profil_flag], [$2], [
        AC_MSG_CHECKING([whether $CC knows ]profil_flag)
        CFLAGS="-Werror ]profil_flag["
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
            [AC_MSG_RESULT([yes])
             $1="$$1 ]profil_flag["],
            [AC_MSG_RESULT([no])])
    ])
    CFLAGS=$profil_cflags_before
    AC_SUBST([$1])
    AC_LANG_POP([C])
])

# PROFIL_WARNINGS(WERROR)
# Sets WARNING_FLAGS, and the further LIBRARY_WARNING_FLAGS and PROGRAM_WARNING_FLAGS.
AC_DEFUN([PROFIL_WARNINGS], [
    PROFIL_KNOWN_FLAGS([WARNING_FLAGS], [-Wall -Wextra -Wstrict-prototypes -Wformat=2 -Wvla])
    PROFIL_KNOWN_FLAGS([LIBRARY_WARNING_FLAGS], [-Wmissing-prototypes -Wold-style-definition -Wshadow
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef])
    # A loop that is there to use CPU time sets what nobody reads.
    PROFIL_KNOWN_FLAGS([PROGRAM_WARNING_FLAGS], [-Wno-unused-but-set-variable])
    AS_IF([test "$1" = yes], [WARNING_FLAGS="$WARNING_FLAGS -Werror"])
])

# PROFIL_SANITIZERS(LIST)
# Sets SANITIZER_FLAGS, for compiling and for linking, and PROGRAM_SANITIZER_FLAGS for compiling tests.
AC_DEFUN([PROFIL_SANITIZERS], [
    SANITIZER_FLAGS=
    PROGRAM_SANITIZER_FLAGS=
    profil_thread_sanitizer=no
    AS_CASE(["$1"],
        [""|no], [],
        [yes], [AC_MSG_ERROR([--enable-sanitizers wants a list, such as address,undefined])],
        [SANITIZER_FLAGS="-fsanitize=$1 -fno-sanitize-recover=all -fno-omit-frame-pointer"])
    AS_IF([test -n "$SANITIZER_FLAGS"], [
        AC_LANG_PUSH([C])
        profil_cflags_before=$CFLAGS
        CFLAGS="$CFLAGS $SANITIZER_FLAGS"
        AC_MSG_CHECKING([whether $CC links with -fsanitize=$1])
        AC_LINK_IFELSE([AC_LANG_PROGRAM],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([$CC cannot build with -fsanitize=$1.
Debian's package libclang-rt-dev brings clang's sanitizers; gcc's come with gcc.])])
        CFLAGS=$profil_cflags_before
        AC_LANG_POP([C])
        AS_CASE([",$1,"], [*,thread,*], [profil_thread_sanitizer=yes])
        # <unistd.h> declares that profil() is never given NULL, which is how it is turned off.
        AS_CASE([",$1,"], [*,undefined,*],
            [PROGRAM_SANITIZER_FLAGS=-fno-sanitize=nonnull-attribute])
    ])
    AC_SUBST([SANITIZER_FLAGS])
    AC_SUBST([PROGRAM_SANITIZER_FLAGS])
])

# PROFIL_COVERAGE(ENABLED)
# Sets COVERAGE_FLAGS, for compiling and for linking. Counters are atomic: the library has threads.
AC_DEFUN([PROFIL_COVERAGE], [
    COVERAGE_FLAGS=
    GCOV=:
    AS_IF([test "$1" = yes], [
        COVERAGE_FLAGS="--coverage -fprofile-update=atomic"
        AC_CHECK_PROGS([GCOV], [gcov])
        AS_IF([test "$GCC,$ac_cv_c_compiler_gnu" != yes,yes || test -z "$GCOV"],
            [AC_MSG_ERROR([coverage needs gcc and gcov; Debian's package gcc brings both])])
    ])
    AC_SUBST([COVERAGE_FLAGS])
    AC_SUBST([GCOV])
])
