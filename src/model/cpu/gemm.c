/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM on a CPU. Each thread computes some rows or columns of the result, with single-threaded OpenBLAS, or
 * with the loops here if OpenBLAS is missing or the type is double.
 */
#include "model/cpu/fp8.h"
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/cpu/real.h"
#include "model/cpu/invariant/row_gemm.h"

enum { GRAIN = 16 };	/* rows or columns; a register block of the libraries */
enum { THIN_ROWS = 4 }; /* with fewer rows of x, reading y directly is faster than packing it */

/* z[0..n) += a * y[0..n) */
VECTOR static void axpy(real *restrict z, const real *restrict y, real a, int64_t n)
{
	for (int64_t j = 0; j < n; j++)
		z[j] += a * y[j];
}

VECTOR static real dot(const real *restrict x, const real *restrict y, int64_t n)
{
	real sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < n; j++)
		sum += x[j] * y[j];
	return sum;
}

static real element(const struct product *p, int64_t i, int64_t l)
{
	return p->tx ? p->x[l * p->ldx + i] : p->x[i * p->ldx + l];
}

static void own_row(const struct product *p, int64_t i)
{
	real *z = p->z + i * p->ldz;

	for (int64_t j = 0; j < p->n; j++)
		z[j] = p->beta == 0 ? 0 : p->beta * z[j];
	if (p->ty && !p->tx) {
		for (int64_t j = 0; j < p->n; j++)
			z[j] += p->alpha * dot(p->x + i * p->ldx, p->y + j * p->ldy, p->k);
	} else if (!p->ty) {
		for (int64_t l = 0; l < p->k; l++)
			axpy(z, p->y + l * p->ldy, p->alpha * element(p, i, l), p->n);
	} else {
		for (int64_t j = 0; j < p->n; j++)
			for (int64_t l = 0; l < p->k; l++)
				z[j] += p->alpha * element(p, i, l) * p->y[j * p->ldy + l];
	}
}

void cpu_product(const struct cpu *cpu, const struct product *p)
{
	CBLAS_TRANSPOSE tx = p->tx ? CblasTrans : CblasNoTrans, ty = p->ty ? CblasTrans : CblasNoTrans;

	if (p->m < 1 || p->n < 1)
		return;
	if (!cpu->blas.set_num_threads || (p->m <= THIN_ROWS && p->ty && !p->tx)) {
		for (int64_t i = 0; i < p->m; i++)
			own_row(p, i);
		return;
	}
#ifdef MODEL_REAL_F64
	blas_dgemm(&cpu->blas, tx, ty, (int)p->m, (int)p->n, (int)p->k, p->alpha, p->x, (int)p->ldx, p->y,
		   (int)p->ldy, p->beta, p->z, (int)p->ldz);
#else
	blas_sgemm(&cpu->blas, tx, ty, (int)p->m, (int)p->n, (int)p->k, p->alpha, p->x, (int)p->ldx, p->y,
		   (int)p->ldy, p->beta, p->z, (int)p->ldz);
#endif
}

struct part {
	const struct cpu *cpu;
	const struct gemm *g;
	bool columns;
};

/* d = beta c + bias for a part, so that one GEMM can add to it. False: there is neither. */
static bool begin_part(const struct gemm *g, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
	const bool bias = g->bias.rows > 0, keep = g->beta != 0;

	if (!bias && !keep)
		return false;
	for (int64_t i = row; i < row + rows; i++) {
		real *d = real_row(g->d, i) + col;
		const real *c = keep ? real_row(g->c, i) + col : NULL;
		const real *add = bias ? real_row(g->bias, 0) + col : NULL;

		if (keep && !bias && c == d && g->beta == 1)
			break;
		for (int64_t j = 0; j < cols; j++)
			d[j] = (keep ? (real)g->beta * c[j] : 0) + (bias ? add[j] : 0);
	}
	return true;
}

static void gemm_part(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct part *part = arg;
	const struct gemm *g = part->g;
	int64_t row = part->columns ? 0 : first, rows = part->columns ? g->d.rows : last - first;
	int64_t col = part->columns ? first : 0, cols = part->columns ? last - first : g->d.cols;
	struct product p = {
		.x = (const real *)g->a.data + (g->trans_a ? row : row * g->a.ld),
		.y = (const real *)g->b.data + (g->trans_b ? col * g->b.ld : col),
		.z = real_row(g->d, row) + col,
		.m = rows,
		.n = cols,
		.k = g->trans_a ? g->a.rows : g->a.cols,
		.ldx = g->a.ld,
		.ldy = g->b.ld,
		.ldz = g->d.ld,
		.tx = g->trans_a,
		.ty = g->trans_b,
		.alpha = (real)g->alpha,
	};

	(void)thread;
	p.beta = begin_part(g, row, rows, col, cols) ? 1 : 0;
	cpu_product(part->cpu, &p);
}

static enum status multiply_numbers(struct backend *back, const struct gemm *g, struct error *err)
{
	struct part part = {.cpu = cpu_of(back), .g = g};
	double bytes = 4.0 * (double)(g->a.rows * g->a.cols + g->b.rows * g->b.cols + g->d.rows * g->d.cols);

	if (g->a.dtype != REAL_DTYPE || g->b.dtype != REAL_DTYPE || g->d.dtype != REAL_DTYPE)
		return error_set(err, STATUS_BUG, "a GEMM of types that the CPU does not support");
	part.columns = g->d.cols > g->d.rows;
	cpu_parts(back, part.columns ? g->d.cols : g->d.rows, GRAIN, bytes, gemm_part, &part);
	return STATUS_OK;
}

#ifndef MODEL_REAL_F64
enum status cpu_gemm_numbers(struct backend *back, const struct gemm *g, struct error *err)
{
	return multiply_numbers(back, g, err);
}
#endif

static enum status multiply(struct backend *back, const struct gemm *g, struct error *err)
{
	if (cpu_blocks_of(g->b.dtype))
		return cpu_gemm_blocks(back, g, err);
#ifndef MODEL_REAL_F64
	if (cpu_takes_fp8(g))
		return cpu_gemm_fp8(back, g, err);
	if (back->invariant && cpu_rows_take(g)) {
		cpu_gemm_rows(back, g);
		return STATUS_OK;
	}
#endif
	cost_gemm(back, g);
	return multiply_numbers(back, g, err);
}

enum status cpu_gemm(struct backend *back, const struct gemm *g, struct error *err)
{
	const double began = clock_now_s();
	enum status st = multiply(back, g, err);

	back->cost.gemm_s += clock_now_s() - began;
	return st;
}
