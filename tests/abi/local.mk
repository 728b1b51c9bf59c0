# The promise to plugins, as numbers.
check_PROGRAMS += tests/abi/test_abi
TESTS += tests/abi/test_abi
tests_abi_test_abi_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_SRCDIR='"$(abs_top_srcdir)"'
# headers as they were released: what was built against them is loaded by today's host (test_install.py)
EXTRA_DIST += tests/abi/abi-1.0.txt tests/abi/include-1.0/kcap/plugin.h
