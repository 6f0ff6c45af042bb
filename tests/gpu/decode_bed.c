/* SPDX-License-Identifier: Apache-2.0 */
#include "decode_bed.h"
#include "core/math/random.h"
#include "ref.h"
#include "ref_number.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define E4M3_SCALE 400 /* of random numbers */

static float from_bf16(uint16_t bits)
{
	uint32_t word = (uint32_t)bits << 16;
	float f;

	memcpy(&f, &word, sizeof(f));
	return f;
}

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static uint64_t reserve(struct decode_bed *b, uint64_t bytes, struct decode_region r)
{
	r.at = b->size;
	if (b->regions == sizeof(b->region) / sizeof(b->region[0]))
		abort();
	b->region[b->regions++] = r;
	b->size += (bytes + 15) / 16 * 16;
	return r.at;
}

uint64_t decode_bed_random(struct decode_bed *b, uint64_t count, float scale, float centre, bool bf16)
{
	const uint64_t bytes = count * (bf16 ? 2 : 4);

	return reserve(b, bytes,
		       (struct decode_region){
			       .count = bytes, .random = true, .bf16 = bf16, .scale = scale, .centre = centre});
}

uint64_t decode_bed_e4m3(struct decode_bed *b, uint64_t count)
{
	return reserve(b, count, (struct decode_region){.count = count, .random = true, .e4m3 = true, .scale = E4M3_SCALE});
}

uint64_t decode_bed_out(struct decode_bed *b, uint64_t count, double most, unsigned width)
{
	return reserve(b, count * width,
		       (struct decode_region){.count = count, .kind = width == 2 ? BED_BF16 : BED_F32, .most = most});
}

uint64_t decode_bed_zeros(struct decode_bed *b, uint64_t bytes)
{
	return reserve(b, bytes, (struct decode_region){.count = bytes});
}

uint64_t decode_bed_scratch(struct decode_bed *b, uint64_t bytes)
{
	return reserve(b, bytes, (struct decode_region){.count = bytes, .kind = BED_SCRATCH});
}

uint32_t decode_pages_rows(const struct decode_pages *p)
{
	enum { SPARE = 3 };

	return (((p->keys - 1) >> p->bits) + 1 + SPARE) << p->bits;
}

uint64_t decode_bed_cache(struct decode_bed *b, const struct decode_pages *p, uint64_t row)
{
	const uint64_t count = decode_pages_rows(p) * row;

	return reserve(b, count * sizeof(uint16_t),
		       (struct decode_region){
			       .count = count, .kind = BED_BF16, .random = true, .bf16 = true, .scale = 1, .most = 1e-2});
}

uint64_t decode_bed_table(struct decode_bed *b, const struct decode_pages *p)
{
	return decode_bed_zeros(b, (((p->keys - 1) >> p->bits) + 1) * sizeof(int32_t));
}

/* The row of a position; UINT32_MAX: the sequence has none there yet. */
static uint32_t written_row(const struct decode_pages *p, const int32_t *page, uint32_t position)
{
	return position < p->keys - p->count ? ((uint32_t)page[position >> p->bits] << p->bits) + position % (1u << p->bits)
					     : UINT32_MAX;
}

void decode_bed_set_pages(const struct decode_bed *b, const struct decode_pages *p, uint64_t table, const uint64_t *cache,
			  uint32_t caches, uint64_t row)
{
	const uint32_t rows = decode_pages_rows(p), pages = rows >> p->bits, used = ((p->keys - 1) >> p->bits) + 1;
	int32_t *page = (int32_t *)(b->host + table), *order = calloc(pages, sizeof(*order));
	bool *written = calloc(rows, sizeof(*written));

	if (!order || !written)
		abort();
	for (uint32_t i = 0; i < pages; i++)
		order[i] = (int32_t)i;
	for (uint32_t i = pages - 1; i > 1; i--) { /* page 0 stays nobody's */
		const uint32_t j = 1 + random_u32(b->seed, 999, i) % i;
		const int32_t other = order[i];

		order[i] = order[j];
		order[j] = other;
	}
	memcpy(page, order + 1, used * sizeof(*page));
	for (uint32_t i = 0; i < p->keys - p->count; i++)
		written[written_row(p, page, i)] = true;
	for (uint32_t c = 0; c < caches; c++)
		for (uint32_t i = 0; i < rows; i++)
			if (!written[i])
				memset(b->host + cache[c] + i * row * sizeof(uint16_t), 0xff, row * sizeof(uint16_t));
	free(order);
	free(written);
}

