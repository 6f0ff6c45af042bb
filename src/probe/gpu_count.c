/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of the node: the number of GPUs by four independent ways, because each can fail alone. The PCI bus
 * needs no driver, NVML needs the driver, CUDA also needs permission and the NVLink fabric, and /dev depends
 * on the container. A count that could not be taken is absent.
 */
#include "core/text/text.h"
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(driver_loaded, "", U64, 1, "the NVIDIA kernel module is loaded (1)")                               \
	X(gpu_count_pci, "", U64, 0, "NVIDIA GPUs on the PCI bus")                                           \
	X(gpu_count_nvml, "", U64, 0, "GPUs that NVML lists")                                                \
	X(gpu_count_cuda, "", U64, 0, "GPUs that CUDA lists")                                                \
	X(gpu_count_dev, "", U64, 0, "/dev/nvidiaN files")                                                   \
	X(gpu_count_granted, "", U64, 0, "GPUs that assay may use")                                          \
	X(gpu_count_lost, "", U64, -1, "GPUs that the driver lists but that do not answer")                  \
	X(gpu_count_silent, "", U64, -1, "GPUs on the bus that the driver does not list")                    \
	X(gpu_models, "", TEXT, 0, "models with their count")

static const struct field fields[] = {FIELDS(FIELD_ROW)};
enum { FIELDS(READING_PLACE) COUNT };

static bool layer_read(const struct machine *m, const char *least)
{
	static const char *const layers[] = {"host", "nvml", "cuda", "software"};
	const char *read = json_string_value(json_object_get(machine_json(m), "layer"));
	int i, have = -1, need = -1;

	for (i = 0; i < 4; i++) {
		have = read && !strcmp(layers[i], read) ? i : have;
		need = !strcmp(layers[i], least) ? i : need;
	}
	return have >= need;
}

static void count_gpus(const struct machine *m, struct result *out)
{
	unsigned pci = 0, nvml = 0, cuda = 0, granted = 0, lost = 0, silent = 0, i;
	const json_t *driver = json_object_get(machine_json(m), "driver");
	enum cause cause;

	for (i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);

		pci += g->pci[0] != '\0';
		nvml += g->nvml_index >= 0;
		cuda += g->cuda_index >= 0;
		granted += g->granted;
		lost += g->status == STATUS_LOST;
		silent += g->cause == CAUSE_GPU_MISSING;
	}
	result_u64(out, &fields[AT_gpu_count_pci], pci);
	result_u64(out, &fields[AT_gpu_count_granted], granted);
	result_u64(out, &fields[AT_gpu_count_lost], lost);
	result_u64(out, &fields[AT_gpu_count_silent], silent);
	/* Without a driver, NVML and CUDA list nothing; a broken library lists nothing either. In both cases
	 * no GPU is missing, so the count is absent. If cuInit fails for another reason, the count is set,
	 * because GPUs may be the reason. */
	if (nvml || (layer_read(m, "nvml") && json_is_true(json_object_get(driver, "loaded")) &&
		     !reading_layer_failed(m, "NVML", &cause)))
		result_u64(out, &fields[AT_gpu_count_nvml], nvml);
	if (cuda || (nvml && layer_read(m, "cuda") &&
		     (!reading_layer_failed(m, "CUDA driver", &cause) || cause == CAUSE_VENDOR_CALL)))
		result_u64(out, &fields[AT_gpu_count_cuda], cuda);
}

/* The GPU that explains why NVML lists none although a driver is loaded: NVML did not start, or did not start
 * in time. NULL: NVML answered. */
static const struct gpu *failed_gpu(const struct machine *m)
{
	const struct gpu *g = machine_gpu(m, 0);

	if (!layer_read(m, "nvml") ||
	    !json_is_true(json_object_get(json_object_get(machine_json(m), "driver"), "loaded")))
		return NULL;
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		if (machine_gpu(m, i)->nvml_index >= 0)
			return NULL;
	}
	return g->cause == CAUSE_GPU_MISSING || g->cause == CAUSE_NOT_GRANTED ? NULL : g;
}

static void count_nodes(const struct machine *m, struct result *out)
{
	const json_t *nodes = json_object_get(machine_json(m), "device_nodes"), *node;
	uint64_t count = 0;
	size_t i;

	if (!json_is_array(nodes))
		return;
	json_array_foreach((json_t *)nodes, i, node)
	{
		const char *path = json_string_value(json_object_get(node, "path"));

		/* Only /dev/nvidiaN with a number is a GPU: /dev/nvidiactl, /dev/nvidia-uvm and others are
		 * not. */
		count += path && !strncmp(path, "/dev/nvidia", 11) && path[11] >= '0' && path[11] <= '9';
	}
	result_u64(out, &fields[AT_gpu_count_dev], count);
}

static void name_models(const struct machine *m, struct result *out)
{
	unsigned count = machine_gpu_count(m), i, k, same;
	struct text text = {0};

	for (i = 0; i < count; i++) {
		const char *name = machine_gpu(m, i)->name;

		for (k = 0; k < i && strcmp(machine_gpu(m, k)->name, name); k++)
			;
		if (k < i)
			continue; /* already counted with the first GPU of the same model */
		for (same = 1; ++k < count;)
			same += !strcmp(machine_gpu(m, k)->name, name);
		text_addf(&text, "%s%u x %s", text.size ? ", " : "", same, name[0] ? name : "unnamed");
	}
	if (text.size && !text.failed)
		result_text(out, &fields[AT_gpu_models], text.data);
	text_release(&text);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const json_t *loaded = json_object_get(json_object_get(machine_json(m), "driver"), "loaded");

	const struct gpu *failed;

	(void)t, (void)opts;
	if (!reading_has_gpus(m, "GPU count", err))
		return STATUS_UNSUPPORTED;
	failed = failed_gpu(m);
	if (failed && failed->status)
		return error_set_cause(err, failed->status, failed->cause, "GPU count: %s", failed->reason);
	if (json_is_boolean(loaded))
		result_u64(out, &fields[AT_driver_loaded], json_is_true(loaded));
	count_gpus(m, out);
	count_nodes(m, out);
	name_models(m, out);
	return STATUS_OK;
}

const struct probe probe_gpu_count = {
	.name = "gpu_count",
	.summary = "number of GPUs: on the bus, listed by the driver, usable, and lost",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
