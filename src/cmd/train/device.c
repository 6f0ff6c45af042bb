/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the device of a training run. This happens before planning, so that the worker opens the same
 * card for which the plan was made. */
#include "cmd/train/train.h"
#include <stdlib.h>
#include "core/text/text.h"
#include "gpu/device/gpu.h"
#include "kernel/fatbin.h"
#include "machine/machine.h"
#include "model/gpu/backend.h"
#include "run/suite/target.h"

enum { LEAST_CC = 80, FP8_CC = 90, LEAST_CUBLASLT = 12 };
static const char *const libs[] = {"cuda", "cublaslt", NULL};

struct choice {
	const struct gpu *gpu; /* NULL: the CPU */
	enum cause cause;
	char why[384]; /* why no GPU is usable; "": there is none, or one was chosen */
};

/* Finds the first accessible GPU that works; otherwise notes the reason for the first one. `own`: only this
 * one (train_ranks_gpu). */
static void find_gpu(struct choice *c, const struct machine *m, const char *own)
{
	if (own && !*own && machine_gpu_count(m))
		text_copy(c->why, sizeof(c->why), "other ranks of this node have all of its GPUs");
	for (unsigned i = 0; i < machine_gpu_count(m) && !c->gpu; i++) {
		const struct gpu *g = machine_gpu(m, i);

		if (own && strcmp(own, g->pci))
			continue;
		if (g->granted && !g->status && gpu_get(g, GPU_FACT_cc, 0) >= LEAST_CC)
			c->gpu = g;
		else if (!*c->why)
			text_copy(c->why, sizeof(c->why),
				  g->status	? g->reason
				  : !g->granted ? "this process has no access to it"
						: "its compute capability is below 8.0");
	}
	if (c->gpu)
		*c->why = '\0';
	c->cause = CAUSE_NOT_GRANTED;
}

/* Checks the libraries that training on a GPU needs. A container may have only NVML. */
static void check_libraries(struct choice *c, const struct machine *m)
{
	static const char *const needs[] = {"the CUDA driver library, which all GPU work needs",
					    "cuBLASLt, which GEMMs need"};
	const struct lib_found *found = NULL;

	for (size_t i = 0; libs[i] && !*c->why; i++) {
		found = machine_lib(m, libs[i]);
		if (!found || found->status)
			snprintf(c->why, sizeof(c->why), "%s, is not usable: %s", needs[i],
				 found ? found->missing
				       : "the helper process that searches for it gave no answer");
	}
	if (!*c->why && strtol(found->version, NULL, 10) < LEAST_CUBLASLT)
		snprintf(c->why, sizeof(c->why), "cuBLASLt %s is older than the required version %d: %s",
			 found->version, LEAST_CUBLASLT, found->path);
	if (*c->why)
		c->cause = CAUSE_LIBRARY_MISSING;
}

/* Why CUDA could not be initialized, from the facts; NULL if it could. */
static const char *refusal_of(const struct machine *m)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(machine_json(m), "unreadable"), i, row)
	{
		const char *what = json_string_value(json_object_get(row, "what"));

		if (what && !strcmp(what, "CUDA driver"))
			return json_string_value(json_object_get(row, "why"));
	}
	return NULL;
}

/* CUDA may fail to initialize although its library loads. */
static void check_cuda(struct choice *c, const struct machine *m)
{
	const char *refusal = refusal_of(m);
	bool listed = false;

	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		listed |= !strcmp(machine_gpu(m, i)->pci, c->gpu->pci) && machine_gpu(m, i)->cuda_index >= 0;
	if (!listed) {
		snprintf(c->why, sizeof(c->why), "CUDA does not list %s: %s", c->gpu->pci,
			 refusal ? refusal : "CUDA_VISIBLE_DEVICES or a cgroup may hide it");
		c->cause = CAUSE_UNSUPPORTED;
	}
}

/* Searches for the libraries in a helper process, as the worker will. If the CPU is an alternative,
 * another helper also initializes CUDA, which takes 0.3 s. */
static enum status look_closer(struct choice *c, const struct training *t, struct error *err)
{
	bool either = t->config.training.device == CONFIG_DEVICE_AUTO;
	const struct machine_scope scope = {
		.up_to = either ? LAYER_CUDA : LAYER_HOST, .stop = t->c->stop, .libs = libs};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, t->c->log, err);

	if (st)
		return st;
	check_libraries(c, m);
	if (either && !*c->why)
		check_cuda(c, m);
	machine_free(m);
	return STATUS_OK;
}

/* Checks a precision that the user asked for on the CPU. */
static enum status check_cpu_precision(const struct training *t, struct error *err)
{
	const uint32_t precision = t->config.training.precision;

	if (precision == CONFIG_PRECISION_AUTO || precision == CONFIG_PRECISION_FP32 ||
	    (precision == CONFIG_PRECISION_FP8 && t->config.training.device == CONFIG_DEVICE_CPU))
		return STATUS_OK;
	if (precision == CONFIG_PRECISION_FP8)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_UNSUPPORTED,
			"training: precision: fp8 needs a GPU of sm_90 (Hopper); device: cpu gives the same numbers, "
			"but more slowly than fp32");
	return error_set_cause(
		err, STATUS_UNAVAILABLE, CAUSE_UNSUPPORTED,
		"training: precision: %s needs a GPU, and a CPU computes in float32: use precision: fp32 or "
		"leave it out",
		config_precision_name(precision));
}

