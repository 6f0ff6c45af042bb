/* SPDX-License-Identifier: Apache-2.0 */
/* What must not change a loss or a gradient: recomputation, packing, chunks, threads, accumulation. */
#include "unit/test.h"
#include <math.h>
#include <sys/mman.h>
#include "model/decoder/layer_tensors.h"
#include "unit/model_bed.h"

enum { ALL = (1 << PEFT_TARGET_COUNT) - 1 };

/* Loss and gradient of one bed; the gradient's memory goes to the caller. */
static float *gradient_of(const struct bed_options *options, double *loss, size_t *length)
{
	struct bed b;
	float *copy;

	bed_open(&b, options);
	*loss = bed_loss(&b, true);
	*length = b.model->params.length;
	copy = malloc(*length * sizeof(*copy));
	assert_non_null(copy);
	memcpy(copy, b.model->params.grad.data, *length * sizeof(*copy));
	bed_close(&b);
	return copy;
}

/* Largest difference over the largest element. */
static double difference(const float *a, const float *b, size_t n)
{
	double most = 0, apart = 0;

	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fabs((double)a[i]));
		apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
	}
	assert_true(most > 0);
	return apart / most;
}

static void test_pass__recomputation_changes_no_bit(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++)
		for (int family = 0; family < FAMILY_COUNT; family++) {
			struct bed_options o = {.family = family, .full = full, .targets = full ? 0 : ALL};
			double loss[3];
			float *gradient[3];
			size_t n;

			o.dropout = full ? 0 : 0.2f;
			for (int mode = 0; mode < 3; mode++) {
				o.mode = mode;
				gradient[mode] = gradient_of(&o, &loss[mode], &n);
			}
			for (int mode = 1; mode < 3; mode++) {
				assert_true(loss[mode] == loss[0]);
				assert_memory_equal(gradient[mode], gradient[0], n * sizeof(float));
			}
			for (int mode = 0; mode < 3; mode++)
				free(gradient[mode]);
		}
}

static void test_pass__dropout_has_other_masks_for_another_seed_and_none_in_evaluation(void **state)
{
	static const struct bed_options without = {.family = FAMILY_QWEN2, .targets = ALL};
	struct bed_options with = without;
	double loss[3];
	size_t n;
	struct bed b;

	(void)state;
	with.dropout = 0.5f;
	free(gradient_of(&without, &loss[0], &n));
	free(gradient_of(&with, &loss[1], &n));
	assert_true(loss[0] != loss[1]);
	bed_open(&b, &with);
	b.pass.dropout_seed++;
	loss[2] = bed_loss(&b, false);
	assert_true(loss[2] != loss[1]);
	b.pass.dropout = false;
	assert_true(fabs(bed_loss(&b, false) - loss[0]) < 1e-4);
	bed_close(&b);
}

enum { MASK_RANK = 8, MASK_WIDTH = 512, MASK_LAYERS = 4 };

/* The masks that a layer's maps see: rows of ones through an A that picks the first MASK_RANK columns. */
static size_t masks_of(struct bed *b, struct layer *layer, uint8_t (*kept)[BED_ROWS * MASK_RANK])
{
	static const size_t maps[] = {offsetof(struct layer, qkv), offsetof(struct layer, o),
				      offsetof(struct layer, gate_up), offsetof(struct layer, down)};
	static float ones[BED_ROWS * MASK_WIDTH], out[BED_ROWS * 3 * MASK_RANK],
		made[BED_ROWS * 2 * MASK_WIDTH];
	const struct linear_run run = {.back = &b->back, .dropout_p = 0.5f, .dropout_seed = 11};
	struct mat x = {.data = ones, .rows = BED_ROWS, .dtype = DTYPE_F32}, u = x, y = x;
	struct error err = {0};
	size_t count = 0;

	for (int i = 0; i < BED_ROWS * MASK_WIDTH; i++)
		ones[i] = 1;
	u.data = out;
	y.data = made;
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct linear *l = layer_linear(layer, maps[i]);

		assert_true(l->adapters > 0 && l->in >= MASK_RANK && l->in <= MASK_WIDTH);
		for (int64_t row = 0; row < l->adapters * MASK_RANK; row++)
			for (int64_t column = 0; column < l->in; column++)
				((float *)l->a.w.data)[row * l->a.w.ld + column] = row % MASK_RANK == column;
		x.cols = x.ld = l->in;
		u.cols = u.ld = l->adapters * MASK_RANK;
		y.cols = y.ld = l->out;
		assert_true(l->out <= 2 * MASK_WIDTH);
		assert_int_equal(linear_forward(&run, l, x, y, (struct mat){0}, u, &err), STATUS_OK);
		for (int a = 0; a < l->adapters; a++, count++)
			for (int64_t k = 0; k < BED_ROWS * MASK_RANK; k++)
				kept[count][k] =
					out[k / MASK_RANK * u.ld + a * MASK_RANK + k % MASK_RANK] != 0;
	}
	return count;
}

