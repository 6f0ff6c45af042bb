/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling kernels against their reference, which sorts in double. An id may differ from the reference's
 * only where the random point, or the border that top_p makes, lies within rounding of an id's share. Draws
 * are held to their distribution by a chi-square test.
 */
#include "cases_step.h"
#include "sample_bed.h"
#include <math.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CLOSE 1e-6 /* of the sum of all shares */

/* p0: rows; p1: the options, the logits, and how they lie. */
#define PLAN(options, logits, bf16, odd) ((options) | (logits) << 4 | (bf16) << 8 | (odd) << 9)
#define SAMPLE(entry, why, rows, vocab, options, logits, bf16, odd)                                          \
	{                                                                                                    \
		entry, why, (uint64_t)(rows) * (vocab), 0, 0, rows, PLAN(options, logits, bf16, odd)         \
	}
#define GREEDY "step_sample_greedy"
#define PLAIN "step_sample_plain"
#define CHOOSE "step_sample_choose"

static const struct kernel_case cases[] = {
	SAMPLE(GREEDY, "one of one", 1, 1, OPTIONS_GREEDY, LOGITS_FLAT, 1, 0),
	SAMPLE(GREEDY, "parts", 3, 5003, OPTIONS_GREEDY, LOGITS_FLAT, 1, 0),
	SAMPLE(GREEDY, "odd", 3, 1001, OPTIONS_GREEDY, LOGITS_PEAKED, 1, 1),
	SAMPLE(GREEDY, "F32", 3, 2050, OPTIONS_GREEDY, LOGITS_FLAT, 0, 0),
	SAMPLE(GREEDY, "ties", 3, 2050, OPTIONS_GREEDY, LOGITS_FEW, 1, 0),
	SAMPLE(GREEDY, "zeros of both signs", 2, 515, OPTIONS_GREEDY, LOGITS_EQUAL, 1, 1),
	SAMPLE(GREEDY, "NaN and infinity", 5, 1500, OPTIONS_GREEDY, LOGITS_BROKEN, 1, 0),
	SAMPLE(GREEDY, "padding, many rows", 70, 640, OPTIONS_GREEDY, LOGITS_FLAT, 1, 0),
	SAMPLE(GREEDY, "7B", 64, 152064, OPTIONS_GREEDY, LOGITS_PEAKED, 1, 0),
	SAMPLE(PLAIN, "one of one", 1, 1, OPTIONS_PLAIN, LOGITS_FLAT, 1, 0),
	SAMPLE(PLAIN, "parts", 7, 5003, OPTIONS_PLAIN, LOGITS_FLAT, 1, 0),
	SAMPLE(PLAIN, "peaked, odd", 10, 3001, OPTIONS_PLAIN, LOGITS_PEAKED, 1, 1),
	SAMPLE(PLAIN, "ties", 5, 2050, OPTIONS_PLAIN, LOGITS_FEW, 1, 0),
	SAMPLE(PLAIN, "zeros of both signs", 5, 515, OPTIONS_PLAIN, LOGITS_EQUAL, 1, 0),
	SAMPLE(PLAIN, "values that share a bin", 5, 700, OPTIONS_PLAIN, LOGITS_TINY, 1, 0),
	SAMPLE(PLAIN, "large values", 6, 700, OPTIONS_PLAIN, LOGITS_LARGE, 1, 0),
	SAMPLE(PLAIN, "greedy, large values", 4, 700, OPTIONS_GREEDY, LOGITS_LARGE, 1, 0),
	SAMPLE(PLAIN, "greedy, ties", 4, 700, OPTIONS_GREEDY, LOGITS_FEW, 1, 0),
	SAMPLE(PLAIN, "NaN and infinity", 5, 1500, OPTIONS_PLAIN, LOGITS_BROKEN, 1, 0),
	SAMPLE(PLAIN, "7B, flat", 64, 152064, OPTIONS_PLAIN, LOGITS_FLAT, 1, 0),
	SAMPLE(PLAIN, "7B, peaked", 64, 152064, OPTIONS_PLAIN, LOGITS_PEAKED, 1, 0),
	SAMPLE(PLAIN, "one row of 7B", 1, 152064, OPTIONS_PLAIN, LOGITS_FLAT, 1, 0),
	SAMPLE(PLAIN, "the largest vocabulary", 128, 262144, OPTIONS_PLAIN, LOGITS_EQUAL, 1, 0),
	SAMPLE(CHOOSE, "one of one", 1, 1, OPTIONS_ALL, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "every option", 13, 1503, OPTIONS_ALL, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "every option, peaked, odd", 13, 1111, OPTIONS_ALL, LOGITS_PEAKED, 1, 1),
	SAMPLE(CHOOSE, "every option, F32", 13, 1503, OPTIONS_ALL, LOGITS_FLAT, 0, 0),
	SAMPLE(CHOOSE, "every option, ties", 13, 700, OPTIONS_ALL, LOGITS_FEW, 1, 0),
	SAMPLE(CHOOSE, "every option, zeros", 13, 515, OPTIONS_ALL, LOGITS_EQUAL, 0, 0),
	SAMPLE(CHOOSE, "every option, large values", 13, 700, OPTIONS_ALL, LOGITS_LARGE, 0, 1),
	SAMPLE(CHOOSE, "masks, one of them empty", 8, 1503, OPTIONS_MASKED, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "NaN and infinity", 12, 700, OPTIONS_ALL, LOGITS_BROKEN, 1, 0),
	SAMPLE(CHOOSE, "longer than the list", 6, 9001, OPTIONS_PLAIN, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "longer than the list, flat", 6, 9001, OPTIONS_PLAIN, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "longer than the list, ties", 2, 9001, OPTIONS_PLAIN, LOGITS_EQUAL, 1, 0),
	SAMPLE(CHOOSE, "min_p", 3, 9001, OPTIONS_MIN_P, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "min_p, flat", 2, 9001, OPTIONS_MIN_P, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "penalties", 3, 2050, OPTIONS_PENALTIES, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "every id may be chosen", 3, 9001, OPTIONS_ANY, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "a mask, top_p", 3, 9001, OPTIONS_JSON, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "biases", 2, 9001, OPTIONS_BIAS, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "alternatives", 2, 9001, OPTIONS_LOGPROBS, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "alternatives, ties", 2, 9001, OPTIONS_LOGPROBS, LOGITS_EQUAL, 0, 0),
	SAMPLE(CHOOSE, "7B", 64, 152064, OPTIONS_ALL, LOGITS_PEAKED, 1, 0),
	SAMPLE(CHOOSE, "7B, flat, F32", 13, 152064, OPTIONS_ALL, LOGITS_FLAT, 0, 0),
	SAMPLE(PLAIN, "draws", 64, 6, OPTIONS_DRAWS, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "draws", 48, 6, OPTIONS_DRAWS, LOGITS_FLAT, 0, 0),
	SAMPLE(PLAIN, "many draws", 50000, 300, OPTIONS_DRAWS, LOGITS_FLAT, 1, 0),
	SAMPLE(CHOOSE, "many draws", 50000, 300, OPTIONS_DRAWS, LOGITS_FLAT, 1, 0),
	{"step_sample_count", "a prompt and its text", 5000, 0, 0, 1, 1},
	{"step_sample_count", "one id more often than it is counted", 40000, 0, 0, 2, 0},
};

