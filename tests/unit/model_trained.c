/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adapters that `assay train` wrote, beside what transformers and PEFT make of them
 * (tests/oracles/model_adapter.py): the same logits from our reader and our forward pass, the adapter apart
 * from the weights. The base models are made of their seed.
 */
#include "test.h"
#include <math.h>
#include "model/cpu/cpu.h"
#include "model/files/random_weights.h"
#include "model/model.h"
#include "must.h"

enum { ROWS = 64, SEED = 1 };
/* Folder, shape of its base model. */
static const char *const trained[][2] = {
	{"qwen2", "tiny"},
	{"qwen3", "tiny-qwen3"},
	{"llama", "tiny-llama"},
};

struct bed {
	struct shape shape;
	struct peft adapter;
	struct safetensors expected;
	struct arena arena;
	struct backend back;
	struct model *model;
	struct saved saved;
	struct mat logits;
};

static void load_base(struct bed *b)
{
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count = 0;

	must(model_weight_slots(b->model, &slots, &names, &count, &err), &err);
	for (size_t i = 0; i < count; i++) {
		struct named n;

		assert_true(names_find(&n, &b->shape, slots[i].name));
		assert_true(slots[i].to.rows == 1 || slots[i].to.ld == slots[i].to.cols);
		random_weights(&n, SEED, 0, n.rows, slots[i].to.data);
	}
	free(slots);
	free(names);
	must(model_loaded(b->model, &b->back, &err), &err);
}

static void load_adapter(struct bed *b)
{
	struct peft_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count = 0;

	must(model_peft_slots(b->model, &b->model->params.master, &slots, &names, &count, &err), &err);
	must(peft_load(&b->adapter, slots, count, &err), &err);
	free(slots);
	free(names);
	must(model_refresh(b->model, &b->back, &err), &err);
}

/* `adapter` false: the base model alone. */
static void bed_open(struct bed *b, const char *name, const char *shape, bool adapter)
{
	struct error err = {0};
	char path[512];

	*b = (struct bed){0};
	must(shape_by_name(&b->shape, shape, &err), &err);
	snprintf(path, sizeof(path), "%s/tests/data/model/trained/%s/expected.safetensors", SOURCE_DIR, name);
	must(safetensors_open(&b->expected, path, &err), &err);
	snprintf(path, sizeof(path), "%s/tests/data/model/trained/%s", SOURCE_DIR, name);
	must(peft_open(&b->adapter, path, &b->shape, &err), &err);
	must(cpu_backend_create(&b->back, &(struct cpu_options){.threads = 2}, &b->arena, &err), &err);
	b->arena.size = 16u << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	must(model_create(&b->model, &b->shape,
			  &(struct model_options){.lora = adapter ? &b->adapter.config : NULL,
						  .inference = true,
						  .positions = ROWS},
			  &err),
	     &err);
	must(model_place(b->model, &b->back, &err), &err);
	must(saved_create(&b->saved, b->model, RECOMPUTE_FULL, &err), &err);
	load_base(b);
	if (adapter)
		load_adapter(b);
}

static void bed_close(struct bed *b)
{
	saved_release(&b->saved);
	model_release(b->model);
	cpu_backend_release(&b->back);
	free(b->arena.base);
	peft_release(&b->adapter);
	safetensors_release(&b->expected);
}

/* Logits of every row; the ids stand in the file. */
static void run(struct bed *b)
{
	const struct tensor *token = tensor_of(&b->expected, "token");
	int32_t position[ROWS], target[ROWS], row[ROWS], start[2] = {0, (int32_t)token->dim[0]};
	const struct batch batch = {.token = (const int32_t *)(const void *)token->data,
				    .position = position,
				    .target = target,
				    .doc_start = start,
				    .tokens = token->dim[0],
				    .docs = 1,
				    .doc_len_max = token->dim[0]};
	const struct pass pass = {.model = b->model, .back = &b->back, .batch = &batch, .saved = &b->saved};
	struct error err = {0};

	assert_in_range(token->dim[0], 2, ROWS);
	for (int32_t i = 0; i < ROWS; i++) {
		position[i] = row[i] = i;
		target[i] = BATCH_UNTRAINED;
	}
	b->logits = (struct mat){.rows = token->dim[0], .cols = b->shape.vocab, .dtype = DTYPE_F32};
	must(arena_mat(&b->arena, MEM_LOGITS, &b->logits, "logits", &err), &err);
	must(model_forward(&pass, &err), &err);
	must(model_logits(&pass, row, token->dim[0], b->logits, &err), &err);
}

/* The farthest of ours from PEFT's, by PEFT's largest. */
static double apart(const struct bed *b)
{
	const struct tensor *due = tensor_of(&b->expected, "logits");
	double most = 0, worst = 0;

	assert_int_equal(due->dim[0], b->logits.rows);
	assert_int_equal(due->dim[1], b->logits.cols);
	for (int64_t i = 0; i < due->dim[0]; i++)
		for (int64_t j = 0; j < due->dim[1]; j++) {
			float peft;

			memcpy(&peft, due->data + 4 * (i * due->dim[1] + j), 4);
			most = fmax(most, fabs((double)peft));
			worst = fmax(worst, fabs((double)peft -
						 ((const float *)b->logits.data)[i * b->logits.ld + j]));
		}
	assert_true(most > 0);
	return worst / most;
}

static void test_trained__peft_s_logits_of_our_adapters_are_ours(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(trained) / sizeof(trained[0]); i++) {
		struct bed b;
		double error;

		bed_open(&b, trained[i][0], trained[i][1], true);
		run(&b);
		error = apart(&b);
		if (!(error <= 1e-5))
			fail_msg("%s: %g apart", trained[i][0], error);
		bed_close(&b);
	}
}

/* Else a forward pass without its adapter would agree as well. */
static void test_trained__the_adapters_change_what_the_model_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(trained) / sizeof(trained[0]); i++) {
		struct bed b;

		bed_open(&b, trained[i][0], trained[i][1], false);
		run(&b);
		assert_true(apart(&b) > 0.05);
		bed_close(&b);
	}
}

/* Between them they have what an adapter's scale and modules can be. */
static void test_trained__scales_and_whole_modules_are_among_them(void **state)
{
	bool stabilised = false, whole = false;

	(void)state;
	for (size_t i = 0; i < sizeof(trained) / sizeof(trained[0]); i++) {
		struct bed b;

		bed_open(&b, trained[i][0], trained[i][1], true);
		assert_true(b.adapter.config.alpha != (double)b.adapter.config.rank);
		stabilised |= b.adapter.config.rslora;
		whole |= b.adapter.config.save != 0;
		bed_close(&b);
	}
	assert_true(stabilised && whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trained__peft_s_logits_of_our_adapters_are_ours),
		cmocka_unit_test(test_trained__the_adapters_change_what_the_model_says),
		cmocka_unit_test(test_trained__scales_and_whole_modules_are_among_them),
	};

	return cmocka_run_group_tests_name("trained", tests, NULL, NULL);
}
