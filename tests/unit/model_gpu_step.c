/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a step on the fake driver: embedding, RoPE with the cache, and adapters. */
#include "model_gpu_step_bed.h"

static void rows_are_embedded(void **state)
{
	struct error err = {0};
	struct mat table, last, x, tokens;
	struct paged_rows rows = {.rows = 4};
	struct bed b;

	(void)state;
	skip_without_kernels();
	must(open_bed(&b, "", &err), &err);
	place(&b, &table, 10, 24, DTYPE_BF16);
	fill(&table, 3);
	place(&b, &last, 1, 3, DTYPE_I32);
	place(&b, &tokens, 1, 4, DTYPE_I32);
	place(&b, &x, 4, 24, DTYPE_BF16);
	memcpy(last.data, (int32_t[]){4, 5, 6}, 12);
	memcpy(tokens.data, (int32_t[]){9, -1, -3, 0}, 16);
	rows.token = tokens.data;
	must(b.back.ops->paged_embed(&b.back, &rows, table, last, x, &err), &err);
	for (int i = 0; i < 4; i++) {
		const int ids[] = {9, 4, 6, 0};

		assert_memory_equal((uint16_t *)x.data + (int64_t)i * 24,
				    (uint16_t *)table.data + (int64_t)ids[i] * 24, 48);
	}
	setenv("FAKE_CUDA", "cuLaunchKernel=719", 1); /* an ordinary launch, which is not early */
	assert_int_not_equal(b.back.ops->paged_embed(&b.back, &rows, table, last, x, &err), STATUS_OK);
	setenv("FAKE_CUDA", "", 1);
	table.dtype = DTYPE_F32;
	assert_int_equal(b.back.ops->paged_embed(&b.back, &rows, table, last, x, &err), STATUS_UNSUPPORTED);
	close_bed(&b);
}

/* The rotation is head_norm_rope's; a cache in E4M3 has its numbers within a sixteenth. */
static void rope_writes_the_cache(void **state)
{
	enum { T = 3, HEADS = 2, KV = 1, DIM = 32, PAGE = 4, SLOTS = 12 };
	const struct attention at = {.heads = HEADS, .kv_heads = KV, .head_dim = DIM};
	struct mat qkv, again, k, cos_sin, position, slot, norm, none = {0}, raw, rstd;
	struct paged_layer bf16 = {0}, e4m3 = {0};
	struct paged_rows rows = {.rows = T, .page_tokens = PAGE};
	struct error err = {0};
	struct bed b;

	(void)state;
	skip_without_kernels();
	must(open_bed(&b, "", &err), &err);
	place(&b, &qkv, T, (HEADS + 2 * KV) * DIM, DTYPE_BF16);
	place(&b, &again, T, (HEADS + 2 * KV) * DIM, DTYPE_BF16);
	place(&b, &raw, T, DIM, DTYPE_BF16);
	place(&b, &rstd, T, 1, DTYPE_F32);
	place(&b, &norm, 1, DIM, DTYPE_BF16);
	place(&b, &cos_sin, 20, DIM, DTYPE_F32);
	place(&b, &position, 1, T, DTYPE_I32);
	place(&b, &slot, 1, T, DTYPE_I32);
	place(&b, &bf16.kv, SLOTS, 2 * KV * DIM, DTYPE_BF16);
	place(&b, &e4m3.kv, SLOTS, 2 * KV * DIM, DTYPE_I32); /* more than it needs */
	e4m3.kv.dtype = DTYPE_E4M3;
	place(&b, &e4m3.scale, SLOTS, 2 * KV, DTYPE_F32);
	fill(&qkv, 1);
	fill(&norm, 2);
	memcpy(again.data, qkv.data, T * (HEADS + 2 * KV) * DIM * 2);
	for (int i = 0; i < 20 * DIM; i++)
		((float *)cos_sin.data)[i] = random_f32(4, 4, (uint64_t)i);
	memcpy(position.data, (int32_t[]){3, 4, 19}, 12);
	memcpy(slot.data, (int32_t[]){7, 8, 0}, 12);
	rows.position = position.data;
	rows.slot = slot.data;
	must(b.back.ops->paged_rope(&b.back, &rows, &at, again, norm, norm, 1e-6f, cos_sin, &e4m3, &err),
	     &err);
	memcpy(again.data, qkv.data, T * (HEADS + 2 * KV) * DIM * 2);
	must(b.back.ops->paged_rope(&b.back, &rows, &at, qkv, norm, norm, 1e-6f, cos_sin, &bf16, &err), &err);
	k = again;
	k.cols = DIM;
	k.data = (uint16_t *)again.data + (int64_t)HEADS * DIM;
	must(b.back.ops->head_norm_rope(&b.back, k, KV, norm, 1e-6f, position.data, cos_sin, raw, rstd, &err),
	     &err);
	for (int t = 0; t < T; t++) {
		const int64_t at_slot = ((int32_t *)slot.data)[t];
		const uint16_t *to = (uint16_t *)bf16.kv.data + at_slot * 2 * KV * DIM;

		assert_memory_equal(to, (uint16_t *)again.data + (int64_t)t * again.ld + HEADS * DIM,
				    DIM * 2);
		assert_memory_equal(to + DIM, (uint16_t *)qkv.data + (int64_t)t * qkv.ld + (HEADS + KV) * DIM,
				    DIM * 2);
		for (int h = 0; h < 2; h++) {
			float most = 0;

			for (int j = 0; j < DIM; j++)
				most = fmaxf(most, fabsf(bf16_to_f32(to[h * DIM + j])));
			/* a page's scales of one head follow each other */
			assert_true(((float *)e4m3.scale.data)[at_slot / PAGE * 2 * PAGE + h * PAGE +
							       at_slot % PAGE] == most / 448);
		}
	}
	bf16.kv.dtype = DTYPE_F32;
	assert_int_equal(
		b.back.ops->paged_rope(&b.back, &rows, &at, qkv, none, none, 1e-6f, cos_sin, &bf16, &err),
		STATUS_UNSUPPORTED);
	assert_int_equal(
		b.back.ops->paged_rope(&b.back, &rows,
				       &(struct attention){.heads = 1, .kv_heads = 1, .head_dim = 24}, qkv,
				       none, none, 1e-6f, cos_sin, &e4m3, &err),
		STATUS_UNSUPPORTED);
	close_bed(&b);
}

