/* SPDX-License-Identifier: Apache-2.0 */
/* The module libassay-http.so: it needs libmicrohttpd, whose functions are found through it
 * (vendor/http/microhttpd.h). */
#include <microhttpd.h>

extern const char *assay_http_version(void);
__attribute__((visibility("default"))) const char *assay_http_version(void)
{
	return MHD_get_version();
}
