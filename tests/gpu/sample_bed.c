/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_bed.h"
#include "core/math/random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BIASES_OF_ROW = 7, MASKS = 4, DISTINCT = 12 /* rows, which then repeat */ };

static double uniform(uint32_t stream, uint64_t i)
{
	return ((double)random_u32(0x5a5a, stream, i) + 0.5) * 0x1p-32;
}

/* Of a normal distribution with deviation 1. */
static double normal(uint32_t stream, uint64_t i)
{
	return sqrt(-2 * log(uniform(stream, 2 * i))) *
	       cos(2 * 3.14159265358979 * uniform(stream, 2 * i + 1));
}

static double number(const struct sample_plan *p, uint32_t row, uint64_t i)
{
	switch (p->logits) {
	case LOGITS_FLAT:
		return normal(1, i);
	case LOGITS_PEAKED:
		return 2 * normal(1, i) + (uniform(2, i) > 0.999 ? 12 + 4 * uniform(3, i) : 0);
	case LOGITS_FEW:
		return floor(4 * uniform(1, i)) / 2;
	case LOGITS_EQUAL:
		return uniform(1, i) < 0.5 ? 0.0 : -0.0;
	case LOGITS_TINY:
		return normal(1, i) * 0x1p-24;
	case LOGITS_LARGE:
		return (row % 2 ? 3000 : 300) * (2 * uniform(1, i) - 1);
	case LOGITS_BROKEN:
		break;
	}
	if (i % p->vocab != p->vocab / 2 || row % 4 == 3)
		return normal(1, i);
	return row % 4 == 0 ? (double)NAN : row % 4 == 1 ? (double)INFINITY : (double)-INFINITY;
}

static uint16_t to_bf16(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)(bits >> 16 | (isnan(f) ? 0x40u : 0));
}

static void fill_logits(struct sample_bed *b, const struct sample_plan *p, int64_t ld, int64_t shift)
{
	const bool one = p->options == OPTIONS_DRAWS;

	const size_t size = b->bf16 ? 2 : 4;
	unsigned char *logits = b->host[BED_LOGITS];

	for (uint32_t row = 0; row < (one ? 1 : b->rows < DISTINCT ? b->rows : DISTINCT); row++)
		for (uint32_t id = 0; id < b->vocab; id++) {
			const double v = number(p, row, (uint64_t)row * b->vocab + id);
			const int64_t at = shift + row * ld + id;

			if (b->bf16)
				((uint16_t *)b->host[BED_LOGITS])[at] = to_bf16(v);
			else
				((float *)b->host[BED_LOGITS])[at] = (float)v;
		}
	for (uint32_t row = DISTINCT; !one && row < b->rows; row++)
		memcpy(logits + (size_t)(shift + row * ld) * size,
		       logits + (size_t)(shift + row % DISTINCT * ld) * size, b->vocab * size);
}

static struct step_sample_row plain_row(uint32_t row)
{
	static const float temperatures[] = {0.7f, 1, 1.5f, 0.2f, 0.01f, 3},
			   tops[] = {0.9f, 1, 0.5f, 0.99f, 0.01f, 0.9f, 0.95f};

	return (struct step_sample_row){.temperature = temperatures[row % 6],
					.top_p = tops[row % 7],
					.repetition = 1,
					.given = -1,
					.mask = -1,
					.logprobs = -1,
					.place = (int32_t)(row * 2 + 1),
					.seed = 0x123456789abcu + row % 3,
					.stream = row % 4,
					.index = row * 3};
}

/* Other options in each row, by the bits of its number and by turns. */
static void mix(struct step_sample_row *r, uint32_t row, const struct sample_bed *b)
{
	if (row % 2) {
		r->counted = 1;
		r->repetition = 1.2f;
		r->presence = 0.25f;
		r->frequency = 0.5f;
	}
	if (row % 3 == 1)
		r->top_k = row % 2 ? 5 : 40;
	if (row % 4 == 2)
		r->min_p = 0.1f;
	if (row % 5 == 3)
		r->mask = (int32_t)(row % (MASKS - 1));
	if (row % 3 == 2) {
		r->bias_begin = (int32_t)row * BIASES_OF_ROW;
		r->biases = BIASES_OF_ROW;
	}
	r->logprobs = (int32_t)(row % 7) * 4 - 1;
	r->logprobs = r->logprobs > STEP_SAMPLE_TOPS ? STEP_SAMPLE_TOPS : r->logprobs;
	if (row % 8 == 5)
		r->temperature = 0;
	if (row % 8 == 6)
		r->given = (int32_t)(row * 37 % b->vocab);
	if (row % 11 == 9)
		r->place = -1;
	r->counted = r->place < 0 ? 0 : r->counted;
}

static void penalize(struct step_sample_row *r)
{
	r->counted = 1;
	r->repetition = 1.1f;
	r->presence = 0.25f;
	r->frequency = 0.5f;
}

