/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy of rows of logits; sums over the flat vector. */
#include "model/cpu/real.h"

struct loss {
	struct mat logits, part, loss;
	const int32_t *target, *row;
	int64_t first; /* id of the logits' first column */
	real scale;
};

/* The numbers of a row of `part`: the highest logit, the sum of exp(logit - highest), the target's logit or
 * 0. */
enum { PART_MOST, PART_SUM, PART_TARGET, PART_NUMBERS };

/* The place of a row's target among the logits; below 0: another part has it. */
static int64_t target_in(const struct loss *l, int64_t i)
{
	const int64_t at = l->target[l->row[i]] - l->first;

	return at < l->logits.cols ? at : -1;
}

VECTOR static void part_row(const real *restrict z, int64_t n, int64_t target, real *restrict out)
{
	real most = z[0], sum = 0;

#pragma omp simd reduction(max : most)
	for (int64_t j = 0; j < n; j++)
		most = z[j] > most ? z[j] : most;
#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < n; j++)
		sum += real_exp(z[j] - most);
	out[PART_MOST] = most;
	out[PART_SUM] = sum;
	out[PART_TARGET] = target >= 0 ? z[target] : 0;
}

/* z becomes scale (softmax(z) - onehot(target)). */
VECTOR static void gradient_row(real *restrict z, int64_t n, int64_t target, real most, real inverse,
				real scale)
{
#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		z[j] = real_exp(z[j] - most) * inverse;
	if (target >= 0)
		z[target] -= scale;
}

/* Completes row i: the loss -log softmax(z)[target], and the gradient if scale is not 0. `whole` has the
 * numbers of the row over all parts. */
static void end_row(const struct loss *l, int64_t i, const real whole[PART_NUMBERS])
{
	*real_row(l->loss, i) = whole[PART_MOST] + (real)log((double)whole[PART_SUM]) - whole[PART_TARGET];
	if (l->scale != 0)
		gradient_row(real_row(l->logits, i), l->logits.cols, target_in(l, i), whole[PART_MOST],
			     l->scale / whole[PART_SUM], l->scale);
}

static void loss_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct loss *l = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++) {
		real whole[PART_NUMBERS];

		part_row(real_row(l->logits, i), l->logits.cols, target_in(l, i), whole);
		end_row(l, i, whole);
	}
}

enum status cpu_cross_entropy(struct backend *back, struct mat logits, const int32_t *target,
			      const int32_t *row, float grad_scale, struct mat loss, struct error *err)
{
	struct loss l = {
		.logits = logits, .loss = loss, .target = target, .row = row, .scale = (real)grad_scale};

	(void)err;
	cost_touch(back, &logits, grad_scale != 0 ? 2 : 1);
	cpu_parts(back, logits.rows, 1, (double)(logits.rows * logits.cols) * sizeof(real), loss_rows, &l);
	return STATUS_OK;
}

static void part_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct loss *l = arg;

	(void)thread;
	for (int64_t i = first; i < last; i++)
		part_row(real_row(l->logits, i), l->logits.cols, target_in(l, i), real_row(l->part, i));
}

enum status cpu_loss_part(struct backend *back, struct mat logits, const int32_t *target, const int32_t *row,
			  int64_t first, struct mat part, struct error *err)
{
	struct loss l = {.logits = logits, .part = part, .target = target, .row = row, .first = first};

	(void)err;
	cost_touch(back, &logits, 1);
	cpu_parts(back, logits.rows, 1, (double)(logits.rows * logits.cols) * sizeof(real), part_rows, &l);
	return STATUS_OK;
}

static void join_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct loss *l = arg;
	const int64_t rows = l->logits.rows;

	(void)thread;
	for (int64_t i = first; i < last; i++) {
		real whole[PART_NUMBERS] = {[PART_MOST] = real_row(l->part, i)[PART_MOST]};

		for (int64_t r = i; r < l->part.rows; r += rows)
			if (real_row(l->part, r)[PART_MOST] > whole[PART_MOST])
				whole[PART_MOST] = real_row(l->part, r)[PART_MOST];
		for (int64_t r = i; r < l->part.rows; r += rows) {
			const real *part = real_row(l->part, r);

			whole[PART_SUM] += part[PART_SUM] * real_exp(part[PART_MOST] - whole[PART_MOST]);
			whole[PART_TARGET] += part[PART_TARGET];
		}
		end_row(l, i, whole);
	}
}

enum status cpu_loss_join(struct backend *back, struct mat logits, const int32_t *target, const int32_t *row,
			  int64_t first, struct mat parts, float grad_scale, struct mat loss,
			  struct error *err)
{
	struct loss l = {.logits = logits,
			 .part = parts,
			 .loss = loss,
			 .target = target,
			 .row = row,
			 .first = first,
			 .scale = (real)grad_scale};

	(void)err;
	cost_touch(back, &logits, grad_scale != 0 ? 2 : 0);
	cpu_parts(back, logits.rows, 1, (double)(logits.rows * logits.cols) * sizeof(real), join_rows, &l);
	return STATUS_OK;
}

struct reducing {
	struct mat x;
	enum reduction reduction;
	double *sum; /* one per block */
};

VECTOR static double block_sum(const real *restrict x, int64_t n, bool squares)
{
	double sum = 0;

	if (squares) {
#pragma omp simd reduction(+ : sum)
		for (int64_t j = 0; j < n; j++)
			sum += (double)x[j] * (double)x[j];
	} else {
#pragma omp simd reduction(+ : sum)
		for (int64_t j = 0; j < n; j++)
			sum += (double)x[j];
	}
	return sum;
}

static void reduce_blocks(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct reducing *r = arg;
	const int64_t all = r->x.rows * r->x.cols;

	(void)thread;
	for (int64_t i = first; i < last; i++) {
		int64_t begin = i * REDUCE_BLOCK, n = all - begin < REDUCE_BLOCK ? all - begin : REDUCE_BLOCK;

		r->sum[i] = block_sum((const real *)r->x.data + begin, n, r->reduction == REDUCE_SUM_SQUARES);
	}
}

enum status cpu_reduce(struct backend *back, struct mat x, enum reduction reduction, double *sum,
		       struct error *err)
{
	struct reducing r = {.x = x, .reduction = reduction};
	const struct arena_mark mark = arena_mark(back->arena);
	struct mat sums;
	enum status st = workspace_reduce(back, &x, &sums, err);

	if (st)
		return st;
	if (x.ld != x.cols && x.rows > 1)
		return error_set(err, STATUS_BUG, "a sum over rows that are not contiguous");
	cost_touch(back, &x, 1);
	r.sum = sums.data;
	cpu_parts(back, sums.cols, 1, (double)(x.rows * x.cols) * sizeof(real), reduce_blocks, &r);
	for (int64_t i = 0; i < sums.cols; i++)
		*sum += r.sum[i];
	arena_reset(back->arena, &mark);
	return STATUS_OK;
}
