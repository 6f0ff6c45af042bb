/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling of ids on the CPU against plain definitions in double. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/backend/cost.h"
#include "model/backend/plan_backend.h"
#include "model/cpu/cpu.h"
#include "model/generation/choice.h"
#include "unit/model_bed.h"
#include "unit/must.h"

enum { VOCAB = 50, ROOM = VOCAB + 3, ROWS = 4, PLACES = 6, WORDS = 2 };

struct sample_bed {
	struct arena arena;
	struct backend back;
	struct paged_room room;
	struct sample s;
	struct sample_row row[ROWS];
	struct sample_bias bias[4];
	uint32_t mask[2 * WORDS];
	float logits[ROWS * ROOM];
	double wide[ROWS * ROOM];
	uint16_t counts[PLACES * VOCAB];
	int32_t last[PLACES];
	struct sample_result results[ROWS];
};

static const struct sample_row plain = {
	.temperature = 1, .top_p = 1, .repetition = 1, .given = -1, .place = -1, .mask = -1, .logprobs = -1};

static void open_bed(struct sample_bed *b, bool wide)
{
	const struct attention at = {.heads = 1, .kv_heads = 1, .head_dim = 8};
	const struct paged_limits most = {.rows = ROWS,
					  .outputs = ROWS,
					  .sequences = ROWS,
					  .pages = 1,
					  .vocab = VOCAB,
					  .page_tokens = 16};
	struct error err = {0};

	memset(b, 0, sizeof(*b));
	must(cpu_backend_create(&b->back, &(struct cpu_options){.threads = 2, .own_gemm = true}, &b->arena,
				&err),
	     &err);
	if (wide)
		b->back.ops = &cpu_ops_f64;
	b->arena.size = 1u << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	must(workspace_paged(&b->back, &at, &most, &b->room, &err), &err);
	for (int i = 0; i < ROWS * ROOM; i++) {
		b->logits[i] = i % ROOM < VOCAB ? 3 * random_f32(2, 0, (uint64_t)i) : NAN;
		b->wide[i] = (double)b->logits[i];
	}
	for (int i = 0; i < ROWS; i++)
		b->row[i] = plain;
	b->s = (struct sample){
		.room = &b->room,
		.logits = {.data = wide ? (void *)b->wide : (void *)b->logits,
			   .rows = ROWS,
			   .cols = ROOM,
			   .ld = ROOM,
			   .dtype = wide ? DTYPE_F64 : DTYPE_F32},
		.lists = {.row = b->row, .bias = b->bias, .mask = b->mask, .rows = 1, .mask_words = WORDS},
		.vocab = VOCAB,
		.counts = {.data = b->counts, .rows = PLACES, .cols = VOCAB, .ld = VOCAB, .dtype = DTYPE_U16},
		.last = {.data = b->last, .rows = 1, .cols = PLACES, .ld = PLACES, .dtype = DTYPE_I32},
		.results = {.data = b->results,
			    .rows = ROWS,
			    .cols = SAMPLE_RESULT_WORDS,
			    .ld = SAMPLE_RESULT_WORDS,
			    .dtype = DTYPE_I32},
	};
}

static void close_bed(struct sample_bed *b)
{
	cpu_backend_release(&b->back);
	free(b->arena.base);
}

static void sample(struct sample_bed *b)
{
	struct error err = {0};

	must(b->back.ops->sample(&b->back, &b->s, &err), &err);
}

