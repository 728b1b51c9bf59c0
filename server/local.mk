# part of the one Makefile; see Makefile.am
bin_PROGRAMS += server/kcap-flowd server/kcap-checklist

# everything but main, so that tests can link single modules
noinst_LTLIBRARIES += server/libflowd.la
server_libflowd_la_SOURCES = \
	server/api.c server/api.h \
	server/api_internal.h \
	server/api_admin.c \
	server/api_driver.c \
	server/api_gate.c \
	server/api_parts.c \
	server/api_reviewer.c \
	server/api_server.c \
	server/api_start.c \
	server/ask.c server/ask.h \
	server/become.c server/become.h \
	server/chores.c server/chores.h \
	server/clocks.c server/clocks.h \
	server/codex_track.c server/codex_track.h \
	server/commands.c server/commands.h \
	server/copy.c server/copy.h \
	server/database.c server/database.h \
	server/definition.c server/definition.h \
	server/definition_yaml.c \
	server/engine.c server/engine.h \
	server/engine_internal.h \
	server/engine_sweep.c \
	server/env.c server/env.h \
	server/http.c server/http.h \
	server/http_internal.h \
	server/http_visitor.c \
	server/ladder.c \
	server/launch.c server/launch.h \
	server/listen.c server/listen.h \
	server/log.c server/log.h \
	server/loop.c server/loop.h \
	server/mark.c server/mark.h \
	server/orphan.c server/orphan.h \
	server/pipes.c server/pipes.h \
	server/place.c server/place.h \
	server/prompt.c server/prompt.h \
	server/queue.c server/queue.h \
	server/reviewer.c server/reviewer.h \
	server/reviewer_event.c \
	server/reviewer_internal.h \
	server/reviewer_turn.c \
	server/server.c server/server.h \
	server/settings.c server/settings.h \
	server/store.c server/store.h \
	server/store_flow.c \
	server/store_internal.h \
	server/store_round.c \
	server/stray.c server/stray.h \
	server/turn.c server/turn.h \
	server/util.c server/util.h \
	server/vendor.c server/vendor.h \
	server/vendor_checklist.c \
	server/vendor_claude.c \
	server/vendor_codex.c \
	server/vendor_codex_exec.c \
	server/vendor_command.c \
	server/workspace.c server/workspace.h \
	server/workspace_copy.c \
	server/workspace_files.c server/workspace_files.h \
	server/workspace_remove.c
server_libflowd_la_CFLAGS = $(AM_CFLAGS) $(MHD_CFLAGS) $(SQLITE_CFLAGS) $(YAML_CFLAGS)
server_libflowd_la_LIBADD = launch/liblaunch.la lib/libkcap.la $(MHD_LIBS) $(SQLITE_LIBS) $(YAML_LIBS) $(CJSON_LIBS)

server_kcap_flowd_SOURCES = server/main.c
server_kcap_flowd_CFLAGS = $(AM_CFLAGS) -fPIE
server_kcap_flowd_LDFLAGS = $(AM_LDFLAGS) $(KCAP_PIE_LDFLAGS)
server_kcap_flowd_LDADD = server/libflowd.la

noinst_LTLIBRARIES += server/libchecklist.la
server_libchecklist_la_SOURCES = \
	server/checklist/change.c server/checklist/change.h \
	server/checklist/check_conflict.c \
	server/checklist/check_data.c \
	server/checklist/check_file.c \
	server/checklist/check_secret.c \
	server/checklist/check_white.c \
	server/checklist/checks.c server/checklist/checks.h \
	server/checklist/diff.c server/checklist/diff.h \
	server/checklist/git.c server/checklist/git.h \
	server/checklist/report.c server/checklist/report.h \
	server/checklist/submit.c server/checklist/submit.h \
	server/checklist/target.c server/checklist/target.h
server_libchecklist_la_CFLAGS = $(AM_CFLAGS) $(YAML_CFLAGS)
server_libchecklist_la_LIBADD = lib/libkcap.la $(YAML_LIBS) $(CJSON_LIBS) -lm

server_kcap_checklist_SOURCES = server/checklist/main.c
server_kcap_checklist_CFLAGS = $(AM_CFLAGS) -fPIE
server_kcap_checklist_LDFLAGS = $(AM_LDFLAGS) $(KCAP_PIE_LDFLAGS)
server_kcap_checklist_LDADD = server/libchecklist.la
