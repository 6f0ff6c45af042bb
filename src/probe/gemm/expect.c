/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected sums of C in the integer pass, and the host's own sums over a C in host memory. Inputs are
 * recomputed from the generator and never read back, so a wrong fill is found too. Cost: O(mk + kn), an
 * eighth of it additions, shared by the threads of the pool.
 */
#include <math.h>
#include "core/math/random.h"
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"

/* The same entry of both weight vectors next to each other, so that one load reads both. */
typedef int64_t pair __attribute__((vector_size(16)));

static unsigned threads_of(const struct gemm *g)
{
	return g->pool ? cpu_pool_count(g->pool) : 1;
}

static void on_threads(const struct gemm *g, void (*work)(void *arg, unsigned thread), void *arg)
{
	if (g->pool)
		cpu_pool_run(g->pool, work, arg);
	else
		work(arg, 0);
}

static enum status no_room(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "gemm: not enough memory to verify");
}

/* Columns of one stored row in which the element is 1 (plus) or -1 (minus). */
struct sparse {
	uint32_t *plus, *minus;
	size_t plus_count, minus_count;
};

/* Appends to `out` the columns that `hits` marks. Bit 4 n + w of hits stands for nibble n of word w, in a
 * block that starts at column `base`. */
static size_t append(uint32_t *out, size_t n, uint32_t hits, int64_t base, uint32_t count)
{
	for (; hits; hits &= hits - 1) {
		unsigned bit = (unsigned)__builtin_ctz(hits);
		int64_t at = base + (bit & 3) * 8 + (bit >> 2);

		out[n] = (uint32_t)at;
		n += at >= 0 && at < count;
	}
	return n;
}

/* Adds elements [first, first + count) of the stored array; one Philox call gives 32 elements. A nibble is a
 * nonzero element if its upper three bits are 0; its lowest bit is the sign. */
static void sparse_row(struct sparse *s, uint64_t seed, enum gemm_stream stream, uint64_t first,
		       uint32_t count)
{
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	uint64_t last = first + count;

	s->plus_count = s->minus_count = 0;
	for (uint64_t block = first / 32; block <= (last - 1) / 32; block++) {
		int64_t base = (int64_t)(block * 32) - (int64_t)first;
		uint32_t word[4], hits = 0, signs = 0;

		philox4x32(word, (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), stream, 0},
			   key);
		for (unsigned w = 0; w < 4; w++) {
			hits |= (~(word[w] >> 1 | word[w] >> 2 | word[w] >> 3) & 0x11111111u) << w;
			signs |= (word[w] & 0x11111111u) << w;
		}
		s->plus_count = append(s->plus, s->plus_count, hits & ~signs, base, count);
		s->minus_count = append(s->minus, s->minus_count, hits & signs, base, count);
	}
}

static pair sparse_dot(const struct sparse *s, const pair *x)
{
	pair sum = {0, 0};

	for (size_t i = 0; i < s->plus_count; i++)
		sum += x[s->plus[i]];
	for (size_t i = 0; i < s->minus_count; i++)
		sum -= x[s->minus[i]];
	return sum;
}

static void sparse_add(const struct sparse *s, pair factor, pair *y)
{
	for (size_t i = 0; i < s->plus_count; i++)
		y[s->plus[i]] += factor;
	for (size_t i = 0; i < s->minus_count; i++)
		y[s->minus[i]] -= factor;
}

/* Products with a stored matrix of rows x columns: right = M x, left = y^T M. A NULL pointer: not
 * computed. */
struct pass {
	const struct gemm *g;
	enum gemm_stream stream;
	uint64_t first;
	uint32_t rows, columns;
	const pair *x, *y;
	pair *right, *left;
	pair *part;	 /* (threads x columns), zeroed: each thread's part of left */
	uint32_t *place; /* (threads x 2 (columns + 1)) */
};

static void pass_work(void *arg, unsigned thread)
{
	const struct pass *p = arg;
	uint32_t *place = p->place + 2 * ((size_t)p->columns + 1) * thread;
	struct sparse s = {.plus = place, .minus = place + p->columns + 1};
	uint64_t first, last;

	cpu_share(p->rows, 1, thread, threads_of(p->g), &first, &last);
	for (uint64_t r = first; r < last; r++) {
		sparse_row(&s, p->g->seed, p->stream, p->first + r * p->columns, p->columns);
		if (p->right)
			p->right[r] = sparse_dot(&s, p->x);
		if (p->left)
			sparse_add(&s, p->y[r], p->part + (size_t)p->columns * thread);
	}
}

static enum status pass_run(struct pass *p, struct error *err)
{
	unsigned threads = threads_of(p->g);
	enum status st = STATUS_OK;

	p->place = malloc(2 * ((size_t)p->columns + 1) * threads * sizeof(*p->place));
	p->part = p->left ? calloc((size_t)p->columns * threads, sizeof(*p->part)) : NULL;
	if (!p->place || (p->left && !p->part)) {
		st = no_room(err);
		goto out;
	}
	on_threads(p->g, pass_work, p);
	for (uint32_t j = 0; p->left && j < p->columns; j++) {
		pair sum = {0, 0};

		for (unsigned t = 0; t < threads; t++)
			sum += p->part[(size_t)p->columns * t + j];
		p->left[j] = sum;
	}
out:
	free(p->place);
	free(p->part);
	return st;
}

/* Computes op(M) x -> right and y^T op(M) -> left for A or B of batch b, for either storage order. rows and
 * columns are those of op(M). */
