/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of matrix products, on an engine of three loops whose result the test may spoil. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "probe/gemm/gemm.h"
#include "unit/cpu_bench.h"

extern const struct probe probe_gemm;
enum { SETS = 3 };

struct fake {
	struct gemm common;
	double *a, *b, *bias; /* as stored, all batches */
	void *c[SETS];	      /* of the output type: double, float or int32_t */
	bool lazy;	      /* returns at once */
	unsigned spoils;
	uint64_t spoil[4];  /* elements changed after each product.. */
	double spoilt[4];   /* ..by adding this; NaN: set to it */
	unsigned spoil_set; /* in this set alone; SETS: in all */
};

static uint64_t total(const struct fake *f)
{
	return (uint64_t)f->common.opts.batch * f->common.opts.m * f->common.opts.n;
}

static void put(struct fake *f, unsigned set, uint64_t i, double value)
{
	switch (f->common.opts.type) {
	case GEMM_FP64:
		((double *)f->c[set])[i] = value;
		break;
	case GEMM_INT8:
		((int32_t *)f->c[set])[i] = isnan(value) ? INT32_MIN : (int32_t)value;
		break;
	default:
		((float *)f->c[set])[i] = (float)value;
	}
}

static enum status fake_fill(void *state, enum gemm_data data, struct error *err)
{
	struct fake *f = state;
	const struct gemm_opts *o = &f->common.opts;

	(void)err;
	for (uint64_t i = 0; i < (uint64_t)o->batch * o->m * o->k; i++)
		f->a[i] =
			gemm_round_in(o->type, gemm_element(f->common.seed, GEMM_STREAM_A, data, o->type, i));
	for (uint64_t i = 0; i < (uint64_t)o->batch * o->k * o->n; i++)
		f->b[i] =
			gemm_round_in(o->type, gemm_element(f->common.seed, GEMM_STREAM_B, data, o->type, i));
	for (uint32_t i = 0; i < o->n; i++)
		f->bias[i] = gemm_round_out(o->type,
					    gemm_element(f->common.seed, GEMM_STREAM_BIAS, data, o->type, i));
	return STATUS_OK;
}

static enum status fake_poison(void *state, struct error *err)
{
	struct fake *f = state;

	(void)err;
	for (unsigned set = 0; set < SETS; set++)
		for (uint64_t i = 0; i < total(f); i++)
			put(f, set, i, (double)NAN);
	return STATUS_OK;
}

static double one(const struct fake *f, uint32_t b, uint32_t i, uint32_t j)
{
	const struct gemm_opts *o = &f->common.opts;
	const double *a = f->a + (uint64_t)b * o->m * o->k, *bb = f->b + (uint64_t)b * o->k * o->n;
	double sum = o->bias ? f->bias[j] : 0;

	for (uint32_t l = 0; l < o->k; l++)
		sum += (o->ta ? a[(uint64_t)l * o->m + i] : a[(uint64_t)i * o->k + l]) *
		       (o->tb ? bb[(uint64_t)j * o->k + l] : bb[(uint64_t)l * o->n + j]);
	return sum;
}

static enum status fake_run(void *state, unsigned set, struct error *err)
{
	struct fake *f = state;
	const struct gemm_opts *o = &f->common.opts;
	uint64_t at = 0;

	(void)err;
	if (f->lazy)
		return STATUS_OK;
	for (uint32_t b = 0; b < o->batch; b++)
		for (uint32_t i = 0; i < o->m; i++)
			for (uint32_t j = 0; j < o->n; j++)
				put(f, set, at++, one(f, b, i, j));
	if (f->spoil_set == SETS || f->spoil_set == set)
		for (unsigned s = 0; s < f->spoils; s++)
			put(f, set, f->spoil[s],
			    gemm_value_out(o->type, f->c[set], f->spoil[s]) + f->spoilt[s]);
	return STATUS_OK;
}

static enum status fake_products(void *state, unsigned set, uint32_t b, struct gemm_products *out,
				 struct error *err)
{
	struct fake *f = state;
	uint64_t each = (uint64_t)f->common.opts.m * f->common.opts.n;

	return gemm_products_host(
		&f->common, (char *)f->c[set] + b * each * gemm_out_bytes(f->common.opts.type), out, err);
}

static enum status fake_elements(void *state, unsigned set, const uint64_t *index, size_t count, double *out,
				 struct error *err)
{
	struct fake *f = state;

	(void)err;
	for (size_t i = 0; i < count; i++)
		out[i] = gemm_value_out(f->common.opts.type, f->c[set], index[i]);
	return STATUS_OK;
}

