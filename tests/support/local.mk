# Plugins that only tests load; never installed (-rpath makes libtool build a module all the same).
check_LTLIBRARIES += tests/support/fixture.la
tests_support_fixture_la_SOURCES = tests/support/fixture.c
tests_support_fixture_la_LDFLAGS = $(plugin_ldflags) -rpath /nowhere
tests_support_fixture_la_LIBADD = lib/libkcap.la $(CJSON_LIBS)
check_LTLIBRARIES += tests/support/canary.la
tests_support_canary_la_SOURCES = tests/support/canary.c
tests_support_canary_la_LDFLAGS = $(plugin_ldflags) -rpath /nowhere
check_LTLIBRARIES += tests/support/serial.la
tests_support_serial_la_SOURCES = tests/support/serial.c
tests_support_serial_la_LDFLAGS = $(plugin_ldflags) -rpath /nowhere
check_PROGRAMS += tests/support/toml-json
tests_support_toml_json_LDADD = plugins/codex-setup/libtoml.la lib/libkcap.la
check_PROGRAMS += tests/support/kill-at
tests_support_kill_at_SOURCES = tests/support/kill-at.c