static void fill(const struct decode_bed *b, int index)
{
	const struct decode_region *r = &b->region[index];
	/* of what `count` counts */
	const uint64_t width = r->kind != BED_SAME || r->e4m3 ? 1 : r->bf16 ? 2 : 4;

	for (uint64_t i = 0; r->random && i < r->count / width; i++) {
		float v = r->centre + r->scale * random_f32(b->seed, (uint32_t)index, i);

		if (r->e4m3)
			ref_number_store(ATTENTION_E4M3, b->host + r->at, i, (double)v);
		else if (r->bf16)
			((uint16_t *)(b->host + r->at))[i] = to_bf16(v);
		else
			((float *)(b->host + r->at))[i] = v;
	}
}

enum status decode_bed_open(struct decode_bed *b, struct kit *k, struct error *err)
{
	enum status st;

	b->host = calloc(b->size, 1);
	if (!b->host)
		return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	for (int i = 0; i < b->regions; i++)
		fill(b, i);
	st = kit_alloc(k, &b->device, b->size, err);
	return st ? st : decode_bed_copy(b, k, err);
}

enum status decode_bed_copy(const struct decode_bed *b, struct kit *k, struct error *err)
{
	return gpu_copy_to(k->device, b->device.data, b->host, b->size, err);
}

static double number(const uint8_t *p, enum decode_bed_kind kind, uint64_t i)
{
	return kind == BED_BF16 ? (double)from_bf16(((const uint16_t *)p)[i]) : (double)((const float *)p)[i];
}

static enum status compare_numbers(const struct decode_region *r, const uint8_t *found, const uint8_t *expected,
				   const char *what, int index, struct error *err)
{
	double largest = 0;

	for (uint64_t i = 0; i < r->count; i++)
		largest = fmax(largest, fabs(number(expected, r->kind, i)));
	for (uint64_t i = 0; i < r->count; i++) {
		const double f = number(found, r->kind, i), e = number(expected, r->kind, i);

		if (isnan(f) && isnan(e)) /* a row that nobody may write */
			continue;
		if (!(fabs(f - e) <= r->most * largest))
			return error_set(err, STATUS_MISMATCH, "%s: place %d, element %" PRIu64 " of %" PRIu64
					 " is %.9g, the reference has %.9g (largest %.3g)",
					 what, index, i, r->count, f, e, largest);
	}
	return STATUS_OK;
}

enum status decode_bed_compare(struct decode_bed *b, struct kit *k, const char *what, struct error *err)
{
	uint8_t *found = malloc(b->size);
	enum status st = found ? gpu_copy_from(k->device, found, b->device.data, b->size, err)
			       : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	for (int i = 0; !st && i < b->regions; i++) {
		const struct decode_region *r = &b->region[i];

		if (r->kind == BED_SAME && memcmp(found + r->at, b->host + r->at, r->count))
			st = error_set(err, STATUS_MISMATCH, "%s: place %d, which should be as in the reference, is not", what,
				       i);
		else if (r->kind != BED_SAME && r->kind != BED_SCRATCH)
			st = compare_numbers(r, found + r->at, b->host + r->at, what, i, err);
	}
	if (!st)
		st = kit_guards(k, &b->device, what, err);
	free(found);
	return st;
}

