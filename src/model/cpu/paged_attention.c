/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of the rows of a step to a KV cache in pages. A thread takes a few rows of one sequence and the
 * heads that share a key. It reads the keys in tiles, each once for all of these rows and heads, and scales
 * the sums down when a tile has a larger score. Tiles begin at fixed positions, so the bits of a row depend
 * only on its position.
 */
#include "model/cpu/real.h"
#include "model/cpu/invariant/row_gemm.h"

struct work {
	const struct paged_rows *rows;
	const struct attention *at;
	const struct paged_layer *cache;
	struct mat qkv, o, partial;
	int64_t group; /* heads that share a key */
#ifndef MODEL_REAL_F64
	row_multiply multiply;
	row_add add;
#endif
};

/* The rows of an item: rows first .. last - 1, and the position of the first one. */
struct block {
	int64_t sequence, first, last, position;
	int64_t kv_head;
};

/* A thread's part of the workspace. A query is a row and a head: row by row, the heads of a group. */
struct desk {
	real *q, *o;	  /* [queries, head_dim] */
	real *score;	  /* [queries, CPU_PAGED_TILE] */
	real *most, *sum; /* [queries] */
	real *k, *v;	  /* [CPU_PAGED_TILE, head_dim] of an E4M3 cache */
};

/* Keys or values of one page, or of a tile of an E4M3 cache. */
struct part {
	const real *from;
	int64_t ld, first, count; /* keys first .. of the tile */
};

#ifdef MODEL_REAL_F64
static void scores(const struct work *w, const struct desk *d, int64_t queries, const struct part *k)
{
	const int64_t dim = w->at->head_dim;

	for (int64_t i = 0; i < queries; i++)
		for (int64_t j = 0; j < k->count; j++) {
			real sum = 0;

			for (int64_t c = 0; c < dim; c++)
				sum += d->q[i * dim + c] * k->from[j * k->ld + c];
			d->score[i * CPU_PAGED_TILE + k->first + j] = sum;
		}
}

static void add_values(const struct work *w, const struct desk *d, int64_t query, int64_t queries,
		       const struct part *v)
{
	const int64_t dim = w->at->head_dim;

	for (int64_t i = query; i < query + queries; i++)
		for (int64_t j = 0; j < v->count; j++)
			for (int64_t c = 0; c < dim; c++)
				d->o[i * dim + c] +=
					d->score[i * CPU_PAGED_TILE + v->first + j] * v->from[j * v->ld + c];
}
#else
static void scores(const struct work *w, const struct desk *d, int64_t queries, const struct part *k)
{
	const int64_t dim = w->at->head_dim;
	const struct row_product p = {
		.w = k->from,
		.x = d->q,
		.out = d->score + k->first,
		.rows = queries,
		.columns = k->count,
		.k = dim,
		.ldw = k->ld,
		.ldx = dim,
		.ldo = CPU_PAGED_TILE,
	};

	w->multiply(&p);
}

static void add_values(const struct work *w, const struct desk *d, int64_t query, int64_t queries,
		       const struct part *v)
{
	const int64_t dim = w->at->head_dim;
	const struct row_sum s = {
		.p = d->score + query * CPU_PAGED_TILE + v->first,
		.v = v->from,
		.out = d->o + query * dim,
		.rows = queries,
		.columns = dim,
		.count = v->count,
		.ldp = CPU_PAGED_TILE,
		.ldv = v->ld,
		.ldo = dim,
	};

	w->add(&s);
}
#endif

/* Scores become their exponentials relative to the largest one so far. Returns the factor for earlier sums.
 */
VECTOR static real exponentials(real *restrict s, int64_t keys, real *most, real *sum)
{
	real top = s[0], total = 0, factor;

#pragma omp simd reduction(max : top)
	for (int64_t j = 0; j < keys; j++)
		top = s[j] > top ? s[j] : top;
	top = top > *most ? top : *most;
	factor = real_exp(*most - top);
#pragma omp simd reduction(+ : total)
	for (int64_t j = 0; j < keys; j++) {
		s[j] = real_exp(s[j] - top);
		total += s[j];
	}
	*most = top;
	*sum = *sum * factor + total;
	return factor;
}

