# part of the one Makefile; see Makefile.am
reviewer_LTLIBRARIES += plugins/flow-result/flow-result.la
plugins_flow_result_flow_result_la_SOURCES = \
	plugins/flow-result/deliver.c plugins/flow-result/deliver.h \
	plugins/flow-result/pending.c \
	plugins/flow-result/plugin.c \
	plugins/flow-result/reviewer.h \
	plugins/flow-result/selftest.c \
	plugins/flow-result/spool.c plugins/flow-result/spool.h \
	plugins/flow-result/spooldir.c plugins/flow-result/spooldir.h \
	plugins/flow-result/texts.c plugins/flow-result/texts.h \
	plugins/flow-result/tools.c
plugins_flow_result_flow_result_la_LDFLAGS = $(plugin_ldflags)
plugins_flow_result_flow_result_la_LIBADD = lib/libkcap.la $(CJSON_LIBS)
