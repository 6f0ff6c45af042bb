/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LoRA adapters at run time against the logits of PEFT (tests/oracles/peft_adapters.py): merged, unmerged,
 * and several over one base in the same step.
 */
#include "scratch.h"
#include "test.h"
#include <math.h>
#include "adapter_base.h"
#include "engine/engine.h"
#include "engine/step/row_lists.h"
#include "base_gguf.h"
#include "model/model.h"

enum { PAGE = 16, SEQUENCES = 8, ROWS_MOST = 128, TOKENS = 6 };
struct bed {
	char model[PATH_MAX], dir[ADAPTERS_MOST][PATH_MAX];
	struct load_options o;
	struct loaded l;
	struct row_lists *lists;
};

static void bed_options(struct bed *b, const char *scratch, const char *const *names, size_t count,
			bool merge)
{
	struct shape s;

	*b = (struct bed){0};
	base_make(b->model, scratch, &s);
	b->o = (struct load_options){.device = LOAD_CPU,
				     .model = b->model,
				     .merge = merge,
				     .positions = 2 * PAGE,
				     .sequences = SEQUENCES,
				     .outputs = ROWS_MOST,
				     .rows = ROWS_MOST,
				     .page_tokens = PAGE,
				     .pages = 2 * SEQUENCES};
	for (size_t i = 0; i < count; i++) {
		base_adapter(b->dir[i], names[i]);
		b->o.adapter[i] = b->dir[i];
	}
}

static void bed_open(struct bed *b, const char *scratch, const char *const *names, size_t count, bool merge)
{
	struct error err = {0};

	bed_options(b, scratch, names, count, merge);
	must(load_open(&b->l, &b->o, &err), &err);
	must(row_lists_create(&b->lists, &b->l.most, &err), &err);
}

static void bed_close(struct bed *b)
{
	row_lists_destroy(&b->lists);
	load_close(&b->l);
}

/* The recorded logits of one adapter, or of "base". */
static void open_expected(struct safetensors *out, const char *name)
{
	char path[512];
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/tests/data/model/adapters/%s/expected.safetensors", SOURCE_DIR,
		 name);
	must(safetensors_open(out, path, &err), &err);
}

/* One step: the recorded ids once for each sequence, with its adapter. Returns the logits of all rows. */
static struct mat step(struct bed *b, const int32_t *adapter, int32_t sequences)
{
	uint32_t page[SEQUENCES][2];
	struct safetensors e;
	struct error err = {0};
	struct paged_rows rows;
	const struct tensor *token;

	open_expected(&e, "base");
	token = tensor_of(&e, "token");
	row_lists_clear(b->lists);
	for (int32_t i = 0; i < sequences; i++) {
		const struct row_sequence s = {.token = (const int32_t *)(const void *)token->data,
					       .known = token->dim[0],
					       .rows = token->dim[0],
					       .outputs = token->dim[0],
					       .place = i,
					       .adapter = adapter[i],
					       .page = page[i]};

		page[i][0] = (uint32_t)(2 * i + 1);
		page[i][1] = (uint32_t)(2 * i + 2);
		row_lists_add(b->lists, &s);
	}
	rows = row_lists_end(b->lists, sequences * token->dim[0], sequences * token->dim[0]);
	must(paged_step_forward(b->l.step, &rows, &err), &err);
	safetensors_release(&e);
	return paged_step_logits(b->l.step);
}

/* The largest distance of one sequence's rows from the recorded ones, relative to the largest logit. */
static double apart(const struct mat *logits, int32_t sequence, const char *name)
{
	double most = 0, worst = 0;
	const struct tensor *due;
	struct safetensors e;

	open_expected(&e, name);
	due = tensor_of(&e, "logits");
	for (int64_t i = 0; i < due->dim[0]; i++)
		for (int64_t j = 0; j < due->dim[1]; j++) {
			const float *row =
				(const float *)logits->data + (sequence * due->dim[0] + i) * logits->ld;
			float peft;

			memcpy(&peft, due->data + 4 * (i * due->dim[1] + j), 4);
			most = fmax(most, fabs((double)peft));
			worst = fmax(worst, fabs((double)(peft - row[j])));
		}
	safetensors_release(&e);
	assert_true(most > 0.1);
	return worst / most;
}

static void expect(const struct mat *logits, int32_t sequence, const char *name)
{
	const double error = apart(logits, sequence, name);

	if (!(error <= 1e-5))
		fail_msg("sequence %d is %g from %s", sequence, error, name);
}