VECTOR static void scaled(real *to, const real *from, real factor, int64_t dim)
{
#pragma omp simd
	for (int64_t i = 0; i < dim; i++)
		to[i] = from[i] * factor;
}

VECTOR static void from_e4m3(real *restrict to, const uint8_t *restrict from, real scale, int64_t dim)
{
#pragma omp simd
	for (int64_t i = 0; i < dim; i++)
		to[i] = (real)e4m3_to_f32(from[i]) * scale;
}

static int64_t slot_of(const struct work *w, const struct block *b, int64_t position)
{
	const struct paged_rows *r = w->rows;

	return (int64_t)r->page[b->sequence * r->page_ld + position / r->page_tokens] * r->page_tokens +
	       position % r->page_tokens;
}

static void unpack_tile(const struct work *w, const struct block *b, const struct desk *d, int64_t begin,
			int64_t keys)
{
	const int64_t dim = w->at->head_dim;
	const struct mat *kv = &w->cache->kv, *scales = &w->cache->scale;

	for (int64_t j = 0; j < keys; j++) {
		const int64_t slot = slot_of(w, b, begin + j);
		const float *scale = (const float *)scales->data + slot * scales->ld + b->kv_head;
		const uint8_t *k = (const uint8_t *)kv->data + slot * kv->ld + b->kv_head * dim;

		from_e4m3(d->k + j * dim, k, (real)scale[0], dim);
		from_e4m3(d->v + j * dim, k + w->at->kv_heads * dim, (real)scale[w->at->kv_heads], dim);
	}
}

/* The keys or values from number `first` of the tile on that are side by side. */
static struct part part_of(const struct work *w, const struct block *b, const struct desk *d, bool values,
			   int64_t begin, int64_t first, int64_t keys)
{
	const int64_t dim = w->at->head_dim, tokens = w->rows->page_tokens;
	const int64_t left = tokens - (begin + first) % tokens;
	struct part part = {.first = first, .count = keys - first, .ld = dim};

	if (w->cache->scale.rows) {
		part.from = (values ? d->v : d->k) + first * dim;
		return part;
	}
	part.from = real_row(w->cache->kv, slot_of(w, b, begin + first)) +
		    (b->kv_head + (values ? w->at->kv_heads : 0)) * dim;
	part.ld = w->cache->kv.ld;
	part.count = left < part.count ? left : part.count;
	return part;
}

/* Adds the values of the first `keys` keys of the tile. */
static void add_tile(const struct work *w, const struct block *b, const struct desk *d, int64_t query,
		     int64_t queries, int64_t begin, int64_t keys)
{
	struct part v = {0};

	for (int64_t j = 0; j < keys; j += v.count) {
		v = part_of(w, b, d, true, begin, j, keys);
		add_values(w, d, query, queries, &v);
	}
}

/* Keys begin .. begin + keys - 1, of which an earlier row sees fewer. A row neither looks at nor multiplies
 * with later keys. */
static void attend_tile(const struct work *w, const struct block *b, const struct desk *d, int64_t begin,
			int64_t keys)
{
	const int64_t dim = w->at->head_dim, rows = b->last - b->first;
	struct part k = {0};
	bool all = true;

	if (w->cache->scale.rows)
		unpack_tile(w, b, d, begin, keys);
	for (int64_t j = 0; j < keys; j += k.count) {
		k = part_of(w, b, d, false, begin, j, keys);
		scores(w, d, rows * w->group, &k);
	}
	for (int64_t i = 0; i < rows * w->group; i++) {
		const int64_t left = b->position + i / w->group + 1 - begin;
		real factor;

		all = all && left >= keys;
		if (left < 1)
			continue;
		factor = exponentials(d->score + i * CPU_PAGED_TILE, left < keys ? left : keys, &d->most[i],
				      &d->sum[i]);
		if (factor != 1)
			scaled(d->o + i * dim, d->o + i * dim, factor, dim);
	}
	if (all) {
		add_tile(w, b, d, 0, rows * w->group, begin, keys);
		return;
	}
	for (int64_t t = 0; t < rows; t++) {
		const int64_t left = b->position + t + 1 - begin;

		add_tile(w, b, d, t * w->group, w->group, begin, left < keys ? left : keys);
	}
}

