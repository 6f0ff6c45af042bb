/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/cublaslt.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct cublaslt, field), LIB_NEED_##need},
	CUBLASLT_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};

/* 130101 for 13.1.1 */
static int version(const void *table)
{
	const struct cublaslt *lt = table;

	return (int)lt->version();
}

const struct lib_spec cublaslt_lib = {
	.name = "cublaslt",
	.sonames = sonames,
	.wheel = "nvidia/cu13/lib",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct cublaslt),
	.version = version,
};