struct found {
	int32_t *results, *last;
	uint16_t *counts;
};

static struct sample_plan plan_of(const struct kernel_case *c)
{
	return (struct sample_plan){
		.kind = sample_kind(c->entry),
		.rows = c->p0,
		.vocab = (uint32_t)(c->count / c->p0),
		.options = (enum sample_options)(c->p1 & 15),
		.logits = (enum sample_logits)(c->p1 >> 4 & 15),
		.bf16 = c->p1 >> 8 & 1,
		.odd = c->p1 >> 9 & 1,
	};
}

/* Whether the choice is within rounding of another id's share. */
static bool is_close(const struct sample_bed *b, uint32_t row, int32_t id, struct ref_candidate *c)
{
	const struct step_sample_row *r = sample_bed_row(b, row);
	struct step_sample_row wider = *r;
	bool finite;
	int64_t count = ref_sample_order(&b->on_host, row, false, c, &finite);
	double distance;

	if (!finite || !count || r->temperature == 0 || r->given >= 0)
		return false;
	/* The point moves with the border of top_p, and min_p's border is one of values. */
	for (int i = -1; i <= 1; i++) {
		wider.top_p = r->top_p < 1 ? r->top_p + (float)(i * CLOSE) : r->top_p;
		wider.min_p = r->min_p > 0 ? r->min_p * (float)(1 + i * CLOSE) : 0;
		count = ref_sample_order(&b->on_host, row, false, c, &finite);
		const int64_t kept = ref_sample_keep(&wider, c, count);
		const int64_t at = ref_sample_point(&wider, c, kept, &distance);

		for (int64_t j = at ? at - 1 : 0; j <= at + 1 && j < count; j++)
			if (c[j].id == id && (distance < CLOSE || j == at))
				return true;
	}
	return false;
}

