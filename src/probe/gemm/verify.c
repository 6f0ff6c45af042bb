/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of probe gemm. The integer pass covers every element of one run. The random pass compares
 * samples of the case's own data with double precision. The output of the timed iterations is compared with
 * the accepted result, bit for bit or within a tolerance. Every C is poisoned before its next use, so a
 * kernel that returns at once leaves poison. One kind of error is not found: a constant fault in low bits
 * that appears only at full power.
 */
#include <inttypes.h>
#include <math.h>
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"

static enum status mismatch(const struct gemm *g, const struct wrong *w, const char *pass, struct error *err)
{
	return error_set_cause(err, STATUS_MISMATCH, w->nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			       "gemm type=%s: %s: %" PRIu64 " of %" PRIu64
			       " elements checked are wrong, the first at %s: expected %.9g, found %.9g",
			       gemm_type_name(g->opts.type), pass, w->count, w->checked, w->place,
			       w->expected, w->found);
}

/* Two sums of the same data may differ by twice the error of one. A typical sum has a size of 6 sqrt(k) /
 * 3. */
static double set_tolerance(const struct gemm *g)
{
	double k = g->opts.k;

	if (g->opts.data == GEMM_DATA_ZEROS || g->opts.type == GEMM_INT8)
		return 0;
	return 2 * gemm_tolerance(g->opts.type, g->opts.k, 2 * sqrt(k) + 1, k / 4 + sqrt(k) + 1);
}

/* Checks all of a set's C: it has the accepted bits, or it is close to set 0's C, whose samples are compared
 * with exact values. If an earlier set had other bits (suspect), equal bits are no longer sufficient, because
 * set 0 may be the wrong one. */
static enum status check_set(struct gemm *g, unsigned set, bool *suspect, struct wrong *w, struct error *err)
{
	uint64_t each = (uint64_t)g->opts.m * g->opts.n, count = 0, first = 0, hash;
	enum status st = STATUS_OK;

	if (g->access->hash) {
		st = g->access->hash(g, set, &hash, err);
		if (st)
			return st;
		if (g->hashed && hash == g->hash && !*suspect) {
			w->checked += each * g->opts.batch;
			return STATUS_OK;
		}
		*suspect |= g->hashed && hash != g->hash;
	}
	if (!set)
		return gemm_check_samples(g, set, w, err);
	st = g->access->differences(g, set, set_tolerance(g), &count, &first, err);
	if (st)
		return st;
	w->checked += each * g->opts.batch;
	if (count) {
		uint32_t b = (uint32_t)(first / each), row = (uint32_t)(first % each / g->opts.n);
		uint32_t column = (uint32_t)(first % g->opts.n);
		double found;

		st = g->access->elements(g, set, &first, 1, &found, err);
		if (st)
			return st;
		gemm_note(g, w, b, row, column, gemm_exact(g, g->opts.data, b, row, column, NULL), found);
		w->count += count - 1;
	}
	return STATUS_OK;
}

/* Checks the output of the timed phases. Set 0 is the reference of the other sets, so it is computed again if
 * the timed phases did not use it. */
static enum status check_left(struct gemm *g, struct wrong *w, struct error *err)
{
	enum status st = STATUS_OK;
	bool suspect = false;

	if (!(g->written & 1))
		st = g->access->run(g, 0, err);
	for (unsigned set = 0; !st && set < g->sets; set++)
		if (!set || g->written >> set & 1)
			st = check_set(g, set, &suspect, w, err);
	if (!st && w->count)
		st = mismatch(g, w, "after timing", err);
	/* The bits differ from the accepted ones. The reason is split-K, or a fault that began later; the
	 * integer pass decides. */
	if (suspect)
		g->integer_done = false;
	return st;
}

static enum status check_random(struct gemm *g, struct wrong *w, struct error *err)
{
	enum status st = g->access->fill(g, g->opts.data, err);

	if (!st)
		st = g->access->poison(g, err);
	if (!st)
		st = g->access->run(g, 0, err);
	if (!st)
		st = gemm_check_samples(g, 0, w, err);
	g->hashed = false;
	if (!st && !w->count && g->access->hash) {
		st = g->access->hash(g, 0, &g->hash, err);
		g->hashed = !st;
	}
	if (!st && w->count)
		st = mismatch(g, w, "random data", err);
	return st;
}

static enum status verify(struct gemm *g, struct wrong *wrong, struct error *err)
{
	enum status st = STATUS_OK;

	*wrong = (struct wrong){.total = (uint64_t)g->opts.m * g->opts.n * g->opts.batch};
	if (g->ready && g->written)
		st = check_left(g, wrong, err);
	if (!st && !g->integer_done) {
		st = gemm_check_integer(g, wrong, err);
		if (!st && wrong->count)
			st = mismatch(g, wrong, "integer pass", err);
		g->integer_done = !st;
		if (!st)
			st = check_random(g, wrong, err);
	}
	if (st)
		return st;
	if (wrong->checked > wrong->total)
		wrong->checked = wrong->total;
	g->ready = true;
	g->written = 0;
	return g->access->poison(g, err);
}

enum status gemm_verify(void *state, struct wrong *wrong, struct error *err)
{
	struct gemm *g = state;
	struct cpu_pool *own = NULL;
	enum status st = STATUS_OK;

	if (!g->pool &&
	    !(g->right_known && g->samples_known)) /* otherwise verification computes nothing large */
		st = cpu_pool_usable(&own, err);
	if (st)
		return st;
	if (own)
		g->pool = own;
	st = verify(g, wrong, err);
	if (own)
		g->pool = NULL;
	cpu_pool_destroy(&own);
	return st;
}
