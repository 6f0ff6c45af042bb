/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of the rows of a step to a KV cache in pages. A thread takes a few rows of one sequence and the
 * heads that share a key. It reads the keys in tiles, each once for all of these rows and heads, and scales
 * the sums down when a tile has a larger score. Tiles begin at fixed positions, so the bits of a row depend
 * only on its position.
 */
#include "model/cpu/real.h"

struct work {
	const struct paged_rows *rows;
	const struct attention *at;
	const struct paged_layer *cache;
	struct mat qkv, o, partial;
	int64_t group; /* heads that share a key */
};

/* The rows of an item: rows first .. last - 1, and the position of the first one. */
struct block {
	int64_t sequence, first, last, position;
	int kv_head;
};

/* A thread's part of the workspace. */
struct desk {
	real *most, *sum; /* [CPU_PAGED_ROWS * group] of each query */
	real *score;	  /* [CPU_PAGED_TILE] */
	real *k, *v;	  /* [CPU_PAGED_TILE, head_dim] of an E4M3 cache */
};

VECTOR static void scores_of(real *restrict s, const real *restrict q, const real *restrict k, int64_t ld,
			     int64_t keys, int64_t dim, real scale)
{
	for (int64_t j = 0; j < keys; j++) {
		real sum = 0;

#pragma omp simd reduction(+ : sum)
		for (int64_t i = 0; i < dim; i++)
			sum += q[i] * k[j * ld + i];
		s[j] = sum * scale;
	}
}

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

VECTOR static void add_values(real *restrict o, const real *restrict s, const real *restrict v, int64_t ld,
			      int64_t keys, int64_t dim)
{
	for (int64_t j = 0; j < keys; j++)
		for (int64_t i = 0; i < dim; i++)
			o[i] += s[j] * v[j * ld + i];
}

VECTOR static void scale_row(real *o, real factor, int64_t dim)
{
	for (int64_t i = 0; i < dim; i++)
		o[i] *= factor;
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

/* Number of keys from `position` on that are in one page. */
static int64_t in_page(const struct work *w, int64_t position, int64_t keys)
{
	const int64_t left = w->rows->page_tokens - position % w->rows->page_tokens;

	return left < keys ? left : keys;
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

/* Keys begin .. begin + keys - 1 for one query. */
static void add_tile(const struct work *w, const struct block *b, const struct desk *d, int64_t row,
		     int64_t head, int64_t begin, int64_t keys)
{
	const int64_t dim = w->at->head_dim, query = (row - b->first) * w->group + head % w->group;
	const bool packed = w->cache->scale.rows > 0;
	const real *q = real_row(w->qkv, row) + head * dim;
	real *o = real_row(w->o, row) + head * dim, factor;
	int64_t count;

	for (int64_t j = 0; j < keys; j += count) {
		const real *k =
			packed ? d->k : real_row(w->cache->kv, slot_of(w, b, begin + j)) + b->kv_head * dim;

		count = packed ? keys : in_page(w, begin + j, keys - j);
		scores_of(d->score + j, q, k, packed ? dim : w->cache->kv.ld, count, dim, (real)w->at->scale);
	}
	factor = exponentials(d->score, keys, &d->most[query], &d->sum[query]);
	if (factor != 1)
		scale_row(o, factor, dim);
	for (int64_t j = 0; j < keys; j += count) {
		const real *v = packed ? d->v
				       : real_row(w->cache->kv, slot_of(w, b, begin + j)) +
						 (w->at->kv_heads + b->kv_head) * dim;

		count = packed ? keys : in_page(w, begin + j, keys - j);
		add_values(o, d->score + j, v, packed ? dim : w->cache->kv.ld, count, dim);
	}
}

static void attend(const struct work *w, const struct block *b, const struct desk *d)
{
	const int64_t dim = w->at->head_dim, head = b->kv_head * w->group;
	const int64_t end = b->position + b->last - b->first; /* keys of the last row */

	for (int64_t t = b->first; t < b->last; t++)
		memset(real_row(w->o, t) + head * dim, 0, (size_t)(w->group * dim) * sizeof(real));
	for (int64_t i = 0; i < (b->last - b->first) * w->group; i++) {
		d->most[i] = -(real)INFINITY;
		d->sum[i] = 0;
	}
	for (int64_t begin = 0; begin < end; begin += CPU_PAGED_TILE) {
		if (w->cache->scale.rows)
			unpack_tile(w, b, d, begin,
				    end - begin < CPU_PAGED_TILE ? end - begin : CPU_PAGED_TILE);
		for (int64_t t = b->first; t < b->last; t++) {
			const int64_t left = b->position + t - b->first + 1 - begin;

			for (int64_t h = head; left > 0 && h < head + w->group; h++)
				add_tile(w, b, d, t, h, begin, left < CPU_PAGED_TILE ? left : CPU_PAGED_TILE);
		}
	}
	for (int64_t t = b->first; t < b->last; t++)
		for (int64_t h = 0; h < w->group; h++)
			scale_row(real_row(w->o, t) + (head + h) * dim,
				  1 / d->sum[(t - b->first) * w->group + h], dim);
}

static int64_t blocks_of(const struct paged_rows *r, int64_t sequence)
{
	return (r->begin[sequence + 1] - r->begin[sequence] + CPU_PAGED_ROWS - 1) / CPU_PAGED_ROWS;
}

static void attend_item(void *arg, int64_t item, unsigned thread)
{
	const struct work *w = arg;
	const struct paged_rows *r = w->rows;
	const int64_t queries = CPU_PAGED_ROWS * w->group;
	real *room = real_row(w->partial, thread);
	const struct desk d = {.most = room,
			       .sum = room + queries,
			       .score = room + 2 * queries,
			       .k = room + 2 * queries + CPU_PAGED_TILE,
			       .v = room + 2 * queries + CPU_PAGED_TILE * (1 + w->at->head_dim)};
	struct block b = {.kv_head = (int)(item % w->at->kv_heads)};
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
	struct work w = {.rows = rows,
			 .at = at,
			 .cache = cache,
			 .qkv = qkv,
			 .o = o,
			 .partial = rows->room->partial,
			 .group = at->heads / at->kv_heads};
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