static void test_adapters__one_gives_peft_s_logits_merged_and_unmerged(void **state)
{
	static const char *const names[] = {"plain", "patterns", "dora", "whole"};
	static const int32_t adapter[] = {-1, 0};

	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
		struct bed b;
		struct mat logits;

		bed_open(&b, *state, &names[i / 2], 1, i % 2);
		assert_int_equal(b.l.adapters.merge, i % 2);
		logits = step(&b, adapter, 2);
		expect(&logits, 0, names[i / 2]);
		expect(&logits, 1, names[i / 2]);
		assert_true(apart(&logits, 0, "base") > 0.05);
		bed_close(&b);
	}
}

/* A quantized base keeps its blocks, so the adapter stays beside them. Blocks of weights and of rows have 8
 * bits. */
static void test_adapters__one_is_not_merged_into_quantized_weights(void **state)
{
	static const int32_t adapter[] = {0};

	for (size_t i = 0; i < BASE_ADAPTERS; i++) {
		char path[PATH_MAX];
		struct error err = {0};
		struct mat logits;
		struct shape s;
		struct bed b;

		bed_options(&b, *state, &base_adapters[i], 1, true);
		must(shape_by_name(&s, "tiny", &err), &err);
		snprintf(path, sizeof(path), "%s/base.gguf", (const char *)*state);
		base_gguf_write(path, &s, BASE_SEED);
		b.o.model = path;
		must(load_open(&b.l, &b.o, &err), &err);
		must(row_lists_create(&b.lists, &b.l.most, &err), &err);
		assert_false(b.l.adapters.merge);
		assert_int_equal(b.l.model->layer[0].qkv.w.w.dtype, DTYPE_Q8_0);
		logits = step(&b, adapter, 1);
		if (!(apart(&logits, 0, base_adapters[i]) < 0.04 &&
		      apart(&logits, 0, base_adapters[i]) < 0.2 * apart(&logits, 0, "base")))
			fail_msg("%s: %g, and %g from the base model", base_adapters[i],
				 apart(&logits, 0, base_adapters[i]), apart(&logits, 0, "base"));
		bed_close(&b);
	}
}

static const char *name_of(int32_t adapter)
{
	return adapter < 0 ? "base" : base_adapters[adapter];
}

static void test_adapters__each_row_of_a_step_has_its_own(void **state)
{
	static const int32_t mixed[][SEQUENCES] = {
		{0, 1, 2, -1, 2, 1, 0, -1}, {-1, -1, -1, -1, -1, -1, -1, -1}, {2, 2, 2, 2, 2, 2, 2, 2}};
	struct bed b;

	bed_open(&b, *state, base_adapters, 3, true);
	assert_false(b.l.adapters.merge);
	for (size_t i = 0; i < sizeof(mixed) / sizeof(mixed[0]); i++) {
		const struct mat logits = step(&b, mixed[i], SEQUENCES);

		for (int32_t s = 0; s < SEQUENCES; s++)
			expect(&logits, s, name_of(mixed[i][s]));
	}
	bed_close(&b);
}

/* The bits of a sequence are the same alone and beside sequences with other adapters. */
static void test_adapters__rows_do_not_depend_on_other_rows(void **state)
{
	static const int32_t mixed[SEQUENCES] = {0, 1, 2, -1, 2, 1, 0, -1};
	struct mat all;
	float *kept;
	struct bed b;
	int64_t rows;

	bed_open(&b, *state, base_adapters, 3, true);
	all = step(&b, mixed, SEQUENCES);
	rows = all.rows / SEQUENCES;
	kept = malloc((size_t)(all.rows * all.cols) * sizeof(*kept));
	assert_non_null(kept);
	for (int64_t i = 0; i < all.rows; i++)
		memcpy(kept + i * all.cols, (float *)all.data + i * all.ld, (size_t)all.cols * sizeof(*kept));
	for (int32_t s = 0; s < SEQUENCES; s++) {
		const struct mat alone = step(&b, &mixed[s], 1);

		assert_int_equal(alone.rows, rows);
		for (int64_t i = 0; i < rows; i++)
			assert_memory_equal((float *)alone.data + i * alone.ld,
					    kept + (s * rows + i) * alone.cols,
					    (size_t)alone.cols * sizeof(*kept));
	}
	free(kept);
	bed_close(&b);
}

static void refused(struct bed *b, enum status status, const char *why)
{
	struct error err = {0};

	if (load_open(&b->l, &b->o, &err) != status || !strstr(err.text, why))
		fail_msg("\"%s\" lacks \"%s\"", err.text, why);
	load_close(&b->l);
}

