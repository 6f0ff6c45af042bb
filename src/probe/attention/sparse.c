/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `sparse` of probe attention: this program's block-sparse kernels (gpu/attention/own_block_sparse.h).
 * The lists of a pattern are made on the device, timed separately, and compared with the lists that the case
 * made on the host. Lists of a file come from the case.
 */
#include "gpu/attention/own_block_sparse.h"
#include <math.h>
#include <stdlib.h>
#include "kernel/attention/sparse/make_lists.h"
#include "probe/attention/device.h"

enum { BUILDS = 5 }; /* the result is the median of their times */

struct attention_sparse_engine {
	struct attention_device device;
	struct attention_sparse *sparse;
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct attention_opts *o = opts;
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;
	struct attention_case c;
	enum status st;

	if (attention_device_check_options(o, err))
		return STATUS_UNSUPPORTED;
	if (o->pattern == ATTENTION_LISTS_NONE)
		return attention_device_refuse(err, "engine sparse needs block lists; set option pattern");
	if (o->search != ATTENTION_SEARCH_FIRST)
		return attention_device_refuse(
			err, "engine sparse has one kernel per case, so it supports only search=first");
	if (cc > 0 && cc < 80)
		return attention_device_refuse(err, "engine sparse needs sm_80 or newer");
	st = attention_case_describe(&c, o, err);
	if (st)
		return st;
	st = attention_sparse_supports(&c.problem, c.blocks ? c.blocks->q_block : o->block_q,
				       c.blocks ? c.blocks->k_block : o->block_k, err);
	attention_case_release(&c);
	return st;
}

static enum status attend(struct attention_device *s, const struct attention_operands *o, struct error *err)
{
	return attention_sparse_enqueue(((struct attention_sparse_engine *)s)->sparse, o, s->stream, err);
}

/* -- lists -- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static enum status build_once(struct attention_sparse_engine *s, struct gpu_event *const e[2], double *ns,
			      struct error *err)
{
	const struct attention_operands starts = {.q_starts = s->device.starts,
						  .kv_starts = s->device.starts};
	enum status st = gpu_event_record(e[0], s->device.stream, err);

	if (!st)
		st = attention_sparse_build(s->sparse, &starts, s->device.stream, err);
	if (!st)
		st = gpu_event_record(e[1], s->device.stream, err);
	if (!st)
		st = gpu_event_wait(e[1], err);
	return st ? st : gpu_event_elapsed_ns(e[0], e[1], ns, err);
}

/* The first build loads the kernels, so its time does not count. */
static enum status build(struct attention_sparse_engine *s, struct error *err)
{
	struct gpu_event *e[2] = {NULL, NULL};
	double ns[BUILDS] = {0}, first;
	enum status st = gpu_event_create(s->device.device, &e[0], err);

	if (!st)
		st = gpu_event_create(s->device.device, &e[1], err);
	if (!st)
		st = build_once(s, e, &first, err);
	for (int i = 0; i < BUILDS && !st; i++)
		st = build_once(s, e, &ns[i], err);
	gpu_event_destroy(&e[0]);
	gpu_event_destroy(&e[1]);
	qsort(ns, BUILDS, sizeof(ns[0]), by_value);
	s->device.common.c.build_s = ns[BUILDS / 2] * 1e-9;
	return st;
}

static struct attention_sparse_how how_of(const struct attention_opts *o, const struct attention_blocks *l)
{
	static const enum lists_source source[] = {
		[ATTENTION_LISTS_STRIDED] = LISTS_STRIDED,
		[ATTENTION_LISTS_RANDOM] = LISTS_RANDOM,
		[ATTENTION_LISTS_FILE] = LISTS_ALL, /* not used */
	};
	long stride = lrint(1 / o->density);

	return (struct attention_sparse_how){
		.source = source[o->pattern],
		.k_block = l->k_block,
		.batches = l->batches,
		.heads = l->heads,
		.stride = stride > 0 ? (uint32_t)stride : 1,
		.density = o->density,
		.seed = o->seed,
	};
}

static enum status lists(struct attention_sparse_engine *s, const struct attention_opts *o, struct error *err)
{
	const struct attention_blocks *l = s->device.common.c.blocks;
	const struct attention_sparse_lists host = {l->full_begin, l->full, l->partial_begin, l->partial};
	enum status st;

	if (o->pattern == ATTENTION_LISTS_FILE)
		return attention_sparse_put(s->sparse, &host, s->device.stream, err);
	st = build(s, err);
	return st ? st : attention_sparse_compare(s->sparse, &host, err);
}

/* -- begin and end -- */

static void report(const struct attention_sparse_engine *s, struct result *out)
{
	result_text(out, &attention_fields[ATTENTION_FIELD_kernel], attention_sparse_kernel(s->sparse));
	attention_report(&s->device.common, out);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct attention_sparse_engine *s = state;
	const struct attention_opts *o = opts;
	const struct attention_case *c = &s->device.common.c;
	struct attention_sparse_how how;
	enum status st = attention_device_begin(&s->device, b, o, attend, err);

	if (st)
		return st;
	how = how_of(o, c->blocks);
	st = attention_sparse_create(&s->sparse, b->device, &c->problem, &how, err);
	if (!st)
		st = attention_device_fill(&s->device, err);
	if (!st)
		st = lists(s, o, err);
	if (!st && b->out)
		report(s, b->out);
	return st;
}

static void release(void *state)
{
	struct attention_sparse_engine *s = state;

	attention_sparse_destroy(&s->sparse);
	attention_device_end(&s->device);
}

const struct engine attention_sparse_engine = {
	.name = "sparse",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 1,
	.state_size = sizeof(struct attention_sparse_engine),
	.supports = supports,
	.prepare = prepare,
	.enqueue = attention_device_enqueue,
	.release = release,
};
