/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The integer pass. A, B hold -1, 0, 1 (density 1/8), so every sum is exact in every type and order, and
 * C w = A (B w), w^T C = (w^T A) B hold exactly for any weights w. Two weights that depend on the position
 * make an error vanish in neither row nor column sums unless three elements of a row conspire. Inputs are
 * regenerated here from the generator, never read back, so filling is checked too. Cost: O(mk + kn), an
 * eighth of it in additions.
 */
#include <inttypes.h>
#include <math.h>
#include "core/random.h"
#include "probe/gemm/gemm.h"

enum {
	ROWS_EXAMINED = 16
}; /* wrong rows recomputed element by element; more are counted as one element or more */

/* Columns of one stored row where the element is 1 (plus) or -1 (minus). */
struct sparse {
	uint32_t *plus, *minus;
	size_t plus_count, minus_count;
};

/* Elements [first, first + count) of the stored array, 32 a Philox call: a nibble whose upper three bits are
 * 0 counts, its lowest bit is the sign. */
static void sparse_row(struct sparse *s, uint64_t seed, enum gemm_stream stream, uint64_t first,
		       uint32_t count)
{
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	uint64_t last = first + count;

	s->plus_count = s->minus_count = 0;
	for (uint64_t block = first / 32; block <= (last - 1) / 32; block++) {
		uint32_t word[4];

		philox4x32(word, (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), stream, 0},
			   key);
		for (unsigned w = 0; w < 4; w++) {
			uint32_t hits = ~(word[w] >> 1 | word[w] >> 2 | word[w] >> 3) & 0x11111111u;

			for (; hits; hits &= hits - 1) {
				unsigned bit = (unsigned)__builtin_ctz(hits);
				uint64_t at = block * 32 + w * 8 + bit / 4;

				if (at < first || at >= last)
					continue;
				if (word[w] >> bit & 1)
					s->minus[s->minus_count++] = (uint32_t)(at - first);
				else
					s->plus[s->plus_count++] = (uint32_t)(at - first);
			}
		}
	}
}

static int64_t sparse_dot(const struct sparse *s, const int64_t *x)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->plus_count; i++)
		sum += x[s->plus[i]];
	for (size_t i = 0; i < s->minus_count; i++)
		sum -= x[s->minus[i]];
	return sum;
}

static void sparse_add(const struct sparse *s, int64_t factor, int64_t *y)
{
	for (size_t i = 0; i < s->plus_count; i++)
		y[s->plus[i]] += factor;
	for (size_t i = 0; i < s->minus_count; i++)
		y[s->minus[i]] -= factor;
}

/* A stored matrix of rows x columns: right[p] += M x[p] (rows), left[p] += y[p]^T M (columns); NULL: not
 * asked. */
struct pass {
	const struct gemm *g;
	enum gemm_stream stream;
	uint64_t first;
	uint32_t rows, columns;
	int64_t *const *x, *const *y;
	int64_t *const *right, *const *left;
};

static enum status pass_run(const struct pass *p, struct error *err)
{
	struct sparse s = {.plus = malloc(((size_t)p->columns + 1) * sizeof(uint32_t)),
			   .minus = malloc(((size_t)p->columns + 1) * sizeof(uint32_t))};
	enum status st = STATUS_OK;

	if (!s.plus || !s.minus) {
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "gemm: no room to verify");
		goto out;
	}
	for (uint32_t r = 0; r < p->rows; r++) {
		sparse_row(&s, p->g->seed, p->stream, p->first + (uint64_t)r * p->columns, p->columns);
		for (unsigned w = 0; w < 2; w++) {
			if (p->right)
				p->right[w][r] += sparse_dot(&s, p->x[w]);
			if (p->left)
				sparse_add(&s, p->y[w][r], p->left[w]);
		}
	}
out:
	free(s.plus);
	free(s.minus);
	return st;
}

/* Runs op(M) x -> right and y^T op(M) -> left for A or B of batch b, whichever way it is stored. rows,
 * columns: of op(M). */
static enum status operand(const struct gemm *g, bool is_a, uint32_t b, int64_t *const *x,
			   int64_t *const *right, int64_t *const *y, int64_t *const *left, struct error *err)
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

