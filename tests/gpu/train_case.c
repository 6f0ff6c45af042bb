/* SPDX-License-Identifier: Apache-2.0 */
/* A training kernel's case made, filled, launched and held to its reference. */
#include "cases_train.h"
#include <inttypes.h>
#include <math.h>
#include "model/tensor/tensor.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define F32_END "_f32"

static const size_t sizes[] = {2, 4, 8, 4, 1, 2, 1};
const struct tolerance train_twice_rounded = {0x1p-6, 1e-5};

uint64_t train_bytes(const struct operand *o)
{
	return (uint64_t)(o->rows * o->cols) * sizes[o->type];
}

static uint64_t elements_of(const struct operand *o)
{
	return (uint64_t)(o->shift + o->rows * o->ld);
}

struct operand *train_operand(struct train_build *b, const char *name, size_t at, enum number type,
			      int64_t rows, int64_t cols, enum use use)
{
	struct operand *o = &b->operand[b->operands++];
	const int64_t vector = 16 / (int64_t)sizes[type];

	*o = (struct operand){
		.name = name, .at = at, .type = type, .rows = rows, .cols = cols, .use = use, .width = 1};
	o->ld = cols;
	if (b->flags & TRAIN_SLICED)
		o->ld = (cols + vector - 1) / vector * vector + 2 * vector;
	if (b->flags & TRAIN_ODD) {
		o->ld = cols + 3;
		o->shift = 1;
	}
	return o;
}

void train_number(struct train_build *b, size_t at, int64_t value)
{
	memcpy(b->args + at, &value, sizeof(value));
}

/* Where its columns begin at `first`, the address is still that of column 0. */
static void point(struct train_build *b, bool host)
{
	for (int i = 0; i < b->operands; i++) {
		const struct operand *o = &b->operand[i];
		uint64_t address =
			(host ? (uintptr_t)o->host : o->device.data) + (uint64_t)o->shift * sizes[o->type];

		if (o->at != SIZE_MAX)
			memcpy(b->args + o->at, &address, sizeof(address));
	}
}

/* splitmix64: uniform in [-1, 1). */
static double uniform(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (double)(int64_t)(x ^ x >> 31) * 0x1p-63;
}

