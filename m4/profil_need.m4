# PROFIL_FIND_PACKAGE(PREFIX, MODULE)
# Asks pkg-config; PREFIX_CFLAGS and PREFIX_LIBS are what it says. Its status is that of the search.
AC_DEFUN([PROFIL_FIND_PACKAGE], [
    profil_library_found=no
    PKG_CHECK_MODULES([$1], [$2], [profil_library_found=yes], [:])
    test "$profil_library_found" = yes
])

# PROFIL_FIND_LIBRARY(PREFIX, FUNCTION, LIBRARY)
# For a library that pkg-config does not know; sets PREFIX_LIBS and leaves LIBS as it was.
AC_DEFUN([PROFIL_FIND_LIBRARY], [
    profil_libs_before=$LIBS
    profil_library_found=no
    LIBS=
    AC_SEARCH_LIBS([$2], [$3], [profil_library_found=yes])
    AC_SUBST([$1][_LIBS], [$LIBS])
    LIBS=$profil_libs_before
])

# PROFIL_NEED(NAME, WANTED, DEBIAN-PACKAGE, SWITCH-TO-DO-WITHOUT, FIND)
# Unless WANTED is "no", runs FIND, and a failure of it ends configure. profil_NAME becomes yes or no,
# and config.h says HAVE_NAME.
AC_DEFUN([PROFIL_NEED], [
    profil_$1=no
    AS_IF([test "$2" != no], [
        AS_IF([$5], [profil_$1=yes], [AC_MSG_ERROR([$1 not found.
Debian's package $3 brings it; $4 does without.])])
        AC_DEFINE([HAVE_]m4_toupper([$1]), [1], [Define to 1 if $1 is there and wanted.])
    ])
])