static void add_bias(const struct gemm *g, int64_t *const *weight_row, int64_t *const *weight_column,
		     struct gemm_products *out)
{
	for (unsigned w = 0; w < 2; w++) {
		int64_t along = 0, rows = 0;

		for (uint32_t i = 0; i < g->opts.m; i++)
			rows += weight_row[w][i];
		for (uint32_t j = 0; j < g->opts.n; j++) {
			int64_t value = (int64_t)gemm_element(g->seed, GEMM_STREAM_BIAS, GEMM_DATA_INTEGER,
							      g->opts.type, j);

			along += value * weight_column[w][j];
			out->wc[w][j] += value * rows;
		}
		for (uint32_t i = 0; i < g->opts.m; i++)
			out->cw[w][i] += along;
	}
}

enum status gemm_expected(const struct gemm *g, uint32_t b, struct gemm_products *out, struct error *err)
{
	size_t m = g->opts.m, n = g->opts.n, k = g->opts.k, each = m + n + 2 * k;
	int64_t *room = calloc(2 * each, sizeof(*room)), *wm[2], *wn[2], *u[2], *v[2];
	enum status st;

	if (!room)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "gemm: no room to verify");
	for (unsigned w = 0; w < 2; w++) {
		wm[w] = room + w * each;
		wn[w] = wm[w] + m;
		u[w] = wn[w] + n;
		v[w] = u[w] + k;
		for (size_t i = 0; i < m; i++)
			wm[w][i] = gemm_weight(w, i);
		for (size_t j = 0; j < n; j++)
			wn[w][j] = gemm_weight(w, j);
		memset(out->cw[w], 0, m * sizeof(int64_t));
		memset(out->wc[w], 0, n * sizeof(int64_t));
	}
	st = operand(g, false, b, wn, u, NULL, NULL, err); /* u = B w */
	if (!st)
		st = operand(g, true, b, u, out->cw, wm, v, err); /* C w = A u; v = w^T A */
	if (!st)
		st = operand(g, false, b, NULL, NULL, v, out->wc, err); /* w^T C = v B */
	if (!st && g->opts.bias)
		add_bias(g, wm, wn, out);
	free(room);
	return st;
}

/* -- finding what is wrong -- */

static enum status products_alloc(const struct gemm *g, struct gemm_products *p, struct error *err)
{
	size_t m = g->opts.m, n = g->opts.n;
	int64_t *sums = calloc(2 * (m + n), sizeof(*sums));
	uint32_t *odd = calloc(m + n, sizeof(*odd));

	if (!sums || !odd) {
		free(sums);
		free(odd);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "gemm: no room to verify");
	}
	*p = (struct gemm_products){.cw = {sums, sums + m},
				    .wc = {sums + 2 * m, sums + 2 * m + n},
				    .odd_row = odd,
				    .odd_column = odd + m};
	return STATUS_OK;
}

static void products_release(struct gemm_products *p)
{
	free(p->cw[0]);
	free(p->odd_row);
	*p = (struct gemm_products){0};
}

static bool row_wrong(const struct gemm_products *found, const struct gemm_products *right, uint32_t i)
{
	return found->odd_row[i] || found->cw[0][i] != right->cw[0][i] || found->cw[1][i] != right->cw[1][i];
}

static bool column_wrong(const struct gemm_products *found, const struct gemm_products *right, uint32_t j)
{
	return found->odd_column[j] || found->wc[0][j] != right->wc[0][j] ||
	       found->wc[1][j] != right->wc[1][j];
}

/* Recomputes this row where the column sums are wrong too (everywhere when none is); counts what differs. */
static enum status examine_row(struct gemm *g, uint32_t b, uint32_t row, const bool *columns,
			       struct wrong *wrong, struct error *err)
{
	uint32_t n = g->opts.n;
	uint64_t *index = malloc(n * sizeof(*index));
	double *found = malloc(n * sizeof(*found));
	uint64_t before = wrong->count;
	enum status st = STATUS_OK;

