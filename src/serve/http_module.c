/* SPDX-License-Identifier: Apache-2.0 */
/* The module libassay-http.so: it needs libmicrohttpd and libcrypt, whose functions are found through it
 * (vendor/http/microhttpd.h, vendor/http/crypt.h). */
#include <crypt.h>
#include <microhttpd.h>

extern const char *assay_http_version(void);
__attribute__((visibility("default"))) const char *assay_http_version(void)
{
	return MHD_get_version();
}

/* Without a use, the linker would drop libcrypt. */
extern const void *assay_http_crypt(void);
__attribute__((visibility("default"))) const void *assay_http_crypt(void)
{
	static char *(*const hash)(const char *, const char *, void *, int) = crypt_rn;

	return &hash;
}