/* Probabilities by definition, from logits that are final. */
static void distribution(const double *logit, const struct sample_row *row, double *p)
{
	double most = -INFINITY, all = 0, above;
	bool stays[VOCAB];

	for (int i = 0; i < VOCAB; i++)
		most = fmax(most, logit[i]);
	for (int i = 0; i < VOCAB; i++)
		p[i] = exp((logit[i] - most) / (double)row->temperature);
	for (int i = 0; i < VOCAB; i++) {
		int rank = 0;

		for (int j = 0; j < VOCAB; j++)
			rank += p[j] > p[i] || (p[j] == p[i] && j < i);
		stays[i] = !row->top_k || rank < row->top_k;
		all += stays[i] ? p[i] : 0;
	}
	for (int i = 0; i < VOCAB; i++) {
		above = 0;
		for (int j = 0; j < VOCAB; j++)
			above += stays[j] && (p[j] > p[i] || (p[j] == p[i] && j < i)) ? p[j] : 0;
		/* the last one that reaches top_p still belongs */
		if (stays[i] && (above >= (double)row->top_p * all || p[i] < (double)row->min_p))
			stays[i] = false;
	}
	all = 0;
	for (int i = 0; i < VOCAB; i++)
		all += p[i] = stays[i] ? p[i] : 0;
	for (int i = 0; i < VOCAB; i++)
		p[i] /= all;
}

/* Draws with consecutive numbers of a text; ids of probability 0 never occur, and chi-square is below its
 * 1 - 1e-6 quantile (Wilson and Hilferty's approximation). */
static void check_drawn(struct sample_bed *b, const double *logit)
{
	enum { DRAWS = 6000 };
	double p[VOCAB], square = 0, rest = DRAWS, rest_p = 1, freedom = 0, limit;
	int count[VOCAB] = {0};

	distribution(logit, &b->row[0], p);
	for (uint32_t n = 0; n < DRAWS; n++) {
		b->row[0].index = n;
		sample(b);
		assert_int_equal(b->results[0].status, SAMPLE_OK);
		count[b->results[0].id]++;
	}
	for (int i = 0; i < VOCAB; i++) {
		if (p[i] == 0)
			assert_int_equal(count[i], 0);
		if (p[i] * DRAWS < 8)
			continue;
		square += pow(count[i] - p[i] * DRAWS, 2) / (p[i] * DRAWS);
		rest -= count[i];
		rest_p -= p[i];
		freedom++;
	}
	if (rest_p * DRAWS >= 8)
		square += pow(rest - rest_p * DRAWS, 2) / (rest_p * DRAWS);
	else
		freedom--;
	if (freedom < 1)
		return;
	limit = freedom * pow(1 - 2 / (9 * freedom) + 4.75 * sqrt(2 / (9 * freedom)), 3);
	assert_true(square < limit);
}

static void final_logits(const struct sample_bed *b, double *out)
{
	for (int i = 0; i < VOCAB; i++)
		out[i] = (double)b->logits[i];
}

static void test_sample__ids_follow_the_distribution(void **state)
{
	static const struct {
		float temperature, top_p, min_p;
		int top_k;
	} cases[] = {
		{1, 1, 0, 0},	     {0.5f, 1, 0, 0},	     {2, 1, 0, 7},	  {1, 0.6f, 0, 0},
		{1.5f, 0.9f, 0, 20}, {1, 1, 0.3f, 0},	     {1, 0.8f, 0.2f, 30}, {1, 0.01f, 0, 0},
		{1, 1, 1, 0},	     {0.7f, 0.95f, 0.9f, 2}, {1, 1, 0, 1},
	};
	double logit[VOCAB];
	struct sample_bed b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_bed(&b, i % 2);
		b.row[0].temperature = cases[i].temperature;
		b.row[0].top_p = cases[i].top_p;
		b.row[0].min_p = cases[i].min_p;
		b.row[0].top_k = cases[i].top_k;
		b.row[0].seed = 100 + i;
		b.row[0].stream = (uint32_t)i;
		b.s.lists.plain = !cases[i].min_p && !cases[i].top_k;
		final_logits(&b, logit);
		check_drawn(&b, logit);
		close_bed(&b);
	}
}

/* The id at `number` of the distribution: in the order of ids, or, if it is cut, of the probabilities. */
static int32_t id_at(const double *p, bool ordered, double number)
{
	bool taken[VOCAB] = {false};
	double sum = 0;
	int32_t id = 0;

	for (int n = 0; n < VOCAB && sum <= number; n++) {
		id = ordered ? -1 : n;
		for (int32_t i = 0; ordered && i < VOCAB; i++)
			if (!taken[i] && (id < 0 || p[i] > p[id]))
				id = i;
		taken[id] = true;
		sum += p[id];
	}
	return id;
}