static void put(enum number type, void *to, uint64_t i, double v)
{
	switch (type) {
	case NUMBER_BF16: {
		float f = (float)v;
		uint32_t bits;

		memcpy(&bits, &f, sizeof(bits));
		((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
		return;
	}
	case NUMBER_F32:
		((float *)to)[i] = (float)v;
		return;
	case NUMBER_F64:
		((double *)to)[i] = v;
		return;
	case NUMBER_I32:
		((int32_t *)to)[i] = (int32_t)v;
		return;
	case NUMBER_I16:
		((int16_t *)to)[i] = (int16_t)(v * 32767);
		return;
	default:
		((unsigned char *)to)[i] = (unsigned char)(v * 127);
	}
}

static double get(enum number type, const void *from, uint64_t i)
{
	switch (type) {
	case NUMBER_BF16: {
		const uint32_t bits = (uint32_t)((const uint16_t *)from)[i] << 16;
		float f;

		memcpy(&f, &bits, sizeof(f));
		return (double)f;
	}
	case NUMBER_F32:
		return (double)((const float *)from)[i];
	case NUMBER_F64:
		return ((const double *)from)[i];
	case NUMBER_I32:
		return ((const int32_t *)from)[i];
	case NUMBER_I16:
		return ((const int16_t *)from)[i];
	case NUMBER_E4M3:
		return (double)e4m3_to_f32(((const unsigned char *)from)[i]);
	default:
		return ((const unsigned char *)from)[i];
	}
}

double train_before(const struct train_build *b, const char *name, int64_t row, int64_t col)
{
	for (int i = 0; i < b->operands; i++) {
		const struct operand *o = &b->operand[i];

		if (!strcmp(o->name, name))
			return get(o->type, o->before, (uint64_t)(o->shift + row * o->ld + col));
	}
	abort(); /* the case has no such operand */
}

/* Inputs are random, or what the case says; outputs, and what lies between rows, are NaN. */
static void fill(struct train_build *b, struct operand *o, uint64_t seed)
{
	memset(o->host, 0xff, elements_of(o) * sizes[o->type]);
	if (o->use == USE_OUT || o->table)
		return;
	for (int64_t row = 0; row < o->rows; row++)
		for (int64_t col = 0; col < o->cols; col++) {
			const uint64_t at = (uint64_t)(o->shift + row * o->ld + o->first + col);

			if (o->number)
				put(o->type, o->host, at, o->number(b, row * o->cols + col));
			else
				put(o->type, o->host, at,
				    o->centre + (o->width > 0 ? o->width * uniform(&seed) : 0));
		}
}

/* For timings: a stretch of random numbers, again and again. */
static void fill_fast(struct operand *o, uint64_t seed)
{
	const uint64_t all = elements_of(o), stretch = all < 1 << 20 ? all : 1 << 20;
	const size_t size = sizes[o->type];

	for (uint64_t i = 0; i < stretch; i++)
		put(o->type, o->host, i, o->centre + (o->width > 0 ? o->width * uniform(&seed) : 0));
	for (uint64_t i = stretch; i < all; i += stretch)
		memcpy(o->host + i * size, o->host, (all - i < stretch ? all - i : stretch) * size);
}

static enum status operand_ready(struct kit *k, struct train_build *b, struct operand *o, struct error *err)
{
	const uint64_t size = elements_of(o) * sizes[o->type];

	o->host = malloc(size + 16);
	if (!o->host)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for %s", o->name);
	if (b->timing && !o->number && !o->table)
		fill_fast(o, k->seed);
	else
		fill(b, o, k->seed + (uint64_t)(o - b->operand));
	return kit_alloc(k, &o->device, size, err);
}

enum status train_ready(struct kit *k, struct train_build *b, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < b->operands && !st; i++)
		st = operand_ready(k, b, &b->operand[i], err);
	if (!st && b->prepare) {
		point(b, true);
		b->prepare(b);
	}
	for (int i = 0; i < b->operands && !st; i++) {
		struct operand *o = &b->operand[i];

		if (o->table)
			o->table(b, o, false, o->host);
		st = gpu_copy_to(k->device, o->device.data, o->host, o->device.size, err);
		if (o->table)
			o->table(b, o, true, o->host);
	}
	point(b, false);
	return st;
}

enum status train_launch(struct kit *k, struct train_build *b, struct error *err)
{
	const unsigned block[3] = {b->threads, 1, 1};
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, b->file, b->c->entry, err);

	return st ? st : gpu_launch(kernel, k->stream, b->grid, block, b->shared_bytes, b->args, err);
}

void train_done(struct kit *k, struct train_build *b)
{
	for (int i = 0; i < b->operands; i++) {
		kit_free(k, &b->operand[i].device);
		free(b->operand[i].host);
		free(b->operand[i].before);
		free(b->operand[i].found);
	}
}

/* Real shapes are tested with an eighth of their rows: the references are slow, and columns are what differs.
 */
static int64_t rows_of(const struct kernel_case *c, bool timing)
{
	return !timing && c->p1 >> 24 & TRAIN_TIMED && c->p0 >= 64 ? c->p0 / 8 : c->p0;
}

/* What is BF16 becomes F32, and results may differ by F32's roundings only. */
static void become_f32(struct train_build *b)
{
	snprintf(b->f32_file, sizeof(b->f32_file), "%s_f32", b->file);
	b->file = b->f32_file;
	for (int i = 0; i < b->operands; i++) {
		struct operand *o = &b->operand[i];

		if (o->type != NUMBER_BF16)
			continue;
		o->type = NUMBER_F32;
		if (o->tolerance.relative > 0 || o->use == USE_ADDED)
			o->tolerance = (struct tolerance){2e-5, 2e-5};
	}
}

