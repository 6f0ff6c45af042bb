/* SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"
#include "core/text.h"
#include "gpu/gpu.h"
#include "gpu/internal.h"
#include "gpu/matmul.h"

struct pairs {
	struct gpu_device *device;
	struct matmul *matmul;
	struct matmul_plan *plan;
};

static int told(const struct error *err, char *text, size_t size)
{
	text_copy(text, size, err->text);
	return 1;
}

struct pairs *pairs_open(const char *lib_path, const char *pci, char *text, size_t size)
{
	struct pairs *p = calloc(1, sizeof(*p));
	struct error err = {0};
	enum status st;

	if (!p)
		return NULL;
	st = gpu_open(&p->device, pci, &err);
	if (!st)
		st = matmul_open(&p->matmul, p->device, lib_path, 0, &err);
	if (st) {
		told(&err, text, size);
		pairs_close(p);
		return NULL;
	}
	return p;
}

void pairs_close(struct pairs *p)
{
	if (!p)
		return;
	matmul_plan_destroy(&p->plan);
	matmul_close(&p->matmul);
	gpu_close(&p->device);
	free(p);
}

int pairs_version(const struct pairs *p)
{
	return matmul_version(p->matmul);
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
	if (st) {
		told(&err, text, size);
		return 0;
	}
	return matmul_plan_count(p->plan);
}

int pairs_select(struct pairs *p, unsigned candidate, char *text, size_t size)
{
	struct matmul_description d;
	struct error err = {0};

	if (matmul_plan_select(p->plan, candidate, &err))
		return told(&err, text, size);
	matmul_plan_describe(p->plan, candidate, &d);
	text_copy(text, size, d.name);
	return 0;
}

int pairs_run(struct pairs *p, uint64_t a, uint64_t b, uint64_t d, uint64_t scale_a, uint64_t scale_b,
	      void *stream, char *text, size_t size)
{
	struct matmul_operands o = {
		.a = a, .b = b, .d = d, .scale_a = scale_a, .scale_b = scale_b, .alpha = 1};
	struct gpu_stream s = {.raw = stream, .device = p->device};
	struct error err = {0};

	return matmul_plan_enqueue(p->plan, &o, &s, &err) ? told(&err, text, size) : 0;
}
