/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps over a paged KV cache against the logits of transformers in FP32 (tests/data/model): each sequence in
 * one step, cut into pieces of several lengths, and together with others; pages in any order.
 */
#include "test.h"
#include <math.h>
#include "engine/load/load.h"
#include "engine/step/row_lists.h"
#include "must.h"

enum { PAGE = 16, PAGES = 24, DOCS_MOST = 8 };
static const char *const models[] = {"qwen2", "qwen3", "llama", "llama_tied"};

struct bed {
	struct loaded l;
	struct row_lists *lists;
	struct safetensors expected;
	const int32_t *token;
	int32_t start[DOCS_MOST + 1], docs;
	uint32_t page[DOCS_MOST][PAGES / DOCS_MOST];
	double worst, largest;
	float *first; /* [rows, vocab] logits of the first pass; NaN: none yet */
};

static void bed_open(struct bed *b, const char *name)
{
	char path[600], model[512];
	const struct load_options o = {.device = LOAD_CPU,
				       .model = model,
				       .positions = (PAGES / DOCS_MOST) * PAGE,
				       .sequences = DOCS_MOST,
				       .outputs = 64,
				       .rows = 64,
				       .page_tokens = PAGE,
				       .pages = PAGES};
	const struct tensor *docs;
	struct error err = {0};

	*b = (struct bed){0};
	snprintf(model, sizeof(model), "%s/tests/data/model/%s", SOURCE_DIR, name);
	snprintf(path, sizeof(path), "%s/expected.safetensors", model);
	must(safetensors_open(&b->expected, path, &err), &err);
	must(load_open(&b->l, &o, &err), &err);
	must(row_lists_create(&b->lists, &b->l.most, &err), &err);
	b->token = (const int32_t *)(const void *)tensor_of(&b->expected, "token")->data;
	docs = tensor_of(&b->expected, "full.logits");
	b->first = malloc((size_t)(docs->dim[0] * docs->dim[1]) * sizeof(float));
	assert_non_null(b->first);
	memset(b->first, 0xff, (size_t)(docs->dim[0] * docs->dim[1]) * sizeof(float));
	docs = tensor_of(&b->expected, "documents");
	assert_in_range(docs->dim[0], 2, DOCS_MOST);
	b->docs = (int32_t)docs->dim[0];
	for (int32_t d = 0; d < b->docs; d++) {
		int32_t length;

		memcpy(&length, docs->data + 4 * d, 4);
		b->start[d + 1] = b->start[d] + length;
		for (uint32_t i = 0; i < PAGES / DOCS_MOST; i++) /* backwards, so that no order is assumed */
			b->page[d][i] = PAGES - (i * DOCS_MOST + (uint32_t)d);
	}
}

static void bed_close(struct bed *b)
{
	free(b->first);
	row_lists_destroy(&b->lists);
	load_close(&b->l);
	safetensors_release(&b->expected);
}

static void compare_row(struct bed *b, const struct mat *logits, int64_t at, int32_t row)
{
	const struct tensor *due = tensor_of(&b->expected, "full.logits");
	const float *made = (const float *)logits->data + at * logits->ld;
	float *first = b->first + row * due->dim[1];

	/* the bits of a row do not depend on what else is in the step */
	if (isnan(first[0]))
		memcpy(first, made, (size_t)due->dim[1] * sizeof(*first));
	assert_memory_equal(made, first, (size_t)due->dim[1] * sizeof(*first));
	for (int64_t i = 0; i < due->dim[1]; i++) {
		float wanted;

		memcpy(&wanted, due->data + 4 * (row * due->dim[1] + i), 4);
		b->worst = fmax(b->worst, fabs((double)(made[i] - wanted)));
		b->largest = fmax(b->largest, fabs((double)wanted));
	}
}

/* Positions first[d] .. last[d] - 1 of each document in one step; every row needs logits. */
static void step(struct bed *b, const int32_t *first, const int32_t *last)
{
	int32_t row[64], rows = 0;
	struct error err = {0};
	struct paged_rows lists;
	struct mat logits;

	row_lists_clear(b->lists);
	for (int32_t d = 0; d < b->docs; d++) {
		const struct row_sequence s = {.token = b->token + b->start[d],
					       .known = last[d],
					       .first = first[d],
					       .rows = last[d] - first[d],
					       .outputs = last[d] - first[d],
					       .place = d,
					       .page = b->page[d]};

		if (!s.rows)
			continue;
		row_lists_add(b->lists, &s);
		for (int32_t i = first[d]; i < last[d]; i++)
			row[rows++] = b->start[d] + i;
	}
	lists = row_lists_end(b->lists, rows, rows);
	must(paged_step_forward(b->l.step, &lists, &err), &err);
	logits = paged_step_logits(b->l.step);
	assert_int_equal(logits.rows, rows);
	for (int32_t i = 0; i < rows; i++)
		compare_row(b, &logits, i, row[i]);
}

/* All documents, at most `piece` rows of each per step. */
static void all(struct bed *b, int32_t piece)
{
	int32_t first[DOCS_MOST] = {0}, last[DOCS_MOST];
	bool more = true;

	while (more) {
		more = false;
		for (int32_t d = 0; d < b->docs; d++) {
			const int32_t length = b->start[d + 1] - b->start[d];

			last[d] = first[d] + piece < length ? first[d] + piece : length;
			more |= last[d] < length;
		}
		step(b, first, last);
		memcpy(first, last, sizeof(first));
	}
}

/* One document after the other. */
static void alone(struct bed *b, int32_t piece)
{
	for (int32_t d = 0; d < b->docs; d++) {
		const int32_t length = b->start[d + 1] - b->start[d];
		int32_t first[DOCS_MOST] = {0}, last[DOCS_MOST] = {0};

		for (int32_t at = 0; at < length; at += piece) {
			first[d] = at;
			last[d] = at + piece < length ? at + piece : length;
			step(b, first, last);
		}
	}
}

static void test_steps__logits_are_those_of_transformers(void **state)
{
	static const int32_t pieces[] = {64, 1, 3, 7};

	(void)state;
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
		struct bed b;

		bed_open(&b, models[m]);
		for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
			all(&b, pieces[i]);
			alone(&b, pieces[i]);
			assert_true(b.largest > 0.1);
			if (!(b.worst <= 2e-5 * b.largest))
				fail_msg("%s in pieces of %d: %.3g of %.3g", models[m], pieces[i], b.worst,
					 b.largest);
		}
		bed_close(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps__logits_are_those_of_transformers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
