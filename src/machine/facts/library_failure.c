/* SPDX-License-Identifier: Apache-2.0 */
/* Why a vendor's library gave no answer: distinguishes broken libraries from missing drivers and missing
 * GPUs. */
#include "machine/facts/facts.h"
#include "vendor/nvml.h"

enum { CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803 };

static bool cuda_lists(const json_t *gpus)
{
	const json_t *gpu;
	size_t i;

	json_array_foreach((json_t *)gpus, i, gpu)
	{
		if (json_object_get(gpu, "cuda_index"))
			return true;
	}
	return false;
}

/* Whether the kernel module is loaded: /proc shows its version, or CUDA lists GPUs. */
static bool driver_works(const struct facts *f, const json_t *gpus)
{
	return cuda_lists(gpus) || source_text(f->source, "/proc/driver/nvidia/version") != NULL;
}

/* If NVML reports "driver not loaded" but CUDA works, the NVML library does not match the kernel module. */
static enum cause init_cause(enum layer layer, json_int_t init, const json_t *gpus)
{
	enum cause cause = CAUSE_VENDOR_CALL;

	if (layer == LAYER_CUDA)
		return init == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? CAUSE_VERSION_MISMATCH : cause;
	if (init == NVML_ERROR_DRIVER_NOT_LOADED && cuda_lists(gpus))
		return CAUSE_VERSION_MISMATCH;
	(void)nvml_status((nvmlReturn_t)init, &cause);
	return cause;
}

bool facts_layer_failed(const struct facts *f, enum layer layer, const json_t *raw, const json_t *gpus,
			enum cause *cause, char *why, size_t size)
{
	const char *missing = json_string_value(json_object_get(json_object_get(raw, "library"), "missing"));
	json_int_t init = json_integer_value(json_object_get(raw, "init"));

	if (!raw) {
		*cause = source_layer_cause(f->source, layer);
		if (!*cause)
			*cause = driver_works(f, gpus) ? CAUSE_TELEMETRY_LOST : CAUSE_DRIVER_MISSING;
		snprintf(why, size, "%s", source_why(f->source, layer == LAYER_NVML ? "nvml" : "cuda"));
		return true;
	}
	if (missing) {
		*cause = driver_works(f, gpus) ? CAUSE_LIBRARY_MISSING : CAUSE_DRIVER_MISSING;
		snprintf(why, size, "%s", missing);
		return true;
	}
	if (!init)
		return false;
	*cause = init_cause(layer, init, gpus);
	if (layer == LAYER_NVML)
		snprintf(why, size, "nvmlInit_v2 answered %d: %s", (int)init, nvml_code_text((int)init));
	else
		snprintf(why, size, "cuInit answered %d", (int)init);
	return true;
}
