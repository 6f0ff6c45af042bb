/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/http/crypt.h"

static const char *const sonames[] = {"libassay-http.so", NULL};
static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct crypt_library, field), LIB_NEED_##need},
	CRYPT_FUNCTIONS(X)
#undef X
};
static const struct lib_spec crypt_lib = {
	.name = "crypt",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct crypt_library),
	.module = true,
};

/* The table's types are those of the library's own header. */
#define X(need, ret, field, symbol, params)                                                                  \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct crypt_library *)0)->field),          \
						    __typeof__(&symbol)),                                    \
		       #symbol);
CRYPT_FUNCTIONS(X)
#undef X

enum status crypt_open(struct crypt_library *table, struct error *err)
{
	struct lib_fact fact = {0};
	enum status st = lib_open(table, &crypt_lib, NULL, &fact, err);

	lib_fact_release(&fact);
	return st;
}
