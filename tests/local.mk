# Rings of tests, inner ones first: unit (Check, a module each), plugin (the shipped .so against a fake
# host), process (real programs over pipes, in Python).
include tests/support/local.mk
include tests/abi/local.mk
include tests/unit/local.mk
include tests/plugin/local.mk
if BUILD_FLOWD
include tests/unit/flowd.mk
endif
include tests/process/local.mk
include tests/fuzz/local.mk
include tests/harness/local.mk