/* cuBLASLt has FP8 with block scales only for this one. */
static enum status check_gpu_precision(const struct training *t, const struct gpu *g, struct error *err)
{
	const double cc = gpu_get(g, GPU_FACT_cc, 0);

	if (t->config.training.precision != CONFIG_PRECISION_FP8 || cc == FP8_CC)
		return STATUS_OK;
	return error_set_cause(
		err, STATUS_UNAVAILABLE, CAUSE_UNSUPPORTED,
		"training: precision: fp8 needs a GPU of sm_90 (Hopper), because cuBLASLt has FP8 with block "
		"scales only for it; %s is sm_%.0f: use precision: bf16",
		g->name, cc);
}

static enum status choose(struct choice *c, const struct training *t, const struct machine *m,
			  struct error *err)
{
	struct error why = {0};
	enum status st = STATUS_OK;

	if (t->config.training.device == CONFIG_DEVICE_CPU)
		return STATUS_OK;
	find_gpu(c, m, train_ranks_gpu(t));
	if (c->gpu && !kernel_fatbin_find("train_rows")) {
		snprintf(c->why, sizeof(c->why),
			 "this program was built without GPU kernels (no nvcc at build time)");
		c->cause = CAUSE_UNSUPPORTED;
	} else if (c->gpu && gpu_backend_takes(&t->shape, &why)) {
		text_copy(c->why, sizeof(c->why), why.text);
		c->cause = CAUSE_UNSUPPORTED;
	} else if (c->gpu) {
		st = check_gpu_precision(t, c->gpu, err);
		if (!st)
			st = look_closer(c, t, err);
	}
	if (*c->why)
		c->gpu = NULL;
	return st;
}

/* The user may intend this, so it is a warning only (docs/explanation/design/model_gpu.md). */
static void warn_of_others(const struct training *t, const struct gpu *g)
{
	char busy[160];

	if (gpu_busy(g, busy, sizeof(busy)))
		log_warn(t->c->log, LOG_TOPIC_RUN,
			 "%s: runs that share a GPU slow each other down, and GEMMs of some "
			 "libraries fail there (CUDA_ERROR_LAUNCH_FAILED)",
			 busy);
}

/* A CPU computes the same with offload, with more memory and copies. */
static void warn_of_offload(const struct training *t)
{
	const struct config_training *c = &t->config.training;

	if (c->recompute == CONFIG_RECOMPUTE_OFFLOAD)
		log_warn(
			t->c->log, LOG_TOPIC_RUN,
			"training: recompute: offload saves memory only on a GPU. On a CPU it costs memory and "
			"time, and recompute: full computes the same");
	if (c->offload)
		log_warn(
			t->c->log, LOG_TOPIC_RUN,
			"training: offload: optimizer saves memory only on a GPU. On a CPU it costs memory and "
			"time, and offload: none computes the same");
}

static enum status settle_on(struct training *t, const struct machine *m, struct error *err)
{
	uint32_t *device = &t->config.training.device;
	struct choice c = {0};
	enum status st = choose(&c, t, m, err);

	if (st)
		return st;
	if (!c.gpu && *device == CONFIG_DEVICE_GPU)
		return error_set_cause(err, STATUS_UNAVAILABLE, c.cause,
				       "training: device: gpu: this machine has no usable GPU: %s",
				       *c.why ? c.why : "none is on the PCI bus");
	if (!c.gpu && *c.why)
		log_warn(t->c->log, LOG_TOPIC_RUN, "training on the CPU, because the GPU is not usable: %s",
			 c.why);
	t->room = (struct train_memory_available){.available = machine_cpu(m)->memory_available_bytes /
							       train_ranks_local(t)};
	if (!c.gpu) {
		warn_of_offload(t);
		st = check_cpu_precision(t, err);
	}
	if (st)
		return st;
	if (c.gpu) {
		warn_of_others(t, c.gpu);
		train_cache_settle(t, m, c.gpu);
		t->room.host = t->room.available;
		t->room.available = (uint64_t)gpu_get(c.gpu, GPU_FACT_memory_free_bytes, 0);
		t->room.leave = GPU_LEAVE_BYTES;
		text_copy(t->gpu, sizeof(t->gpu), c.gpu->pci);
	}
	if (*device == CONFIG_DEVICE_AUTO) {
		*device = c.gpu ? CONFIG_DEVICE_GPU : CONFIG_DEVICE_CPU;
		train_write_config(t);
	}
	return STATUS_OK;
}

enum status train_settle_device(struct training *t, struct error *err)
{
	const struct machine_scope scope = {
		.up_to = t->config.training.device == CONFIG_DEVICE_CPU ? LAYER_HOST : LAYER_NVML,
		.stop = t->c->stop};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, t->c->log, err);

	if (!st)
		st = settle_on(t, m, err);
	machine_free(m);
	return st;
}
