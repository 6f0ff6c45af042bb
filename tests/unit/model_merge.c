/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters merged into a model's weights. */
#include "scratch.h"
#include "test.h"
#include "weights_bed.h"

#include <math.h>

#include "core/file/file.h"
#include "core/math/random.h"
#include "model/tensor/dtype.h"
#include "core/json/file.h"
#include "model/files/merge_adapter.h"
#include "model/files/fingerprint.h"
#include "model/files/peft/names.h"
#include "model/files/rounded_weights.h"

/* The numbers of a weight that an adapter was trained with. */
static float *trained_with(const struct weights *base, const struct peft_config *c, const char *name)
{
	struct rounded_weights r;
	struct error err = {0};
	struct named n;
	float *out;

	if (storage_is_resident(&c->base_storage))
		return load(base, name);
	assert_true(names_find(&n, &base->shape, name));
	if (rounded_weights_read(&r, base, &n, &c->base_storage, &err))
		fail_msg("%s", err.text);
	out = malloc(sizeof(*out) * (size_t)(n.rows * n.cols));
	rounded_weights_rows(&r, 0, n.rows, out);
	rounded_weights_release(&r);
	return out;
}

/* What LoRA's definition makes of each element, in double. */
static void check_merged(const struct weights *base, const struct weights *merged,
			 const struct peft_config *c, const struct peft_slot *a, const struct peft_slot *b)
{
	float *before = trained_with(base, c, a->name), *after = load(merged, a->name);
	const float *pa = a->mat.data, *pb = b->mat.data;

	for (int64_t row = 0; row < b->mat.rows; row++) {
		for (int64_t col = 0; col < a->mat.cols; col++) {
			double sum = 0, due;

			for (int64_t k = 0; k < c->rank; k++)
				sum += (double)pb[row * b->mat.ld + k] * (double)pa[k * a->mat.ld + col];
			due = (double)before[row * a->mat.cols + col] + c->alpha / (double)c->rank * sum;
			assert_true(fabs((double)after[row * a->mat.cols + col] - due) < 1e-5);
		}
	}
	free(before);
	free(after);
}

static void merge_each_weight(const char *scratch, const struct storage *storage)
{
	struct peft_config c = {.rank = 3,
				.alpha = 7,
				.targets = 1u << PEFT_K | 1u << PEFT_DOWN,
				.save = PEFT_SAVE_HEAD,
				.base_storage = *storage};
	const struct merge_options o = {.dtype = DTYPE_COUNT, .shard_bytes = 150000};
	struct merge_options with = o;
	char dir[PATH_MAX], adapter[PATH_MAX + 16], out[PATH_MAX + 16];
	struct peft_place place[9];
	struct peft_slot slot[9];
	struct weights base, merged;
	struct error err = {0};
	struct shape s;
	float *head, *embed;

	shape_by_name(&s, "tiny-qwen3", NULL);
	make(dir, scratch, "base", &s, DTYPE_F32, UINT64_MAX);
	snprintf(adapter, sizeof(adapter), "%s/adapter", scratch);
	snprintf(out, sizeof(out), "%s/merged", scratch);
	assert_int_equal(peft_names_count(&s, &c), 9);
	for (size_t i = 0; i < 9; i++) {
		peft_names_at(&place[i], &s, &c, i);
		slot[i] = (struct peft_slot){.name = place[i].base.hf, .part = place[i].part};
		slot[i].mat.rows = place[i].part == PEFT_A ? 3 : place[i].base.rows;
		slot[i].mat.cols = slot[i].mat.ld = place[i].part == PEFT_B ? 3 : place[i].base.cols;
		slot[i].mat.data = malloc(sizeof(float) * (size_t)(slot[i].mat.rows * slot[i].mat.cols));
		random_fill_f32(slot[i].mat.data, (size_t)(slot[i].mat.rows * slot[i].mat.cols), 3,
				(uint32_t)i, 0);
	}
	assert_int_equal(weights_open(&base, dir, &err), STATUS_OK);
	assert_int_equal(weights_fingerprint(c.base_sum, &base, FINGERPRINT_NUMBERS, &err), STATUS_OK);
	assert_int_equal(peft_write(adapter, &c, &s, slot, 9, &err), STATUS_OK);
	with.adapter = adapter;
	if (merge_write(out, &base, &with, &err) || weights_open(&merged, out, &err))
		fail_msg("%s", err.text);
	assert_false(merged.shape.tied); /* its head was trained apart */
	for (size_t i = 0; i < 8; i += 2)
		check_merged(&base, &merged, &c, &slot[i], &slot[i + 1]);
	head = load(&merged, "lm_head.weight");
	assert_memory_equal(head, slot[8].mat.data, sizeof(float) * 320 * 96);
	free(head);
	head = trained_with(&base, &c, "model.layers.1.self_attn.q_proj.weight");
	embed = load(&merged, "model.layers.1.self_attn.q_proj.weight");
	assert_memory_equal(head, embed, sizeof(float) * 192 * 96);
	free(head);
	free(embed);
	weights_release(&merged);
	weights_release(&base);
	for (size_t i = 0; i < 9; i++)
		free(slot[i].mat.data);
}

