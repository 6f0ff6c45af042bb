/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/tls_files.h"
#include <string.h>
#include "vendor/http/gnutls.h"

static struct gnutls_bytes bytes_of(const struct tls_file *file)
{
	return (struct gnutls_bytes){(unsigned char *)file->text, (unsigned)strlen(file->text)};
}

static int read_certificate(const struct gnutls_library *g, const struct tls_file *file)
{
	const struct gnutls_bytes bytes = bytes_of(file);
	void *certificate;
	int result = g->certificate_create(&certificate);

	if (result < 0)
		return result;
	result = g->certificate_read(certificate, &bytes, GNUTLS_PEM);
	g->certificate_free(certificate);
	return result;
}

static int read_key(const struct gnutls_library *g, const struct tls_file *file)
{
	const struct gnutls_bytes bytes = bytes_of(file);
	void *key;
	int result = g->key_create(&key);

	if (result < 0)
		return result;
	result = g->key_read(key, &bytes, GNUTLS_PEM);
	g->key_free(key);
	return result;
}

/* The whole of both, as the server will do it. */
static int use_both(const struct gnutls_library *g, const struct tls_file *certificate,
		    const struct tls_file *key)
{
	const struct gnutls_bytes first = bytes_of(certificate), second = bytes_of(key);
	void *credentials;
	int result = g->credentials_create(&credentials);

	if (result < 0)
		return result;
	result = g->credentials_set(credentials, &first, &second, GNUTLS_PEM);
	g->credentials_free(credentials);
	return result;
}

enum status tls_files_check(const struct tls_file *certificate, const struct tls_file *key, struct error *err)
{
	struct gnutls_library g;
	struct error ignored = {0};
	int result;

	if (gnutls_library_open(&g, &ignored) || !gnutls_library_is_whole(&g))
		return STATUS_OK;
	if ((result = read_certificate(&g, certificate)) < 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "--tls-certificate %.200s: it has no certificate in PEM form: %s",
				 certificate->path, g.words(result));
	if ((result = read_key(&g, key)) < 0)
		return error_set(err, STATUS_BAD_INPUT,
				 "--tls-key %.200s: it has no private key in PEM form: %s", key->path,
				 g.words(result));
	if ((result = use_both(&g, certificate, key)) < 0)
		return error_set(err, STATUS_BAD_INPUT, "--tls-certificate %.150s and --tls-key %.150s: %s",
				 certificate->path, key->path, g.words(result));
	return STATUS_OK;
}
