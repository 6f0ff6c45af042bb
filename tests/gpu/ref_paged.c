/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/paged/attention.h in double, by the definition: a column at a time, whatever units its keys are divided into. */
#include "kernel/paged/attention.h"
#include "kernel/paged/copy.h"
#include "kernel/paged/tiles.h"
#include "ref.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_DIM_MOST = 128 };

static double bf16(const uint16_t *p)
{
	uint32_t bits = (uint32_t)*p << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

static uint16_t to_bf16(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static double e4m3(uint8_t code)
{
	const int exponent = code >> 3 & 15, mantissa = code & 7;
	const double v = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);

	return (code & 0x7f) == 0x7f ? NAN : code & 0x80 ? -v : v;
}

struct caller {
	const struct paged_attention_args *a;
	int64_t dim;
	bool e4m3;
};

/* A row of keys (plane 0) or values (plane 1). `numbers` are those of the 256 codes. */
static void cached(const struct caller *c, const struct paged_unit *u, int64_t key, int plane, const double *numbers, double *to)
{
	const struct paged_attention_args *a = c->a;
	const int32_t *page = (const int32_t *)(uintptr_t)a->page + u->page;
	const uint64_t row = ((uint64_t)page[key >> a->page_bits] << a->page_bits) +
			     ((uint64_t)key & ((1u << a->page_bits) - 1));
	const uint64_t head = u->kv_head + (uint64_t)plane * a->kv_heads, at = row * a->ld_kv + head * (uint64_t)c->dim;

	for (int64_t d = 0; d < c->dim; d++)
		to[d] = c->e4m3 ? numbers[((const uint8_t *)(uintptr_t)a->kv)[at + (uint64_t)d]] *
					  (double)((const float *)(uintptr_t)a->scale)[paged_scale_at(row, (uint32_t)head, a->ld_scale, a->page_bits)]
				: bf16((const uint16_t *)(uintptr_t)a->kv + at + d);
}

/* [2][keys][dim] keys, then values of a unit's sequence and KV head. Owner: caller. */
static double *cache_of(const struct caller *c, const struct paged_unit *u, int64_t keys)
{
	double *kv = malloc((size_t)(2 * keys * c->dim) * sizeof(double)), numbers[256];

	if (!kv)
		abort();
	for (int i = 0; i < 256; i++)
		numbers[i] = e4m3((uint8_t)i);
	for (int64_t i = 0; i < 2 * keys; i++)
		cached(c, u, i % keys, i >= keys, numbers, kv + i * c->dim);
	return kv;
}

static void column(const struct caller *c, const struct paged_unit *u, uint32_t col, const double *kv, int64_t held)
{
	const struct paged_attention_args *a = c->a;
	const uint64_t row = (uint64_t)u->row + col / a->group, head = u->kv_head * a->group + col % a->group;
	const uint16_t *from = (const uint16_t *)(uintptr_t)a->q + row * a->ld_q + head * (uint64_t)c->dim;
	uint16_t *to = (uint16_t *)(uintptr_t)a->o + row * a->ld_o + head * (uint64_t)c->dim;
	const int64_t keys = u->position + (int64_t)(col / a->group) + 1;
	double *s = malloc((size_t)keys * sizeof(double)), q[HEAD_DIM_MOST], o[HEAD_DIM_MOST] = {0}, top = -INFINITY, sum = 0;

	if (!s)
		abort();
	for (int64_t d = 0; d < c->dim; d++)
		q[d] = bf16(from + d) * (double)a->scale_log2;
	for (int64_t j = 0; j < keys; j++) {
		s[j] = 0;
		for (int64_t d = 0; d < c->dim; d++)
			s[j] += q[d] * kv[j * c->dim + d];
		top = fmax(top, s[j]);
	}
	for (int64_t j = 0; j < keys; j++) {
		const double e = exp2(s[j] - top);

		sum += e;
		for (int64_t d = 0; d < c->dim; d++)
			o[d] += e * kv[(held + j) * c->dim + d];
	}
	for (int64_t d = 0; d < c->dim; d++)
		to[d] = to_bf16(o[d] / sum);
	free(s);
}

/* Columns col .. end - 1. */
static void columns(const struct caller *c, const struct paged_unit *u, uint32_t col, uint32_t end)
{
	const int64_t keys = u->position + (int64_t)((end - 1) / c->a->group) + 1;
	double *kv = cache_of(c, u, keys);

	for (; col < end; col++)
		column(c, u, col, kv, keys);
	free(kv);
}

static void run(const char *entry, struct ref_grid grid, const void *args)
{
	const struct paged_attention_args *a = args;
	const struct caller c = {a, strstr(entry, "d128") ? 128 : 64, strstr(entry, "e4m3")};
	const struct paged_unit *unit = (const struct paged_unit *)(uintptr_t)a->unit;
	const uint32_t *block = (const uint32_t *)(uintptr_t)a->block;

	for (uint32_t i = block[0]; i < block[grid.blocks]; i++)
		if (unit[i].part == 0)
			columns(&c, &unit[i], unit[i].col, unit[i].col + unit[i].cols);
}

/* Tiles, as units of one query head. */
static void run_tiles(const char *entry, struct ref_grid grid, const void *args)
{
	struct paged_tiles_args copy; /* aligned, as the driver's own copy is */
	const struct paged_tiles_args *t = memcpy(&copy, args, sizeof(copy));
	const int64_t dim = strstr(entry, "d128") ? 128 : 64;
	const uint32_t kv_heads = t->dense.kv_heads, group = t->dense.heads / kv_heads;
	struct paged_attention_args a = {
		.o = t->dense.o,
		.ld_q = t->dense.q_map.opaque[5] / 2,
		.ld_o = (uint64_t)t->dense.o_step.row,
		.ld_kv = t->dense.k_map.opaque[5] / 2,
		.group = group,
		.kv_heads = kv_heads,
		.page_bits = 30, /* all keys of a sequence are in its page 0 */
		.scale_log2 = t->dense.scale_log2,
	};
	const struct caller c = {&a, dim, false};
	const struct paged_tile *tile = (const struct paged_tile *)(uintptr_t)t->tile;
	const int32_t first_page = 0, *page = &first_page;
	uint64_t copy_at, keys_at;

	(void)grid;
	memcpy(&a.q, &t->dense.q_map.opaque[0], sizeof(a.q));
	memcpy(&copy_at, &t->dense.k_map.opaque[0], sizeof(copy_at));
	memcpy(&a.page, &page, sizeof(a.page));
	for (uint32_t i = 0; i < t->count; i++, tile++) {
		const struct paged_unit u = {.row = tile->row,
					     .position = tile->keys - tile->rows,
					     .kv_head = (uint16_t)(tile->head / group)};
		const int32_t whole = tile->first * 64 + PAGED_TILES_ROWS(dim), end = whole < tile->rows ? whole : tile->rows;
		double *kv;

		keys_at = copy_at + tile->key * a.ld_kv * 2;
		memcpy(&a.kv, &keys_at, sizeof(a.kv));
		kv = cache_of(&c, &u, u.position + end);
		for (int32_t row = tile->first * 64; row < end; row++)
			column(&c, &u, (uint32_t)row * group + tile->head % group, kv, u.position + end);
		free(kv);
	}
}

/* A position of the copy that the sequence has. */
static void copy_row(const struct paged_copy_args *a, bool narrow, const double *numbers, uint64_t row, uint16_t *to)
{
	const float *scale = (const float *)(uintptr_t)a->scale;

	for (uint32_t i = 0; i < a->columns; i++) {
		const uint64_t at = row * a->ld_kv + i;

		to[i] = narrow ? to_bf16((double)((float)numbers[((const uint8_t *)(uintptr_t)a->kv)[at]] *
						  scale[paged_scale_at(row, i >> a->head_bits, a->ld_scale, a->page_bits)]))
			       : ((const uint16_t *)(uintptr_t)a->kv)[at];
	}
}

static void run_copy(const char *entry, struct ref_grid grid, const void *args)
{
	const struct paged_copy_args *a = args;
	const struct paged_block *block = (const struct paged_block *)(uintptr_t)a->block;
	double numbers[256];

	(void)grid;
	for (int i = 0; i < 256; i++)
		numbers[i] = e4m3((uint8_t)i);
	for (uint64_t i = 0; i < (uint64_t)a->blocks << a->block_bits; i++) {
		const struct paged_block b = block[i >> a->block_bits];
		const uint32_t key = i & ((1u << a->block_bits) - 1);
		const int32_t *page = (const int32_t *)(uintptr_t)a->page + b.page;
		uint16_t *to = (uint16_t *)(uintptr_t)a->copy + i * a->ld_copy;

		if (key < b.keys)
			copy_row(a, strstr(entry, "e4m3"), numbers,
				 ((uint64_t)page[key >> a->page_bits] << a->page_bits) + (key & ((1u << a->page_bits) - 1)), to);
		else
			memset(to, 0, a->columns * sizeof(*to));
	}
}

const struct ref_row ref_paged[] = {
	{"paged_bf16_", run, sizeof(struct paged_attention_args), offsetof(struct paged_attention_args, o)},
	{"paged_e4m3_", run, sizeof(struct paged_attention_args), offsetof(struct paged_attention_args, o)},
	{"paged_copy_", run_copy, sizeof(struct paged_copy_args), offsetof(struct paged_copy_args, copy)},
	{"tiles_bf16_", run_tiles, sizeof(struct paged_tiles_args), offsetof(struct paged_tiles_args, dense.o)},
	{NULL, NULL, 0, 0},
};
