/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix plans on PyTorch's operands. */
#include "core/text/text.h"
#include "gpu/matmul/matmul.h"
#include "pairs_internal.h"

int pairs_matmul(struct pairs *p, const char *lib_path, char *text, size_t size)
{
	struct error err = {0};

	if (p->matmul)
		return 0;
	return pairs_told(matmul_open(&p->matmul, p->device, lib_path, 0, &err), &err, text, size);
}

int pairs_version(const struct pairs *p)
{
	return p->matmul ? matmul_version(p->matmul) : 0;
}

static enum status type_of(const char *name, enum matmul_type *out, struct error *err)
{
	for (int i = 0; i < MATMUL_TYPE_COUNT; i++)
		if (!strcmp(name, matmul_type_name((enum matmul_type)i))) {
			*out = (enum matmul_type)i;
			return STATUS_OK;
		}
	return error_set(err, STATUS_BAD_INPUT, "no matrix type %s", name);
}

static enum status compute_of(const char *name, enum matmul_compute *out, struct error *err)
{
	static const char *const names[] = {"fp64", "fp32", "tf32", "int32"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(name, names[i])) {
			*out = (enum matmul_compute)i;
			return STATUS_OK;
		}
	return error_set(err, STATUS_BAD_INPUT, "no compute type %s", name);
}

unsigned pairs_plan(struct pairs *p, const struct pairs_shape *s, char *text, size_t size)
{
	struct matmul_shape h = {.m = s->m,
				 .n = s->n,
				 .k = s->k,
				 .transpose_a = s->transpose_a,
				 .transpose_b = s->transpose_b,
				 .fast_accumulate = s->fast_accumulate};
	struct error err = {0};
	enum status st;

	matmul_plan_destroy(&p->plan);
	if (s->scaled)
		h.scale_a = h.scale_b = MATMUL_SCALE_TENSOR;
	st = p->matmul ? STATUS_OK : error_set(&err, STATUS_BAD_INPUT, "no matrix library was opened");
	if (!st)
		st = type_of(s->a, &h.a, &err);
	if (!st)
		st = type_of(s->b, &h.b, &err);
	if (!st)
		st = type_of(s->d, &h.d, &err);
	if (!st)
		st = compute_of(s->compute, &h.compute, &err);
	if (!st)
		st = matmul_plan_create(&p->plan, p->matmul, &h, &err);
	if (!st)
		st = matmul_plan_candidates(p->plan, s->candidates, &err);
	return pairs_told(st, &err, text, size) ? 0 : matmul_plan_count(p->plan);
}

static enum status has_plan(const struct pairs *p, struct error *err)
{
	return p->plan ? STATUS_OK : error_set(err, STATUS_BAD_INPUT, "no matrix product was planned");
}

int pairs_select(struct pairs *p, unsigned candidate, char *text, size_t size)
{
	struct matmul_description d;
	struct error err = {0};
	enum status st = has_plan(p, &err);

	if (!st)
		st = matmul_plan_select(p->plan, candidate, &err);
	if (pairs_told(st, &err, text, size))
		return 1;
	matmul_plan_describe(p->plan, candidate, &d);
	text_copy(text, size, d.name);
	return 0;
}

int pairs_run(struct pairs *p, uint64_t a, uint64_t b, uint64_t d, uint64_t scale_a, uint64_t scale_b,
	      void *stream, char *text, size_t size)
{
	struct matmul_operands o = {
		.a = a, .b = b, .d = d, .scale_a = scale_a, .scale_b = scale_b, .alpha = 1};
	struct gpu_stream s = pairs_stream(p, stream);
	struct error err = {0};
	enum status st = has_plan(p, &err);

	if (!st)
		st = matmul_plan_enqueue(p->plan, &o, &s, &err);
	return pairs_told(st, &err, text, size);
}