/* Of two masks apart, half the places differ; of one and the same, none. */
static void test_pass__each_module_of_each_layer_has_a_dropout_mask_of_its_own(void **state)
{
	static uint8_t kept[MASK_LAYERS * PEFT_TARGET_COUNT][BED_ROWS * MASK_RANK];
	const int places = BED_ROWS * MASK_RANK;
	size_t count = 0;
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){
			     .family = FAMILY_QWEN2, .targets = ALL, .rank = MASK_RANK, .dropout = 0.5f});
	assert_true(b.shape.layers > 1 && b.shape.layers <= MASK_LAYERS);
	for (int64_t i = 0; i < b.shape.layers; i++)
		count += masks_of(&b, &b.model->layer[i], kept + count);
	assert_int_equal(count, b.shape.layers * PEFT_TARGET_COUNT);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++) {
			int apart = 0;

			for (int k = 0; k < places; k++)
				apart += kept[i][k] != kept[j][k];
			if (apart < places * 2 / 5 || apart > places * 3 / 5)
				fail_msg("masks %zu and %zu differ in %d of %d", i, j, apart, places);
		}
	bed_close(&b);
}

static void test_pass__rows_keep_their_masks_wherever_they_are_packed(void **state)
{
	static const int two[] = {5, 9, 0};
	const struct bed_options o = {.family = FAMILY_QWEN2, .targets = ALL, .dropout = 0.4f, .docs = two};
	struct bed b;
	double both, first, last;

	(void)state;
	bed_open(&b, &o);
	both = bed_loss(&b, false);
	b.batch.tokens = b.doc_start[1];
	b.batch.docs = 1;
	b.batch.targets = 0;
	for (int i = 0; i < 5; i++)
		b.batch.targets += b.target[i] >= 0;
	first = bed_loss(&b, false);
	bed_batch(&b, two);
	/* The second document alone, at the rows it had. */
	b.batch.token += 5;
	b.batch.position += 5;
	b.batch.target += 5;
	b.doc_start[1] = 9;
	b.batch.docs = 1;
	b.batch.tokens = 9;
	b.batch.row_begin += 5;
	b.batch.targets = 0;
	for (int i = 0; i < 9; i++)
		if (b.batch.target[i] >= 0)
			b.trained[b.batch.targets++] = i;
	last = bed_loss(&b, false);
	bed_close(&b);
	assert_true(fabs(both - first - last) < 1e-4 * both);
}

static void test_pass__packed_documents_never_see_each_other(void **state)
{
	static const int lengths[] = {1, 2, 63, 1, 3, 0};
	struct bed b;
	double packed, alone = 0;
	int32_t begin = 0;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_QWEN3, .targets = ALL, .docs = lengths});
	packed = bed_loss(&b, false);
	for (int i = 0; lengths[i]; begin += lengths[i], i++) {
		const struct batch whole = b.batch;
		int32_t start[2] = {0, lengths[i]}, trained[BED_ROWS], count = 0;

		for (int32_t t = 0; t < lengths[i]; t++)
			if (b.target[begin + t] >= 0)
				trained[count++] = t;
		b.batch.token += begin;
		b.batch.position += begin;
		b.batch.target += begin;
		b.batch.doc_start = start;
		b.batch.trained = trained;
		b.batch.tokens = lengths[i];
		b.batch.docs = 1;
		b.batch.targets = count;
		alone += bed_loss(&b, false);
		b.batch = whole;
	}
	assert_true(fabs(packed - alone) < 1e-5 * packed);
	bed_close(&b);
}

static void test_pass__chunks_threads_and_products_of_our_own_agree(void **state)
{
	struct bed_options o = {.family = FAMILY_QWEN2, .full = true};
	double loss, other;
	size_t n;
	float *gradient, *again;

	(void)state;
	gradient = gradient_of(&o, &loss, &n);
	for (int i = 0; i < 4; i++) {
		o.head_chunk = i == 0 ? 7 : i == 1 ? 1 : 0;
		o.threads = i == 2 ? 1 : 3;
		o.own_gemm = i == 3;
		again = gradient_of(&o, &other, &n);
		assert_true(fabs(loss - other) < 1e-5 * loss);
		assert_true(difference(gradient, again, n) < 1e-5);
		free(again);
	}
	free(gradient);
}

