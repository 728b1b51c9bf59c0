# What more than one part needs; linked into each, never installed.
noinst_LTLIBRARIES += lib/libkcap.la
lib_libkcap_la_SOURCES = \
	lib/atomic.c lib/atomic.h \
	lib/auto.h \
	lib/buf.c lib/buf.h \
	lib/json.c lib/json.h \
	lib/jscan.c lib/jscan.h \
	lib/paths.c lib/paths.h \
	lib/service.h \
	lib/session-id.c lib/session-id.h \
	lib/span.c lib/span.h \
	lib/spawn.c lib/spawn.h \
	lib/text.c lib/text.h
lib_libkcap_la_LIBADD = $(CJSON_LIBS)