static enum status operand(const struct gemm *g, bool is_a, uint32_t b, const pair *x, pair *right,
			   const pair *y, pair *left, struct error *err)
{
	uint32_t rows = is_a ? g->opts.m : g->opts.k, columns = is_a ? g->opts.k : g->opts.n;
	bool stored_transposed = (is_a ? g->opts.ta : g->opts.tb) == GEMM_T;
	struct pass p = {
		.g = g,
		.stream = is_a ? GEMM_STREAM_A : GEMM_STREAM_B,
		.first = (uint64_t)b * rows * columns,
		.rows = stored_transposed ? columns : rows,
		.columns = stored_transposed ? rows : columns,
		.x = stored_transposed ? y : x,
		.right = stored_transposed ? left : right,
		.y = stored_transposed ? x : y,
		.left = stored_transposed ? right : left,
	};

	return pass_run(&p, err);
}

static void add_bias(const struct gemm *g, const pair *weight_row, const pair *weight_column, pair *cw,
		     pair *wc)
{
	pair along = {0, 0}, rows = {0, 0};

	for (uint32_t i = 0; i < g->opts.m; i++)
		rows += weight_row[i];
	for (uint32_t j = 0; j < g->opts.n; j++) {
		int64_t value =
			(int64_t)gemm_element(g->seed, GEMM_STREAM_BIAS, GEMM_DATA_INTEGER, g->opts.type, j);

		along += value * weight_column[j];
		wc[j] += value * rows;
	}
	for (uint32_t i = 0; i < g->opts.m; i++)
		cw[i] += along;
}

static void split(const pair *from, size_t count, int64_t *const *to)
{
	for (size_t i = 0; i < count; i++) {
		to[0][i] = from[i][0];
		to[1][i] = from[i][1];
	}
}

enum status gemm_expected(const struct gemm *g, uint32_t b, struct gemm_products *out, struct error *err)
{
	size_t m = g->opts.m, n = g->opts.n, k = g->opts.k;
	pair *wm = calloc(2 * (m + n + k), sizeof(*wm));
	pair *wn = wm + m, *cw = wn + n, *wc = cw + m, *u = wc + n, *v = u + k;
	enum status st;

	if (!wm)
		return no_room(err);
	for (size_t i = 0; i < m; i++)
		wm[i] = (pair){gemm_weight(0, i), gemm_weight(1, i)};
	for (size_t j = 0; j < n; j++)
		wn[j] = (pair){gemm_weight(0, j), gemm_weight(1, j)};
	st = operand(g, false, b, wn, u, NULL, NULL, err); /* u = B w */
	if (!st)
		st = operand(g, true, b, u, cw, wm, v, err); /* C w = A u; v = w^T A */
	if (!st)
		st = operand(g, false, b, NULL, NULL, v, wc, err); /* w^T C = v B */
	if (!st && g->opts.bias)
		add_bias(g, wm, wn, cw, wc);
	if (!st) {
		split(cw, m, out->cw);
		split(wc, n, out->wc);
	}
	free(wm);
	return st;
}

/* -- the host's own sums -- */

/* Element i of C as an integer. Returns false if it is not an integer of magnitude k + 1 at most: sums of k
 * products of -1, 0 and 1 plus a bias are never larger. So the weighted sums stay below 2^55. */
static bool value_at(const struct gemm *g, const void *c, uint64_t i, int64_t *out)
{
	double value = gemm_value_out(g->opts.type, c, i);

	if (!(fabs(value) <= (double)g->opts.k + 1))
		return false;
	*out = (int64_t)value;
	return (double)*out == value;
}

struct sums {
	const struct gemm *g;
	const void *c;
	struct gemm_products *out;
	const pair *weight; /* (n) */
	pair *part;	    /* (threads x n), zeroed: each thread's part of wc */
	uint32_t *odd;	    /* (threads x n), zeroed */
};

static void sums_work(void *arg, unsigned thread)
{
	const struct sums *s = arg;
	uint32_t n = s->g->opts.n;
	pair *part = s->part + (size_t)n * thread;
	uint64_t first, last;

	cpu_share(s->g->opts.m, 1, thread, threads_of(s->g), &first, &last);
	for (uint64_t i = first; i < last; i++) {
		pair along = {0, 0}, weight = {gemm_weight(0, i), gemm_weight(1, i)};
		uint32_t odd = 0;

		for (uint32_t j = 0; j < n; j++) {
			int64_t value;

			if (!value_at(s->g, s->c, i * n + j, &value)) {
				odd++;
				s->odd[(size_t)n * thread + j]++;
				continue;
			}
			along += value * s->weight[j];
			part[j] += value * weight;
		}
		s->out->cw[0][i] = along[0];
		s->out->cw[1][i] = along[1];
		s->out->odd_row[i] = odd;
	}
}

enum status gemm_products_host(const struct gemm *g, const void *c, struct gemm_products *out,
			       struct error *err)
{
	size_t n = g->opts.n, threads = threads_of(g);
	pair *room = calloc((threads + 1) * n, sizeof(*room));
	struct sums s = {.g = g, .c = c, .out = out, .weight = room, .part = room + n};
	enum status st = STATUS_OK;

	s.odd = calloc(threads * n, sizeof(*s.odd));
	if (!room || !s.odd) {
		st = no_room(err);
		goto out;
	}
	for (size_t j = 0; j < n; j++)
		room[j] = (pair){gemm_weight(0, j), gemm_weight(1, j)};
	on_threads(g, sums_work, &s);
	for (size_t j = 0; j < n; j++) {
		pair sum = {0, 0};

		out->odd_column[j] = 0;
		for (size_t t = 0; t < threads; t++) {
			sum += s.part[t * n + j];
			out->odd_column[j] += s.odd[t * n + j];
		}
		out->wc[0][j] = sum[0];
		out->wc[1][j] = sum[1];
	}
out:
	free(room);
	free(s.odd);
	return st;
}