static enum status fake_differences(void *state, unsigned set, double tolerance, uint64_t *count,
				    uint64_t *first, struct error *err)
{
	struct fake *f = state;

	(void)err;
	*count = 0;
	for (uint64_t i = 0; i < total(f); i++) {
		double x = gemm_value_out(f->common.opts.type, f->c[0], i);
		double y = gemm_value_out(f->common.opts.type, f->c[set], i);

		if (!(fabs(x - y) <= tolerance) && !(*count)++)
			*first = i;
	}
	return STATUS_OK;
}

static const struct gemm_access fake_access = {
	.fill = fake_fill,
	.poison = fake_poison,
	.run = fake_run,
	.products = fake_products,
	.elements = fake_elements,
	.differences = fake_differences,
};

static const struct gemm_opts plain = {.type = GEMM_FP32, .m = 45, .n = 37, .k = 70, .batch = 1};

static void fake_make(struct fake *f, const struct gemm_opts *o)
{
	struct cpu_bench b;

	cpu_bench_make(&b);
	*f = (struct fake){.spoil_set = SETS};
	gemm_begin(&f->common, &b.bench, o, &fake_access, SETS);
	f->a = calloc((size_t)o->batch * o->m * o->k, sizeof(double));
	f->b = calloc((size_t)o->batch * o->k * o->n, sizeof(double));
	f->bias = calloc(o->n, sizeof(double));
	for (unsigned set = 0; set < SETS; set++)
		f->c[set] = calloc(total(f), sizeof(double));
}

static void fake_free(struct fake *f)
{
	gemm_end(&f->common);
	free(f->a);
	free(f->b);
	free(f->bias);
	for (unsigned set = 0; set < SETS; set++)
		free(f->c[set]);
}

static void right_products_pass_in_every_layout(void **state)
{
	static const struct gemm_opts shapes[] = {
		{.type = GEMM_FP32, .m = 45, .n = 37, .k = 70, .batch = 1},
		{.type = GEMM_FP64, .m = 1, .n = 1, .k = 1, .batch = 1},
		{.type = GEMM_FP64, .m = 64, .n = 3, .k = 129, .batch = 3, .bias = true},
		{.type = GEMM_INT8, .m = 33, .n = 32, .k = 31, .batch = 2},
		{.type = GEMM_INT8, .m = 33, .n = 32, .k = 31, .batch = 1, .data = GEMM_DATA_ZEROS},
		{.type = GEMM_FP32,
		 .m = 20,
		 .n = 30,
		 .k = 40,
		 .batch = 1,
		 .data = GEMM_DATA_ZEROS,
		 .bias = true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (unsigned trans = 0; trans < 4; trans++) {
			struct gemm_opts o = shapes[i];
			struct error err = {0};
			struct wrong wrong;
			struct fake f;

			o.ta = trans & 1;
			o.tb = trans >> 1;
			fake_make(&f, &o);
			assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_OK);
			assert_int_equal(wrong.count, 0);
			assert_int_equal(wrong.checked, total(&f));
			for (unsigned set = 0; set < SETS; set++)
				assert_int_equal(fake_run(&f, set, NULL), STATUS_OK);
			f.common.written = 7;
			assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_OK);
			assert_int_equal(wrong.checked, total(&f));
			fake_free(&f);
		}
}

static void one_wrong_element_is_named_by_row_and_column(void **state)
{
	static const uint32_t rows[] = {0, 1, 22, 44}, columns[] = {0, 5, 31, 36};
	static const double changes[] = {1, -1, 0.5, (double)NAN, (double)INFINITY, 1e30, 70};

	(void)state;
	for (size_t r = 0; r < 4; r++)
		for (size_t c = 0; c < 4; c++)
			for (size_t d = 0; d < sizeof(changes) / sizeof(changes[0]); d++) {
				struct error err = {0};
				struct wrong wrong = {0};
				struct fake f;
				char place[64];

				fake_make(&f, &plain);
				f.spoils = 1;
				f.spoil[0] = rows[r] * plain.n + columns[c];
				f.spoilt[0] = changes[d];
				assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_MISMATCH);
				assert_int_equal(wrong.count, 1);
				assert_int_equal(wrong.first_index, f.spoil[0]);
				snprintf(place, sizeof(place), "row %u column %u", rows[r], columns[c]);
				assert_string_equal(wrong.place, place);
				assert_non_null(strstr(err.text, place));
				assert_int_equal(wrong.nan, !isfinite(changes[d]));
				assert_int_equal(err.cause, wrong.nan ? CAUSE_NAN : CAUSE_WRONG_RESULT);
				fake_free(&f);
			}
}

