# Ring 5. The corpora are replayed (and bent) by ordinary tests; with clang, "make fuzz-smoke" searches for a bounded
# time and "make fuzz" until stopped. What crashes becomes a file of the corpus.
fuzz_targets = line elfnote schema shorten toml
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/fuzz.h
fuzz_tests = tests/fuzz/replay_line tests/fuzz/replay_elfnote tests/fuzz/replay_schema \
	tests/fuzz/replay_shorten tests/fuzz/replay_toml
check_PROGRAMS += $(fuzz_tests)
TESTS += $(fuzz_tests)
tests_fuzz_replay_line_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_line.c
tests_fuzz_replay_line_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/line"'
tests_fuzz_replay_line_LDADD = host/libhost.la $(CJSON_LIBS)
tests_fuzz_replay_elfnote_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_elfnote.c
tests_fuzz_replay_elfnote_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/elfnote"'
tests_fuzz_replay_elfnote_LDADD = host/libhost.la $(CJSON_LIBS)
tests_fuzz_replay_schema_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_schema.c
tests_fuzz_replay_schema_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/schema"'
tests_fuzz_replay_schema_LDADD = host/libhost.la $(CJSON_LIBS)
tests_fuzz_replay_shorten_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_shorten.c plugins/flows/shorten.c
tests_fuzz_replay_shorten_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/shorten"'
tests_fuzz_replay_shorten_LDADD = lib/libkcap.la $(CJSON_LIBS)
tests_fuzz_replay_toml_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz_toml.c
tests_fuzz_replay_toml_CPPFLAGS = $(AM_CPPFLAGS) -DKCAP_CORPUS='"$(abs_top_srcdir)/tests/fuzz/corpus/toml"'
tests_fuzz_replay_toml_LDADD = plugins/codex-setup/libtoml.la lib/libkcap.la $(CJSON_LIBS)

FUZZ_SECONDS = 20
FUZZ_CC = clang
fuzz_sources = $(top_srcdir)/host/elfnote.c $(top_srcdir)/host/era.c $(top_srcdir)/host/rpc.c $(top_srcdir)/host/schema.c \
	$(top_srcdir)/host/session.c $(top_srcdir)/lib/*.c $(top_srcdir)/plugins/codex-setup/toml*.c \
	$(top_srcdir)/plugins/flows/shorten.c $(top_srcdir)/plugins/codex-setup/edit*.c $(top_srcdir)/plugins/codex-setup/entry.c
fuzz-smoke: all
	@for target in $(fuzz_targets); do \
		mkdir -p fuzz/$$target && \
		$(FUZZ_CC) -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
			-I. -I$(top_srcdir) -I$(top_srcdir)/include -DKCAP_BINDIR='"x"' $(CJSON_CFLAGS) -o fuzz/fuzz_$$target \
			$(top_srcdir)/tests/fuzz/fuzz_$$target.c $(fuzz_sources) $(CJSON_LIBS) && \
		./fuzz/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=fuzz/ -max_len=4096 \
			fuzz/$$target $(top_srcdir)/tests/fuzz/corpus/$$target >fuzz/$$target.log 2>&1 || \
			{ tail -n 30 fuzz/$$target.log; echo "fuzz/fuzz_$$target failed"; exit 1; }; \
		sed -n 's/^stat::number_of_executed_units: */'$$target': inputs tried: /p' fuzz/$$target.log; done
fuzz:
	$(MAKE) $(AM_MAKEFLAGS) fuzz-smoke FUZZ_SECONDS=0
.PHONY: fuzz fuzz-smoke
