# part of the one Makefile; see Makefile.am
reviewer_LTLIBRARIES += plugins/flow-result/flow-result.la
plugins_flow_result_flow_result_la_SOURCES = \
	plugins/flow-result/deliver.c plugins/flow-result/deliver.h \
	plugins/flow-result/plugin.c \
	plugins/flow-result/texts.c plugins/flow-result/texts.h
plugins_flow_result_flow_result_la_LDFLAGS = $(plugin_ldflags)
plugins_flow_result_flow_result_la_LIBADD = lib/libkcap.la $(CJSON_LIBS)