static void test_pass__float_is_double_to_its_rounding(void **state)
{
	(void)state;
	for (int family = 0; family < FAMILY_COUNT; family++) {
		struct bed_options o = {.family = family, .full = true};
		struct bed narrow, wide;
		double most = 0;

		bed_open(&narrow, &o);
		o.wide = true;
		bed_open(&wide, &o);
		assert_true(fabs(bed_loss(&narrow, true) - bed_loss(&wide, true)) <
			    1e-5 * bed_loss(&wide, true));
		for (size_t i = 0; i < wide.model->params.length; i++)
			most = fmax(most, fabs(bed_get(&wide.model->params.grad, i)));
		for (size_t i = 0; i < wide.model->params.length; i++)
			assert_true(fabs(bed_get(&narrow.model->params.grad, i) -
					 bed_get(&wide.model->params.grad, i)) < 1e-5 * most);
		bed_close(&narrow);
		bed_close(&wide);
	}
}

static void test_pass__gradients_of_two_batches_add_up(void **state)
{
	struct bed b;
	float *once;
	struct error err = {0};
	double sum = 0;
	size_t n;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_LLAMA, .targets = ALL});
	bed_loss(&b, true);
	n = b.model->params.length;
	once = malloc(n * sizeof(*once));
	assert_non_null(once);
	memcpy(once, b.model->params.grad.data, n * sizeof(*once));
	assert_int_equal(model_forward(&b.pass, &err), STATUS_OK);
	assert_int_equal(model_backward(&b.pass, 0.5f, &sum, &err), STATUS_OK);
	for (size_t i = 0; i < n; i++)
		once[i] *= 2;
	assert_true(difference(once, b.model->params.grad.data, n) < 1e-6);
	free(once);
	bed_close(&b);
}

static void test_pass__a_batch_without_targets_costs_no_gradient(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_LLAMA, .targets = ALL});
	b.batch.targets = 0;
	assert_true(bed_loss(&b, true) == 0);
	for (size_t i = 0; i < b.model->params.length; i++)
		assert_true(bed_get(&b.model->params.grad, i) == 0);
	bed_close(&b);
}

static void test_pass__merged_is_unmerged(void **state)
{
	struct bed b;
	struct error err = {0};
	double apart;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_QWEN2, .targets = ALL});
	apart = bed_loss(&b, false);
	assert_int_equal(model_merge(b.model, &b.back, &err), STATUS_OK);
	assert_true(fabs(bed_loss(&b, false) - apart) < 1e-5 * apart);
	bed_close(&b);
}

/* Rows whose squares add up without rounding and are as small as epsilon: every bit follows from the
 * definition, w * (x * rstd) in F32, so another epsilon shows, and another order of the products. */
static void test_norm__each_bit_is_the_definition_s_for_either_epsilon(void **state)
{
	enum { WIDTH = 8 };
	static const float eps[] = {1e-5f, 1e-6f};
	float x[WIDTH], w[WIDTH], y[2][WIDTH], rstd, square = 0;
	bool order_shows = false;
	struct error err = {0};
	struct bed b;

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_LLAMA, .targets = ALL});
	for (int i = 0; i < WIDTH; i++) {
		x[i] = ldexpf((float)(i + 1), -12);
		w[i] = 1 + 0.1f * (float)i;
		square += x[i] * x[i];
	}
	for (int e = 0; e < 2; e++) {
		float due = (float)(1 / (float)sqrt((double)(square / WIDTH + eps[e])));
		struct mat mx = {.data = x, .rows = 1, .cols = WIDTH, .ld = WIDTH, .dtype = DTYPE_F32};
		struct mat mw = mx, my = mx, mr = mx;

		mw.data = w;
		my.data = y[e];
		mr.data = &rstd;
		mr.cols = mr.ld = 1;
		assert_int_equal(b.back.ops->rmsnorm(&b.back, mx, mw, eps[e], my, mr, &err), STATUS_OK);
		assert_memory_equal(&rstd, &due, sizeof(due));
		for (int i = 0; i < WIDTH; i++) {
			float one = w[i] * (x[i] * due), other = (w[i] * x[i]) * due;

			assert_memory_equal(&y[e][i], &one, sizeof(one));
			order_shows |= one != other;
		}
	}
	assert_true(order_shows);
	assert_true(y[0][WIDTH - 1] < 0.8f * y[1][WIDTH - 1]);
	bed_close(&b);
}

