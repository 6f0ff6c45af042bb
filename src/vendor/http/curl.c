/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/http/curl.h"

static const char *const sonames[] = {"libassay-curl.so", NULL};
static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct curl, field), LIB_NEED_##need},
	CURL_FUNCTIONS(X)
#undef X
};
static const struct lib_spec curl_lib = {
	.name = "curl",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct curl),
	.module = true,
};

/* The table's types are those of the library's own header. */
#define X(need, ret, field, symbol, params)                                                                  \
	_Static_assert(                                                                                      \
		__builtin_types_compatible_p(__typeof__(((struct curl *)0)->field), __typeof__(&symbol)),    \
		#symbol);
CURL_FUNCTIONS(X)
#undef X

enum status curl_open(struct curl *table, struct error *err)
{
	struct lib_fact fact = {0};
	enum status st = lib_open(table, &curl_lib, NULL, &fact, err);

	lib_fact_release(&fact);
	return st;
}