void decode_bed_close(struct decode_bed *b, struct kit *k)
{
	kit_free(k, &b->device);
	free(b->host);
	b->host = NULL;
}

static const struct decode_bed_model models[DECODE_BED_MODELS] = {
#define TINY                                                                                                 \
	.hidden = 96, .layers = 3, .heads = 6, .kv_heads = 2, .head_dim = 64, .ffn = 160, .vocab = 320
	[DECODE_BED_TINY] = {TINY, .qkv_bias = true, .page_bits = 4},
	[DECODE_BED_TINY_QWEN3] = {TINY, .qk_norm = true, .tied = true, .page_bits = 5},
	[DECODE_BED_TINY_LORA] = {TINY, .rank = 8, .page_bits = 6},
	[DECODE_BED_TINY_E4M3] = {TINY, .qkv_bias = true, .page_bits = 4, .e4m3 = true},
#define SMALL                                                                                                \
	.hidden = 576, .layers = 4, .heads = 9, .kv_heads = 3, .head_dim = 64, .ffn = 1536, .vocab = 4096, .tied = true
	[DECODE_BED_SMALL] = {SMALL, .page_bits = 4},
	[DECODE_BED_SMALL_E4M3] = {SMALL, .page_bits = 4, .e4m3 = true},
};

static uint32_t qkv_rows(const struct decode_bed_model *m)
{
	return (m->heads + 2 * m->kv_heads) * m->head_dim;
}

/* A map's columns, rows, adapters and where their rows begin. */
struct map_size {
	uint32_t in, out, adapters, begin[DECODE_ADAPTERS + 1];
};

static void sizes_of(const struct decode_bed_model *m, struct map_size s[4])
{
	const uint32_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;

	s[0] = (struct map_size){m->hidden, q + 2 * kv, 3, {0, q, q + kv, q + 2 * kv}};
	s[1] = (struct map_size){q, m->hidden, 1, {0, m->hidden}};
	s[2] = (struct map_size){m->hidden, 2 * m->ffn, 2, {0, m->ffn, 2 * m->ffn}};
	s[3] = (struct map_size){m->ffn, m->hidden, 1, {0, m->hidden}};
}

static struct decode_pages pages_of(const struct decode_bed_model *m)
{
	return (struct decode_pages){.bits = m->page_bits, .keys = m->before + m->count, .count = m->count};
}

static uint64_t row_of(const struct decode_bed_model *m)
{
	return (uint64_t)2 * m->kv_heads * m->head_dim;
}

static void place_layer(struct decode_bed *b, const struct decode_bed_model *m, struct decode_bed_layer *l)
{
	const struct decode_pages pages = pages_of(m);
	struct map_size s[4];

	sizes_of(m, s);
	for (int i = 0; i < 4; i++) {
		const float scale = 2 / sqrtf((float)s[i].in);

		if (m->e4m3) {
			l->w[i] = decode_bed_e4m3(b, (uint64_t)s[i].in * s[i].out);
			l->w_scale[i] = decode_bed_random(b, s[i].out, scale / 2 / E4M3_SCALE, scale / E4M3_SCALE, false);
		} else {
			l->w[i] = decode_bed_random(b, (uint64_t)s[i].in * s[i].out, scale, 0, true);
		}
		l->a[i] = decode_bed_random(b, (uint64_t)s[i].adapters * m->rank * s[i].in, scale, 0, true);
		for (uint32_t j = 0; j < s[i].adapters; j++)
			l->b[i][j] = decode_bed_random(b, (uint64_t)(s[i].begin[j + 1] - s[i].begin[j]) * m->rank, 0.3f, 0,
						       true);
	}
	l->bias = decode_bed_random(b, qkv_rows(m), 0.5f, 0, true);
	l->norm1 = decode_bed_random(b, m->hidden, 0.3f, 1, true);
	l->norm2 = decode_bed_random(b, m->hidden, 0.3f, 1, true);
	l->q_norm = decode_bed_random(b, m->head_dim, 0.3f, 1, true);
	l->k_norm = decode_bed_random(b, m->head_dim, 0.3f, 1, true);
	l->kv = decode_bed_cache(b, &pages, row_of(m));
}

