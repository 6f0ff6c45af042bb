/* SPDX-License-Identifier: Apache-2.0 */
/* NVML as a whole: the library, the system, and all GPUs in parallel. */
#include <pthread.h>
#include <stdbool.h>
#include "machine/raw/raw.h"
#include "machine/raw/nvml.h"

void raw_put(json_t *map, const char *key, nvmlReturn_t ret, json_t *value)
{
	json_t *answer = json_array();

	json_array_append_new(answer, json_integer((json_int_t)ret));
	if (ret == NVML_SUCCESS && value)
		json_array_append_new(answer, value);
	else
		json_decref(value);
	json_object_set_new(map, key, answer);
}

json_t *raw_integer(unsigned long long v)
{
	return json_integer((json_int_t)v);
}

json_t *raw_pci(const nvmlPciInfo_t *pci)
{
	return json_pack("{s:s,s:I,s:I}", "bus_id", pci->busId, "device", (json_int_t)pci->pciDeviceId,
			 "subsystem", (json_int_t)pci->pciSubSystemId);
}

/* [[a, b, level], ..] with NVML's indices. */
static json_t *topology(const struct nvml *n, unsigned count)
{
	json_t *list = json_array();

	for (unsigned a = 0; n->common_ancestor && a < count; a++) {
		for (unsigned b = a + 1; b < count; b++) {
			nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
			nvmlDevice_t left, right;

			if (!n->by_index(a, &left) && !n->by_index(b, &right) &&
			    !n->common_ancestor(left, right, &level))
				json_array_append_new(list, json_pack("[i,i,i]", (int)a, (int)b, (int)level));
		}
	}
	return list;
}

static void system_calls(const struct nvml *n, json_t *calls)
{
	char text[96];
	nvmlReturn_t ret;
	int version = 0;

	if (n->driver_version) {
		text[0] = 0;
		ret = n->driver_version(text, sizeof(text));
		raw_put(calls, "driver_version", ret, json_string(text));
	}
	if (n->nvml_version) {
		text[0] = 0;
		ret = n->nvml_version(text, sizeof(text));
		raw_put(calls, "nvml_version", ret, json_string(text));
	}
	if (n->cuda_version) {
		ret = n->cuda_version(&version);
		raw_put(calls, "cuda_version", ret, json_integer(version));
	}
}

struct reader {
	const struct nvml *nvml;
	unsigned index;
	json_t *gpu;
	pthread_t thread;
	bool started;
};

static void *read_in_thread(void *arg)
{
	struct reader *r = arg;

	r->gpu = raw_nvml_gpu(r->nvml, r->index);
	return NULL;
}

/* In parallel: one GPU takes about 30 ms, most of it waiting for firmware. */
static void read_gpus(const struct nvml *n, unsigned count, json_t *gpus)
{
	struct reader *r = calloc(count ? count : 1, sizeof(*r));

	for (unsigned i = 0; r && i < count; i++) {
		r[i].nvml = n;
		r[i].index = i;
		r[i].started = !pthread_create(&r[i].thread, NULL, read_in_thread, &r[i]);
		if (!r[i].started)
			read_in_thread(&r[i]);
	}
	for (unsigned i = 0; r && i < count; i++) {
		if (r[i].started)
			pthread_join(r[i].thread, NULL);
		json_array_append_new(gpus, r[i].gpu);
	}
	free(r);
}

json_t *raw_nvml(void)
{
	json_t *raw = json_pack("{s:s,s:{},s:{},s:[]}", "layer", "nvml", "library", "calls", "gpus");
	json_t *library = json_object_get(raw, "library");
	struct lib_fact fact;
	struct nvml n;
	nvmlReturn_t ret;
	unsigned int count = 0;

	if (lib_open(&n, &nvml_lib, NULL, &fact, NULL)) {
		json_object_set_new(library, "missing",
				    json_string(fact.missing ? fact.missing : "not found"));
		lib_fact_release(&fact);
		return raw;
	}
	json_object_set_new(library, "path", json_string(fact.path ? fact.path : ""));
	lib_fact_release(&fact);
	ret = n.init();
	json_object_set_new(raw, "init", json_integer((json_int_t)ret));
	if (ret)
		return raw;
	system_calls(&n, json_object_get(raw, "calls"));
	ret = n.count(&count);
	raw_put(json_object_get(raw, "calls"), "count", ret, raw_integer(count));
	read_gpus(&n, ret ? 0 : count < 256 ? count : 256, json_object_get(raw, "gpus"));
	json_object_set_new(raw, "topology", topology(&n, ret ? 0 : count));
	n.shutdown();
	return raw;
}