static void attend(const struct work *w, const struct block *b, const struct desk *d)
{
	const int64_t dim = w->at->head_dim, rows = b->last - b->first, head = b->kv_head * w->group;
	const int64_t end = b->position + rows; /* keys of the last row */

	for (int64_t i = 0; i < rows * w->group; i++) {
		scaled(d->q + i * dim,
		       real_row(w->qkv, b->first + i / w->group) + (head + i % w->group) * dim,
		       (real)w->at->scale, dim);
		memset(d->o + i * dim, 0, (size_t)dim * sizeof(real));
		d->most[i] = -(real)INFINITY;
		d->sum[i] = 0;
	}
	for (int64_t begin = 0; begin < end; begin += CPU_PAGED_TILE)
		attend_tile(w, b, d, begin, end - begin < CPU_PAGED_TILE ? end - begin : CPU_PAGED_TILE);
	for (int64_t i = 0; i < rows * w->group; i++)
		scaled(real_row(w->o, b->first + i / w->group) + (head + i % w->group) * dim, d->o + i * dim,
		       1 / d->sum[i], dim);
}

static int64_t blocks_of(const struct paged_rows *r, int64_t sequence)
{
	return (r->begin[sequence + 1] - r->begin[sequence] + CPU_PAGED_ROWS - 1) / CPU_PAGED_ROWS;
}

static void attend_item(void *arg, int64_t item, unsigned thread)
{
	const struct work *w = arg;
	const struct paged_rows *r = w->rows;
	const int64_t queries = CPU_PAGED_ROWS * w->group, dim = w->at->head_dim;
	real *room = real_row(w->partial, thread);
	const struct desk d = {
		.q = room,
		.o = room + queries * dim,
		.k = room + 2 * queries * dim,
		.v = room + (2 * queries + CPU_PAGED_TILE) * dim,
		.score = room + 2 * (queries + CPU_PAGED_TILE) * dim,
		.most = room + 2 * (queries + CPU_PAGED_TILE) * dim + queries * CPU_PAGED_TILE,
		.sum = room + 2 * (queries + CPU_PAGED_TILE) * dim + queries * (CPU_PAGED_TILE + 1),
	};
	struct block b = {.kv_head = item % w->at->kv_heads};
	int64_t before = item / w->at->kv_heads;

	for (; before >= blocks_of(r, b.sequence); b.sequence++)
		before -= blocks_of(r, b.sequence);
	b.first = r->begin[b.sequence] + before * CPU_PAGED_ROWS;
	b.last = b.first + CPU_PAGED_ROWS < r->begin[b.sequence + 1] ? b.first + CPU_PAGED_ROWS
								     : r->begin[b.sequence + 1];
	b.position = r->keys[b.sequence] - (r->begin[b.sequence + 1] - b.first);
	attend(w, &b, &d);
}

enum status cpu_paged_attention(struct backend *back, const struct paged_rows *rows,
				const struct attention *at, struct mat qkv, const struct paged_layer *cache,
				struct mat o, struct error *err)
{
	struct work w = {
		.rows = rows,
		.at = at,
		.cache = cache,
		.qkv = qkv,
		.o = o,
		.partial = rows->room->partial,
		.group = at->heads / at->kv_heads,
#ifndef MODEL_REAL_F64
		.multiply = cpu_row_multiply(DTYPE_F32, cpu_row_widest()),
		.add = cpu_row_add(cpu_row_widest()),
#endif
	};
	int64_t blocks = 0, keys = 0;

	if (cache->kv.dtype != (cache->scale.rows ? DTYPE_E4M3 : REAL_DTYPE))
		return error_set(err, STATUS_BUG, "a KV cache of a type that the CPU does not support");
	cost_paged(back, at, rows);
	for (int64_t i = 0; i < rows->sequences; i++) {
		blocks += blocks_of(rows, i);
		keys += rows->keys[i];
	}
	cpu_items(back, blocks * at->kv_heads, (double)(keys * cache->kv.cols) * sizeof(real), attend_item,
		  &w);
	for (int64_t t = rows->begin[rows->sequences]; t < o.rows; t++) /* padding, so that it is finite */
		memset(real_row(o, t), 0, (size_t)o.cols * sizeof(real));
	return STATUS_OK;
}
