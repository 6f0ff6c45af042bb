/* SPDX-License-Identifier: Apache-2.0 */
/* Logits of a whole model over a KV cache in E4M3 against those over one in BF16, on the fake driver. */
#include "model_gpu_bed.h"

#include "engine/step/row_lists.h"
#include "fake_gpu.h"
#include "model/tensor/dtype.h"
#include "model/backend/plan_backend.h"
#include "model/decoder/paged_step.h"
#include "model/model.h"

enum { LONG = 53, SHORT = 20, PAGE = 16, PAGES = 16, VOCAB = 56, OUTPUTS = LONG + SHORT };
/* E4M3 has 3 bits behind the point: the root mean square of a number's relative error is 2.6 %. */
static const double error_most = 0.04;

struct cache_bed {
	struct alone alone;
	struct model *model;
	struct paged_step *step;
	struct row_lists *lists;
	int32_t token[LONG];
	float *logits; /* [OUTPUTS, VOCAB], the long sequence first */
};

static const struct shape shape = {
	.family = FAMILY_LLAMA,
	.hidden = 64,
	.layers = 2,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 64,
	.ffn = 48,
	.vocab = VOCAB,
	.context = 256,
	.norm_eps = 1e-5,
	.rope_theta = 10000,
};

static struct paged_step_options step_options(bool e4m3)
{
	return (struct paged_step_options){
		.most = {.rows = OUTPUTS,
			 .outputs = OUTPUTS,
			 .sequences = 2,
			 .pages = 4,
			 .vocab = VOCAB,
			 .page_tokens = PAGE},
		.places = 2,
		.cache_e4m3 = e4m3,
	};
}

static void fill_model(struct cache_bed *b)
{
	struct backend *back = &b->alone.back;
	struct weights_slot *slots = NULL;
	struct named *names = NULL;
	struct error err = {0};
	size_t count = 0;

	must(model_weight_slots(b->model, &slots, &names, &count, &err), &err);
	for (size_t i = 0; i < count; i++) {
		struct random_fill f;
		struct named n;

		assert_true(names_find(&n, &b->model->shape, slots[i].name));
		f = random_weights_fill(&n, 3);
		f.width *= 4; /* so that attention is not uniform */
		must(back->ops->random(back, slots[i].to, &f, &err), &err);
	}
	free(slots);
	free(names);
	must(model_loaded(b->model, back, &err), &err);
}

static void open_bed(struct cache_bed *b, bool e4m3)
{
	const struct model_options options = {.inference = true, .positions = 64};
	const struct paged_step_options step = step_options(e4m3);
	struct error err = {0};

	*b = (struct cache_bed){.logits = calloc(OUTPUTS * VOCAB, sizeof(float))};
	assert_non_null(b->logits);
	fakes_take();
	open_alone(&b->alone, 96 << 20, false);
	must(model_create(&b->model, &shape, &options, &err), &err);
	must(model_place(b->model, &b->alone.back, &err), &err);
	must(paged_step_create(&b->step, b->model, &b->alone.back, &step, &err), &err);
	must(paged_step_pages(b->step, PAGES, &err), &err);
	must(row_lists_create(&b->lists, &step.most, &err), &err);
	fill_model(b);
	for (uint32_t i = 0; i < LONG; i++)
		b->token[i] = (int32_t)(random_u32(8, 0, i) % VOCAB);
}

static void close_bed(struct cache_bed *b)
{
	row_lists_destroy(&b->lists);
	paged_step_release(&b->step);
	model_release(b->model);
	gpu_backend_release(&b->alone.back);
	free(b->logits);
}