static void errors_that_cancel_in_a_row_or_column_are_counted(void **state)
{
	static const struct {
		unsigned count;
		uint64_t at[4];
		double by[4];
	} plants[] = {
		{2, {3 * 37 + 4, 3 * 37 + 9}, {1, -1}}, /* a row */
		{2, {3 * 37 + 4, 9 * 37 + 4}, {1, -1}}, /* a column */
		{2, {3 * 37 + 1, 3 * 37 + 3}, {2, -1}}, /* first weights 2, 4: cancels there */
		{4, {2 * 37 + 2, 2 * 37 + 7, 8 * 37 + 2, 8 * 37 + 7}, {1, -1, -1, 1}}, /* a rectangle */
		{3, {0, 17 * 37 + 17, 44 * 37 + 36}, {1, 1, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		struct error err = {0};
		struct wrong wrong = {0};
		struct fake f;

		fake_make(&f, &plain);
		f.spoils = plants[i].count;
		memcpy(f.spoil, plants[i].at, sizeof(f.spoil));
		memcpy(f.spoilt, plants[i].by, sizeof(f.spoilt));
		assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_MISMATCH);
		assert_int_equal(wrong.count, plants[i].count);
		assert_int_equal(wrong.first_index, plants[i].at[0]);
		fake_free(&f);
	}
}

static void the_batch_is_named(void **state)
{
	const struct gemm_opts o = {.type = GEMM_INT8, .m = 10, .n = 12, .k = 20, .batch = 3, .tb = 1};
	struct error err = {0};
	struct wrong wrong = {0};
	struct fake f;

	(void)state;
	fake_make(&f, &o);
	f.spoils = 1;
	f.spoil[0] = 2 * 120 + 4 * 12 + 11;
	f.spoilt[0] = -1;
	assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_string_equal(wrong.place, "batch 2 row 4 column 11");
	fake_free(&f);
}

static void returning_at_once_is_wrong_everywhere(void **state)
{
	struct error err = {0};
	struct wrong wrong = {0};
	struct fake f;

	(void)state;
	fake_make(&f, &plain);
	f.lazy = true;
	assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(wrong.count, total(&f));
	assert_true(wrong.nan);
	fake_free(&f);
	/* right before timing, lazy in it: every C that enqueue claims is poison still */
	error_clear(&err);
	fake_make(&f, &plain);
	assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_OK);
	f.lazy = true;
	f.common.written = 7;
	assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(err.cause, CAUSE_NAN);
	fake_free(&f);
}

static void what_timing_spoilt_is_found_in_each_set(void **state)
{
	(void)state;
	for (unsigned set = 1; set < SETS; set++) {
		struct error err = {0};
		struct wrong wrong = {0};
		struct fake f;

		fake_make(&f, &plain);
		assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_OK);
		f.spoils = 1;
		f.spoil[0] = 7 * 37 + 30;
		f.spoilt[0] = 0.25;
		f.spoil_set = set;
		for (unsigned i = 0; i < SETS; i++)
			assert_int_equal(fake_run(&f, i, NULL), STATUS_OK);
		f.common.written = 7;
		assert_int_equal(gemm_verify(&f, &wrong, &err), STATUS_MISMATCH);
		assert_int_equal(wrong.count, 1);
		assert_string_equal(wrong.place, "row 7 column 30");
		fake_free(&f);
	}
}

static void wrong_random_products_fail_though_integers_pass(void **state)
{
	/* A unit that drops half of the fraction is exact on small integers. */
	struct error err = {0};
	struct wrong wrong = {0};
	struct fake f;

	(void)state;
	fake_make(&f, &plain);
	assert_int_equal(gemm_check_integer(&f.common, &wrong, &err), STATUS_OK);
	assert_int_equal(wrong.count, 0);
	assert_int_equal(fake_fill(&f, GEMM_DATA_RANDOM, NULL), STATUS_OK);
	for (uint64_t i = 0; i < plain.m * plain.k; i++)
		f.a[i] = nearbyint(f.a[i] * 4096) / 4096;
	assert_int_equal(fake_run(&f, 0, NULL), STATUS_OK);
	assert_int_equal(gemm_check_samples(&f.common, 0, &wrong, &err), STATUS_OK);
	assert_true(wrong.count > GEMM_SAMPLES / 2);
	fake_free(&f);
}

static void inputs_have_the_density_and_range_promised(void **state)
{
	unsigned plus = 0, minus = 0, other = 0;

	(void)state;
	for (uint64_t i = 0; i < 160000; i++) {
		double x = gemm_element(1, GEMM_STREAM_A, GEMM_DATA_INTEGER, GEMM_BF16, i);
		double y = gemm_element(1, GEMM_STREAM_A, GEMM_DATA_RANDOM, GEMM_BF16, i);

		plus += x == 1;
		minus += x == -1;
		other += x != 0 && x != 1 && x != -1;
		assert_true(fabs(y) <= 1);
	}
	assert_int_equal(other, 0);
	assert_in_range(plus, 9500, 10500); /* 1/16 of them each, 5 sigma */
	assert_in_range(minus, 9500, 10500);
}

