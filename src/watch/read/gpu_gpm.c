/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of hardware units over the interval between two GPM samples, of a GPU and of its instances under
 * MIG. */
#include "watch/read/gpu.h"

struct gpm_metric {
	enum catalogue row;
	unsigned id;
	double scale;
};
static const struct gpm_metric gpu_metrics[] = {
	{CATALOGUE_GPU_ENGINE_ACTIVE, NVML_GPM_GRAPHICS, 0.01},
	{CATALOGUE_GPU_SM_ACTIVE, NVML_GPM_SM, 0.01},
	{CATALOGUE_GPU_SM_OCCUPANCY, NVML_GPM_OCCUPANCY, 0.01},
	{CATALOGUE_GPU_TENSOR_ACTIVE, NVML_GPM_TENSOR, 0.01},
	{CATALOGUE_GPU_DRAM_ACTIVE, NVML_GPM_DRAM, 0.01},
	{CATALOGUE_GPU_FP64_ACTIVE, NVML_GPM_FP64, 0.01},
	{CATALOGUE_GPU_FP32_ACTIVE, NVML_GPM_FP32, 0.01},
	{CATALOGUE_GPU_FP16_ACTIVE, NVML_GPM_FP16, 0.01},
	{CATALOGUE_GPU_PCIE_TX, NVML_GPM_PCIE_TX, 1048576},
	{CATALOGUE_GPU_PCIE_RX, NVML_GPM_PCIE_RX, 1048576},
};
static const struct gpm_metric instance_metrics[] = {
	{CATALOGUE_INSTANCE_ENGINE_ACTIVE, NVML_GPM_GRAPHICS, 0.01},
	{CATALOGUE_INSTANCE_SM_ACTIVE, NVML_GPM_SM, 0.01},
	{CATALOGUE_INSTANCE_TENSOR_ACTIVE, NVML_GPM_TENSOR, 0.01},
	{CATALOGUE_INSTANCE_DRAM_ACTIVE, NVML_GPM_DRAM, 0.01},
};

/* A GPU, or an instance of one. */
struct sampled {
	struct gpu_gpm *gpm;
	uint32_t e;
	const struct gpm_metric *metrics;
	unsigned count;
};

static void all_absent(struct gpu_reader *r, const struct sampled *s, const char *why)
{
	for (unsigned i = 0; i < s->count; i++)
		out_absent(&r->out, s->e, s->metrics[i].row, why);
}

/* NULL: it can be sampled. Else why not. */
static const char *open_gpm(const struct nvml *n, const struct gpu *g, struct gpu_gpm *gpm)
{
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};

	if (n->gpm_support(g->device, &support) || !support.isSupportedDevice)
		return "this device or driver has no GPM";
	if (n->gpm_sample_alloc(&gpm->sample[0]) || n->gpm_sample_alloc(&gpm->sample[1])) {
		gpu_close_gpm(n, gpm);
		return "NVML has no memory for GPM samples";
	}
	return NULL;
}

/* The first call asks whether the device has GPM. `lacks` is the reason why the driver has none, or NULL. */
static bool is_open(struct gpu_reader *r, const struct gpu *g, const struct sampled *s, const char *lacks)
{
	const struct nvml *n = &r->nvml;

	if (s->gpm->asked)
		return s->gpm->sample[0] != NULL;
	s->gpm->asked = true;
	if (!lacks)
		lacks = open_gpm(n, g, s->gpm);
	if (lacks)
		all_absent(r, s, lacks);
	return !lacks;
}

void gpu_close_gpm(const struct nvml *n, struct gpu_gpm *gpm)
{
	for (int i = 0; i < 2; i++) {
		if (gpm->sample[i])
			n->gpm_sample_free(gpm->sample[i]);
		gpm->sample[i] = NULL;
	}
	gpm->began = false;
}

static void take_metrics(struct gpu_reader *r, struct gpu *g, const struct sampled *s)
{
	nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION,
				   .numMetrics = s->count,
				   .sample1 = s->gpm->sample[s->gpm->last],
				   .sample2 = s->gpm->sample[!s->gpm->last]};
	nvmlReturn_t ret;

	for (unsigned i = 0; i < s->count; i++)
		get.metrics[i].metricId = s->metrics[i].id;
	ret = r->nvml.gpm_metrics(&get);
	for (unsigned i = 0; i < s->count; i++) {
		const nvmlReturn_t one = ret ? ret : get.metrics[i].nvmlReturn;

		if (!one)
			gpu_set(r, s->e, s->metrics[i].row, s->metrics[i].scale * get.metrics[i].value);
		else if (gpu_is_lost(one))
			g->gone = one;
		else
			out_absent(&r->out, s->e, s->metrics[i].row, nvml_code_text((int)one));
	}
}

/* Takes the sample that NVML just wrote, with this result, as the end of an interval. */
static void take_sample(struct gpu_reader *r, struct gpu *g, const struct sampled *s, nvmlReturn_t ret)
{
	if (gpu_is_lost(ret)) {
		g->gone = ret;
		return;
	}
	if (ret) {
		s->gpm->began = false;
		all_absent(r, s,
			   ret == NVML_ERROR_IN_USE || ret == NVML_ERROR_INSUFFICIENT_RESOURCES
				   ? "another program, such as DCGM, uses the counters of the GPU"
				   : nvml_code_text((int)ret));
		return;
	}
	if (s->gpm->began)
		take_metrics(r, g, s);
	s->gpm->last = !s->gpm->last;
	s->gpm->began = true;
}

static bool has_gpm(const struct nvml *n)
{
	return n->gpm_support && n->gpm_sample_alloc && n->gpm_sample_free && n->gpm_metrics;
}

void gpu_read_gpm(struct gpu_reader *r, struct gpu *g)
{
	const struct nvml *n = &r->nvml;
	const struct sampled s = {&g->gpm, g->e, gpu_metrics, sizeof(gpu_metrics) / sizeof(gpu_metrics[0])};

	if (!g->gone &&
	    is_open(r, g, &s, has_gpm(n) && n->gpm_sample ? NULL : "this driver's NVML has no GPM"))
		take_sample(r, g, &s, n->gpm_sample(g->device, g->gpm.sample[!g->gpm.last]));
}

void gpu_read_instance_gpm(struct gpu_reader *r, struct gpu *g, struct gpu_instance *in)
{
	const struct nvml *n = &r->nvml;
	const struct sampled s = {&in->gpm, in->e, instance_metrics,
				  sizeof(instance_metrics) / sizeof(instance_metrics[0])};

	if (is_open(r, g, &s,
		    has_gpm(n) && n->gpm_instance_sample ? NULL
							 : "this driver's NVML has no GPM of instances"))
		take_sample(r, g, &s,
			    n->gpm_instance_sample(g->device, in->gi, in->gpm.sample[!in->gpm.last]));
}
