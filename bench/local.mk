# Not installed, not part of check: "make bench".
EXTRA_PROGRAMS = bench/mcp_load bench/floor
bench_mcp_load_SOURCES = \
	bench/load-garbage.c bench/load-message.c bench/load-report.c bench/load-scenarios.c \
	bench/load-server.c bench/load.h bench/mcp_load.c
bench_mcp_load_LDADD = lib/libkcap.la $(CJSON_LIBS)
bench_mcp_load_CFLAGS = -O2
bench_floor_SOURCES = bench/floor.c
bench_floor_CFLAGS = -O2 $(CJSON_CFLAGS)
bench_floor_LDADD = $(CJSON_LIBS)
check_LTLIBRARIES += bench/trivial.la
bench_trivial_la_SOURCES = bench/trivial.c
bench_trivial_la_LDFLAGS = $(plugin_ldflags) -rpath /nowhere
bench_trivial_la_LIBADD = lib/libkcap.la $(CJSON_LIBS)
EXTRA_DIST += bench/run.sh bench/README.md
CLEANFILES += bench/mcp_load bench/floor
bench: all bench/mcp_load bench/floor bench/trivial.la
	$(SHELL) $(top_srcdir)/bench/run.sh $(abs_top_builddir)
.PHONY: bench
