/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/tls.h"
#include <string.h>

/* The result of the check is a set of bits with GnuTLS (gnutls.h, gnutls_certificate_status_t) and a number
 * with OpenSSL (x509_vfy.h, X509_V_ERR_..). An expired certificate also lacks a valid signer at times, so it
 * comes first. */
static const struct {
	long gnutls, openssl;
	const char *text;
} reasons[] = {
	{1 << 10, 10, "it has expired"},
	{1 << 9, 9, "it is not valid yet"},
	{1 << 5, 23, "it was revoked"},
	{1 << 6, 18, "no trusted authority has signed it"}, /* self-signed */
	{1 << 6, 19, "no trusted authority has signed it"}, /* a self-signed authority */
	{1 << 6, 20, "no trusted authority has signed it"}, /* the authority is not known */
	{1 << 6, 21, "no trusted authority has signed it"}, /* its own certificate alone came */
};

const char *load_tls_reason(const struct curl *curl, CURL *c)
{
	const bool gnutls = strstr(curl->version(), "GnuTLS") != NULL;
	long result = 0;

	curl->easy_getinfo(c, CURLINFO_SSL_VERIFYRESULT, &result);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (gnutls ? result & reasons[i].gnutls : result == reasons[i].openssl)
			return reasons[i].text;
	return NULL;
}
