/* SPDX-License-Identifier: Apache-2.0 */
/* PCIe, NVLink, fabric, topology. */
#include "nvml_fake.h"

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

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, nvmlEnableState_t *out)
{
	double v;
	nvmlReturn_t ret = link_number(d, link, "nvlink_state", &v);

	*out = (nvmlEnableState_t)v;
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