/* The maker of the first `size` characters of an entry; NULL: there is none. */
static const struct train_maker *find_maker(const char *entry, size_t size)
{
	const struct train_maker *const files[] = {makers_train_norm, makers_train_rows, makers_train_flat, makers_train_fp8,
						   makers_train_attention, makers_train_states, makers_step};

	for (size_t f = 0; f < COUNT(files); f++)
		for (const struct train_maker *m = files[f]; m->entry; m++)
			if (!strncmp(m->entry, entry, size) && !m->entry[size])
				return m;
	return NULL;
}

/* "train_swiglu_f32", a kernel for F32, is made as "train_swiglu"; "train_to_f32" has a maker of its own. */
static const struct train_maker *maker_of(const char *entry, bool *f32)
{
	const size_t length = strlen(entry), end = strlen(F32_END);
	const struct train_maker *own = find_maker(entry, length);

	*f32 = !own && length > end && !strcmp(entry + length - end, F32_END);
	return *f32 ? find_maker(entry, length - end) : own;
}

enum status train_made(struct kit *k, const struct kernel_case *c, bool timing, struct train_build *b,
		       struct error *err)
{
	bool f32;
	const struct train_maker *m = maker_of(c->entry, &f32);

	*b = (struct train_build){
		.c = c,
		.entry = m ? m->entry : c->entry,
		.f32 = f32,
		.rows = rows_of(c, timing),
		.timing = timing,
		.cols = c->p1 & 0xffffff,
		.flags = c->p1 >> 24,
		.grid = {c->blocks, 1, 1},
		.sms = gpu_sm_count(k->device),
		.shared_most = gpu_shared_most(k->device),
	};
	if (!m)
		return error_set(err, STATUS_BUG, "no case is made for %s", c->entry);
	m->make(b);
	if (c->blocks)
		b->grid[0] = c->blocks;
	if (f32)
		become_f32(b);
	return STATUS_OK;
}

/* What one operand was, should be and is. */
struct outcome {
	const struct train_build *b;
	const struct operand *o;
	double rms;
	uint64_t differ, outliers, all;
};

/* A walk over a buffer's elements, in the order of addresses. */
struct walk {
	uint64_t i;  /* element of the buffer */
	int64_t col; /* of the matrix; below 0 before its begin */
};

static bool walk_written(const struct operand *o, const struct walk *w)
{
	return o->use != USE_IN && w->col >= o->first && w->col < o->first + o->cols;
}

static void walk_on(const struct operand *o, struct walk *w)
{
	w->i++;
	if (++w->col == o->ld)
		w->col = 0;
}

static double rms_of(const struct operand *o)
{
	double sum = 0;
	uint64_t count = 0;

	for (struct walk w = {0, -o->shift}; w.i < elements_of(o); walk_on(o, &w))
		if (walk_written(o, &w)) {
			double v = get(o->type, o->host, w.i);

			sum += v * v;
			count++;
		}
	return count ? sqrt(sum / (double)count) : 0;
}

static enum status wrong(const struct outcome *r, uint64_t i, const char *what, double expected,
			 struct error *err)
{
	const int64_t at = (int64_t)i - r->o->shift;

	return error_set(err, STATUS_MISMATCH, "%s (%" PRId64 ", %" PRId64 ") is %.9g, %s %.9g", r->o->name,
			 at >= 0 ? at / r->o->ld : -1, at >= 0 ? at % r->o->ld : at,
			 get(r->o->type, r->o->found, i), what, expected);
}

static double allowed(const struct outcome *r, double expected)
{
	return r->o->tolerance.relative * fabs(expected) + r->o->tolerance.of_rms * r->rms;
}

static double cancelled(const struct outcome *r, uint64_t i)
{
	const int64_t at = (int64_t)i - r->o->shift;

	return r->o->cancels ? r->o->cancels(r->b, at / r->o->ld, at % r->o->ld) : 0;
}

static enum status check_element(struct outcome *r, const struct walk *w, struct error *err)
{
	const struct operand *o = r->o;
	const size_t size = sizes[o->type];
	const uint64_t i = w->i;
	const bool same = !memcmp(r->o->found + i * size, o->host + i * size, size);
	double expected, found;

