/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/blas.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct blas, field), LIB_NEED_##need},
	BLAS_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libopenblas.so.0", "libopenblas.so", NULL};

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH .." gives 321. */
static int version(const void *table)
{
	const struct blas *blas = table;
	const char *text = blas->get_config ? blas->get_config() : NULL;
	int major, minor, patch;

	if (!text || sscanf(text, "OpenBLAS %d.%d.%d", &major, &minor, &patch) != 3)
		return 0;
	return major * 10000 + minor * 100 + patch;
}

const struct lib_spec openblas_lib = {
	.name = "openblas",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct blas),
	.version = version,
};
