# The setup side: edits Codex's config by its own bytes.
setup_LTLIBRARIES += plugins/codex-setup/codex-setup.la
plugins_codex_setup_codex_setup_la_SOURCES = \
	plugins/codex-setup/codex-check.c \
	plugins/codex-setup/config-file.c \
	plugins/codex-setup/diff.c \
	plugins/codex-setup/install.c \
	plugins/codex-setup/plugin.c \
	plugins/codex-setup/record.c plugins/codex-setup/record.h \
	plugins/codex-setup/remove.c \
	plugins/codex-setup/reviewer-launch.c \
	plugins/codex-setup/run.c plugins/codex-setup/run.h \
	plugins/codex-setup/setup.h \
	plugins/codex-setup/skills.c \
	plugins/codex-setup/status.c
plugins_codex_setup_codex_setup_la_LDFLAGS = $(plugin_ldflags)
plugins_codex_setup_codex_setup_la_LIBADD = plugins/codex-setup/libtoml.la \
	launch/liblaunch.la lib/libkcap.la $(CJSON_LIBS)

# The reader and the edits by themselves; tests run the public test data and the fuzzer through them.
noinst_LTLIBRARIES += plugins/codex-setup/libtoml.la
plugins_codex_setup_libtoml_la_SOURCES = \
	plugins/codex-setup/edit-rewritten.c \
	plugins/codex-setup/edit.c plugins/codex-setup/edit.h \
	plugins/codex-setup/entry.c plugins/codex-setup/entry.h \
	plugins/codex-setup/toml-number.c \
	plugins/codex-setup/toml-scan.c plugins/codex-setup/toml-scan.h \
	plugins/codex-setup/toml.c plugins/codex-setup/toml.h
