/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, clocks, power, temperature, utilisation; field values. */
#include "nvml_fake.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *out)
{
	double v[4];
	nvmlReturn_t ret = fake_get_list(d, "memory_v2", v, 4);

	if (out->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!ret) {
		out->total = fake_u64(v[0]);
		out->reserved = fake_u64(v[1]);
		out->free = fake_u64(v[2]);
		out->used = fake_u64(v[3]);
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out)
{
	double v[3];
	nvmlReturn_t ret = fake_get_list(d, "memory", v, 3);

	if (!ret)
		*out = (nvmlMemory_t){(unsigned long long)v[0], (unsigned long long)v[1],
				      (unsigned long long)v[2]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *out)
{
	double v[3];
	nvmlReturn_t ret = fake_get_list(d, "bar1", v, 3);

	if (!ret)
		*out = (nvmlBAR1Memory_t){(unsigned long long)v[0], (unsigned long long)v[1],
					  (unsigned long long)v[2]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *out)
{
	static const char *const keys[] = {"clock_graphics", "clock_sm", "clock_memory", "clock_video"};

	return (unsigned)type < 4 ? fake_get_uint(d, keys[type], out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *out)
{
	static const char *const keys[] = {"clock_max_graphics", "clock_max_sm", "clock_max_memory",
					   "clock_max_video"};

	return (unsigned)type < 4 ? fake_get_uint(d, keys[type], out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *low,
							  unsigned int *high)
{
	double v[2];
	nvmlReturn_t ret = fake_get_list(d, "power_limit_range", v, 2);

	if (!ret) {
		*low = (unsigned)v[0];
		*high = (unsigned)v[1];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *out)
{
	double value;
	nvmlReturn_t ret = fake_get_number(d, "temperature", &value);

	if (out->version != nvmlTemperature_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!ret)
		out->temperature = (int)value;
	return ret;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *out)
{
	(void)sensor;
	return fake_get_uint(d, "temperature_old", out);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t which,
					       unsigned int *out)
{
	static const char *const keys[] = {"temperature_shutdown", "temperature_slowdown",
					   "temperature_memory_max", "temperature_gpu_max"};

	return (unsigned)which < 4 ? fake_get_uint(d, keys[which], out) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out)
{
	double v[2];
	nvmlReturn_t ret = fake_get_list(d, "utilization", v, 2);

	if (!ret)
		*out = (nvmlUtilization_t){(unsigned)v[0], (unsigned)v[1]};
	return ret;
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, nvmlPerfPolicyType_t policy,
					  nvmlViolationTime_t *out)
{
	static const char *const keys[] = {"violation_power",		"violation_thermal",
					   "violation_sync_boost",	"violation_board",
					   "violation_low_utilization", "violation_reliability"};
	const json_t *value;
	nvmlReturn_t ret;

	if ((unsigned)policy >= 6)
		return NVML_ERROR_INVALID_ARGUMENT;
	ret = fake_answer(d, json_object_get(fake_device(d), "fields"), keys[policy], &value);
	if (!ret) {
		out->violationTime =
			(unsigned long long)fake_number(d, keys[policy], json_number_value(value));
		out->referenceTime = (unsigned long long)(1e6 * fake_now());
	}
	return ret;
}

static const char *field_key(unsigned id, bool *per_link)
{
	*per_link = false;
	switch (id) {
#define X(name, number_, unit)                                                                               \
	case number_:                                                                                        \
		return #name;
		NVML_FIELDS(X)
#undef X
	default:
		break;
	}
	*per_link = true;
	switch (id) {
#define X(name, number_, unit)                                                                               \
	case number_:                                                                                        \
		return #name;
		NVML_LINK_FIELDS(X)
#undef X
	default:
		return NULL;
	}
}

static void answer_field(nvmlDevice_t d, nvmlFieldValue_t *f)
{
	bool per_link;
	const char *key = field_key(f->fieldId, &per_link);
	const json_t *map = fake_device(d), *value;

	f->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	if (!key)
		return;
	if (per_link && fake_link_field(d, key, f))
		return;
	if (per_link)
		map = json_array_get(json_object_get(map, "links"), f->scopeId);
	f->nvmlReturn = fake_answer(d, json_object_get(map, "fields"), key, &value);
	if (f->nvmlReturn)
		return;
	f->timestamp = (long long)(1e6 * fake_now());
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	f->value.ullVal = fake_u64(fake_number(d, key, json_number_value(value)));
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int count, nvmlFieldValue_t *values)
{
	const char *lost = getenv("FAKE_NVML_LOST");

	fake_stage("fields");
	if (lost && fake_active() && strtoul(lost, NULL, 10) == d->index)
		return NVML_ERROR_GPU_IS_LOST;
	for (int i = 0; i < count; i++)
		answer_field(d, &values[i]);
	return NVML_SUCCESS;
}
