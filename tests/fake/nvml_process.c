/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses the device: MIG, processes. */
#include <limits.h>
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
			.gpuInstanceId =
				json_object_get(p, "instance")
					? (unsigned)json_integer_value(json_object_get(p, "instance"))
					: UINT_MAX,
			.computeInstanceId = UINT_MAX,
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

/* The share "sm" of each compute process, in percent, as one sample of now. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *out,
					     unsigned int *count, unsigned long long last_seen_us)
{
	const json_t *value;
	nvmlReturn_t ret =
		fake_answer(d, json_object_get(fake_device(d), "calls"), "compute_processes", &value);
	unsigned long long now_us = (unsigned long long)(1e6 * fake_now());
	unsigned found = 0;

	(void)last_seen_us;
	for (size_t i = 0; !ret && i < json_array_size(value); i++) {
		const json_t *p = json_array_get(value, i), *sm = json_object_get(p, "sm");

		if (!sm)
			continue;
		if (found == *count || !out) {
			*count = (unsigned)json_array_size(value);
			return NVML_ERROR_INSUFFICIENT_SIZE;
		}
		out[found++] = (nvmlProcessUtilizationSample_t){
			.pid = (unsigned)json_integer_value(json_object_get(p, "pid")),
			.timeStamp = now_us,
			.smUtil = (unsigned)json_integer_value(sm)};
	}
	*count = found;
	return ret ? ret : found ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int index, nvmlDevice_t *out)
{
	fake_stage("mig_device");
	if (d->index >= 64 || index >= FAKE_INSTANCES ||
	    index >= json_array_size(json_object_get(fake_device(d), "mig")))
		return NVML_ERROR_NOT_FOUND;
	*out = &fake_devices[64 + FAKE_INSTANCES * d->index + index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned int *out)
{
	return fake_get_uint(d, "mig_instance", out);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned int *out)
{
	return fake_get_uint(d, "mig_compute", out);
}
