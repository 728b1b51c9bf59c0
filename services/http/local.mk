# part of the one Makefile; see Makefile.am
service_LTLIBRARIES += services/http/http.la
services_http_http_la_SOURCES = \
	services/http/discovery.c services/http/discovery.h \
	services/http/exchange.c services/http/exchange.h \
	services/http/form.c services/http/form.h \
	services/http/jwt.c services/http/jwt.h \
	services/http/login.c services/http/login.h \
	services/http/machine.c services/http/machine.h \
	services/http/profile.c services/http/profile.h \
	services/http/refresh.c services/http/refresh.h \
	services/http/repository.c services/http/repository.h \
	services/http/routes.c services/http/routes.h \
	services/http/send.c services/http/send.h \
	services/http/server.c services/http/server.h \
	services/http/token.c services/http/token.h \
	services/http/userconfig.c services/http/userconfig.h \
	services/http/when.c services/http/when.h \
	services/http/service.c
services_http_http_la_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS)
services_http_http_la_LDFLAGS = $(plugin_ldflags)
services_http_http_la_LIBADD = lib/libkcap.la $(CJSON_LIBS) $(CURL_LIBS)
