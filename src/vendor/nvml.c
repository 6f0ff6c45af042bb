/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/nvml.h"
#include <stdint.h>

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct nvml, field), LIB_NEED_##need},
	NVML_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libnvidia-ml.so.1", NULL};

const struct lib_spec nvml_lib = {
	.name = "nvml",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct nvml),
};

enum status nvml_status(nvmlReturn_t ret, enum cause *cause)
{
	*cause = CAUSE_VENDOR_CALL;
	switch ((int)ret) {
	case NVML_SUCCESS:
		*cause = CAUSE_NONE;
		return STATUS_OK;
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_RESET_REQUIRED:
		*cause = CAUSE_GPU_LOST;
		return STATUS_LOST;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
	case NVML_ERROR_DEPRECATED:
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		*cause = CAUSE_UNSUPPORTED;
		return STATUS_UNSUPPORTED;
	case NVML_ERROR_NO_PERMISSION:
		*cause = CAUSE_PERMISSION;
		return STATUS_UNAVAILABLE;
	case NVML_ERROR_DRIVER_NOT_LOADED:
		*cause = CAUSE_DRIVER_MISSING;
		return STATUS_UNAVAILABLE;
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		*cause = CAUSE_VERSION_MISMATCH;
		return STATUS_UNAVAILABLE;
	case NVML_ERROR_NOT_FOUND:
	case NVML_ERROR_GPU_NOT_FOUND:
		*cause = CAUSE_GPU_MISSING;
		return STATUS_UNAVAILABLE;
	case NVML_ERROR_TIMEOUT:
		*cause = CAUSE_TIMED_OUT;
		return STATUS_NO_RESOURCE;
	case NVML_ERROR_MEMORY:
	case NVML_ERROR_INSUFFICIENT_RESOURCES:
		*cause = CAUSE_NO_MEMORY;
		return STATUS_NO_RESOURCE;
	default:
		return STATUS_VENDOR;
	}
}

enum status nvml_error(const struct nvml *nvml, nvmlReturn_t ret, const char *call, struct error *err)
{
	enum cause cause;
	enum status st = nvml_status(ret, &cause);
	const char *text = nvml->error_string ? nvml->error_string(ret) : NULL;

	if (st)
		error_set_cause(err, st, cause, "%s: %s (%d)", call, text ? text : "unknown error", (int)ret);
	return st;
}

bool nvml_lacks(nvmlReturn_t ret)
{
	return ret == NVML_ERROR_NOT_SUPPORTED || ret == NVML_ERROR_FUNCTION_NOT_FOUND ||
	       ret == NVML_ERROR_DEPRECATED || ret == NVML_ERROR_INVALID_ARGUMENT ||
	       ret == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

const char *nvml_code_text(int code)
{
	static const struct {
		int code;
		const char *text;
	} rows[] = {
		{NVML_ERROR_UNINITIALIZED, "not initialised"},
		{NVML_ERROR_INVALID_ARGUMENT, "not supported by this driver, which rejects the argument"},
		{NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
		 "not supported by this driver, which has another version of the call"},
		{NVML_ERROR_NOT_SUPPORTED, "not supported by this device or driver"},
		{NVML_ERROR_NO_PERMISSION, "permission denied"},
		{NVML_ERROR_NOT_FOUND, "not found"},
		{NVML_ERROR_DRIVER_NOT_LOADED, "the driver is not loaded"},
		{NVML_ERROR_TIMEOUT, "timed out"},
		{NVML_ERROR_FUNCTION_NOT_FOUND, "this driver's NVML has no such function"},
		{NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
		{NVML_ERROR_RESET_REQUIRED, "the GPU needs a reset"},
		{NVML_ERROR_LIB_RM_VERSION_MISMATCH,
		 "kernel module and driver libraries are of different releases"},
		{NVML_ERROR_DEPRECATED, "deprecated and removed"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].code == code)
			return rows[i].text;
	}
	return "NVML refused";
}

int nvml_field_f64(const nvmlFieldValue_t *value, double *out)
{
	if (value->nvmlReturn != NVML_SUCCESS)
		return 0;
	switch ((int)value->valueType) {
	case NVML_VALUE_TYPE_DOUBLE:
		*out = value->value.dVal;
		return 1;
	case NVML_VALUE_TYPE_UNSIGNED_INT:
		*out = value->value.uiVal;
		return 1;
	case NVML_VALUE_TYPE_UNSIGNED_LONG:
		*out = (double)value->value.ulVal;
		return 1;
	case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
		*out = (double)value->value.ullVal;
		return 1;
	case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
		*out = (double)value->value.sllVal;
		return 1;
	case NVML_VALUE_TYPE_SIGNED_INT:
		*out = value->value.siVal;
		return 1;
	case NVML_VALUE_TYPE_UNSIGNED_SHORT:
		*out = value->value.usVal;
		return 1;
	default:
		return 0;
	}
}

int nvml_pci_text(char out[16], const char *bus_id)
{
	unsigned domain, bus, device, function;
	char end;

	out[0] = 0;
	if (sscanf(bus_id, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &end) != 4)
		return 0;
	if (domain > 0xffffff)
		return 0;
	snprintf(out, 16, "%04x:%02x:%02x.%x", domain & 0xffffff, bus & 0xff, device & 0xff, function & 0xf);
	return 1;
}
