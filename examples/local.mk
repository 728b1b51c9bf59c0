# A third party's plugin: not built here, but shipped, and built against an installed copy by a test.
EXTRA_DIST += examples/hello/hello.c examples/hello/Makefile
