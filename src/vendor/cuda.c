/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/cuda.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct cuda, field), LIB_NEED_##need},
	CUDA_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libcuda.so.1", NULL};

static int version(const void *table)
{
	const struct cuda *cu = table;
	int v = 0;

	return cu->driver_version(&v) ? 0 : v;
}

const struct lib_spec cuda_lib = {
	.name = "cuda",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct cuda),
	.version = version,
};

/* Finds the symbol behind a field's name, so that a message names cuMemAlloc_v2, which a reader can look
 * up. */
static const char *symbol_of(const char *field)
{
#define X(need, ret, name, symbol, params)                                                                   \
	if (!strcmp(field, #name))                                                                           \
		return #symbol;
	CUDA_FUNCTIONS(X)
#undef X
	return field;
}

static enum status classify(CUresult result, enum cause *cause)
{
	switch ((int)result) { /* int: a newer driver returns numbers that the enum lacks */
#define X(name, value, status, why)                                                                          \
	case value:                                                                                          \
		*cause = CAUSE_##why;                                                                        \
		return STATUS_##status;
		CUDA_RESULTS(X)
#undef X
	}
	*cause = CAUSE_VENDOR_CALL;
	return STATUS_VENDOR;
}

enum status cuda_check(const struct cuda *cu, CUresult result, const char *what, const char *file, int line,
		       struct error *err)
{
	const char *name = NULL, *text = NULL;
	enum cause cause;
	enum status st;

	if (result == CUDA_SUCCESS)
		return STATUS_OK;
	st = classify(result, &cause);
	if (cu->error_name(result, &name) || !name)
		name = "unknown error";
	if (cu->error_string(result, &text) || !text)
		text = "no text";
	return error_set_at(err, st, cause, file, line, "%s: %s (%d, %s)", symbol_of(what), name, (int)result,
			    text);
}

/* If a function is missing, the driver is old. If the library is missing, the driver is missing. Neither case
 * is LIBRARY_MISSING. */
static enum status open_library(struct cuda *cu, struct lib_fact *fact, struct error *err)
{
	struct error own = {0};
	enum status st = lib_open(cu, &cuda_lib, NULL, fact, &own);

	if (!st)
		return STATUS_OK;
	return error_set_cause(err, STATUS_UNAVAILABLE,
			       strstr(own.text, "no symbol ") ? CAUSE_DRIVER_OLD : CAUSE_DRIVER_MISSING, "%s",
			       own.text);
}

void cuda_keep_no_cache(void)
{
	if (!getenv("CUDA_CACHE_PATH"))
		setenv("CUDA_CACHE_DISABLE", "1", 0);
}

bool cuda_is_there(void)
{
	struct lib_fact fact = {0};
	struct cuda cu;
	enum status st = lib_open(&cu, &cuda_lib, NULL, &fact, NULL);

	lib_fact_release(&fact);
	return !st;
}

enum status cuda_open(struct cuda *cu, struct lib_fact *fact, struct error *err)
{
	struct lib_fact own = {0};
	enum status st = open_library(cu, fact ? fact : &own, err);
	CUresult r;

	lib_fact_release(&own);
	if (st)
		return st;
	r = cu->init(0);
	/* Unlike in later calls, 999 here means that no device has been available: the driver's other half is
	 * missing. */
	if (r == CUDA_ERROR_UNKNOWN)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_DRIVER_MISSING,
				       "cuInit: unknown error (999); is the nvidia_uvm module loaded?");
	return cuda_check(cu, r, "init", __FILE__, __LINE__, err);
}
