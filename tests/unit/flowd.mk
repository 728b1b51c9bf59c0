# see tests/local.mk: kcap-flowd and kcap-checklist
EXTRA_DIST += tests/support/flowd.py tests/support/codex_test.py tests/support/fake_app_server.py tests/support/fake_claude.py
flowd_process_tests = \
	tests/process/test_checklist_changes.py \
	tests/process/test_flowd_api.py \
	tests/process/test_flowd_claude.py \
	tests/process/test_flowd_codex.py \
	tests/process/test_flowd_codex_end.py \
	tests/process/test_flowd_command.py \
	tests/process/test_flowd_crowd.py \
	tests/process/test_flowd_disk.py \
	tests/process/test_flowd_end.py \
	tests/process/test_flowd_kcap.py \
	tests/process/test_flowd_operate.py \
	tests/process/test_flowd_participants.py \
	tests/process/test_flowd_round.py \
	tests/process/test_flowd_start.py \
	tests/process/test_flowd_stray.py \
	tests/process/test_flowd_stress.py \
	tests/process/test_flowd_workspace.py
EXTRA_DIST += $(flowd_process_tests)
TESTS += $(flowd_process_tests)
if HAVE_CHECK
flowd_unit_tests = \
	tests/unit/test_checks \
	tests/unit/test_codex_track \
	tests/unit/test_engine \
	tests/unit/test_watch
check_PROGRAMS += $(flowd_unit_tests)
TESTS += $(flowd_unit_tests)
tests_unit_test_checks_LDADD = server/libchecklist.la $(CHECK_LIBS)
tests_unit_test_checks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codex_track_LDADD = server/libflowd.la $(CHECK_LIBS)
tests_unit_test_codex_track_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_watch_LDADD = server/libflowd.la $(CHECK_LIBS)
tests_unit_test_watch_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_LDADD = server/libflowd.la $(CHECK_LIBS)
tests_unit_test_engine_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
endif
