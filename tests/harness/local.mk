# Real agents on a scripted model; make check-harness installs them first (build-aux/maint.mk).
harness_tests = \
	tests/harness/test_drivers.py \
	tests/harness/test_flow_result_clients.py \
	tests/harness/test_flowd_reviewers.py \
	tests/harness/test_launch_claude.py \
	tests/harness/test_launch_codex.py \
	tests/harness/test_loop.py \
	tests/harness/test_setup_codex.py \
	tests/harness/test_slow_codex.py
EXTRA_DIST += $(harness_tests) \
	tests/harness/clients.py \
	tests/harness/driver_desk.py \
	tests/harness/flowd_desk.py \
	tests/harness/install.sh \
	tests/harness/launch_desk.py \
	tests/harness/table.py \
	tests/support/model_api.py
