# part of the one Makefile; see Makefile.am
driver_LTLIBRARIES += plugins/flows/flows.la
plugins_flows_flows_la_SOURCES = \
	plugins/flows/api.c plugins/flows/api.h \
	plugins/flows/args.c plugins/flows/args.h \
	plugins/flows/close.c \
	plugins/flows/daemon.c plugins/flows/daemon.h \
	plugins/flows/family.c plugins/flows/family.h \
	plugins/flows/flows.h \
	plugins/flows/holder.c plugins/flows/holder.h \
	plugins/flows/job.c plugins/flows/job.h \
	plugins/flows/journal.c plugins/flows/journal.h \
	plugins/flows/ledger.c plugins/flows/ledger.h \
	plugins/flows/lookup.c plugins/flows/lookup.h \
	plugins/flows/messages.c plugins/flows/messages.h \
	plugins/flows/origin.c plugins/flows/origin.h \
	plugins/flows/plugin.c \
	plugins/flows/preference.c plugins/flows/preference.h \
	plugins/flows/render.c plugins/flows/render.h \
	plugins/flows/repeat-round.c \
	plugins/flows/repeat.c plugins/flows/repeat.h \
	plugins/flows/round.c \
	plugins/flows/runs.c plugins/flows/runs.h \
	plugins/flows/session.c \
	plugins/flows/settle.c plugins/flows/settle.h \
	plugins/flows/shorten.c plugins/flows/shorten.h \
	plugins/flows/show.c plugins/flows/show.h \
	plugins/flows/start-job.c \
	plugins/flows/start.c \
	plugins/flows/status.c \
	plugins/flows/tools-flow.c \
	plugins/flows/tools-review.c \
	plugins/flows/tools.c plugins/flows/tools.h \
	plugins/flows/vendors.c \
	plugins/flows/view.c plugins/flows/view.h \
	plugins/flows/waiting.c plugins/flows/waiting.h \
	services/http/profile.c services/http/profile.h \
	services/http/repository.c services/http/repository.h \
	services/http/userconfig.c services/http/userconfig.h
plugins_flows_flows_la_LDFLAGS = $(plugin_ldflags)
plugins_flows_flows_la_LIBADD = lib/libkcap.la $(CJSON_LIBS)