static void rounding_is_to_nearest_even(void **state)
{
	(void)state;
	assert_true(gemm_round_in(GEMM_BF16, 1 + 0x1p-8) == 1);
	assert_true(gemm_round_in(GEMM_BF16, 1 + 0x1.8p-7) == 1 + 0x1p-6);
	assert_true(gemm_round_in(GEMM_FP16, 65503) == 65504);
	assert_true(gemm_round_in(GEMM_FP16, 0x1p-25) == 0);
	assert_true(gemm_round_in(GEMM_FP16, 0x1.8p-24) == 0x1p-23);
	assert_true(gemm_round_in(GEMM_E4M3, 0.3) == 0.3125);
	assert_true(gemm_round_in(GEMM_E4M3, 1000) == 448);
	assert_true(gemm_round_in(GEMM_E4M3, -0x1p-9) == -0x1p-9);
	assert_true(gemm_round_in(GEMM_E5M2, 0.3) == 0.3125);
	assert_true(gemm_round_in(GEMM_E5M2, 0.8) == 0.75);
	assert_true(gemm_round_in(GEMM_INT8, 200) == 127);
	assert_true(gemm_round_out(GEMM_E4M3, 1 + 0x1p-7) == 1 + 0x1p-7); /* BF16 */
	assert_true(isnan(gemm_round_in(GEMM_FP16, (double)NAN)));
	assert_true(gemm_value_out(GEMM_FP16, (const uint16_t[]){0x3c01}, 0) == 1 + 0x1p-10);
	assert_true(gemm_value_out(GEMM_FP16, (const uint16_t[]){0x8001}, 0) == -0x1p-24);
	assert_true(isinf(gemm_value_out(GEMM_FP16, (const uint16_t[]){0x7c00}, 0)));
	assert_true(isnan(gemm_value_out(GEMM_FP16, (const uint16_t[]){0x7e00}, 0)));
	assert_true(gemm_value_out(GEMM_BF16, (const uint16_t[]){0xbf80}, 0) == -1);
}

static void options_are_checked_together(void **state)
{
	struct gemm_opts o;
	struct error err = {0};
	char key[256] = "";
	struct work w;

	(void)state;
	assert_int_equal(opt_defaults(&probe_gemm.opts, &o, NULL), STATUS_OK);
	assert_int_equal(probe_gemm.check(&o, NULL), STATUS_OK);
	assert_int_equal(opt_canonical(&probe_gemm.opts, &o, key, sizeof(key), NULL), STATUS_OK);
	assert_string_equal(
		key, " accumulate=fast batch=1 bias=false data=random k=4096 m=4096 n=4096 scale=tensor "
		     "search=first ta=n tb=n threads=0 type=fp32");
	w = probe_gemm.work(NULL, NULL, &o);
	assert_true(w.flop == 2 * 0x1p36 && w.read_bytes == 0x1p27 && w.write_bytes == 0x1p26);
	assert_string_equal(w.limit, "compute.fp32");
	o.accumulate = GEMM_ACCUMULATE_EXACT;
	assert_int_equal(probe_gemm.check(&o, &err), STATUS_BAD_INPUT);
	o.accumulate = 0;
	o.scale = GEMM_SCALE_BLOCK;
	assert_int_equal(probe_gemm.check(&o, NULL), STATUS_BAD_INPUT);
	o.type = GEMM_E4M3;
	assert_int_equal(probe_gemm.check(&o, NULL), STATUS_OK);
	o.k = 65537;
	assert_int_equal(probe_gemm.check(&o, NULL), STATUS_BAD_INPUT);
	o = (struct gemm_opts){.m = 1 << 18, .n = 1 << 18, .k = 1, .batch = 65536};
	assert_int_equal(probe_gemm.check(&o, NULL), STATUS_BAD_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_products_pass_in_every_layout),
		cmocka_unit_test(one_wrong_element_is_named_by_row_and_column),
		cmocka_unit_test(errors_that_cancel_in_a_row_or_column_are_counted),
		cmocka_unit_test(the_batch_is_named),
		cmocka_unit_test(returning_at_once_is_wrong_everywhere),
		cmocka_unit_test(what_timing_spoilt_is_found_in_each_set),
		cmocka_unit_test(wrong_random_products_fail_though_integers_pass),
		cmocka_unit_test(inputs_have_the_density_and_range_promised),
		cmocka_unit_test(rounding_is_to_nearest_even),
		cmocka_unit_test(options_are_checked_together),
	};

	return cmocka_run_group_tests_name("gemm_check", tests, NULL, NULL);
}