void decode_bed_model(struct decode_bed *b, struct decode_bed_model *m, unsigned which, uint32_t before, uint32_t count)
{
	struct decode_pages pages;
	double most; /* a vector in FP16 makes more numbers of the cache round the other way */

	*m = models[which];
	most = m->e4m3 ? 6e-3 : 2e-3;
	m->before = before;
	m->count = count;
	pages = pages_of(m);
	for (uint32_t i = 0; i < m->layers; i++)
		place_layer(b, m, &m->layer[i]);
	m->embed = decode_bed_random(b, (uint64_t)m->vocab * m->hidden, 1, 0, true);
	m->head = m->tied ? m->embed : decode_bed_random(b, (uint64_t)m->vocab * m->hidden, 0.3f, 0, true);
	m->norm = decode_bed_random(b, m->hidden, 0.3f, 1, true);
	m->cos_sin = decode_bed_random(b, (uint64_t)(before + count) * m->head_dim, 1, 0, false);
	m->table = decode_bed_scratch(b, m->layers * sizeof(struct decode_layer));
	m->lists = decode_bed_zeros(b, 2 * sizeof(int32_t));
	m->last = decode_bed_zeros(b, DECODE_BED_PLACES * sizeof(int32_t));
	m->page = decode_bed_table(b, &pages);
	m->barrier = decode_bed_zeros(b, sizeof(uint32_t));
	m->arrived = decode_bed_zeros(b, m->kv_heads * sizeof(uint32_t));
	m->x = decode_bed_out(b, m->hidden, most, sizeof(float));
	m->x2 = decode_bed_out(b, m->hidden, most, sizeof(float));
	m->qkv = decode_bed_out(b, qkv_rows(m), most, sizeof(float));
	m->o = decode_bed_out(b, (uint64_t)m->heads * m->head_dim, 2 * most, sizeof(float));
	m->h = decode_bed_out(b, m->ffn, most, sizeof(float));
	m->u = decode_bed_scratch(b, (uint64_t)3 * m->rank * sizeof(float));
	m->part = decode_bed_scratch(b, (uint64_t)DECODE_SPLITS * m->heads * (m->head_dim + 2) * sizeof(float));
	m->logits = decode_bed_out(b, m->vocab, most, sizeof(float));
}

static struct decode_map map_at(const struct decode_bed_model *m, const struct decode_bed_layer *l, int i, uint64_t base)
{
	struct map_size s[4];
	struct decode_map map;

	sizes_of(m, s);
	map = (struct decode_map){.w = base + l->w[i],
				  .w_scale = m->e4m3 ? base + l->w_scale[i] : 0,
				  .bias = i == 0 && m->qkv_bias ? base + l->bias : 0,
				  .out = s[i].out,
				  .in = s[i].in,
				  .ld = s[i].in};
	if (!m->rank)
		return map;
	map.a = base + l->a[i];
	map.adapters = s[i].adapters;
	map.rank = m->rank;
	map.scale = 0.5f;
	for (uint32_t j = 0; j < s[i].adapters; j++) {
		map.b[j] = base + l->b[i][j];
		map.begin[j] = s[i].begin[j];
		map.end[j] = s[i].begin[j + 1];
	}
	return map;
}

static void layers_at(const struct decode_bed_model *m, uint64_t base, struct decode_layer *out)
{
	for (uint32_t i = 0; i < m->layers; i++) {
		const struct decode_bed_layer *l = &m->layer[i];

		out[i] = (struct decode_layer){.qkv = map_at(m, l, 0, base),
					       .o = map_at(m, l, 1, base),
					       .gate_up = map_at(m, l, 2, base),
					       .down = map_at(m, l, 3, base),
					       .norm1 = base + l->norm1,
					       .norm2 = base + l->norm2,
					       .q_norm = m->qk_norm ? base + l->q_norm : 0,
					       .k_norm = m->qk_norm ? base + l->k_norm : 0,
					       .kv = base + l->kv};
	}
}

