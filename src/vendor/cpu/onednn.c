/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/cpu/onednn.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct dnnl, field), LIB_NEED_##need},
	DNNL_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libdnnl.so.3", "libdnnl.so.2", NULL};

static int version(const void *table)
{
	const struct dnnl *dnnl = table;
	const dnnl_version_t *v = dnnl->version();

	return v->major * 10000 + v->minor * 100 + v->patch;
}

const struct lib_spec onednn_lib = {
	.name = "onednn",
	.sonames = sonames,
	.wheel = LIB_WHEEL_PREFIX,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct dnnl),
	.version = version,
};

int dnnl_api(const struct dnnl *d)
{
	if (d->memory_desc_create_with_strides && d->memory_desc_destroy && d->matmul_primitive_desc_create)
		return 3;
	if (d->memory_desc_init_by_strides && d->matmul_desc_init && d->primitive_desc_create)
		return 2;
	return 0;
}

const char *dnnl_status_text(dnnl_status_t status)
{
	static const char *const text[] = {"success",	    "out of memory",	      "invalid arguments",
					   "unimplemented", "last primitive reached", "runtime error",
					   "not required"};

	return status < sizeof(text) / sizeof(text[0]) ? text[status] : "unknown status";
}