/* Options from OPTIONS_TOP_P on. */
static void set_as_requested(struct step_sample_row *r, uint32_t row, enum sample_options options)
{
	r->temperature = options == OPTIONS_JSON_GREEDY ? 0 : 1;
	r->top_p = options == OPTIONS_MIN_P || options == OPTIONS_ANY ? 1 : 0.95f;
	r->top_k = options == OPTIONS_TOP_K ? 40 : 0;
	r->min_p = options == OPTIONS_MIN_P ? 0.05f : 0;
	if (options == OPTIONS_JSON || options == OPTIONS_JSON_GREEDY)
		r->mask = (int32_t)(row % (MASKS - 1));
	if (options == OPTIONS_PENALTIES)
		penalize(r);
	if (options == OPTIONS_BIAS) {
		r->bias_begin = (int32_t)row * BIASES_OF_ROW;
		r->biases = BIASES_OF_ROW;
	}
	r->logprobs = options == OPTIONS_LOGPROBS ? STEP_SAMPLE_TOPS : -1;
}

static void fill_rows(struct sample_bed *b, const struct sample_plan *p)
{
	struct step_sample_row *rows = b->host[BED_ROW];

	for (uint32_t row = 0; row < b->rows; row++) {
		struct step_sample_row *r = &rows[row];

		*r = plain_row(row);
		if (p->options == OPTIONS_GREEDY)
			r->temperature = 0;
		if (p->options == OPTIONS_ALL)
			mix(r, row, b);
		if (p->options == OPTIONS_MASKED) {
			r->mask = (int32_t)(row % MASKS);
			r->temperature = row % 3 ? r->temperature : 0;
		}
		if (p->options == OPTIONS_DRAWS) {
			r->temperature = 1;
			r->top_p = 0.95f;
			r->seed = 77;
			r->stream = 5;
			r->index = p->first + row;
		}
		if (p->options >= OPTIONS_TOP_P)
			set_as_requested(r, row, p->options);
		if (p->options != OPTIONS_ALL && p->options != OPTIONS_PENALTIES && row % 11 == 9)
			r->place = -1;
	}
}

/* The last mask allows nothing; equal ids and one that forbids an id are among the biases. */
static void fill_lists(struct sample_bed *b, const struct sample_plan *p)
{
	struct step_sample_bias *bias = b->host[BED_BIAS];
	uint32_t *mask = b->host[BED_MASK];
	const uint32_t words = (b->vocab + 31) / 32;
	uint16_t *counts = b->host[BED_COUNTS];
	/* A conversation has a small share of the vocabulary. */
	const uint32_t counted = p->options == OPTIONS_PENALTIES ? 64 : 8;

	for (uint32_t i = 0; i < b->rows * BIASES_OF_ROW; i++)
		bias[i] = (struct step_sample_bias){
			.id = (int32_t)((i % BIASES_OF_ROW == 6 ? i - 1 : i) * 13 % b->vocab),
			.add = i % BIASES_OF_ROW == 3 ? -(float)INFINITY : (float)(i % 5) * 2 - 3};
	for (uint32_t i = 0; i < MASKS * words; i++)
		mask[i] = i / words == MASKS - 1
				  ? 0
				  : random_u32(3, 1, i) & (i / words ? random_u32(3, 2, i) : ~0u);
	for (uint64_t i = 0; i < b->size[BED_COUNTS] / 2; i++) {
		const uint32_t hash = (uint32_t)(i * 0x9E3779B97F4A7C15u >> 40);

		counts[i] = (uint16_t)(hash % counted ? 0 : hash / counted % 3 | (hash & 0x100) << 7);
	}
	if (b->size[BED_COUNTS] / 2 > b->vocab && b->vocab > 1)
		counts[b->vocab] = 0x7fff;
}

static enum status room(struct sample_bed *b, int which, uint64_t size, struct error *err)
{
	b->size[which] = size;
	b->host[which] = calloc(1, size + 16);
	return b->host[which] ? kit_alloc(b->k, &b->device[which], size, err)
			      : error_set(err, STATUS_NO_RESOURCE, "no memory for a row of samples");
}

static void point(struct sample_bed *b, struct step_sample_args *a, bool host, int64_t shift)
{
	uint64_t at[BED_PARTS];

	for (int i = 0; i < BED_PARTS; i++)
		at[i] = host ? (uint64_t)(uintptr_t)b->host[i] : b->device[i].data;
	a->logits = at[BED_LOGITS] + (uint64_t)shift * (b->bf16 ? 2 : 4);
	a->row = at[BED_ROW];
	a->bias = at[BED_BIAS];
	a->mask = at[BED_MASK];
	a->counts = at[BED_COUNTS];
	a->last = at[BED_LAST];
	a->results = at[BED_RESULTS];
	a->part = b->part.data;
	a->tops = b->tops.data;
	a->bins = b->bins.data;
}

static enum status make_room(struct sample_bed *b, const struct sample_plan *p, int64_t ld, unsigned parts,
			     struct error *err)
{
	const uint64_t rows = b->rows;
	enum status st = room(b, BED_LOGITS,
			      (uint64_t)(1 + (p->options == OPTIONS_DRAWS ? 1 : (int64_t)rows) * ld) *
				      (b->bf16 ? 2 : 4),
			      err);

