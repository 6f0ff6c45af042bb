/* SPDX-License-Identifier: Apache-2.0 */
/* crypt_rn of libcrypt, through our module libassay-http.so. It computes bcrypt hashes. crypt_r would do the
 * same, but AddressSanitizer replaces it, and calls a null pointer where libcrypt is loaded later than the
 * program. */
#ifndef VENDOR_HTTP_CRYPT_H
#define VENDOR_HTTP_CRYPT_H
#include <crypt.h>
#include "vendor/lib.h"

/* Columns: need, ret, field, symbol, params. */
#define CRYPT_FUNCTIONS(X)                                                                                   \
	X(REQUIRED, char *, hash, crypt_rn, (const char *phrase, const char *setting, void *data, int size))

struct crypt_library {
#define X(need, ret, field, symbol, params) ret(*field) params;
	CRYPT_FUNCTIONS(X)
#undef X
};
/* Fills the table. UNAVAILABLE: the module or its library is missing; the message names it. */
enum status crypt_open(struct crypt_library *table, struct error *err);
#endif