static void test_sample__a_seed_and_the_token_s_number_determine_the_id(void **state)
{
	static const struct {
		float temperature, top_p;
		int top_k;
	} cases[] = {{1, 1, 0}, {0.5f, 0.75f, 0}, {1.25f, 1, 9}, {2, 0.875f, 40}};
	double logit[VOCAB], p[VOCAB];
	struct sample_bed b;

	(void)state;
	open_bed(&b, false);
	final_logits(&b, logit);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sample_row *row = &b.row[0];

		row->temperature = cases[i].temperature;
		row->top_p = cases[i].top_p;
		row->top_k = cases[i].top_k;
		row->seed = 3 + i;
		distribution(logit, row, p);
		for (row->index = 0; row->index < 300; row->index++) {
			const double number = ((double)random_u32(row->seed, 0, row->index) + 0.5) * 0x1p-32;

			sample(&b);
			assert_int_equal(b.results[0].id, id_at(p, row->top_k || row->top_p < 1, number));
		}
	}
	close_bed(&b);
}

static void test_sample__of_equal_logits_the_lowest_id_is_greedy(void **state)
{
	struct sample_bed b;

	(void)state;
	open_bed(&b, false);
	b.row[0].temperature = 0;
	b.logits[13] = b.logits[17] = b.logits[44] = 5;
	sample(&b);
	assert_int_equal(b.results[0].id, 13);
	b.row[0].mask = 0;
	b.s.lists.masks = 1;
	b.mask[0] = ~(1u << 13);
	b.mask[1] = ~0u;
	sample(&b);
	assert_int_equal(b.results[0].id, 17);
	close_bed(&b);
}

static void test_sample__penalties_and_bias_change_the_logits(void **state)
{
	const int32_t ids[] = {3, 4, 4, 5, 6, 5, 5, 3};
	const struct sample_history history = {.place = 2, .id = ids, .prompt = 4, .count = 8};
	static const int text[VOCAB] = {[3] = 1, [5] = 2, [6] = 1}, seen[VOCAB] = {[3] = 1, 1, 1, 1};
	struct error err = {0};
	double logit[VOCAB];
	struct sample_bed b;

	(void)state;
	open_bed(&b, false);
	memset(b.counts, 0xff, sizeof(b.counts));
	must(b.back.ops->sample_count(&b.back, b.s.counts, &history, &err), &err);
	assert_int_equal(b.counts[2 * VOCAB + 3], SAMPLE_IN_PROMPT | 1);
	assert_int_equal(b.counts[2 * VOCAB + 4], SAMPLE_IN_PROMPT);
	assert_int_equal(b.counts[2 * VOCAB + 6], 1);
	assert_int_equal(b.counts[2 * VOCAB], 0);
	assert_int_equal(b.counts[3 * VOCAB], 0xffff);
	b.row[0].place = 2;
	b.row[0].counted = 1;
	b.row[0].repetition = 1.5f;
	b.row[0].presence = 0.25f;
	b.row[0].frequency = 0.5f;
	b.row[0].bias_begin = 1;
	b.row[0].biases = 2;
	b.bias[1] = (struct sample_bias){.id = 8, .add = 2};
	b.bias[2] = (struct sample_bias){.id = 9, .add = -INFINITY};
	b.s.lists.biases = 3;
	b.logits[3] = 2;
	b.logits[4] = -1;
	b.logits[5] = 3;
	for (int i = 0; i < VOCAB; i++) {
		logit[i] = (double)b.logits[i];
		if (seen[i])
			logit[i] = logit[i] > 0 ? logit[i] / 1.5 : logit[i] * 1.5;
		logit[i] -= 0.5 * text[i] + (text[i] ? 0.25 : 0);
	}
	logit[8] += 2;
	logit[9] = -INFINITY;
	/* the counts must stay as they are while ids are drawn */
	for (uint32_t n = 0; n < 3; n++) {
		uint16_t before[VOCAB];
		int32_t id;

		b.row[0].index = n;
		memcpy(before, b.counts + 2 * VOCAB, sizeof(before));
		sample(&b);
		id = b.results[0].id;
		assert_int_equal(b.last[2], id);
		assert_int_equal(b.counts[2 * VOCAB + id], before[id] + 1);
		memcpy(b.counts + 2 * VOCAB, before, sizeof(before));
	}
	{
		enum { DRAWS = 4000 };
		double p[VOCAB];
		int count[VOCAB] = {0};

		distribution(logit, &b.row[0], p);
		for (uint32_t n = 0; n < DRAWS; n++) {
			b.row[0].index = n;
			must(b.back.ops->sample_count(&b.back, b.s.counts, &history, &err), &err);
			sample(&b);
			count[b.results[0].id]++;
		}
		for (int i = 0; i < VOCAB; i++)
			assert_true(fabs(count[i] - p[i] * DRAWS) <= 5 * sqrt(p[i] * DRAWS + 0.1) + 0.1);
		assert_int_equal(count[9], 0);
	}
	b.counts[2 * VOCAB + 5] = 0x7fff; /* no overflow into the prompt's bit */
	b.row[0].given = 5;
	sample(&b);
	assert_int_equal(b.counts[2 * VOCAB + 5], 0x7fff);
	close_bed(&b);
}

