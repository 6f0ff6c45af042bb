/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients in double against central differences, tensor by tensor, along directions that move every
 * element. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "unit/model_bed.h"

enum { ALL = (1 << PEFT_TARGET_COUNT) - 1 };
static const double step = 1e-5, scale = 0.5; /* of bed_loss's gradient */

static void move(const struct mat *master, const struct param *p, uint32_t stream, double by)
{
	for (size_t i = 0; i < (size_t)(p->rows * p->cols); i++)
		bed_set(master, p->offset + i,
			bed_get(master, p->offset + i) + by * (double)random_f32(3, stream, i));
}

/* loss(w + h d) - loss(w - h d) over 2 h, against the gradient's product with d. */
static void check_tensor(struct bed *b, const double *gradient, const struct param *p, uint32_t stream)
{
	const struct mat *master = &b->model->params.master;
	double expected = 0, norm = 0, above, below, found;

	for (size_t i = 0; i < (size_t)(p->rows * p->cols); i++) {
		expected += gradient[p->offset + i] * (double)random_f32(3, stream, i);
		norm += gradient[p->offset + i] * gradient[p->offset + i];
	}
	move(master, p, stream, step);
	above = bed_loss(b, false);
	move(master, p, stream, -2 * step);
	below = bed_loss(b, false);
	move(master, p, stream, step);
	found = scale * (above - below) / (2 * step);
	if (!(fabs(found - expected) <= 1e-6 * sqrt(norm) + 1e-9))
		fail_msg("%s: %.12g by differences, %.12g by backward (norm %g)", p->name, found, expected,
			 sqrt(norm));
	if (norm == 0)
		fail_msg("%s: a gradient of zeros proves nothing", p->name);
}

static void check(const struct bed_options *options)
{
	struct bed b;
	double *gradient;

	bed_open(&b, options);
	bed_loss(&b, true);
	gradient = calloc(b.model->params.length, sizeof(*gradient));
	assert_non_null(gradient);
	for (size_t i = 0; i < b.model->params.length; i++)
		gradient[i] = bed_get(&b.model->params.grad, i);
	assert_true(b.model->params.count > 0);
	for (int i = 0; i < b.model->params.count; i++)
		check_tensor(&b, gradient, &b.model->params.table[i], (uint32_t)i);
	free(gradient);
	bed_close(&b);
}

static void test_gradient__every_parameter_of_qwen2(void **state)
{
	(void)state;
	check(&(struct bed_options){.family = FAMILY_QWEN2, .full = true, .wide = true, .own_gemm = true});
}

static void test_gradient__every_parameter_of_qwen3_with_the_tied_head(void **state)
{
	(void)state;
	check(&(struct bed_options){
		.family = FAMILY_QWEN3, .full = true, .tied = true, .wide = true, .head_chunk = 7});
}

static void test_gradient__every_parameter_of_llama_with_scaled_rope(void **state)
{
	(void)state;
	check(&(struct bed_options){
		.family = FAMILY_LLAMA, .full = true, .wide = true, .mode = RECOMPUTE_FULL});
}

/* Tiles of 13 rows, the last one shorter. Dropout's mask is of the row, not of its place in the tile. */
static void test_gradient__tiles_of_the_mlp(void **state)
{
	(void)state;
	check(&(struct bed_options){
		.family = FAMILY_QWEN2, .full = true, .wide = true, .mode = RECOMPUTE_FULL, .mlp_tile = 13});
	check(&(struct bed_options){.family = FAMILY_LLAMA,
				    .targets = ALL,
				    .wide = true,
				    .mode = RECOMPUTE_FULL,
				    .dropout = 0.3f,
				    .mlp_tile = 13});
}

static void test_gradient__lora_on_every_map(void **state)
{
	(void)state;
	for (int family = 0; family < FAMILY_COUNT; family++)
		check(&(struct bed_options){
			.family = family, .targets = ALL, .wide = true, .tied = family == FAMILY_LLAMA});
}

static void test_gradient__lora_behind_dropout(void **state)
{
	(void)state;
	check(&(struct bed_options){.family = FAMILY_QWEN2, .targets = ALL, .wide = true, .dropout = 0.3f});
}

static void test_gradient__lora_on_some_maps(void **state)
{
	static const unsigned some[] = {1 << PEFT_Q | 1 << PEFT_V, 1 << PEFT_K, 1 << PEFT_UP | 1 << PEFT_O,
					1 << PEFT_DOWN, 1 << PEFT_GATE};

	(void)state;
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		check(&(struct bed_options){.family = FAMILY_QWEN3, .targets = some[i], .wide = true});
}

static void test_gradient__modules_that_are_trained_whole(void **state)
{
	(void)state;
	check(&(struct bed_options){.family = FAMILY_QWEN2,
				    .targets = 1 << PEFT_Q,
				    .wide = true,
				    .save = PEFT_SAVE_EMBED | PEFT_SAVE_HEAD});
	check(&(struct bed_options){
		.family = FAMILY_LLAMA, .tied = true, .wide = true, .save = PEFT_SAVE_HEAD});
	check(&(struct bed_options){
		.family = FAMILY_LLAMA, .tied = true, .wide = true, .save = PEFT_SAVE_EMBED});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradient__every_parameter_of_qwen2),
		cmocka_unit_test(test_gradient__every_parameter_of_qwen3_with_the_tied_head),
		cmocka_unit_test(test_gradient__every_parameter_of_llama_with_scaled_rope),
		cmocka_unit_test(test_gradient__tiles_of_the_mlp),
		cmocka_unit_test(test_gradient__lora_on_every_map),
		cmocka_unit_test(test_gradient__lora_behind_dropout),
		cmocka_unit_test(test_gradient__lora_on_some_maps),
		cmocka_unit_test(test_gradient__modules_that_are_trained_whole),
	};

	return cmocka_run_group_tests_name("gradient", tests, NULL, NULL);
}
