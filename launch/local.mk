# What starts agents as reviewers: for codex-setup.so and kcap-flowd alone. It runs nothing by itself.
# Whoever links it links lib/libkcap.la, too.
noinst_LTLIBRARIES += launch/liblaunch.la
launch_liblaunch_la_SOURCES = \
	launch/claude-settings.c launch/claude-settings.h \
	launch/claude.c \
	launch/codex-error.c launch/codex-error.h \
	launch/codex.c \
	launch/compose.c launch/compose.h \
	launch/environment.c launch/environment.h \
	launch/internal.h \
	launch/words.c launch/words.h