static void test_sample__log_probabilities_are_those_of_the_model(void **state)
{
	struct sample_bed b;

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		double sum = 0;

		open_bed(&b, wide);
		b.logits[20] = b.logits[30] = 7; /* equal */
		b.wide[20] = b.wide[30] = 7;
		for (int i = 0; i < VOCAB; i++)
			sum += exp((double)b.logits[i]);
		b.s.lists.rows = 3;
		b.row[0].logprobs = SAMPLE_TOPS;
		b.row[0].temperature = 0.3f; /* no effect on log probabilities */
		b.row[0].biases = 1;
		b.bias[0] = (struct sample_bias){.id = 20, .add = -100};
		b.s.lists.biases = 1;
		b.row[1].given = 11;
		b.row[1].place = 1;
		b.row[2].logprobs = 0;
		sample(&b);
		assert_int_equal(b.results[0].tops, SAMPLE_TOPS);
		for (int t = 0; t < SAMPLE_TOPS; t++) {
			const int32_t id = b.results[0].top_id[t];
			int rank = 0;

			for (int i = 0; i < VOCAB; i++)
				rank += b.logits[i] > b.logits[id] || (b.logits[i] == b.logits[id] && i < id);
			assert_int_equal(rank, t);
			assert_true(fabs((double)b.results[0].top_logprob[t] -
					 ((double)b.logits[id] - log(sum))) < 1e-5);
		}
		for (int r = 0; r < 3; r++) {
			const float *logits = b.logits + r * ROOM;
			double all = 0;

			for (int i = 0; i < VOCAB; i++)
				all += exp((double)logits[i]);
			assert_true(fabs((double)b.results[r].logprob -
					 ((double)logits[b.results[r].id] - log(all))) < 1e-5);
		}
		assert_int_equal(b.results[1].id, 11);
		assert_int_equal(b.last[1], 11);
		assert_int_equal(b.results[1].tops, 0);
		assert_int_equal(b.results[2].tops, 0);
		close_bed(&b);
	}
}

static void test_sample__a_bad_row_gets_a_status_and_the_others_their_id(void **state)
{
	struct sample_bed b;
	int32_t alone;

	(void)state;
	open_bed(&b, false);
	b.row[0].temperature = 0;
	sample(&b);
	alone = b.results[0].id;
	b.s.lists.rows = 4;
	b.logits[1 * ROOM + VOCAB - 1] = NAN;
	b.logits[2 * ROOM] = -INFINITY;
	b.row[1].place = 1;
	b.row[1].counted = 1;
	b.row[2].given = 7;
	b.row[3].mask = 1;
	b.s.lists.masks = 2;
	b.mask[0] = ~0u; /* of another row */
	b.last[1] = 77;
	sample(&b);
	assert_int_equal(b.results[0].id, alone);
	assert_int_equal(b.results[0].status, SAMPLE_OK);
	assert_int_equal(b.results[1].status, SAMPLE_NOT_FINITE);
	assert_int_equal(b.results[1].id, 0);
	assert_int_equal(b.last[1], 0);
	assert_int_equal(b.counts[VOCAB], 0);
	assert_int_equal(b.results[2].status, SAMPLE_NOT_FINITE);
	assert_int_equal(b.results[2].id, 0);
	assert_int_equal(b.results[3].status, SAMPLE_EMPTY);
	assert_int_equal(b.results[3].id, 0);
	close_bed(&b);
}

