/* SPDX-License-Identifier: Apache-2.0 */
/* PCIe, NVLink, fabric, topology. */
#include "nvml_fake.h"
#include <limits.h>
#include "traffic.h"

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t counter, unsigned int *out)
{
	return fake_get_uint(d, counter ? "pcie_throughput_rx" : "pcie_throughput_tx", out);
}

/* One answer of one link. */
static nvmlReturn_t link_number(nvmlDevice_t d, unsigned link, const char *key, double *out)
{
	const json_t *map = json_array_get(json_object_get(fake_device(d), "links"), link), *value;
	nvmlReturn_t ret = fake_answer(d, map, key, &value);

	*out = ret ? 0 : fake_number(d, key, json_number_value(value));
	return ret;
}

static unsigned link_count(nvmlDevice_t d)
{
	return (unsigned)json_array_size(json_object_get(fake_device(d), "links"));
}

/* Staged to be down. */
static bool link_down(nvmlDevice_t d, unsigned link)
{
	const char *down = getenv("FAKE_NVML_DOWN");
	unsigned device, first, last;

	return down && sscanf(down, "%u:%u-%u", &device, &first, &last) == 3 && device == d->index &&
	       link >= first && link <= last;
}

/* What the device sent or received so far, as this key counts it: by all links that are up, or one of them.
 */
static bool traffic_of(nvmlDevice_t d, const char *key, unsigned link, double *bytes)
{
	bool raw = !strncmp(key, "raw_", 4);
	unsigned up = 0;

	if (!raw && strncmp(key, "data_", 5))
		return false;
	for (unsigned i = 0; i < link_count(d); i++)
		up += !link_down(d, i);
	*bytes = (double)(strstr(key, "_tx") ? traffic_sent((int)d->index) : traffic_received((int)d->index));
	*bytes *= raw ? 17.0 / 16 : 1;
	if (link != UINT_MAX)
		*bytes = up && !link_down(d, link) ? *bytes / up : 0;
	return true;
}

static double replays_of(nvmlDevice_t d, const char *key, unsigned link)
{
	const char *errors = getenv("FAKE_NVML_ERRORS");
	unsigned device, at;

	if (!errors || strcmp(key, "error_replay") || sscanf(errors, "%u:%u", &device, &at) != 2 ||
	    device != d->index || at != link)
		return 0;
	return (double)(traffic_sent((int)device) >> 20);
}

bool fake_link_field(nvmlDevice_t d, const char *key, nvmlFieldValue_t *f)
{
	const json_t *links = json_object_get(fake_device(d), "links"), *value = NULL;
	unsigned first = f->scopeId == UINT_MAX ? 0 : f->scopeId;
	double bytes = 0, replays = replays_of(d, key, f->scopeId);
	bool traffic = traffic_of(d, key, f->scopeId, &bytes);

	if (!traffic && !(replays > 0))
		return false;
	f->nvmlReturn = f->scopeId == UINT_MAX && getenv("FAKE_NVML_LINKWISE")
				? NVML_ERROR_NOT_SUPPORTED
				: fake_answer(d, json_object_get(json_array_get(links, first), "fields"), key,
					      &value);
	if (f->nvmlReturn)
		return true;
	f->timestamp = (long long)(1e6 * fake_now());
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	f->value.ullVal = fake_u64(fake_number(d, key, json_number_value(value)) +
				   (traffic ? bytes / 1024 : replays));
	return true;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, nvmlEnableState_t *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_state", &v);

	*out = link_down(d, link) ? NVML_FEATURE_DISABLED : (nvmlEnableState_t)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t d, unsigned int link, unsigned int *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_version", &v);

	*out = (unsigned)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned int link,
						 nvmlIntNvLinkDeviceType_t *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_remote_type", &v);

	*out = (nvmlIntNvLinkDeviceType_t)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int link, nvmlPciInfo_t *out)
{
	const json_t *map = json_array_get(json_object_get(fake_device(d), "links"), link), *value;
	nvmlReturn_t ret = fake_answer(d, map, "nvlink_remote_pci", &value);

	return ret ? ret : fake_pci(value, out);
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned int link,
					     nvmlNvLinkErrorCounter_t counter, unsigned long long *out)
{
	static const char *const keys[] = {"error_replay", "error_recovery", "error_crc", "error_crc",
					   "error_ecc"};
	double v;
	nvmlReturn_t ret;

	if ((unsigned)counter >= 5)
		return NVML_ERROR_INVALID_ARGUMENT;
	ret = link_number(d, link, keys[counter], &v);
	*out = (unsigned long long)v;
	return ret;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *out)
{
	double v[4];
	nvmlReturn_t ret = fake_get_list(d, "fabric", v, 4);

	if (out->version != nvmlGpuFabricInfo_v3 && out->version != nvmlGpuFabricInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!ret) {
		out->state = (unsigned char)v[0];
		out->status = (nvmlReturn_t)v[1];
		out->cliqueId = (unsigned)v[2];
		out->healthMask = (unsigned)v[3];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *out)
{
	double v[3];
	nvmlReturn_t ret = fake_get_list(d, "fabric_old", v, 3);

	if (!ret) {
		out->state = (unsigned char)v[0];
		out->status = (nvmlReturn_t)v[1];
		out->cliqueId = (unsigned)v[2];
	}
	return ret;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *out)
{
	*out = a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
	return NVML_SUCCESS;
}