static void test_merge__each_weight_gets_its_product_once_and_the_others_none(void **state)
{
	merge_each_weight(*state, &(struct storage){.form = STORAGE_NUMBERS});
}

/* An adapter of a base in 4 bits is added to the numbers that remain of it, and the other linear layers have
 * these too. */
static void test_merge__a_base_that_was_quantized_in_training_is_quantized_first(void **state)
{
	merge_each_weight(*state, &(struct storage){.form = STORAGE_BNB4, .type = BNB4_FP4, .nested = true});
}

/* Zeros as PEFT writes them before the first step. */
static void test_merge__an_adapter_that_was_never_trained_is_refused(void **state)
{
	struct peft_config c = {.rank = 2, .alpha = 4, .targets = 1u << PEFT_Q};
	struct merge_options o = {.dtype = DTYPE_COUNT, .shard_bytes = UINT64_MAX};
	char dir[PATH_MAX], adapter[PATH_MAX + 16], out[PATH_MAX + 16], path[PATH_MAX + 64];
	struct tensor tensors[4];
	char names[4][PEFT_NAME_SIZE];
	struct safetensors_writer w;
	struct weights base;
	struct error err = {0};
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	make(dir, *state, "base", &s, DTYPE_BF16, UINT64_MAX);
	snprintf(adapter, sizeof(adapter), "%s/adapter", (char *)*state);
	snprintf(out, sizeof(out), "%s/merged", (char *)*state);
	snprintf(path, sizeof(path), "%s/" PEFT_WEIGHTS, adapter);
	assert_int_equal(file_make_dir(adapter, NULL), STATUS_OK);
	assert_int_equal(json_file_write(adapter, PEFT_CONFIG, peft_config_json(&c), 0, NULL), STATUS_OK);
	for (size_t i = 0; i < 4; i++) {
		struct peft_place at;

		peft_names_at(&at, &s, &c, i);
		peft_name(names[i], &at);
		tensors[i] = (struct tensor){.name = names[i], .dtype = DTYPE_F32, .rank = 2};
		tensors[i].dim[0] = at.part == PEFT_A ? 2 : at.base.rows;
		tensors[i].dim[1] = at.part == PEFT_B ? 2 : at.base.cols;
	}
	assert_int_equal(safetensors_write_begin(&w, path, tensors, 4, NULL, NULL), STATUS_OK);
	assert_int_equal(safetensors_write_end(&w, safetensors_write_hole(&w, NULL), NULL), STATUS_OK);
	assert_int_equal(weights_open(&base, dir, NULL), STATUS_OK);
	o.adapter = adapter;
	assert_int_equal(merge_write(out, &base, &o, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "every B is zero"));
	weights_release(&base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_merge__each_weight_gets_its_product_once_and_the_others_none),
		scratch_test(test_merge__a_base_that_was_quantized_in_training_is_quantized_first),
		scratch_test(test_merge__an_adapter_that_was_never_trained_is_refused),
	};

	return cmocka_run_group_tests_name("model_merge", tests, NULL, NULL);
}
