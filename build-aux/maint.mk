# Targets for those who work on kcap-host; docs/HACKING.md lists them.
EXTRA_DIST += build-aux/lint.sh build-aux/maint.mk
lint:
	CC='$(CC)' $(SHELL) $(top_srcdir)/build-aux/lint.sh $(top_srcdir)

# Left out, as valgrind 3.19 knows no pidfd_open: whole reviews; test_paths, test_flows_daemon and
# test_reviewer_launch, which start children by it, and test_flowd_operate. test_checklist_changes starts
# kcap-checklist a thousand times, test_flowd_stress and test_flowd_crowd put load on a daemon, test_flowd_disk has a
# wrapper of its own.
VALGRIND = valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
valgrind_leaves_out = tests/unit/test_paths tests/plugin/daemon/test_flows_daemon \
	tests/plugin/launch/test_reviewer_launch
valgrind_tests = $(filter-out $(valgrind_leaves_out),$(unit_tests) $(flowd_unit_tests) $(plugin_tests))
valgrind_process_tests = tests/process/test_host.py tests/process/test_host_end.py tests/process/test_host_shell.py \
	$(filter-out tests/process/test_checklist_changes.py tests/process/test_flowd_crowd.py \
	tests/process/test_flowd_disk.py \
	tests/process/test_flowd_kcap.py tests/process/test_flowd_operate.py tests/process/test_flowd_stress.py, \
	$(flowd_process_tests))
check-valgrind: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(valgrind_tests)' \
		LOG_COMPILER='env CK_FORK=no CK_DEFAULT_TIMEOUT=0 KCAP_TEST_SLOWER=30 $(VALGRIND)'
	KCAP_WRAP='$(VALGRIND)' KCAP_TEST_SLOWER=30 \
		$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(valgrind_process_tests)'

# What has threads: kcap-flowd has none.
list-threaded-tests:
	@echo $(filter-out $(flowd_process_tests) $(flowd_unit_tests),$(TESTS))

EXTRA_DIST += tests/conformance/run.sh tests/conformance/stdio-http-bridge.mjs \
	tests/conformance/conformance-baseline-2025-11-25.yml tests/conformance/conformance-baseline-2026-07-28.yml
check-conformance: all tests/support/fixture.la
	$(SHELL) $(top_srcdir)/tests/conformance/run.sh $(abs_top_builddir) $(abs_top_srcdir)

# Codex, Claude Code and others as they are, on a scripted model. Some 1.5 GB from npm the first time, and six minutes:
# one test waits for Codex's own limit. docs/clients.md is its table.
check-harness: all
	$(SHELL) $(top_srcdir)/tests/harness/install.sh harness-clients
	-$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(harness_tests)'
	$(PYTHON3) $(top_srcdir)/tests/harness/table.py tests/harness >harness-clients/clients.md; \
		status=$$?; cat harness-clients/clients.md; exit $$status
.PHONY: lint check-valgrind list-threaded-tests check-conformance check-harness
