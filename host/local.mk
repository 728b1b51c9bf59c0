# The program. Everything but main is a convenience library, so that unit tests link the same objects.
noinst_LTLIBRARIES += host/libhost.la
host_libhost_la_SOURCES = \
	host/arguments.c host/arguments.h \
	host/batch.c host/batch.h \
	host/boundary.c host/boundary.h \
	host/calls.c host/calls.h \
	host/cli.c host/cli.h \
	host/clock.c host/clock.h \
	host/descriptor.c host/descriptor.h \
	host/elfnote.c host/elfnote.h \
	host/dump.c host/dump.h \
	host/era.c host/era.h \
	host/host.c host/host.h \
	host/listen.c host/listen.h \
	host/loader.c host/loader.h \
	host/log.c host/log.h \
	host/methods.c host/methods.h \
	host/plugindirs.c host/plugindirs.h \
	host/protocol.c host/protocol.h \
	host/reader.c host/reader.h \
	host/reply.c host/reply.h \
	host/rpc.c host/rpc.h \
	host/schema.c host/schema.h \
	host/serve.c \
	host/session.c host/session.h \
	host/settled.c host/settled.h \
	host/shell.c \
	host/signals.c host/signals.h \
	host/table.c \
	host/waits.c host/waits.h \
	host/windows.c host/windows.h \
	host/wire.c host/wire.h \
	host/workers.c host/workers.h
host_libhost_la_LIBADD = lib/libkcap.la

bin_PROGRAMS += host/kcap-host
host_kcap_host_SOURCES = host/main.c
host_kcap_host_CFLAGS = $(AM_CFLAGS) -fPIE
host_kcap_host_LDFLAGS = $(AM_LDFLAGS) $(KCAP_PIE_LDFLAGS)
host_kcap_host_LDADD = host/libhost.la $(CJSON_LIBS)