	if (!walk_written(o, w))
		return memcmp(r->o->found + i * size, r->o->before + i * size, size)
			       ? wrong(r, i, "and was not to be touched:", get(o->type, r->o->before, i), err)
			       : STATUS_OK;
	expected = get(o->type, o->host, i);
	found = get(o->type, r->o->found, i);
	r->all++;
	r->differ += !same && !(fabs(found - expected) <= 1e-4 * r->rms);
	if (same || fabs(found - expected) <= allowed(r, expected))
		return STATUS_OK;
	if (fabs(found - expected) <= allowed(r, expected) + cancelled(r, i))
		return STATUS_OK;
	if (o->outliers > 0 && isfinite(found) && ++r->outliers <= 2 + (uint64_t)(o->outliers * (double)(o->rows * o->cols)))
		return STATUS_OK;
	return wrong(r, i, "the reference has", expected, err);
}

/* o->host holds the reference's result. */
static enum status check_operand(struct kit *k, const struct train_build *b, const struct operand *o,
				 struct error *err)
{
	struct outcome r = {.b = b, .o = o, .rms = rms_of(o)};
	enum status st = STATUS_OK;

	for (struct walk w = {0, -o->shift}; w.i < elements_of(o) && !st; walk_on(o, &w))
		st = check_element(&r, &w, err);
	if (!st && (o->type == NUMBER_BF16 || o->type == NUMBER_BYTE) && r.differ > r.all / 100 + 2)
		st = error_set(err, STATUS_MISMATCH,
			       "%s: %" PRIu64 " of %" PRIu64 " elements are rounded otherwise", o->name,
			       r.differ, r.all);
	return st ? st : kit_guards(k, &o->device, o->name, err);
}

static enum status compared(struct kit *k, struct train_build *b, struct error *err)
{
	const struct ref_grid grid = {b->grid[0] * b->grid[1] * b->grid[2], b->threads};
	enum status st = STATUS_OK;

	point(b, true);
	if (!ref_run(b->c->entry, grid, b->args))
		return error_set(err, STATUS_BUG, "%s has no reference", b->c->entry);
	for (int i = 0; i < b->operands && !st; i++)
		if (!b->operand[i].table)
			st = check_operand(k, b, &b->operand[i], err);
	return st;
}

/* Launches on what all operands began with, and takes the results home. */
static enum status launched(struct kit *k, struct train_build *b, struct error *err)
{
	enum status st = train_launch(k, b, err);

	if (!st)
		st = gpu_stream_wait(k->stream, err);
	for (int i = 0; i < b->operands && !st; i++) {
		struct operand *o = &b->operand[i];

		o->found = malloc(o->device.size + 16);
		o->before = malloc(o->device.size + 16);
		if (!o->found || !o->before)
			return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
		memcpy(o->before, o->host, o->device.size);
		st = gpu_copy_from(k->device, o->found, o->device.data, o->device.size, err);
	}
	return st;
}

/* The same launch on the same numbers leaves the same bits. */
static enum status again(struct kit *k, struct train_build *b, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < b->operands && !st; i++)
		if (b->operand[i].use != USE_IN)
			st = gpu_copy_to(k->device, b->operand[i].device.data, b->operand[i].before,
					 b->operand[i].device.size, err);
	if (!st)
		st = train_launch(k, b, err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	for (int i = 0; i < b->operands && !st; i++) {
		struct operand *o = &b->operand[i];

		if (o->use == USE_IN)
			continue;
		st = gpu_copy_from(k->device, o->host, o->device.data, o->device.size, err);
		if (!st && memcmp(o->host, o->found, o->device.size))
			st = error_set(err, STATUS_MISMATCH, "%s differs from run to run", o->name);
		memcpy(o->host, o->before, o->device.size);
	}
	return st;
}

enum status train_one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct train_build b;
	enum status st = train_made(k, c, false, &b, err);

	if (!st)
		st = train_ready(k, &b, err);
	if (!st)
		st = launched(k, &b, err);
	if (!st)
		st = again(k, &b, err);
	if (!st)
		st = compared(k, &b, err);
	train_done(k, &b);
	return st;
}