static void columns_of_other_adapters_become_0(void **state)
{
	static const int32_t owner[ROWS] = {0, 1, 2, -1, 1, 0};
	struct error err = {0};
	struct mat u, list;
	struct bed b;

	(void)state;
	skip_without_kernels();
	must(open_bed(&b, "", &err), &err);
	place(&b, &u, ROWS, 48, DTYPE_BF16); /* two targets of three adapters of rank 8 */
	place(&b, &list, 1, ROWS, DTYPE_I32);
	memcpy(list.data, owner, sizeof(owner));
	for (int i = 0; i < ROWS * 48; i++)
		((uint16_t *)u.data)[i] = 0x3f80;
	must(b.back.ops->adapter_mask(&b.back, u, list.data, 24, 8, &err), &err);
	for (int i = 0; i < ROWS * 48; i++)
		assert_int_equal(((uint16_t *)u.data)[i], i % 24 / 8 == owner[i / 48] ? 0x3f80 : 0);
	assert_int_equal(b.back.ops->adapter_mask(&b.back, u, list.data, 24, 4, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "rank 4"));
	close_bed(&b);
}

static void a_ratio_scales_before_bias_and_residual(void **state)
{
	static const int32_t owner[ROWS] = {0, 1, -1, 1, 0, -1};
	struct error err = {0};
	struct mat y, list, ratio, bias, residual, none = {0};
	struct bed b;

	(void)state;
	skip_without_kernels();
	must(open_bed(&b, "", &err), &err);
	place(&b, &y, ROWS, 16, DTYPE_BF16);
	place(&b, &residual, ROWS, 16, DTYPE_BF16);
	place(&b, &bias, 1, 16, DTYPE_BF16);
	place(&b, &list, 1, ROWS, DTYPE_I32);
	place(&b, &ratio, 2, 16, DTYPE_F32);
	memcpy(list.data, owner, sizeof(owner));
	for (int i = 0; i < ROWS * 16; i++) {
		((uint16_t *)y.data)[i] = bf16_of_f32(1);
		((uint16_t *)residual.data)[i] = bf16_of_f32(8);
		((uint16_t *)bias.data)[i % 16] = bf16_of_f32(4);
		((float *)ratio.data)[i % 32] = i % 32 < 16 ? 2 : 3;
	}
	must(b.back.ops->adapter_scale(&b.back, y, list.data, ratio, bias, residual, &err), &err);
	for (int i = 0; i < ROWS * 16; i++)
		assert_int_equal(((uint16_t *)y.data)[i], bf16_of_f32((float)(14 + owner[i / 16])));
	must(b.back.ops->adapter_scale(&b.back, y, NULL, ratio, none, none, &err), &err);
	for (int i = 0; i < ROWS * 16; i++)
		assert_int_equal(((uint16_t *)y.data)[i], bf16_of_f32((float)(28 + 2 * owner[i / 16])));
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_embedded),
		cmocka_unit_test(rope_writes_the_cache),
		cmocka_unit_test(columns_of_other_adapters_become_0),
		cmocka_unit_test(a_ratio_scales_before_bias_and_residual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
