# part of the one Makefile; see Makefile.am
service_LTLIBRARIES += services/http/http.la
services_http_http_la_SOURCES = \
	services/http/exchange.c services/http/exchange.h \
	services/http/routes.c services/http/routes.h \
	services/http/server.c services/http/server.h \
	services/http/service.c
services_http_http_la_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS)
services_http_http_la_LDFLAGS = $(plugin_ldflags)
services_http_http_la_LIBADD = lib/libkcap.la $(CJSON_LIBS) $(CURL_LIBS)