static enum status check_logprobs(const struct sample_bed *b, uint32_t row, const int32_t *found,
				  const int32_t *expected, struct error *err)
{
	const struct step_sample_row *r = sample_bed_row(b, row);
	const float *f = (const float *)found, *e = (const float *)expected;

	if (r->logprobs >= 0 && found[0] == expected[0] &&
	    !(fabsf(f[2] - e[2]) <= 1e-4f + 1e-6f * fabsf(e[2])))
		return error_set(err, STATUS_MISMATCH, "row %u: log probability %.9g, the reference has %.9g",
				 row, (double)f[2], (double)e[2]);
	if (found[3] != expected[3])
		return error_set(err, STATUS_MISMATCH, "row %u: %d alternatives, the reference has %d", row,
				 found[3], expected[3]);
	for (int32_t i = 0; i < found[3]; i++) {
		const int at = 4 + STEP_SAMPLE_TOPS + i;

		if (found[4 + i] != expected[4 + i] ||
		    !(fabsf(f[at] - e[at]) <= 1e-4f + 1e-6f * fabsf(e[at])))
			return error_set(
				err, STATUS_MISMATCH,
				"row %u: alternative %d is id %d with %.9g, the reference has %d with %.9g",
				row, i, found[4 + i], (double)f[at], expected[4 + i], (double)e[at]);
	}
	return STATUS_OK;
}

static enum status check_row(const struct sample_bed *b, uint32_t row, const struct found *f,
			     struct ref_candidate *c, struct error *err)
{
	const struct step_sample_row *r = sample_bed_row(b, row);
	const int32_t *own = f->results + (uint64_t)row * STEP_SAMPLE_RESULT_WORDS;
	const int32_t *ref = (const int32_t *)b->host[BED_RESULTS] + (uint64_t)row * STEP_SAMPLE_RESULT_WORDS;
	uint16_t *counts = b->host[BED_COUNTS];

	if (own[1] != ref[1])
		return error_set(err, STATUS_MISMATCH, "row %u: status %d, the reference has %d", row, own[1],
				 ref[1]);
	if (own[0] != ref[0] && !is_close(b, row, own[0], c))
		return error_set(err, STATUS_MISMATCH, "row %u: id %d, the reference has %d", row, own[0],
				 ref[0]);
	if (own[0] != ref[0] && r->place >= 0) {
		((int32_t *)b->host[BED_LAST])[r->place] = own[0];
		if (r->counted) {
			counts[(uint64_t)r->place * b->vocab + (uint32_t)ref[0]]--;
			counts[(uint64_t)r->place * b->vocab + (uint32_t)own[0]]++;
		}
	}
	return check_logprobs(b, row, own, ref, err);
}

static enum status check(struct sample_bed *b, const struct found *f, struct error *err)
{
	struct ref_candidate *c = malloc(b->vocab * sizeof(*c));
	enum status st = c ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for candidates");

	for (uint32_t row = 0; row < b->rows && !st; row++)
		st = check_row(b, row, f, c, err);
	free(c);
	if (!st)
		st = kit_compare("last", f->last, b->host[BED_LAST], b->size[BED_LAST], err);
	if (!st)
		st = kit_compare("counts", f->counts, b->host[BED_COUNTS], b->size[BED_COUNTS], err);
	for (int i = 0; i < BED_PARTS && !st; i++)
		st = kit_guards(b->k, &b->device[i], "an operand", err);
	if (!st)
		st = kit_guards(b->k, &b->part, "part", err);
	if (!st)
		st = kit_guards(b->k, &b->tops, "tops", err);
	return st ? st : kit_guards(b->k, &b->bins, "bins", err);
}

/* Draws of one distribution: below the mean of chi-square plus five deviations, ids with few expected draws
 * taken together. */
static enum status check_draws(struct sample_bed *b, const struct found *f, struct error *err)
{
	struct ref_candidate *c = malloc(b->vocab * sizeof(*c));
	uint32_t *drawn = calloc(b->vocab, sizeof(*drawn));
	double all = 0, sum = 0, rest = 0, rest_drawn = 0, cells = 0, draws = 0;
	int64_t kept;
	bool finite;

