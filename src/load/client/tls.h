/* SPDX-License-Identifier: Apache-2.0 */
/* Why libcurl refused a server's certificate. */
#ifndef LOAD_CLIENT_TLS_H
#define LOAD_CLIENT_TLS_H
#include "vendor/http/curl.h"

/* After CURLE_PEER_FAILED_VERIFICATION. NULL: the TLS library's result does not say, as for a certificate of
 * another host; then libcurl's own words name the reason. */
const char *load_tls_reason(const struct curl *curl, CURL *c);
#endif