static void test_sample__a_mask_allows_only_its_ids(void **state)
{
	struct sample_bed b;
	double logit[VOCAB];

	(void)state;
	open_bed(&b, false);
	b.row[0].mask = 1;
	b.s.lists.masks = 2;
	b.mask[WORDS] = 0x00f0f00fu;
	b.mask[WORDS + 1] = 1u << 17 | 1u << 18; /* bit 18 is beyond the vocabulary */
	for (int i = 0; i < VOCAB; i++)
		logit[i] = b.mask[WORDS + i / 32] >> (i % 32) & 1 ? (double)b.logits[i] : -INFINITY;
	check_drawn(&b, logit);
	b.mask[WORDS] = 0;
	sample(&b);
	assert_int_equal(b.results[0].id, 49);
	close_bed(&b);
}

/* With clang's sanitizer of undefined behaviour, any arithmetic with a NULL pointer ends the test. */
static void test_sample__a_run_without_a_bias_has_no_list_of_them(void **state)
{
	struct sample_bed b;
	int32_t id;

	(void)state;
	open_bed(&b, false);
	sample(&b);
	id = b.results[0].id;
	b.s.lists.bias = NULL;
	b.results[0].id = -1;
	sample(&b);
	assert_int_equal(b.results[0].status, SAMPLE_OK);
	assert_int_equal(b.results[0].id, id);
	close_bed(&b);
}

static void test_sample__rows_beyond_their_lists_are_refused(void **state)
{
	const int32_t id[] = {1, VOCAB};
	struct sample_history history = {.place = PLACES, .id = id, .count = 1};
	struct error err = {0};
	struct sample_bed b;

	(void)state;
	open_bed(&b, false);
	for (int i = 0; i < 9; i++) {
		b.row[0] = plain;
		b.row[0].given = i == 0 ? VOCAB : -1;
		b.row[0].place = i == 1 ? PLACES : -1;
		b.row[0].counted = i == 2;
		b.row[0].logprobs = i == 3 ? SAMPLE_TOPS + 1 : -1;
		b.row[0].mask = i == 4 ? 0 : -1;
		b.row[0].biases = i == 5 ? 1 : i == 6 ? -1 : 0;
		b.row[0].bias_begin = i == 7 ? -1 : 0;
		b.s.vocab = i == 8 ? VOCAB + 1 : VOCAB;
		assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_BUG);
		error_clear(&err);
	}
	b.s.vocab = VOCAB;
	b.row[0] = plain;
	b.row[0].biases = 1;
	b.bias[0].id = VOCAB;
	b.s.lists.biases = 1;
	assert_int_equal(b.back.ops->sample(&b.back, &b.s, &err), STATUS_BUG);
	error_clear(&err);
	assert_int_equal(b.back.ops->sample_count(&b.back, b.s.counts, &history, &err), STATUS_BUG);
	error_clear(&err);
	history.place = 0;
	history.count = 2;
	assert_int_equal(b.back.ops->sample_count(&b.back, b.s.counts, &history, &err), STATUS_BUG);
	close_bed(&b);
}

static void test_sample__the_plan_counts_the_same_cost(void **state)
{
	const struct sample_history history = {.place = 0};
	struct arena arena = {0};
	struct error err = {0};
	struct backend plan;
	struct sample_bed b;

	(void)state;
	open_bed(&b, false);
	plan_backend_cpu(&plan, 2, &arena);
	sample(&b);
	must(plan.ops->sample(&plan, &b.s, &err), &err);
	must(plan.ops->sample_count(&plan, b.s.counts, &history, &err), &err);
	assert_true(plan.cost.bytes == b.back.cost.bytes && plan.cost.bytes > 0);
	close_bed(&b);
}

