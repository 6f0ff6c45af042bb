/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of GnuTLS that read a certificate and its key, through our module libassay-http.so, whose
 * libmicrohttpd needs GnuTLS. That may be another TLS library one day, so all of them are optional. Types are
 * declared here, so that its headers are not needed to build. */
#ifndef VENDOR_HTTP_GNUTLS_H
#define VENDOR_HTTP_GNUTLS_H
#include "vendor/lib.h"

enum { GNUTLS_PEM = 1 };
struct gnutls_bytes {
	unsigned char *data;
	unsigned size;
};

/* Columns: need, ret, field, symbol, params. Results are 0, or below 0 for errors. */
#define GNUTLS_FUNCTIONS(X)                                                                                  \
	X(OPTIONAL, int, credentials_create, gnutls_certificate_allocate_credentials, (void **credentials))  \
	X(OPTIONAL, void, credentials_free, gnutls_certificate_free_credentials, (void *credentials))        \
	X(OPTIONAL, int, credentials_set, gnutls_certificate_set_x509_key_mem,                               \
	  (void *credentials, const struct gnutls_bytes *certificate, const struct gnutls_bytes *key,        \
	   int format))                                                                                      \
	X(OPTIONAL, int, certificate_create, gnutls_x509_crt_init, (void **certificate))                     \
	X(OPTIONAL, int, certificate_read, gnutls_x509_crt_import,                                           \
	  (void *certificate, const struct gnutls_bytes *bytes, int format))                                 \
	X(OPTIONAL, void, certificate_free, gnutls_x509_crt_deinit, (void *certificate))                     \
	X(OPTIONAL, int, key_create, gnutls_x509_privkey_init, (void **key))                                 \
	X(OPTIONAL, int, key_read, gnutls_x509_privkey_import,                                               \
	  (void *key, const struct gnutls_bytes *bytes, int format))                                         \
	X(OPTIONAL, void, key_free, gnutls_x509_privkey_deinit, (void *key))                                 \
	X(OPTIONAL, const char *, words, gnutls_strerror, (int result))

struct gnutls_library {
#define X(need, ret, field, symbol, params) ret(*field) params;
	GNUTLS_FUNCTIONS(X)
#undef X
};
/* Fills the table. UNAVAILABLE: the module is missing. */
enum status gnutls_library_open(struct gnutls_library *table, struct error *err);
/* Whether every function is there. */
bool gnutls_library_is_whole(const struct gnutls_library *table);
#endif
