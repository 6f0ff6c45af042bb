/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/http/microhttpd.h"

static const char *const sonames[] = {"libassay-http.so", NULL};
static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct microhttpd, field), LIB_NEED_##need},
	MICROHTTPD_FUNCTIONS(X)
#undef X
};
static const struct lib_spec microhttpd_lib = {
	.name = "microhttpd",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct microhttpd),
	.module = true,
};

/* The table's types are those of the library's own header. */
#define X(need, ret, field, symbol, params)                                                                  \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct microhttpd *)0)->field),             \
						    __typeof__(&symbol)),                                    \
		       #symbol);
MICROHTTPD_FUNCTIONS(X)
#undef X

enum status microhttpd_open(struct microhttpd *table, struct error *err)
{
	struct lib_fact fact = {0};
	enum status st = lib_open(table, &microhttpd_lib, NULL, &fact, err);

	lib_fact_release(&fact);
	return st;
}
