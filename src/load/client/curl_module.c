/* SPDX-License-Identifier: Apache-2.0 */
/* The module libassay-curl.so: it needs libcurl, whose functions are found through it (vendor/http/curl.h).
 */
#include <curl/curl.h>

extern const char *assay_curl_version(void);
__attribute__((visibility("default"))) const char *assay_curl_version(void)
{
	return curl_version();
}
