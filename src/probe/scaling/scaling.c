/* SPDX-License-Identifier: Apache-2.0 */
/* Probe scaling: options, fields, work and descriptor (at the end). scaling.h defines one iteration. */
#include "probe/scaling/scaling.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const types[] = {"bf16", "fp16", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct scaling_opts, layers, .name = "layers", .preset = "8", .min = 1, .max = 1024,
		.help = "linear layers"),
	OPT_ROW(struct scaling_opts, m, .name = "m", .preset = "8192", .min = 16, .max = 1 << 20,
		.help = "rows (tokens) per rank and step"),
	OPT_ROW(struct scaling_opts, width, .name = "width", .preset = "4096", .min = 16, .max = 65536,
		.help = "input and output width of each layer"),
	OPT_ROW(struct scaling_opts, buckets, .name = "buckets", .preset = "4", .min = 1,
		.max = SCALING_BUCKETS_MAX, .help = "all-reduces per step; all have the same size"),
	OPT_ROW(struct scaling_opts, type, .name = "type", .preset = "bf16", .choices = types,
		.help = "type of activations, weights and gradients"),
	OPT_ROW(struct scaling_opts, overlap, .name = "overlap", .preset = "true",
		.help = "all-reduce each bucket as soon as it is ready, during the GEMMs"),
};

const struct field scaling_fields[] = {SCALING_FIELDS(FIELD_ROW)};

static enum status check(const void *opts, struct error *err)
{
	const struct scaling_opts *o = opts;

	if (o->layers % o->buckets)
		return error_set(err, STATUS_BAD_INPUT,
				 "scaling: %u layers cannot be divided into %u buckets of equal size",
				 o->layers, o->buckets);
	if (o->width % 16 || o->m % 16)
		return error_set(err, STATUS_BAD_INPUT,
				 "scaling: m and width must be multiples of 16, not %u and %u", o->m,
				 o->width);
	return STATUS_OK;
}

/* Three GEMMs of 2 m width^2 FLOP per layer. */
static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct scaling_opts *o = opts;

	(void)m, (void)t;
	return (struct work){.flop = 6.0 * o->layers * o->m * o->width * o->width, .limit = "mixed"};
}

/* Two inputs, two gradients and two results of (m, width); weights, gradients and the update's output. NCCL's
 * own buffers are not included. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	const struct scaling_opts *o = opts;
	double rows = 2.0 * o->m * o->width, weights = 2.0 * o->layers * o->width * o->width;

	(void)m, (void)t;
	out->device_bytes = 6 * rows + 3 * weights;
}

static const struct engine *const engines[] = {&scaling_nccl_engine, NULL};

const struct probe probe_scaling = {
	.name = "scaling",
	.summary = "a training step on several GPUs: scaling efficiency, and the causes of lost time",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct scaling_opts)},
	.fields = scaling_fields,
	.field_count = SCALING_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = scaling_verify,
	.finish = scaling_finish,
};
