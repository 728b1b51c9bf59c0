dist_man_MANS += docs/kcap-host.1 docs/kcap-host-plugin.3
if BUILD_FLOWD
dist_man_MANS += docs/kcap-flowd.1 docs/kcap-checklist.1
else
EXTRA_DIST += docs/kcap-flowd.1 docs/kcap-checklist.1
endif
EXTRA_DIST += docs/HACKING.md docs/SECURITY.md docs/clients.md docs/kcap-differences.md docs/flow-tools-tests.md