/* Three rows of logits, 2^30 elements from one to the next: the last begins at 2^31. */
static void test_head__rows_times_vocabulary_may_pass_2_to_the_31(void **state)
{
	const struct bed_options o = {.family = FAMILY_QWEN2, .targets = ALL};
	const size_t size = (size_t)4 * ((2u << 30) + 64);
	const int32_t row[] = {0, 1, 2};
	struct error err = {0};
	float x[3 * 48], loss[2][3], close[3 * 56];
	struct mat wide = {.rows = 3, .cols = 56, .ld = 1 << 30, .dtype = DTYPE_F32}, narrow = wide;
	struct gemm g = {.trans_b = true, .alpha = 1};
	struct bed b;

	(void)state;
	wide.data =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (wide.data == MAP_FAILED) {
		print_message("# no 8 GB of addresses\n");
		skip();
	}
	narrow.data = close;
	narrow.ld = 56;
	bed_open(&b, &o);
	for (int i = 0; i < 3 * 48; i++)
		x[i] = (float)(i % 7) * 0.1f;
	g.a = (struct mat){.data = x, .rows = 3, .cols = 48, .ld = 48, .dtype = DTYPE_F32};
	g.b = b.model->head.w;
	for (int i = 0; i < 2; i++) {
		struct mat losses = {.data = loss[i], .rows = 3, .cols = 1, .ld = 1, .dtype = DTYPE_F32};

		g.d = i ? narrow : wide;
		assert_int_equal(b.back.ops->gemm(&b.back, &g, &err), STATUS_OK);
		assert_int_equal(b.back.ops->cross_entropy(&b.back, g.d, (const int32_t[]){5, 6, 7}, row,
							   0.5f, losses, &err),
				 STATUS_OK);
	}
	assert_memory_equal(loss[0], loss[1], sizeof(loss[0]));
	for (int64_t i = 0; i < 3; i++)
		assert_memory_equal((float *)wide.data + i * wide.ld, close + i * 56, 56 * sizeof(float));
	bed_close(&b);
	munmap(wide.data, size);
}

static void test_pass__a_document_beyond_the_positions_is_refused(void **state)
{
	struct bed b;
	struct error err = {0};

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_QWEN2, .targets = ALL});
	b.batch.doc_len_max = 129;
	assert_int_equal(model_forward(&b.pass, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "a sequence has 129 rows, but the model has room for 128");
	bed_close(&b);
}

static void test_batch__what_is_wrong_with_it_is_named(void **state)
{
	struct bed b;
	struct error err = {0};

	(void)state;
	bed_open(&b, &(struct bed_options){.family = FAMILY_QWEN2, .targets = ALL});
	b.token[3] = 56;
	assert_int_equal(batch_check(&b.batch, 56, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "batch: row 3 holds id 56, but the model has 56");
	b.token[3] = 0;
	b.position[4]++;
	error_clear(&err);
	assert_int_equal(batch_check(&b.batch, 56, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "batch: row 4 is at position 2, not 1");
	b.position[4]--;
	b.doc_start[1] = 0;
	error_clear(&err);
	assert_int_equal(batch_check(&b.batch, 56, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "batch: document 0 has 0 rows of 1 to 64");
	b.doc_start[1] = 1;
	b.batch.targets--;
	error_clear(&err);
	assert_int_equal(batch_check(&b.batch, 56, &err), STATUS_BAD_INPUT);
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pass__recomputation_changes_no_bit),
		cmocka_unit_test(test_pass__dropout_has_other_masks_for_another_seed_and_none_in_evaluation),
		cmocka_unit_test(test_pass__each_module_of_each_layer_has_a_dropout_mask_of_its_own),
		cmocka_unit_test(test_pass__rows_keep_their_masks_wherever_they_are_packed),
		cmocka_unit_test(test_pass__packed_documents_never_see_each_other),
		cmocka_unit_test(test_pass__chunks_threads_and_products_of_our_own_agree),
		cmocka_unit_test(test_pass__float_is_double_to_its_rounding),
		cmocka_unit_test(test_pass__gradients_of_two_batches_add_up),
		cmocka_unit_test(test_pass__a_batch_without_targets_costs_no_gradient),
		cmocka_unit_test(test_pass__merged_is_unmerged),
		cmocka_unit_test(test_norm__each_bit_is_the_definition_s_for_either_epsilon),
		cmocka_unit_test(test_head__rows_times_vocabulary_may_pass_2_to_the_31),
		cmocka_unit_test(test_pass__a_document_beyond_the_positions_is_refused),
		cmocka_unit_test(test_batch__what_is_wrong_with_it_is_named),
	};

	return cmocka_run_group_tests_name("pass", tests, NULL, NULL);
}
