/* SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"
#include "core/text.h"
#include "gpu/gpu.h"
#include "gpu/internal.h"
#include "gpu/matmul.h"
#include "kernel/empty.h"
#include <time.h>

struct pairs {
	struct gpu_device *device;
	struct matmul *matmul;
	struct matmul_plan *plan;
	struct gpu_stamps *stamps[PAIRS_SLOTS]; /* made when first asked for */
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
	for (unsigned i = 0; i < PAIRS_SLOTS; i++)
		gpu_stamps_destroy(&p->stamps[i]);
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

int pairs_stamp(struct pairs *p, unsigned slot, unsigned which, void *stream, char *text, size_t size)
{
	struct gpu_stream s = {.raw = stream, .device = p->device};
	struct error err = {0};
	enum status st = STATUS_OK;

	if (slot >= PAIRS_SLOTS || which > 1)
		st = error_set(&err, STATUS_BAD_INPUT, "no stamp %u of slot %u", which, slot);
	if (!st && !p->stamps[slot])
		st = gpu_stamps_create(p->device, &p->stamps[slot], &err);
	if (!st)
		st = gpu_stamps_enqueue(p->stamps[slot], which, &s, &err);
	return st ? told(&err, text, size) : 0;
}

int pairs_clock(struct pairs *p, unsigned slot, double *hz, char *text, size_t size)
{
	struct gpu_clock clock = {0};
	struct error err = {0};
	enum status st;

	if (slot >= PAIRS_SLOTS || !p->stamps[slot])
		st = error_set(&err, STATUS_BAD_INPUT, "slot %u has no stamps", slot);
	else
		st = gpu_stamps_read(p->stamps[slot], &clock, &err);
	*hz = clock.hz_mean;
	return st ? told(&err, text, size) : 0;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int pairs_launches(struct pairs *p, void *stream, unsigned count, double *ns, char *text, size_t size)
{
	enum { WAIT_EVERY = 256 }; /* well below what the driver queues before it makes a launch wait */
	struct gpu_stream s = {.raw = stream, .device = p->device};
	struct gpu_kernel *empty;
	struct error err = {0};
	enum status st = gpu_kernel(p->device, &empty, "empty", "empty", &err);

	for (unsigned i = 0; i < count && !st; i++) {
		double from = now_ns();

		st = gpu_launch_1d(empty, &s, 1, 32, 0, &(struct empty_args){0}, &err);
		ns[i] = now_ns() - from;
		if (!st && i % WAIT_EVERY == WAIT_EVERY - 1)
			st = gpu_stream_wait(&s, &err);
	}
	if (!st)
		st = gpu_stream_wait(&s, &err);
	return st ? told(&err, text, size) : 0;
}
