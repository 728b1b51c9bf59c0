bin_PROGRAMS += host/kcap-host
host_kcap_host_SOURCES = \
	host/main.c
host_kcap_host_CFLAGS = $(AM_CFLAGS) -fPIE
host_kcap_host_LDFLAGS = $(AM_LDFLAGS) $(KCAP_PIE_LDFLAGS)
host_kcap_host_LDADD = lib/libkcap.la $(CJSON_LIBS)
