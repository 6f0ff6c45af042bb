/* SPDX-License-Identifier: Apache-2.0 */
/* Description and configuration of one GPU: names, limits, modes, fabric. */
#include "machine/raw/nvml.h"

/* Calls of one device that return one unsigned number. */
#define UINT_CALLS(X)                                                                                        \
	X(minor)                                                                                             \
	X(module_id)                                                                                         \
	X(bus_width)                                                                                         \
	X(cores)                                                                                             \
	X(power)                                                                                             \
	X(power_limit)                                                                                       \
	X(power_limit_managed)                                                                               \
	X(power_limit_default)                                                                               \
	X(mig_count_max)                                                                                     \
	X(pcie_gen)                                                                                          \
	X(pcie_width)                                                                                        \
	X(pcie_gen_max)                                                                                      \
	X(pcie_gen_device)                                                                                   \
	X(pcie_width_max)                                                                                    \
	X(pcie_replays)                                                                                      \
	X(numa_node)

#define U64_CALLS(X)                                                                                         \
	X(reasons)                                                                                           \
	X(reasons_supported)                                                                                 \
	X(energy)                                                                                            \
	X(event_types)

#define TEXT_CALLS(X)                                                                                        \
	X(name)                                                                                              \
	X(uuid)                                                                                              \
	X(serial)                                                                                            \
	X(vbios)                                                                                             \
	X(part_number)                                                                                       \
	X(inforom)

static void simple_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	unsigned int u = 0;
	unsigned long long v = 0;
	char text[160];
	nvmlReturn_t ret;

#define X(key)                                                                                               \
	if (n->key) {                                                                                        \
		ret = n->key(d, &u);                                                                         \
		raw_put(calls, #key, ret, raw_integer(u));                                                   \
	}
	UINT_CALLS(X)
#undef X
#define X(key)                                                                                               \
	if (n->key) {                                                                                        \
		ret = n->key(d, &v);                                                                         \
		raw_put(calls, #key, ret, raw_integer(v));                                                   \
	}
	U64_CALLS(X)
#undef X
#define X(key)                                                                                               \
	if (n->key) {                                                                                        \
		text[0] = 0;                                                                                 \
		ret = n->key(d, text, sizeof(text));                                                         \
		raw_put(calls, #key, ret, json_string(text));                                                \
	}
	TEXT_CALLS(X)
#undef X
	if (n->reasons_old && !n->reasons) {
		ret = n->reasons_old(d, &v);
		raw_put(calls, "reasons_old", ret, raw_integer(v));
	}
	if (n->gsp_version) {
		text[0] = 0;
		ret = n->gsp_version(d, text);
		raw_put(calls, "gsp_version", ret, json_string(text));
	}
}

static void enum_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlPstates_t pstate = NVML_PSTATE_UNKNOWN;
	nvmlEnableState_t on = NVML_FEATURE_DISABLED, pending = NVML_FEATURE_DISABLED;
	nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
	nvmlGpuVirtualizationMode_t virtual = NVML_GPU_VIRTUALIZATION_MODE_NONE;
	unsigned int a = 0, b = 0;
	nvmlReturn_t ret;

	if (n->performance_state) {
		ret = n->performance_state(d, &pstate);
		raw_put(calls, "performance_state", ret, raw_integer(pstate));
	}
	if (n->persistence) {
		ret = n->persistence(d, &on);
		raw_put(calls, "persistence", ret, raw_integer(on));
	}
	if (n->compute_mode) {
		ret = n->compute_mode(d, &mode);
		raw_put(calls, "compute_mode", ret, raw_integer(mode));
	}
	if (n->virtualization) {
		ret = n->virtualization(d, &virtual);
		raw_put(calls, "virtualization", ret, raw_integer(virtual));
	}
	if (n->retired_pending) {
		ret = n->retired_pending(d, &pending);
		raw_put(calls, "retired_pending", ret, raw_integer(pending));
	}
	if (n->ecc_mode) {
		ret = n->ecc_mode(d, &on, &pending);
		raw_put(calls, "ecc_mode", ret, json_pack("[i,i]", (int)on, (int)pending));
	}
	if (n->mig_mode) {
		ret = n->mig_mode(d, &a, &b);
		raw_put(calls, "mig_mode", ret, json_pack("[i,i]", (int)a, (int)b));
	}
}

static void fabric_calls(const struct nvml *n, nvmlDevice_t d, json_t *calls)
{
	nvmlGpuFabricInfoV_t v = {.version = nvmlGpuFabricInfo_v3};
	nvmlGpuFabricInfo_t old = {0};
	nvmlGpmSupport_t gpm = {.version = NVML_GPM_SUPPORT_VERSION};
	nvmlReturn_t ret;

	if (n->fabric) {
		ret = n->fabric(d, &v);
		if (ret == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
			v = (nvmlGpuFabricInfoV_t){.version = nvmlGpuFabricInfo_v2};
			ret = n->fabric(d, &v);
		}
		raw_put(calls, "fabric", ret,
			json_pack("[i,i,I,I]", (int)v.state, (int)v.status, (json_int_t)v.cliqueId,
				  (json_int_t)v.healthMask));
	}
	if (n->fabric_old && !n->fabric) {
		ret = n->fabric_old(d, &old);
		raw_put(calls, "fabric_old", ret,
			json_pack("[i,i,I]", (int)old.state, (int)old.status, (json_int_t)old.cliqueId));
	}
	if (n->gpm_support) {
		ret = n->gpm_support(d, &gpm);
		raw_put(calls, "gpm_support", ret, raw_integer(gpm.isSupportedDevice));
	}
}

json_t *raw_nvml_gpu(const struct nvml *n, unsigned index)
{
	json_t *gpu = json_pack("{s:{},s:{},s:[]}", "calls", "fields", "links");
	json_t *calls = json_object_get(gpu, "calls");
	nvmlPciInfo_t pci = {0};
	nvmlDevice_t d = NULL;
	int major = 0, minor = 0;
	nvmlReturn_t ret = n->by_index(index, &d);

	raw_put(gpu, "by_index", ret, NULL);
	if (ret)
		return gpu;
	ret = n->pci(d, &pci);
	raw_put(calls, "pci", ret, raw_pci(&pci));
	if (n->compute_capability) {
		ret = n->compute_capability(d, &major, &minor);
		raw_put(calls, "compute_capability", ret, json_pack("[i,i]", major, minor));
	}
	simple_calls(n, d, calls);
	enum_calls(n, d, calls);
	fabric_calls(n, d, calls);
	raw_nvml_state(n, d, calls);
	raw_nvml_ecc(n, d, calls);
	raw_nvml_fields(n, d, json_object_get(gpu, "fields"));
	raw_nvml_links(n, d, json_object_get(gpu, "links"));
	return gpu;
}
