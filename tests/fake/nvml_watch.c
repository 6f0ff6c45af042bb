/* SPDX-License-Identifier: Apache-2.0 */
/* Events and GPM. */
#include <time.h>
#include <unistd.h>
#include "nvml_fake.h"

struct nvmlGpmSample_st {
	double at;
	bool instance; /* of an instance under MIG */
};
struct nvmlEventSet_st {
	unsigned delivered; /* events */
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	fake_stage("event_set_create");
	*set = calloc(1, sizeof(**set));
	return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set)
{
	const char *ret = fake_listed("FAKE_NVML_RET", "event_register");

	(void)d, (void)types, (void)set;
	return (nvmlReturn_t)(ret ? strtol(ret, NULL, 10) : 0);
}

/* The number at place `i` of a list such as "48,94@0.5"; NULL: there are fewer. */
static const char *xid_at(const char *list, unsigned i)
{
	for (; i && list; i--) {
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	return list;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	const char *xid = xid_at(getenv("FAKE_NVML_XID"), set->delivered);
	const char *at = xid ? strchr(xid, '@') : NULL;
	double end = fake_now() + timeout_ms * 1e-3;

	fake_stage("event_set_wait");
	do {
		if (xid && fake_now() - fake_began >= (at ? strtod(at + 1, NULL) : 0)) {
			set->delivered++;
			*data = (nvmlEventData_t){.device = &fake_devices[0],
						  .eventType = nvmlEventTypeXidCriticalError,
						  .eventData = strtoull(xid, NULL, 10)};
			return NVML_SUCCESS;
		}
		if (timeout_ms)
			usleep(1000);
	} while (fake_now() < end);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *out)
{
	return fake_get_uint(d, "gpm_support", &out->isSupportedDevice);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	free(sample);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t sample)
{
	const char *ret = fake_active() ? fake_listed("FAKE_NVML_RET", "gpm_sample") : NULL;
	const json_t *value;

	if (ret)
		return (nvmlReturn_t)strtol(ret, NULL, 10);
	sample->at = fake_now();
	return fake_answer(d, json_object_get(fake_device(d), "calls"), "gpm_support", &value);
}

/* Of an instance that the device has under MIG. Its shares are half of the device's. */
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t d, unsigned int instance, nvmlGpmSample_t sample)
{
	const char *ret = fake_active() ? fake_listed("FAKE_NVML_RET", "gpm_instance_sample") : NULL;
	const json_t *one;
	size_t i;

	if (ret)
		return (nvmlReturn_t)strtol(ret, NULL, 10);
	json_array_foreach(json_object_get(fake_device(d), "mig"), i, one)
	{
		const json_t *answer = json_object_get(json_object_get(one, "calls"), "mig_instance");

		if (json_integer_value(json_array_get(answer, 1)) != instance)
			continue;
		sample->at = fake_now();
		sample->instance = true;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_INVALID_ARGUMENT;
}

/* "gpm": { "5": 91.8 } on device 0; a metric that is not listed is not supported. */
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	const json_t *gpm = json_object_get(fake_device(&fake_devices[0]), "gpm");

	if (get->version != NVML_GPM_METRICS_GET_VERSION || get->numMetrics > NVML_GPM_METRIC_MAX)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!get->sample1 || !get->sample2 || get->sample2->at < get->sample1->at)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < get->numMetrics; i++) {
		char key[16], named[24];
		const json_t *value;

		snprintf(key, sizeof(key), "%u", get->metrics[i].metricId);
		snprintf(named, sizeof(named), "gpm_%s", key);
		value = json_object_get(gpm, key);
		get->metrics[i].nvmlReturn = value ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		get->metrics[i].value =
			value ? (get->sample2->instance ? 0.5 : 1) *
					fake_number(&fake_devices[0], named, json_number_value(value))
			      : 0;
	}
	return NVML_SUCCESS;
}