/* Positions first .. last - 1 of both sequences, as far as they have them. */
static void run_step(struct cache_bed *b, int32_t first, int32_t last)
{
	static const uint32_t page[2][4] = {{9, 3, 12, 5}, {1, 14, 2, 7}};
	static const int32_t length[2] = {LONG, SHORT}, start[2] = {0, LONG};
	int32_t to[OUTPUTS], rows = 0;
	float made[OUTPUTS * VOCAB], row[VOCAB]; /* a step of one row may have logits in F32 */
	struct error err = {0};
	struct paged_rows lists;
	struct mat logits;

	row_lists_clear(b->lists);
	for (int32_t s = 0; s < 2; s++) {
		const int32_t end = last < length[s] ? last : length[s];

		if (first >= end)
			continue;
		row_lists_add(b->lists, &(struct row_sequence){.token = b->token + s,
							       .known = length[s] - s,
							       .first = first,
							       .rows = end - first,
							       .outputs = end - first,
							       .place = s,
							       .page = page[s]});
		for (int32_t i = first; i < end; i++)
			to[rows++] = start[s] + i;
	}
	lists = row_lists_end(b->lists, rows, rows);
	must(paged_step_forward(b->step, &lists, &err), &err);
	logits = paged_step_logits(b->step);
	assert_int_equal(logits.rows, rows);
	assert_int_equal(logits.ld, VOCAB);
	must(b->alone.back.ops->get(&b->alone.back, logits, made, &err), &err);
	for (int32_t i = 0; i < rows; i++) {
		dtype_unpack(logits.dtype, (uint8_t *)made + dtype_bytes(logits.dtype, (uint64_t)i * VOCAB),
			     row, VOCAB);
		memcpy(b->logits + to[i] * VOCAB, row, sizeof(row));
	}
}

/* Root mean square of the difference by that of the first. */
static double error_of(const struct cache_bed *a, const struct cache_bed *b)
{
	double all = 0, off = 0;

	for (int i = 0; i < OUTPUTS * VOCAB; i++) {
		const double x = (double)a->logits[i], d = (double)b->logits[i] - x;

		assert_true(isfinite(d));
		all += x * x;
		off += d * d;
	}
	return sqrt(off / all);
}

/* A prompt at once, then rows alone; or pieces that end within pages. */
static void logits_with_an_e4m3_cache_are_close(void **state)
{
	static const int32_t ends[][6] = {{30, 31, 32, 33, LONG, 0}, {7, 16, 41, LONG, 0}};

	(void)state;
	skip_without_kernels();
	for (size_t way = 0; way < 2; way++) {
		struct cache_bed bf16, e4m3;
		double error;

		open_bed(&bf16, false);
		open_bed(&e4m3, true);
		for (int32_t i = 0, first = 0; ends[way][i]; first = ends[way][i++]) {
			run_step(&bf16, first, ends[way][i]);
			run_step(&e4m3, first, ends[way][i]);
		}
		error = error_of(&bf16, &e4m3);
		assert_true(error < error_most && error > error_most / 100);
		close_bed(&bf16);
		close_bed(&e4m3);
	}
}

/* Bytes of a planned step's workspace, or of a step on the device. */
static uint64_t workspace_of(struct backend *back, const struct paged_step_options *options)
{
	const struct model_options inference = {.inference = true, .positions = 64};
	struct paged_step *step = NULL;
	struct model *model = NULL;
	struct error err = {0};
	uint64_t bytes;

	must(model_create(&model, &shape, &inference, &err), &err);
	must(model_place(model, back, &err), &err);
	bytes = back->arena->kind_used[MEM_WORKSPACE];
	must(paged_step_create(&step, model, back, options, &err), &err);
	bytes = back->arena->kind_used[MEM_WORKSPACE] - bytes;
	paged_step_release(&step);
	model_release(model);
	return bytes;
}

static uint64_t planned_of(const struct paged_step_options *options)
{
	struct arena arena = {0};
	struct backend plan;

	plan_backend_gpu(&plan, DTYPE_BF16, &arena);
	return workspace_of(&plan, options);
}

/* The copy of the pages that prompts read has 64 positions of each sequence here. */
static void the_plan_has_the_copy_of_pages(void **state)
{
	(void)state;
	skip_without_kernels();
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		struct paged_step_options without = step_options(e4m3), with, small;
		const uint64_t copy = 2 * 64 * 2 * 2 * 64 * 2; /* bytes */
		struct alone real = {0};

		without.most.rows = 600;
		with = without;
		with.most.copies = true;
		small = with;
		small.most.rows = 383; /* no step has tiles */
		fakes_take();
		open_alone(&real, 96 << 20, false);
		assert_int_equal(planned_of(&with), workspace_of(&real.back, &with));
		gpu_backend_release(&real.back);
		assert_in_range(planned_of(&with) - planned_of(&without), copy, copy + 1024); /* and some words of lists */
		assert_true(planned_of(&small) < planned_of(&with) - copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logits_with_an_e4m3_cache_are_close),
		cmocka_unit_test(the_plan_has_the_copy_of_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
