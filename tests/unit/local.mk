# Ring 1: one Check suite a module, linked to the module's own objects.
unit_ldadd = host/libhost.la $(CHECK_LIBS) $(CJSON_LIBS)
unit_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS)
EXTRA_DIST += tests/unit/suite.h tests/unit/files.h
if HAVE_CHECK
unit_tests = \
	tests/unit/test_atomic \
	tests/unit/test_boundary \
	tests/unit/test_buf \
	tests/unit/test_cli \
	tests/unit/test_compose \
	tests/unit/test_elfnote \
	tests/unit/test_http_parts \
	tests/unit/test_jscan \
	tests/unit/test_paths \
	tests/unit/test_reader \
	tests/unit/test_rpc \
	tests/unit/test_schema \
	tests/unit/test_session \
	tests/unit/test_shorten \
	tests/unit/test_text \
	tests/unit/test_windows
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
tests_unit_test_atomic_LDADD = $(unit_ldadd)
tests_unit_test_atomic_CFLAGS = $(unit_cflags)
tests_unit_test_boundary_LDADD = $(unit_ldadd)
tests_unit_test_boundary_CFLAGS = $(unit_cflags)
tests_unit_test_buf_LDADD = $(unit_ldadd)
tests_unit_test_buf_CFLAGS = $(unit_cflags)
tests_unit_test_shorten_SOURCES = tests/unit/test_shorten.c plugins/flows/shorten.c
tests_unit_test_shorten_LDADD = $(unit_ldadd)
tests_unit_test_shorten_CFLAGS = $(unit_cflags)
tests_unit_test_cli_LDADD = $(unit_ldadd)
tests_unit_test_cli_CFLAGS = $(unit_cflags)
tests_unit_test_compose_LDADD = launch/liblaunch.la $(unit_ldadd)
tests_unit_test_compose_CFLAGS = $(unit_cflags)
tests_unit_test_elfnote_LDADD = $(unit_ldadd)
tests_unit_test_elfnote_CFLAGS = $(unit_cflags)
tests_unit_test_http_parts_SOURCES = tests/unit/test_http_parts.c \
	services/http/jwt.c services/http/repository.c services/http/when.c
tests_unit_test_http_parts_LDADD = $(unit_ldadd)
tests_unit_test_http_parts_CFLAGS = $(unit_cflags)
tests_unit_test_jscan_LDADD = $(unit_ldadd)
tests_unit_test_jscan_CFLAGS = $(unit_cflags)
tests_unit_test_paths_LDADD = $(unit_ldadd)
tests_unit_test_paths_CFLAGS = $(unit_cflags)
tests_unit_test_reader_LDADD = $(unit_ldadd)
tests_unit_test_reader_CFLAGS = $(unit_cflags)
tests_unit_test_rpc_LDADD = $(unit_ldadd)
tests_unit_test_rpc_CFLAGS = $(unit_cflags)
tests_unit_test_schema_LDADD = $(unit_ldadd)
tests_unit_test_schema_CFLAGS = $(unit_cflags)
tests_unit_test_session_LDADD = $(unit_ldadd)
tests_unit_test_session_CFLAGS = $(unit_cflags)
tests_unit_test_text_LDADD = $(unit_ldadd)
tests_unit_test_text_CFLAGS = $(unit_cflags)
tests_unit_test_windows_LDADD = $(unit_ldadd)
tests_unit_test_windows_CFLAGS = $(unit_cflags)
endif
