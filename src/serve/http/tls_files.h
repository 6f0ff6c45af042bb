/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate and the key of a server with TLS. */
#ifndef SERVE_HTTP_TLS_FILES_H
#define SERVE_HTTP_TLS_FILES_H
#include "core/error.h"

struct tls_file {
	const char *path;
	char *text; /* NUL-terminated */
};
/* Whether the TLS library can use them. BAD_INPUT names the file, and says why not. Without GnuTLS nothing is
 * checked. */
enum status tls_files_check(const struct tls_file *certificate, const struct tls_file *key,
			    struct error *err);
#endif
