/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of hardware units over the interval between two GPM samples, of a GPU and of its instances under
 * MIG. */
#include "watch/read/gpu.h"

static const struct {
	enum catalogue row;
	unsigned metric;
	double scale;
} metrics[] = {
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
enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };

static void all_absent(struct gpu_reader *r, struct gpu *g, const char *why)
{
	for (size_t i = 0; i < METRICS; i++)
		out_absent(&r->out, g->e, metrics[i].row, why);
}

/* The first call asks whether the device has GPM. */
static bool has_gpm(struct gpu_reader *r, struct gpu *g)
{
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
	const struct nvml *n = &r->nvml;

	if (g->gpm_asked)
		return g->gpm[0] != NULL;
	g->gpm_asked = true;
	if (!n->gpm_support || !n->gpm_sample_alloc || !n->gpm_sample_free || !n->gpm_sample ||
	    !n->gpm_metrics) {
		all_absent(r, g, "this driver's NVML has no GPM");
		return false;
	}
	if (n->gpm_support(g->device, &support) || !support.isSupportedDevice) {
		all_absent(r, g, "this device or driver has no GPM");
		return false;
	}
	if (n->gpm_sample_alloc(&g->gpm[0]) || n->gpm_sample_alloc(&g->gpm[1])) {
		gpu_close_gpm(r, g);
		all_absent(r, g, "NVML has no memory for GPM samples");
	}
	return g->gpm[0] != NULL;
}

void gpu_close_gpm(struct gpu_reader *r, struct gpu *g)
{
	for (int i = 0; i < 2; i++) {
		if (g->gpm[i])
			r->nvml.gpm_sample_free(g->gpm[i]);
		g->gpm[i] = NULL;
	}
	g->gpm_began = false;
}

static void take_metrics(struct gpu_reader *r, struct gpu *g)
{
	nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION,
				   .numMetrics = METRICS,
				   .sample1 = g->gpm[g->gpm_last],
				   .sample2 = g->gpm[!g->gpm_last]};
	nvmlReturn_t ret;

	for (size_t i = 0; i < METRICS; i++)
		get.metrics[i].metricId = metrics[i].metric;
	ret = r->nvml.gpm_metrics(&get);
	for (size_t i = 0; i < METRICS; i++)
		gpu_take(r, g, metrics[i].row, ret ? ret : get.metrics[i].nvmlReturn,
			 metrics[i].scale * get.metrics[i].value);
}

void gpu_read_gpm(struct gpu_reader *r, struct gpu *g)
{
	nvmlReturn_t ret;

	if (g->gone || !has_gpm(r, g))
		return;
	ret = r->nvml.gpm_sample(g->device, g->gpm[!g->gpm_last]);
	if (ret == NVML_ERROR_GPU_IS_LOST || ret == NVML_ERROR_RESET_REQUIRED) {
		g->gone = ret;
		return;
	}
	if (ret) {
		g->gpm_began = false;
		all_absent(r, g,
			   ret == NVML_ERROR_IN_USE || ret == NVML_ERROR_INSUFFICIENT_RESOURCES
				   ? "another program, such as DCGM, uses the counters of the GPU"
				   : nvml_code_text((int)ret));
		return;
	}
	if (g->gpm_began)
		take_metrics(r, g);
	g->gpm_last = !g->gpm_last;
	g->gpm_began = true;
}

/* ---- instances under MIG ---- */

static const struct {
	enum catalogue row;
	unsigned metric;
} instance_metrics[] = {
	{CATALOGUE_INSTANCE_ENGINE_ACTIVE, NVML_GPM_GRAPHICS},
	{CATALOGUE_INSTANCE_SM_ACTIVE, NVML_GPM_SM},
	{CATALOGUE_INSTANCE_TENSOR_ACTIVE, NVML_GPM_TENSOR},
	{CATALOGUE_INSTANCE_DRAM_ACTIVE, NVML_GPM_DRAM},
};
enum { INSTANCE_METRICS = sizeof(instance_metrics) / sizeof(instance_metrics[0]) };

static void instance_absent(struct gpu_reader *r, const struct gpu_instance *in, const char *why)
{
	for (size_t i = 0; i < INSTANCE_METRICS; i++)
		out_absent(&r->out, in->e, instance_metrics[i].row, why);
}

/* NULL: the instance can be sampled. Else why not, which stays so. */
static const char *open_instance(struct gpu_reader *r, struct gpu *g, struct gpu_instance *in)
{
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
	const struct nvml *n = &r->nvml;

	if (in->gpm[0])
		return NULL;
	if (!n->gpm_support || !n->gpm_sample_alloc || !n->gpm_sample_free || !n->gpm_instance_sample ||
	    !n->gpm_metrics)
		return "this driver's NVML has no GPM of instances";
	if (n->gpm_support(g->device, &support) || !support.isSupportedDevice)
		return "this device or driver has no GPM";
	if (n->gpm_sample_alloc(&in->gpm[0]) || n->gpm_sample_alloc(&in->gpm[1])) {
		gpu_close_instance_gpm(r, in);
		return "NVML has no memory for GPM samples";
	}
	return NULL;
}

void gpu_close_instance_gpm(struct gpu_reader *r, struct gpu_instance *in)
{
	for (int i = 0; i < 2; i++) {
		if (in->gpm[i])
			r->nvml.gpm_sample_free(in->gpm[i]);
		in->gpm[i] = NULL;
	}
	in->gpm_began = false;
}

static void take_instance(struct gpu_reader *r, struct gpu_instance *in)
{
	nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION,
				   .numMetrics = INSTANCE_METRICS,
				   .sample1 = in->gpm[in->gpm_last],
				   .sample2 = in->gpm[!in->gpm_last]};
	nvmlReturn_t ret;

	for (size_t i = 0; i < INSTANCE_METRICS; i++)
		get.metrics[i].metricId = instance_metrics[i].metric;
	ret = r->nvml.gpm_metrics(&get);
	for (size_t i = 0; i < INSTANCE_METRICS; i++) {
		const nvmlReturn_t one = ret ? ret : get.metrics[i].nvmlReturn;

		if (one)
			out_absent(&r->out, in->e, instance_metrics[i].row, nvml_code_text((int)one));
		else
			out_set(&r->out, in->e, instance_metrics[i].row, 0.01 * get.metrics[i].value);
	}
}

void gpu_read_instance_gpm(struct gpu_reader *r, struct gpu *g, struct gpu_instance *in)
{
	const char *why = in->gpm_never ? NULL : open_instance(r, g, in);
	nvmlReturn_t ret;

	if (why)
		instance_absent(r, in, why);
	in->gpm_never |= why != NULL;
	if (in->gpm_never)
		return;
	ret = r->nvml.gpm_instance_sample(g->device, in->gi, in->gpm[!in->gpm_last]);
	if (ret == NVML_ERROR_GPU_IS_LOST || ret == NVML_ERROR_RESET_REQUIRED) {
		g->gone = ret;
		return;
	}
	if (ret) {
		in->gpm_began = false;
		instance_absent(r, in,
				ret == NVML_ERROR_IN_USE || ret == NVML_ERROR_INSUFFICIENT_RESOURCES
					? "another program, such as DCGM, uses the counters of the GPU"
					: nvml_code_text((int)ret));
		return;
	}
	if (in->gpm_began)
		take_instance(r, in);
	in->gpm_last = !in->gpm_last;
	in->gpm_began = true;
}
