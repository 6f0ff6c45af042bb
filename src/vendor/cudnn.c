/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/cudnn.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct cudnn, field), LIB_NEED_##need},
	CUDNN_FUNCTIONS(X)
#undef X
};

/* A library that opens its parts (graph, heuristics, engines) from its own folder. */
static const char *const sonames[] = {"libcudnn.so.9", NULL};

/* 91900 for 9.19.0 */
static int version(const void *table)
{
	const struct cudnn *dnn = table;

	return (int)dnn->version();
}

const struct lib_spec cudnn_lib = {
	.name = "cudnn",
	.sonames = sonames,
	.wheel = "nvidia/cudnn/lib",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct cudnn),
	.version = version,
};
