/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/device.h"
#include <errno.h>
#include <stdlib.h>

enum gpu_precision train_device_precision(const struct config_training *t)
{
	return t->precision == CONFIG_PRECISION_FP32   ? GPU_PRECISION_F32
	       : t->precision == CONFIG_PRECISION_TF32 ? GPU_PRECISION_TF32
						       : GPU_PRECISION_BF16;
}

static enum status open_cpu(struct stepper *s, size_t bytes, size_t pinned, unsigned threads,
			    struct error *err)
{
	const struct cpu_options options = {.threads = threads};

	if (posix_memalign(&s->memory, ARENA_ALIGN, bytes))
		return error_errno(err, ENOMEM, "%.3g GB of memory, as planned (assay train CONFIG --plan)",
				   (double)bytes * 1e-9);
	s->arena = (struct arena){.base = s->memory, .size = bytes};
	if (pinned && posix_memalign(&s->own_host, ARENA_ALIGN, pinned))
		return error_errno(err, ENOMEM, "%.3g GB of memory, as planned (assay train CONFIG --plan)",
				   (double)pinned * 1e-9);
	s->host = (struct arena){.base = s->own_host, .size = pinned};
	return cpu_backend_create(&s->back, &options, &s->arena, err);
}

/* What to change if host memory cannot be pinned. */
static const char *host_knobs(const struct config *c)
{
	const bool inputs = c->training.recompute == CONFIG_RECOMPUTE_OFFLOAD;

	return inputs && c->training.offload ? "recompute: full, offload: none or data: max_seq_length"
	       : inputs ? "recompute: full, per_device_train_batch_size or data: max_seq_length"
			: "offload: none, optim: adamw_8bit or master_weights: split";
}

static enum status pin(struct stepper *s, const struct config *c, size_t bytes, struct error *err)
{
	struct error why = {0};
	enum status st;

	s->back.host = &s->host;
	st = gpu_backend_pin(&s->back, bytes, &why);
	return st ? error_set_cause(
			    err, st, why.cause,
			    "%s; the plan needs that much (assay train CONFIG --plan); to need less, change "
			    "training: %s",
			    why.text, host_knobs(c))
		  : STATUS_OK;
}

/* The next level of recomputation that takes less GPU memory; "": there is none. */
static const char *recompute_knob(const struct config_training *t)
{
	return t->recompute == CONFIG_RECOMPUTE_OFFLOAD ? ""
	       : t->recompute == CONFIG_RECOMPUTE_FULL	? "recompute: offload, "
							: "recompute: full, ";
}

static enum status open_gpu(struct stepper *s, const struct config *c, int64_t rows, size_t bytes,
			    struct error *err)
{
	const struct config_training *t = &c->training;
	static const enum gpu_attention attention[] = {
		[CONFIG_ATTENTION_AUTO] = GPU_ATTENTION_AUTO,
		[CONFIG_ATTENTION_CUDNN] = GPU_ATTENTION_CUDNN,
		[CONFIG_ATTENTION_OWN] = GPU_ATTENTION_OWN,
		[CONFIG_ATTENTION_PLAIN] = GPU_ATTENTION_PLAIN,
	};
	const struct gpu_backend_options options = {.pci = c->gpu && *c->gpu ? c->gpu : NULL,
						    .attention = attention[t->attention],
						    .precision = train_device_precision(t),
						    .tune = t->tune && !t->deterministic,
						    .parts = t->step_parts,
						    .graphs = t->graphs,
						    .fp8 = t->precision == CONFIG_PRECISION_FP8,
						    .deterministic = t->deterministic};
	struct error why = {0};
	enum status st = gpu_backend_create(&s->back, &options, &s->arena, err);

	if (st) /* not a matter of memory, so no advice about it */
		return st;
	gpu_backend_fill(&s->back, rows);
	st = gpu_backend_take(&s->back, bytes, &why);
	if (st && why.cause != CAUSE_NO_MEMORY)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	return st ? error_set_cause(
			    err, st, why.cause,
			    "%s; the plan needs %.3g GB of GPU memory (assay train CONFIG --plan); to need "
			    "less, change training: %s%sper_device_train_batch_size or data: max_seq_length",
			    why.text, (double)bytes * 1e-9, recompute_knob(t),
			    c->has_lora || c->training.offload ? "" : "offload: optimizer, ")
		  : STATUS_OK;
}

enum status train_device_open(struct stepper *s, const struct config *c, const struct train_device_needs *n,
			      struct error *err)
{
	enum status st;

	if (c->training.device != CONFIG_DEVICE_GPU)
		return open_cpu(s, n->bytes, n->pinned, n->threads, err);
	st = open_gpu(s, c, stepper_size(c).tokens, n->bytes, err);
	return st ? st : pin(s, c, n->pinned, err);
}
