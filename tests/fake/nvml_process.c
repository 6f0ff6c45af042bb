/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses the device: MIG, processes. */
#include "nvml_fake.h"

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending)
{
	double v[2];
	nvmlReturn_t ret = fake_get_list(d, "mig_mode", v, 2);

	if (!ret) {
		*current = (unsigned)v[0];
		*pending = (unsigned)v[1];
	}
	return ret;
}

static nvmlReturn_t get_processes(nvmlDevice_t d, const char *key, unsigned *count, nvmlProcessInfo_t *out)
{
	const json_t *value;
	nvmlReturn_t ret = fake_answer(d, json_object_get(fake_device(d), "calls"), key, &value);
	size_t n = json_array_size(value);

	if (ret)
		return ret;
	if (n > *count) {
		*count = (unsigned)n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		const json_t *p = json_array_get(value, i);

		out[i] = (nvmlProcessInfo_t){
			.pid = (unsigned)json_integer_value(json_object_get(p, "pid")),
			.usedGpuMemory = (unsigned long long)json_integer_value(json_object_get(p, "memory")),
		};
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *count,
						     nvmlProcessInfo_t *out)
{
	return get_processes(d, "compute_processes", count, out);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int *count,
						      nvmlProcessInfo_t *out)
{
	return get_processes(d, "graphics_processes", count, out);
}