	if (!st)
		st = room(b, BED_ROW, rows * sizeof(struct step_sample_row), err);
	if (!st)
		st = room(b, BED_BIAS, rows * BIASES_OF_ROW * sizeof(struct step_sample_bias), err);
	if (!st)
		st = room(b, BED_MASK, (uint64_t)MASKS * ((b->vocab + 31) / 32) * 4, err);
	if (!st)
		st = room(b, BED_COUNTS,
			  p->options == OPTIONS_ALL || p->options == OPTIONS_PENALTIES
				  ? (uint64_t)b->places * b->vocab * 2
				  : 4,
			  err);
	if (!st)
		st = room(b, BED_LAST, b->places * 4, err);
	if (!st)
		st = room(b, BED_RESULTS, rows * STEP_SAMPLE_RESULT_WORDS * 4, err);
	if (!st)
		st = kit_alloc(b->k, &b->part, rows * parts * sizeof(struct step_sample_part), err);
	if (!st)
		st = kit_alloc(b->k, &b->tops, rows * parts * STEP_SAMPLE_TOPS * 8, err);
	if (!st)
		st = kit_alloc(b->k, &b->bins, rows * step_sample_bins_bytes(p->kind, parts), err);
	return st;
}

enum status sample_bed_open(struct kit *k, struct sample_bed *b, const struct sample_plan *p,
			    struct error *err)
{
	const int64_t ld = p->odd ? p->vocab + 3 : ((int64_t)p->vocab + 7) / 8 * 8 + 8;
	const unsigned parts = step_sample_parts(p->kind, p->rows, p->vocab);
	enum status st;

	*b = (struct sample_bed){
		.k = k, .rows = p->rows, .vocab = p->vocab, .places = p->rows * 2 + 1, .bf16 = p->bf16};
	st = make_room(b, p, ld, parts, err);
	if (st)
		return st;
	memset(b->host[BED_LOGITS], 0xff, b->size[BED_LOGITS]); /* NaN between the rows */
	fill_logits(b, p, ld, p->odd);
	fill_rows(b, p);
	fill_lists(b, p);
	memset(b->host[BED_LAST], 0xff, b->size[BED_LAST]);
	for (int i = 0; i < BED_PARTS && !st; i++)
		st = gpu_copy_to(k->device, b->device[i].data, b->host[i], b->size[i], err);
	b->on_host = (struct step_sample_args){
		.ld = p->options == OPTIONS_DRAWS ? 0 : ld,
		.ld_counts = p->vocab,
		.ld_results = STEP_SAMPLE_RESULT_WORDS,
		.rows = p->rows,
		.vocab = p->vocab,
		.parts = parts,
		.mask_words = (p->vocab + 31) / 32,
		.bf16 = p->bf16,
	};
	b->on_device = b->on_host;
	point(b, &b->on_host, true, p->odd);
	point(b, &b->on_device, false, p->odd);
	return st;
}

void sample_bed_close(struct sample_bed *b)
{
	for (int i = 0; i < BED_PARTS; i++) {
		kit_free(b->k, &b->device[i]);
		free(b->host[i]);
	}
	kit_free(b->k, &b->part);
	kit_free(b->k, &b->tops);
	kit_free(b->k, &b->bins);
}

static enum status launch(struct sample_bed *b, const char *entry, bool early, struct error *err)
{
	const bool greedy = !strcmp(entry, "step_sample_greedy"), plain = !strcmp(entry, "step_sample_plain");
	const unsigned grid[3] = {b->rows * b->on_device.parts, 1, 1}, block[3] = {STEP_SAMPLE_THREADS, 1, 1};
	const unsigned shared = greedy	? STEP_SAMPLE_SHARED_GREEDY
				: plain ? STEP_SAMPLE_SHARED_PLAIN
					: STEP_SAMPLE_SHARED;
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(b->k->device, &kernel,
				    greedy || plain ? "step_sample_plain" : "step_sample", entry, err);

	if (st)
		return st;
	return early ? gpu_launch_early(kernel, b->k->stream, grid, block, shared, &b->on_device, err)
		     : gpu_launch(kernel, b->k->stream, grid, block, shared, &b->on_device, err);
}

enum status sample_bed_launch(struct sample_bed *b, const char *entry, bool early, struct error *err)
{
	enum status st = STATUS_OK;

	if (!strcmp(entry, "step_sample_choose"))
		st = launch(b, "step_sample_scan", early, err);
	return st ? st : launch(b, entry, early, err);
}

enum status sample_bed_fetch(struct sample_bed *b, int32_t *results, int32_t *last, uint16_t *counts,
			     struct error *err)
{
	enum status st =
		gpu_copy_from(b->k->device, results, b->device[BED_RESULTS].data, b->size[BED_RESULTS], err);

	if (!st)
		st = gpu_copy_from(b->k->device, last, b->device[BED_LAST].data, b->size[BED_LAST], err);
	return st ? st
		  : gpu_copy_from(b->k->device, counts, b->device[BED_COUNTS].data, b->size[BED_COUNTS], err);
}

const struct step_sample_row *sample_bed_row(const struct sample_bed *b, uint32_t row)
{
	return (const struct step_sample_row *)b->host[BED_ROW] + row;
}