static struct decode_token_args args_at(const struct decode_bed_model *m, uint64_t base)
{
	return (struct decode_token_args){.layers = base + m->table,
					   .embed = base + m->embed,
					   .norm = base + m->norm,
					   .head = base + m->head,
					   .cos_sin = base + m->cos_sin,
					   .token = base + m->lists,
					   .position = base + m->lists + sizeof(int32_t),
					   .last = base + m->last,
					   .page = base + m->page,
					   .barrier = base + m->barrier,
					   .arrived = base + m->arrived,
					   .x = base + m->x,
					   .x2 = base + m->x2,
					   .qkv = base + m->qkv,
					   .o = base + m->o,
					   .h = base + m->h,
					   .u = base + m->u,
					   .part = base + m->part,
					   .logits = base + m->logits,
					   .heads = {m->heads, m->kv_heads, m->head_dim, 1e-6f,
						     1 / sqrtf((float)m->head_dim), 0},
					   .layer_count = m->layers,
					   .hidden = m->hidden,
					   .vocab = m->vocab,
					   .places = DECODE_BED_PLACES,
					   .page_bits = m->page_bits};
}

enum status decode_bed_point(struct decode_bed *b, const struct decode_bed_model *m, struct kit *k,
			     struct decode_token_args *host, struct decode_token_args *device, struct error *err)
{
	const struct decode_pages pages = pages_of(m);
	int32_t *last = (int32_t *)(b->host + m->last);
	uint64_t cache[sizeof(m->layer) / sizeof(m->layer[0])];
	enum status st;

	for (uint32_t i = 0; i < m->layers; i++)
		cache[i] = m->layer[i].kv;
	decode_bed_set_pages(b, &pages, m->page, cache, m->layers, row_of(m));
	for (int32_t i = 0; i < DECODE_BED_PLACES; i++)
		last[i] = 11 + i;
	layers_at(m, b->device.data, (struct decode_layer *)(b->host + m->table));
	st = decode_bed_copy(b, k, err);
	layers_at(m, (uintptr_t)b->host, (struct decode_layer *)(b->host + m->table));
	*host = args_at(m, (uintptr_t)b->host);
	*device = args_at(m, b->device.data);
	return st;
}

enum status decode_bed_lists(struct decode_bed *b, const struct decode_bed_model *m, struct kit *k, uint32_t i,
			     struct error *err)
{
	static const int32_t token[] = {7, -1 - 1, -1 - DECODE_BED_PLACES};
	const int32_t lists[2] = {token[i % 3], (int32_t)(m->before + i)};

	memcpy(b->host + m->lists, lists, sizeof(lists));
	return gpu_copy_to(k->device, b->device.data + m->lists, lists, sizeof(lists), err);
}

uint32_t decode_bed_shared(const struct decode_bed_model *m, uint32_t blocks, struct decode_token_args *a)
{
	uint32_t work = decode_work(m->vocab, m->hidden, blocks);
	struct map_size s[4];

	sizes_of(m, s);
	for (int i = 0; i < 4; i++) {
		const uint32_t words = m->e4m3 ? s[i].in / 2 : s[i].in;
		const uint32_t map = decode_work(s[i].out, words, blocks), down = decode_work(3 * m->rank, s[i].in, blocks);

		work = map > work ? map : work;
		work = down > work ? down : work;
	}
	a->ring = decode_front(&a->heads, work, (3 * m->rank + 3) / 4 * 4);
	a->depth = decode_bed_depth(a->ring, 1 + m->layers % 4);
	return decode_shared(a->ring, a->depth);
}