	if (!index || !found) {
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "gemm: no room to verify");
		goto out;
	}
	for (uint32_t j = 0; j < n; j++)
		index[j] = ((uint64_t)b * g->opts.m + row) * n + j;
	st = g->access->elements(g, 0, index, n, found, err);
	if (st)
		goto out;
	for (uint32_t j = 0; j < n; j++) {
		double right;

		if (columns && !columns[j])
			continue;
		right = gemm_exact(g, GEMM_DATA_INTEGER, b, row, j, NULL);
		if (!(found[j] == right))
			gemm_note(g, wrong, b, row, j, right, found[j]);
	}
	if (wrong->count == before) /* the sums differ and the elements do not: C changes while we look */
		gemm_note(g, wrong, b, row, 0, 0, NAN);
out:
	free(index);
	free(found);
	return st;
}

static enum status locate(struct gemm *g, uint32_t b, const struct gemm_products *found,
			  const struct gemm_products *right, struct wrong *wrong, struct error *err)
{
	uint32_t m = g->opts.m, n = g->opts.n, rows = 0, bad_columns = 0;
	bool *columns = calloc(n, sizeof(*columns));
	enum status st = STATUS_OK;

	if (!columns)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "gemm: no room to verify");
	for (uint32_t j = 0; j < n; j++)
		bad_columns += columns[j] = column_wrong(found, right, j);
	for (uint32_t i = 0; !st && i < m; i++) {
		if (!row_wrong(found, right, i))
			continue;
		if (rows++ < ROWS_EXAMINED)
			st = examine_row(g, b, i, bad_columns ? columns : NULL, wrong, err);
		else
			wrong->count += found->odd_row[i] ? found->odd_row[i] : 1;
	}
	for (uint32_t j = 0; !rows && j < n; j++)
		if (columns[j])
			gemm_note(g, wrong, b, UINT32_MAX, j, (double)right->wc[0][j],
				  (double)found->wc[0][j]);
	free(columns);
	return st;
}

static enum status check_batch(struct gemm *g, uint32_t b, struct wrong *wrong, struct error *err)
{
	struct gemm_products found = {0}, right = {0};
	enum status st = products_alloc(g, &found, err);

	if (!st)
		st = products_alloc(g, &right, err);
	if (!st)
		st = g->access->products(g, 0, b, &found, err);
	if (!st)
		st = gemm_expected(g, b, &right, err);
	if (!st)
		st = locate(g, b, &found, &right, wrong, err);
	if (!st)
		wrong->checked += (uint64_t)g->opts.m * g->opts.n;
	products_release(&found);
	products_release(&right);
	return st;
}

enum status gemm_check_integer(struct gemm *g, struct wrong *wrong, struct error *err)
{
	enum status st = g->access->fill(g, GEMM_DATA_INTEGER, err);

	if (!st)
		st = g->access->poison(g, err);
	if (!st)
		st = g->access->run(g, 0, err);
	for (uint32_t b = 0; !st && b < g->opts.batch; b++)
		st = check_batch(g, b, wrong, err);
	return st;
}

/* -- the host's own sums -- */

/* Sums of k products of -1, 0, 1 and a bias stay within k + 1; so the weighted sums stay below 2^55. */
static bool value_at(const struct gemm *g, const void *c, uint64_t i, double *out)
{
	*out = gemm_value_out(g->opts.type, c, i);
	return *out == floor(*out) && fabs(*out) <= (double)g->opts.k + 1;
}

void gemm_products_host(const struct gemm *g, const void *c, struct gemm_products *out)
{
	uint32_t m = g->opts.m, n = g->opts.n;

	memset(out->odd_row, 0, m * sizeof(uint32_t));
	memset(out->odd_column, 0, n * sizeof(uint32_t));
	for (unsigned w = 0; w < 2; w++) {
		memset(out->cw[w], 0, m * sizeof(int64_t));
		memset(out->wc[w], 0, n * sizeof(int64_t));
	}
	for (uint32_t i = 0; i < m; i++) {
		for (uint32_t j = 0; j < n; j++) {
			double value;

			if (!value_at(g, c, (uint64_t)i * n + j, &value)) {
				out->odd_row[i]++;
				out->odd_column[j]++;
				continue;
			}
			for (unsigned w = 0; w < 2; w++) {
				out->cw[w][i] += (int64_t)value * gemm_weight(w, j);
				out->wc[w][j] += (int64_t)value * gemm_weight(w, i);
			}
		}
	}
}
