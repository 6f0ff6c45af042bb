/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/cupti.h"
#include <stdio.h>

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct cupti, field), LIB_NEED_##need},
	CUPTI_PLAIN_FUNCTIONS(X)
#undef X
#define X(need, name, symbol, real, members) {#symbol, offsetof(struct cupti, name), LIB_NEED_##need},
		CUPTI_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12", NULL};

/* 130001 belongs to CUDA 13.0; the numbers of CUDA 12 start at 18 */
static int version(const void *table)
{
	const struct cupti *cu = table;
	uint32_t v = 0;

	return cu->version(&v) ? 0 : (int)v;
}

const struct lib_spec cupti_lib = {
	.name = "cupti",
	.sonames = sonames,
	.wheel = "nvidia/{cu13,cuda_cupti}/lib",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct cupti),
	.version = version,
};

enum status cupti_load(struct cupti *out, const char *path, struct error *err)
{
	struct error why = {0};
	enum status st = lib_open(out, &cupti_lib, path, NULL, &why);

	return st ? error_set_cause(
			    err, st, why.cause,
			    "%s; counters need CUPTI of CUDA 12.6 or newer: install the CUDA toolkit or the wheel "
			    "nvidia-cuda-cupti",
			    why.text)
		  : STATUS_OK;
}

/* What the operator or user can do about the error; "" if nothing. */
static const char *remedy(int result)
{
	switch (result) {
	case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
		return ": the driver restricts counters to administrators: run as root, or load the nvidia module with "
		       "NVreg_RestrictProfilingToAdminUsers=0";
	case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
		return ": profiling is not allowed on this virtual GPU: ask the operator to allow it";
	case CUPTI_ERROR_HARDWARE_BUSY:
	case CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED:
	case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
		return ": another profiler uses the GPU's counters: stop it, or pause DCGM's with dcgmi profile --pause";
	case CUPTI_ERROR_NOT_COMPATIBLE:
	case CUPTI_ERROR_NOT_INITIALIZED:
	case CUPTI_ERROR_INVALID_CHIP_NAME:
		return ": this CUPTI does not match the driver or the GPU: set ASSAY_LIB_CUPTI to the CUPTI of the "
		       "driver's CUDA version";
	default:
		return "";
	}
}

enum status cupti_check(const struct cupti *cu, int result, const char *call, struct error *err)
{
	static const struct {
		int result;
		enum status status;
		enum cause cause;
	} rows[] = {
#define X(name, value, status, cause) {name, STATUS_##status, CAUSE_##cause},
		CUPTI_RESULTS(X)
#undef X
	};
	enum status status = STATUS_VENDOR;
	enum cause cause = CAUSE_VENDOR_CALL;
	const char *name = NULL;

	if (result == CUPTI_SUCCESS)
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].result == result) {
			status = rows[i].status;
			cause = rows[i].cause;
		}
	}
	if (cu->result_name(result, &name) || !name)
		name = "an unknown result";
	return error_set_cause(err, status, cause, "%s of CUPTI version %d: %s (%d)%s", call, version(cu),
			       name, result, remedy(result));
}