	if (!c || !drawn) {
		free(c);
		free(drawn);
		return error_set(err, STATUS_NO_RESOURCE, "no memory for draws");
	}
	for (uint32_t row = 0; row < b->rows; row++)
		drawn[f->results[(uint64_t)row * STEP_SAMPLE_RESULT_WORDS]]++;
	draws = b->rows;
	kept = ref_sample_order(&b->on_host, 0, false, c, &finite);
	kept = ref_sample_keep(sample_bed_row(b, 0), c, kept);
	for (int64_t i = 0; i < kept; i++)
		all += c[i].share;
	for (int64_t i = 0; i < kept; i++) {
		const double expected = draws * c[i].share / all, d = drawn[c[i].id];

		if (expected < 5) {
			rest += expected;
			rest_drawn += d;
			continue;
		}
		sum += (d - expected) * (d - expected) / expected;
		cells++;
		drawn[c[i].id] = 0;
	}
	if (rest >= 5) {
		sum += (rest_drawn - rest) * (rest_drawn - rest) / rest;
		cells++;
	}
	free(c);
	free(drawn);
	return sum <= cells - 1 + 5 * sqrt(2 * cells)
		       ? STATUS_OK
		       : error_set(err, STATUS_MISMATCH, "chi-square of %g draws is %.1f with %g cells",
				   draws, sum, cells);
}

/* Twice: the second run shows that the first one left its counters as they were. */
static enum status sample_one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	const struct sample_plan plan = plan_of(c);
	struct found f = {0};
	struct sample_bed b;
	enum status st = sample_bed_open(k, &b, &plan, err);

	if (!st) {
		f.results = malloc(b.size[BED_RESULTS] + 16);
		f.last = malloc(b.size[BED_LAST] + 16);
		f.counts = malloc(b.size[BED_COUNTS] + 16);
	}
	for (int i = 0; i < 2 && !st; i++) {
		st = gpu_copy_to(k->device, b.device[BED_COUNTS].data, b.host[BED_COUNTS], b.size[BED_COUNTS],
				 err);
		if (!st)
			st = sample_bed_launch(&b, c->entry, i, err);
	}
	if (!st && !(f.results && f.last && f.counts))
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for results");
	if (!st)
		st = sample_bed_fetch(&b, f.results, f.last, f.counts, err);
	if (!st) {
		ref_run(c->entry, (struct ref_grid){1, 1}, &b.on_host);
		st = check(&b, &f, err);
	}
	if (!st && plan.options == OPTIONS_DRAWS)
		st = check_draws(&b, &f, err);
	free(f.results);
	free(f.last);
	free(f.counts);
	sample_bed_close(&b);
	return st;
}

/* p0: rows of the counts before the one that is set; p1: with ids outside the vocabulary. */
static enum status count_one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	enum { VOCAB = 1001 };
	const uint64_t bytes = (c->p0 + 2) * VOCAB * 2, count = c->count;
	uint16_t *host = malloc(bytes + 16), *found = malloc(bytes + 16);
	int32_t *ids = malloc(count * sizeof(*ids));
	struct guarded counts = {0}, id = {0};
	struct gpu_kernel *kernel;
	struct step_count_args a = {
		.prompt = c->p1 ? count / 3 : 0, .count = count, .vocab = VOCAB, .clear = 1};
	enum status st =
		host && found && ids ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for counts");

	for (uint64_t i = 0; !st && i < count; i++)
		ids[i] = c->p1 ? (int32_t)(i * i % (VOCAB + 50)) - 20 : 7;
	if (!st) {
		memset(host, 0x55, bytes);
		st = kit_put(k, &counts, host, bytes, err);
	}
	if (!st)
		st = kit_put(k, &id, ids, count * sizeof(*ids), err);
	if (!st)
		st = gpu_kernel(k->device, &kernel, "step_sample", c->entry, err);
	a.counts = counts.data + c->p0 * VOCAB * 2;
	a.id = id.data;
	if (!st)
		st = gpu_launch_1d(kernel, k->stream, 1, 1024, 0, &a, err);
	if (!st)
		st = gpu_copy_from(k->device, found, counts.data, bytes, err);
	if (!st) {
		a.counts = (uint64_t)(uintptr_t)(host + c->p0 * VOCAB);
		a.id = (uint64_t)(uintptr_t)ids;
		ref_run(c->entry, (struct ref_grid){1, 1024}, &a);
		st = kit_compare("counts", found, host, bytes, err);
	}
	if (!st)
		st = kit_guards(k, &counts, "counts", err);
	kit_free(k, &counts);
	kit_free(k, &id);
	free(host);
	free(found);
	free(ids);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return strcmp(c->entry, "step_sample_count") ? sample_one(k, c, err) : count_one(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_sample, one);
}

const struct kernel_group group_sample = {
	.name = "sample", .cases = cases, .count = COUNT(cases), .test = test, .time = sample_time};
