dnl SPDX-License-Identifier: Apache-2.0
dnl KCAP_CC_FLAG(FLAG, VARIABLE): appends FLAG to VARIABLE when the compiler takes it without a word.
AC_DEFUN([KCAP_CC_FLAG], [
    AC_MSG_CHECKING([whether $CC accepts $1])
    kcap_saved=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes]); $2="$$2 $1"], [AC_MSG_RESULT([no])])
    CFLAGS=$kcap_saved
])

dnl KCAP_LD_FLAG(FLAG, VARIABLE): the same for the linker.
AC_DEFUN([KCAP_LD_FLAG], [
    AC_MSG_CHECKING([whether the linker accepts $1])
    kcap_saved=$LDFLAGS
    LDFLAGS="$LDFLAGS -Werror $1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes]); $2="$$2 $1"], [AC_MSG_RESULT([no])])
    LDFLAGS=$kcap_saved
])
