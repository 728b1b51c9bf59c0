# Ring 3: real programs over pipes. Python 3, standard library only; without it they are skipped.
EXTRA_DIST += tests/process/harness.py tests/process/installed.py tests/data/mcp-edge-cases.jsonl
process_tests = \
	tests/process/test_codex_setup.py \
	tests/process/test_codex_setup_rules.py \
	tests/process/test_flow_result_faults.py \
	tests/process/test_held.py \
	tests/process/test_host.py \
	tests/process/test_host_end.py \
	tests/process/test_host_shell.py \
	tests/process/test_hostile_server.py \
	tests/process/test_install.py \
	tests/process/test_loader.py \
	tests/process/test_login.py \
	tests/process/test_repeat.py \
	tests/process/test_review.py \
	tests/process/test_reviewer.py \
	tests/process/test_reviewer_launch.py \
	tests/process/test_reviewer_wall.py \
	tests/process/test_scenarios.py \
	tests/process/test_vectors.py
TESTS += $(process_tests)
EXTRA_DIST += $(process_tests)
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/process/run-python.sh
AM_TESTS_ENVIRONMENT = PYTHON3='$(PYTHON3)'; export PYTHON3; \
	PYTHONPATH='$(abs_top_srcdir)/tests/process:$(abs_top_srcdir)/tests/support'; export PYTHONPATH; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	KCAP_TEST_PATHS='$(abs_top_builddir)/tests/process'; export KCAP_TEST_PATHS;
EXTRA_DIST += tests/process/run-python.sh
EXTRA_DIST += tests/data/flow-scenarios.jsonl
EXTRA_DIST += tests/support/codex_desk.py tests/support/fake_codex.py
EXTRA_DIST += tests/data/toml-test.jsonl tests/data/toml-test.LICENSE tests/data/codex-config
