/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The integer pass. A and B consist of -1, 0 and 1 (density 1/8), so every sum is exact in every type and
 * order. C w = A (B w) and w^T C = (w^T A) B hold exactly for any weights w. With two weights that depend on
 * the position, an error changes a row sum or a column sum unless at least three wrong elements of a row
 * cancel. The correct sums are the same for every variant, so they are computed once and cached.
 */
#include <inttypes.h>
#include <math.h>
#include "probe/gemm/gemm.h"

/* wrong rows that are recomputed element by element; each further wrong row counts as at least one
 * wrong element */
enum { ROWS_EXAMINED = 16 };

/* -- locating wrong elements -- */

static enum status products_alloc(const struct gemm *g, struct gemm_products *p, struct error *err)
{
	size_t m = g->opts.m, n = g->opts.n;
	int64_t *sums = calloc(2 * (m + n), sizeof(*sums));
	uint32_t *odd = calloc(m + n, sizeof(*odd));

	if (!sums || !odd) {
		free(sums);
		free(odd);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "gemm: not enough memory to verify");
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

/* Recomputes the elements of this row in the columns with wrong sums (in all columns if no column sum is
 * wrong), and counts the wrong ones. */
static enum status examine_row(struct gemm *g, uint32_t b, uint32_t row, const bool *columns,
			       struct wrong *wrong, struct error *err)
{
	uint32_t n = g->opts.n;
	uint64_t *index = malloc(n * sizeof(*index));
	double *found = malloc(n * sizeof(*found));
	uint64_t before = wrong->count;
	enum status st = STATUS_OK;

	if (!index || !found) {
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "gemm: not enough memory to verify");
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
	if (wrong->count == before) /* the sums differ but the elements do not: C changes while it is read */
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
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "gemm: not enough memory to verify");
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

/* Puts the correct sums of batch b into g->right; with a single batch they are cached for all variants. */
static enum status right_products(struct gemm *g, uint32_t b, struct error *err)
{
	enum status st = STATUS_OK;

	if (g->right_known)
		return STATUS_OK;
	if (!g->right.cw[0])
		st = products_alloc(g, &g->right, err);
	if (!st)
		st = gemm_expected(g, b, &g->right, err);
	g->right_known = !st && g->opts.batch == 1;
	return st;
}

static enum status check_batch(struct gemm *g, uint32_t b, struct wrong *wrong, struct error *err)
{
	struct gemm_products found = {0};
	enum status st = products_alloc(g, &found, err);

	if (!st)
		st = g->access->products(g, 0, b, &found, err);
	if (!st)
		st = right_products(g, b, err);
	if (!st)
		st = locate(g, b, &found, &g->right, wrong, err);
	if (!st)
		wrong->checked += (uint64_t)g->opts.m * g->opts.n;
	products_release(&found);
	return st;
}

void gemm_end(struct gemm *g)
{
	products_release(&g->right);
	g->right_known = g->samples_known = false;
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