/* The result of choice_take by a sort of all candidates. */
static int by_share(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return a->id < b->id ? -1 : 1;
}

static int32_t sorted_choice(const struct choice *s, struct candidate *c, int64_t count, double number)
{
	int64_t most = s->top_k && s->top_k < count ? s->top_k : count, stay = 0;
	double all = 0, sum = 0;

	if (most == count)
		for (int64_t i = 0; i < count; i++)
			all += c[i].share;
	qsort(c, (size_t)count, sizeof(*c), by_share);
	for (int64_t i = 0; most < count && i < most; i++)
		all += c[i].share;
	for (; stay < most && sum < s->top_p * all; stay++)
		sum += c[stay].share;
	while (stay > 1 && c[stay - 1].share < s->min_p)
		stay--;
	all = sum = 0;
	for (int64_t i = 0; i < stay; i++)
		all += c[i].share;
	for (int64_t i = 0; i < stay; i++)
		if (number * all < (sum += c[i].share))
			return c[i].id;
	return c[stay - 1].id;
}

static void test_sample__what_cannot_be_chosen_is_left_out_of_the_sort(void **state)
{
	enum { MANY = 5000 };
	static const struct choice choices[] = {
		{.top_p = 0.9},
		{.top_k = 40, .top_p = 1},
		{.top_k = 40, .top_p = 0.95},
		{.top_k = 300, .top_p = 0.99},
		{.top_p = 1, .min_p = 0.05},
		{.top_p = 0.999999},
		{.top_k = 1, .top_p = 1},
		{.top_k = 7000, .top_p = 0.5},
		{.top_k = 256, .top_p = 0.999, .min_p = 0.01},
	};
	static struct candidate a[MANY], b[MANY];

	(void)state;
	for (int spread = 0; spread < 3; spread++)
		for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
			for (uint64_t n = 0; n < 12; n++) {
				const double number = (random_u32(9, 1, n) + 0.5) * 0x1p-32;

				for (int k = 0; k < MANY; k++) {
					const double x = fabs((double)random_f32(9, 0, (uint64_t)k / 2));

					/* in pairs of equals; flat, steep, and all of them equal */
					a[k].share = spread == 2 ? 1 : exp((spread ? -30 : -3) * x);
					a[k].id = k;
				}
				memcpy(b, a, sizeof(b));
				assert_int_equal(choice_take(&choices[i], a, MANY, number),
						 sorted_choice(&choices[i], b, MANY, number));
			}
}

static void test_sample__a_share_that_is_no_number_still_gives_an_id(void **state)
{
	const struct choice choice = {.top_p = 0.5};
	struct candidate c[3] = {{NAN, 4}, {NAN, 5}, {NAN, 6}};

	(void)state;
	assert_in_range(choice_take(&choice, c, 3, 0.5), 4, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample__ids_follow_the_distribution),
		cmocka_unit_test(test_sample__a_seed_and_the_token_s_number_determine_the_id),
		cmocka_unit_test(test_sample__of_equal_logits_the_lowest_id_is_greedy),
		cmocka_unit_test(test_sample__penalties_and_bias_change_the_logits),
		cmocka_unit_test(test_sample__log_probabilities_are_those_of_the_model),
		cmocka_unit_test(test_sample__a_bad_row_gets_a_status_and_the_others_their_id),
		cmocka_unit_test(test_sample__a_mask_allows_only_its_ids),
		cmocka_unit_test(test_sample__a_run_without_a_bias_has_no_list_of_them),
		cmocka_unit_test(test_sample__rows_beyond_their_lists_are_refused),
		cmocka_unit_test(test_sample__the_plan_counts_the_same_cost),
		cmocka_unit_test(test_sample__what_cannot_be_chosen_is_left_out_of_the_sort),
		cmocka_unit_test(test_sample__a_share_that_is_no_number_still_gives_an_id),
	};

	return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