static void test_adapters__what_cannot_be_shared_is_refused(void **state)
{
	static const char *const whole[] = {"plain", "whole"}, *const other[] = {"plain", "../llama/adapter"};
	struct bed b;

	bed_options(&b, *state, whole, 2, true);
	refused(&b, STATUS_UNSUPPORTED,
		"adapters/whole: it has an embedding or head of its own (modules_to_save)");
	bed_options(&b, *state, other, 2, true);
	refused(&b, STATUS_BAD_INPUT, "llama/adapter/adapter_model.safetensors: ");
}

/* Runs a request to its end. */
static int32_t generate(struct engine *e, int32_t adapter, int32_t token[TOKENS], struct engine_event *end)
{
	static const int32_t prompt[] = {7,  9,	 11, 13, 15, 17, 19, 21, 23,
					 25, 27, 29, 31, 33, 35, 37, 39, 41};
	static uint64_t id;
	const struct engine_request r = {.id = ++id,
					 .adapter = adapter,
					 .prompt = prompt,
					 .prompt_count = sizeof(prompt) / sizeof(prompt[0]),
					 .max_tokens = TOKENS,
					 .sampling = {.top_p = 1, .repetition = 1},
					 .logprobs = -1,
					 .prompt_logprobs = -1};
	struct error err = {0};
	int32_t count = 0;
	bool ended = false, idle;

	must(engine_submit(e, &r, &err), &err);
	while (!ended) {
		const struct engine_event *event;
		size_t events;

		must(engine_step(e, &idle, &err), &err);
		events = engine_events(e, &event);
		for (size_t i = 0; i < events; i++) {
			if (event[i].kind == ENGINE_EVENT_TOKEN && count < TOKENS)
				token[count++] = event[i].token;
			ended |= event[i].kind == ENGINE_EVENT_END;
			if (event[i].kind == ENGINE_EVENT_END)
				*end = event[i];
		}
	}
	return count;
}

static void engine_of(struct engine **e, struct bed *b, const char *scratch, const char *const *names,
		      size_t count)
{
	struct engine_options o = {0};
	struct error err = {0};

	bed_options(b, scratch, names, count, true);
	o.load = b->o;
	must(engine_create(e, &o, &err), &err);
}

static void test_adapters__a_request_gets_the_text_of_the_merged_model(void **state)
{
	struct engine *all, *one;
	struct bed b, c;

	engine_of(&all, &b, *state, base_adapters, 3);
	for (int32_t i = -1; i < 3; i++) {
		int32_t due[TOKENS], made[TOKENS];
		struct engine_event end;

		engine_of(&one, &c, *state, i < 0 ? NULL : &base_adapters[i], i < 0 ? 0 : 1);
		assert_int_equal(generate(one, -1, due, &end), TOKENS);
		engine_destroy(&one);
		assert_int_equal(generate(all, i, made, &end), TOKENS);
		assert_memory_equal(made, due, sizeof(due));
	}
	engine_destroy(&all);
}

static void test_adapters__pages_are_shared_with_the_same_adapter_only(void **state)
{
	struct engine *e;
	struct engine_event end;
	int32_t token[TOKENS];
	struct bed b;

	engine_of(&e, &b, *state, base_adapters, 3);
	for (int32_t again = 0; again < 2; again++)
		for (int32_t adapter = -1; adapter < 3; adapter++) {
			generate(e, adapter, token, &end);
			assert_int_equal(end.cached_tokens, again ? PAGE : 0);
		}
	engine_destroy(&e);
}

static void test_adapters__an_adapter_that_is_not_loaded_is_refused(void **state)
{
	struct engine *e;
	struct engine_event end;
	int32_t token[TOKENS];
	struct bed b;

	engine_of(&e, &b, *state, base_adapters, 3);
	assert_int_equal(generate(e, 3, token, &end), 0);
	assert_int_equal(end.end, ENGINE_END_REFUSED);
	assert_string_equal(end.text, "adapter 3 is asked for, but 3 are loaded");
	engine_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_adapters__one_gives_peft_s_logits_merged_and_unmerged),
		scratch_test(test_adapters__one_is_not_merged_into_quantized_weights),
		scratch_test(test_adapters__each_row_of_a_step_has_its_own),
		scratch_test(test_adapters__rows_do_not_depend_on_other_rows),
		scratch_test(test_adapters__what_cannot_be_shared_is_refused),
		scratch_test(test_adapters__a_request_gets_the_text_of_the_merged_model),
		scratch_test(test_adapters__pages_are_shared_with_the_same_adapter_only),
		scratch_test(test_adapters__an_adapter_that_is_not_loaded_is_refused),
	};

	return cmocka_run_group_tests_name("engine_adapters", tests, NULL, NULL);
}
