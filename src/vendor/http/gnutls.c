/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/http/gnutls.h"

static const char *const sonames[] = {"libassay-http.so", NULL};
static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params)                                                                  \
	{#symbol, offsetof(struct gnutls_library, field), LIB_NEED_##need},
	GNUTLS_FUNCTIONS(X)
#undef X
};
static const struct lib_spec gnutls_spec = {
	.name = "gnutls",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct gnutls_library),
	.module = true,
};

enum status gnutls_library_open(struct gnutls_library *table, struct error *err)
{
	struct lib_fact fact = {0};
	enum status st = lib_open(table, &gnutls_spec, NULL, &fact, err);

	lib_fact_release(&fact);
	return st;
}

bool gnutls_library_is_whole(const struct gnutls_library *table)
{
	bool whole = true;

#define X(need, ret, field, symbol, params) whole &= table->field != NULL;
	GNUTLS_FUNCTIONS(X)
#undef X
	return whole;
}
