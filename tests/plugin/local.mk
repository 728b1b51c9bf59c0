# Ring 2: the modules as they are shipped, driven by a fake host.
check_LTLIBRARIES += tests/support/libfake.la
tests_support_libfake_la_SOURCES = \
	tests/support/fake-host.c tests/support/fake-host.h \
	tests/support/fake-http.c \
	tests/support/fake-private.h \
	tests/support/fake-time.c
tests_support_libfake_la_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_BUILDDIR='"$(abs_top_builddir)"'
tests_support_libfake_la_LIBADD = lib/libkcap.la
EXTRA_DIST += tests/support/mock_flow_server.py tests/support/result_server.py
plugin_ldadd = tests/support/libfake.la lib/libkcap.la $(CHECK_LIBS) $(CJSON_LIBS)
plugin_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS)
if HAVE_CHECK
plugin_tests = \
	tests/plugin/daemon/test_flows_daemon \
	tests/plugin/test_flow_message \
	tests/plugin/test_flow_result \
	tests/plugin/test_flow_result_spool \
	tests/plugin/test_flows_checks \
	tests/plugin/test_flows_crossing \
	tests/plugin/test_flows_family \
	tests/plugin/test_flows_find \
	tests/plugin/test_flows_journal \
	tests/plugin/test_flows_ledger \
	tests/plugin/test_flows_messages \
	tests/plugin/test_flows_origin \
	tests/plugin/test_flows_preference \
	tests/plugin/test_flows_repeat \
	tests/plugin/test_flows_repeat_round \
	tests/plugin/test_flows_settle \
	tests/plugin/test_flows_shown \
	tests/plugin/test_flows_start \
	tests/plugin/test_flows_vendors \
	tests/plugin/test_flows_wait \
	tests/plugin/test_http \
	tests/plugin/test_http_lock \
	tests/plugin/test_http_server \
	tests/plugin/launch/test_reviewer_launch
check_PROGRAMS += $(plugin_tests)
TESTS += $(plugin_tests)
http_rig = tests/plugin/http-rig.c tests/plugin/http-rig.h
flows_rig = tests/plugin/flows-rig.c tests/plugin/flows-rig.h
reviewer_rig = tests/plugin/reviewer-rig.c tests/plugin/reviewer-rig.h
tests_plugin_test_flow_message_SOURCES = tests/plugin/test_flow_message.c $(reviewer_rig)
tests_plugin_launch_test_reviewer_launch_LDADD = $(plugin_ldadd)
tests_plugin_launch_test_reviewer_launch_CFLAGS = $(plugin_cflags)
tests_plugin_test_flow_message_LDADD = $(plugin_ldadd)
tests_plugin_test_flow_message_CFLAGS = $(plugin_cflags)
tests_plugin_test_flow_result_SOURCES = tests/plugin/test_flow_result.c $(reviewer_rig)
tests_plugin_test_flow_result_spool_SOURCES = tests/plugin/test_flow_result_spool.c $(reviewer_rig)
tests_plugin_test_flow_result_spool_LDADD = $(plugin_ldadd)
tests_plugin_test_flow_result_spool_CFLAGS = $(plugin_cflags)
tests_plugin_test_flow_result_LDADD = $(plugin_ldadd)
tests_plugin_test_flow_result_CFLAGS = $(plugin_cflags)
tests_plugin_daemon_test_flows_daemon_SOURCES = \
	tests/plugin/daemon/test_flows_daemon.c $(flows_rig)
tests_plugin_daemon_test_flows_daemon_LDADD = $(plugin_ldadd)
tests_plugin_daemon_test_flows_daemon_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_checks_SOURCES = tests/plugin/test_flows_checks.c $(flows_rig)
tests_plugin_test_flows_checks_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_checks_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_crossing_SOURCES = tests/plugin/test_flows_crossing.c $(flows_rig)
tests_plugin_test_flows_crossing_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_crossing_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_preference_SOURCES = tests/plugin/test_flows_preference.c $(flows_rig)
tests_plugin_test_flows_preference_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_preference_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_family_SOURCES = tests/plugin/test_flows_family.c $(flows_rig)
tests_plugin_test_flows_family_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_family_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_vendors_SOURCES = tests/plugin/test_flows_vendors.c $(flows_rig)
tests_plugin_test_flows_vendors_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_vendors_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_find_SOURCES = tests/plugin/test_flows_find.c $(flows_rig)
tests_plugin_test_flows_find_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_find_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_shown_SOURCES = tests/plugin/test_flows_shown.c $(flows_rig)
tests_plugin_test_flows_shown_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_shown_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_journal_SOURCES = \
	tests/plugin/test_flows_journal.c plugins/flows/journal.c plugins/flows/runs.c
tests_plugin_test_flows_journal_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_journal_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_ledger_SOURCES = tests/plugin/test_flows_ledger.c $(flows_rig)
tests_plugin_test_flows_ledger_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_ledger_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_messages_SOURCES = tests/plugin/test_flows_messages.c $(flows_rig)
tests_plugin_test_flows_messages_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_messages_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_origin_SOURCES = \
	tests/plugin/test_flows_origin.c $(flows_rig) \
	plugins/flows/args.c plugins/flows/origin.c services/http/repository.c
tests_plugin_test_flows_origin_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_origin_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_repeat_SOURCES = tests/plugin/test_flows_repeat.c $(flows_rig)
tests_plugin_test_flows_repeat_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_repeat_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_repeat_round_SOURCES = tests/plugin/test_flows_repeat_round.c $(flows_rig)
tests_plugin_test_flows_repeat_round_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_repeat_round_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_settle_SOURCES = tests/plugin/test_flows_settle.c $(flows_rig)
tests_plugin_test_flows_settle_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_settle_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_start_SOURCES = tests/plugin/test_flows_start.c $(flows_rig)
tests_plugin_test_flows_start_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_start_CFLAGS = $(plugin_cflags)
tests_plugin_test_flows_wait_SOURCES = tests/plugin/test_flows_wait.c $(flows_rig)
tests_plugin_test_flows_wait_LDADD = $(plugin_ldadd)
tests_plugin_test_flows_wait_CFLAGS = $(plugin_cflags)
tests_plugin_test_http_SOURCES = tests/plugin/test_http.c $(http_rig)
tests_plugin_test_http_LDADD = $(plugin_ldadd)
tests_plugin_test_http_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_SRCDIR='"$(abs_top_srcdir)"'
tests_plugin_test_http_CFLAGS = $(plugin_cflags)
tests_plugin_test_http_lock_LDADD = $(plugin_ldadd)
tests_plugin_test_http_lock_CFLAGS = $(plugin_cflags)
tests_plugin_test_http_server_SOURCES = tests/plugin/test_http_server.c $(http_rig)
tests_plugin_test_http_server_LDADD = $(plugin_ldadd)
tests_plugin_test_http_server_CFLAGS = $(plugin_cflags)
endif
TESTS += tests/plugin/test_modules.py
EXTRA_DIST += tests/plugin/test_modules.py
CLEANFILES += tests/plugin/launch/kcap-host
