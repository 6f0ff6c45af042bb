/* SPDX-License-Identifier: Apache-2.0 */
/* NF4 and FP4 against bitsandbytes (tests/oracles/bnb4_vectors.py), and at the edges of their rules. */
#include "test.h"

#include <math.h>
#include "model/bnb4/bnb4.h"
#include "model/files/safetensors/safetensors.h"
#include "model/tensor/dtype.h"
#include "must.h"

/* A file of bitsandbytes' results, and the matrix in it. */
struct results {
	struct safetensors file;
	struct mat x;
	struct bnb4 m; /* with its own memory */
	void *memory;
};

static const struct tensor *find(const struct results *r, const char *name)
{
	for (size_t i = 0; i < r->file.count; i++)
		if (!strcmp(r->file.tensors[i].name, name))
			return &r->file.tensors[i];
	return NULL;
}

static void set(struct bnb4 *m, void **memory, bool nested)
{
	const size_t bytes = (size_t)bnb4_bytes(m->rows, m->cols, nested);

	m->nested = nested;
	*memory = malloc(bytes);
	assert_non_null(*memory);
	memset(*memory, 0xa5, bytes);
	bnb4_place(m, *memory);
}

static void open_results(struct results *r, const char *name, bool nested)
{
	const struct tensor *x;
	struct error err = {0};
	char path[4096];

	snprintf(path, sizeof(path), SOURCE_DIR "/tests/data/model/bnb4/%s.safetensors", name);
	must(safetensors_open(&r->file, path, &err), &err);
	x = tensor_of(&r->file, "x");
	r->x = (struct mat){.data = (void *)(uintptr_t)x->data,
			    .rows = x->dim[0],
			    .cols = x->dim[1],
			    .ld = x->dim[1],
			    .dtype = x->dtype};
	r->m = (struct bnb4){
		.rows = x->dim[0], .cols = x->dim[1], .type = strncmp(name, "fp4", 3) ? BNB4_NF4 : BNB4_FP4};
	set(&r->m, &r->memory, nested);
}

static void release(struct results *r)
{
	free(r->memory);
	safetensors_release(&r->file);
}

static const char *const files[] = {"nf4", "fp4", "nf4-odd", "fp4-odd"};
enum { FILES = sizeof(files) / sizeof(files[0]) };

static void same(const struct results *r, const char *name, const void *found)
{
	const struct tensor *due = tensor_of(&r->file, name);

	for (uint64_t i = 0; i < due->size; i++)
		if (due->data[i] != ((const uint8_t *)found)[i])
			fail_msg("%s: %s differs at byte %llu of %llu", r->file.path, name,
				 (unsigned long long)i, (unsigned long long)due->size);
}

static void test_bnb4__codes_and_absmax_are_those_of_bitsandbytes(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		struct error err = {0};
		struct results r;

		open_results(&r, files[i], false);
		must(bnb4_quantize(&r.m, &r.x, NULL, &err), &err);
		assert_int_equal(tensor_of(&r.file, "codes")->size, bnb4_code_bytes(r.m.rows, r.m.cols));
		same(&r, "codes", r.m.codes);
		assert_int_equal(tensor_of(&r.file, "absmax")->size, 4 * bnb4_blocks(r.m.rows, r.m.cols));
		same(&r, "absmax", r.m.absmax);
		release(&r);
	}
}

static void test_bnb4__double_quantization_is_that_of_bitsandbytes_for_any_number_of_threads(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		for (unsigned threads = 0; threads < 4; threads++) {
			struct cpu_pool *pool = NULL;
			struct error err = {0};
			struct results r;

			open_results(&r, files[i], true);
			if (threads)
				must(cpu_pool_create(&pool, NULL, threads, &err), &err);
			must(bnb4_quantize(&r.m, &r.x, pool, &err), &err);
			same(&r, "codes", r.m.codes);
			same(&r, "offset", r.m.offset);
			assert_int_equal(tensor_of(&r.file, "absmax_codes")->size,
					 bnb4_blocks(r.m.rows, r.m.cols));
			same(&r, "absmax_codes", r.m.absmax_codes);
			assert_int_equal(tensor_of(&r.file, "group_absmax")->size,
					 4 * bnb4_groups(r.m.rows, r.m.cols));
			same(&r, "group_absmax", r.m.absmax);
			assert_memory_equal(r.m.map, bnb4_absmax_map(), 4 * BNB4_MAP);
			cpu_pool_destroy(&pool);
			release(&r);
		}
	}
}

static const struct {
	const char *name;
	enum dtype dtype;
} types[] = {{"f32", DTYPE_F32}, {"bf16", DTYPE_BF16}, {"f16", DTYPE_F16}};

/* What the file holds, dequantized into a matrix with gaps between rows, `rows` rows at a time. */
static int compare_dequantized(const struct results *r, size_t type, int64_t rows)
{
	const int64_t ld = r->m.cols + 3;
	const size_t row_bytes = (size_t)dtype_bytes(types[type].dtype, (uint64_t)r->m.cols),
		     pitch = (size_t)dtype_bytes(types[type].dtype, (uint64_t)ld);
	const struct tensor *due;
	uint8_t *out;
	char name[64];

	snprintf(name, sizeof(name), "dequantized.%s.%s", r->m.nested ? "nested" : "plain", types[type].name);
	due = find(r, name);
	if (!due)
		return 0;
	out = malloc((size_t)r->m.rows * pitch);
	assert_non_null(out);
	memset(out, 0xa5, (size_t)r->m.rows * pitch);
	for (int64_t row = 0; row < r->m.rows; row += rows) {
		const struct mat to = {.data = out + (size_t)row * pitch,
				       .rows = r->m.rows - row < rows ? r->m.rows - row : rows,
				       .cols = r->m.cols,
				       .ld = ld,
				       .dtype = types[type].dtype};

		bnb4_dequantize(&r->m, row, &to, NULL);
	}
	for (int64_t row = 0; row < r->m.rows; row++) {
		assert_memory_equal(out + (size_t)row * pitch, due->data + (size_t)row * row_bytes,
				    row_bytes);
		for (size_t k = row_bytes; k < pitch; k++)
			assert_int_equal(out[(size_t)row * pitch + k], 0xa5);
	}
	free(out);
	return 1;
}

static void test_bnb4__numbers_are_those_of_bitsandbytes(void **state)
{
	int compared = 0;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		for (int nested = 0; nested < 2; nested++) {
			struct results r;

			open_results(&r, files[i], nested);
			memcpy(r.m.codes, tensor_of(&r.file, "codes")->data,
			       tensor_of(&r.file, "codes")->size);
			if (nested) {
				memcpy(r.m.absmax_codes, tensor_of(&r.file, "absmax_codes")->data,
				       tensor_of(&r.file, "absmax_codes")->size);
				memcpy(r.m.absmax, tensor_of(&r.file, "group_absmax")->data,
				       tensor_of(&r.file, "group_absmax")->size);
				memcpy(r.m.offset, tensor_of(&r.file, "offset")->data, 4);
				memcpy(r.m.map, bnb4_absmax_map(), 4 * BNB4_MAP);
			} else {
				memcpy(r.m.absmax, tensor_of(&r.file, "absmax")->data,
				       tensor_of(&r.file, "absmax")->size);
			}
			for (size_t type = 0; type < 3; type++) {
				compared += compare_dequantized(&r, type, r.m.rows);
				compared += compare_dequantized(&r, type, 3);
			}
			release(&r);
		}
	}
	assert_int_equal(compared, 2 * (2 + 12));
}

/* One block whose absmax is 1, so that its other numbers are what the limits are compared with. */
static uint8_t code_of(enum bnb4_type type, float x)
{
	float numbers[BNB4_BLOCK] = {1, x}, absmax;
	uint8_t codes[BNB4_BLOCK / 2];
	const struct bnb4 m = {
		.rows = 1, .cols = BNB4_BLOCK, .type = type, .codes = codes, .absmax = &absmax};
	const struct mat from = {
		.data = numbers, .rows = 1, .cols = BNB4_BLOCK, .ld = BNB4_BLOCK, .dtype = DTYPE_F32};

	must(bnb4_quantize(&m, &from, NULL, NULL), NULL);
	assert_true(absmax == 1);
	return codes[0] & 15;
}

/* dQuantizeNF4 and dQuantizeFP4 of bitsandbytes' kernels.cu: a number on a limit gets the lower code. */
static void test_bnb4__a_number_on_a_limit_gets_the_code_that_the_cuda_kernel_gives(void **state)
{
	static const float nf4[] = {BNB4_NF4_LIMITS}, fp4[] = {BNB4_FP4_LIMITS};
	static const uint8_t order[] = {0, 1, 6, 7, 4, 5, 2, 3};

	(void)state;
	for (uint8_t i = 0; i < 15; i++) {
		assert_int_equal(code_of(BNB4_NF4, nf4[i]), i);
		assert_int_equal(code_of(BNB4_NF4, nextafterf(nf4[i], 2)), i + 1);
	}
	for (int i = 0; i < 7; i++) {
		assert_int_equal(code_of(BNB4_FP4, fp4[i]), order[i]);
		assert_int_equal(code_of(BNB4_FP4, nextafterf(fp4[i], 2)), order[i + 1]);
		assert_int_equal(code_of(BNB4_FP4, -fp4[i]), order[i] + 8);
		assert_int_equal(code_of(BNB4_FP4, -nextafterf(fp4[i], 2)), order[i + 1] + 8);
	}
	assert_int_equal(code_of(BNB4_FP4, 0), 0);
	assert_int_equal(code_of(BNB4_FP4, -1e-9f), 8);
	for (uint8_t i = 0; i < BNB4_CODES; i++) /* each number is its own code */
		for (int type = 0; type < BNB4_TYPE_COUNT; type++)
			if (type == BNB4_NF4 || i != 8) /* FP4's 8 is -0 */
				assert_int_equal(
					code_of((enum bnb4_type)type, bnb4_table((enum bnb4_type)type)[i]),
					i);
}

static int limits_below(float x)
{
	static const float limit[] = {BNB4_NF4_LIMITS};
	int count = 0;

	for (size_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++)
		count += x > limit[i];
	return count;
}

/* The CUDA kernels approximate 1 / absmax, with an error of one unit in the last place. All quotients of two
 * BF16 numbers down to 2^-12 keep their code even with an error of two. */
static void test_bnb4__an_approximate_inverse_gives_bf16_weights_the_same_codes_of_nf4(void **state)
{
	(void)state;
	for (int q = 128; q < 256; q++) {
		const float right = 1.0f / (float)q;
		const float near[] = {nextafterf(right, 0), nextafterf(nextafterf(right, 0), 0),
				      nextafterf(right, 1), nextafterf(nextafterf(right, 1), 1)};

		for (int p = 128; p < 256; p++) {
			for (int e = p > q; e < 12; e++) {
				const float x = ldexpf((float)p, -e);

				for (int k = 0; k < 4; k++) {
					assert_int_equal(limits_below(x * near[k]), limits_below(x * right));
					assert_int_equal(limits_below(-x * near[k]),
							 limits_below(-x * right));
				}
			}
		}
	}
}

/* Blocks of zeros, and blocks that all have one absmax: 0 / 0 occurs inside, and must not come out. */
static void test_bnb4__zeros_stay_zeros_and_equal_absmax_come_back(void **state)
{
	enum { ROWS = 3, COLS = 64 };
	static const float widths[] = {0, 0.375f};

	(void)state;
	for (int w = 0; w < 2; w++) {
		for (int type = 0; type < BNB4_TYPE_COUNT; type++) {
			for (int nested = 0; nested < 2; nested++) {
				float from[ROWS * COLS], to[ROWS * COLS];
				const struct mat x = {.data = from, .rows = ROWS, .cols = COLS, .ld = COLS};
				struct mat y = x;
				struct bnb4 m = {.rows = ROWS, .cols = COLS, .type = (enum bnb4_type)type};
				void *memory;

				for (int i = 0; i < ROWS * COLS; i++)
					from[i] = i % 2 ? widths[w] : -widths[w];
				set(&m, &memory, nested);
				must(bnb4_quantize(&m, &x, NULL, NULL), NULL);
				assert_true(bnb4_finite(&m));
				y.data = to;
				bnb4_dequantize(&m, 0, &y, NULL);
				for (int i = 0; i < ROWS * COLS; i++)
					assert_true(to[i] == from[i]);
				free(memory);
			}
		}
	}
}

static void test_bnb4__a_scale_that_is_no_number_is_noticed(void **state)
{
	static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};

	(void)state;
	for (int nested = 0; nested < 2; nested++) {
		struct results r;
		struct error err = {0};

		open_results(&r, "nf4", nested);
		must(bnb4_quantize(&r.m, &r.x, NULL, &err), &err);
		assert_true(bnb4_finite(&r.m));
		for (int i = 0; i < 4; i++) {
			const float was = r.m.absmax[1], offset = nested ? *r.m.offset : 0;

			if (nested)
				*r.m.offset = i == 3 ? 3e38f : offset; /* their sum is infinite */
			r.m.absmax[1] = bad[i];
			assert_int_equal(bnb4_finite(&r.m), !nested && i == 3);
			r.m.absmax[1] = was;
			if (nested) {
				*r.m.offset = bad[i];
				assert_int_equal(bnb4_finite(&r.m), i == 3);
				*r.m.offset = offset;
			}
		}
		release(&r);
	}
}

static void test_bnb4__memory_is_planned_as_it_is_placed(void **state)
{
	struct bnb4 m = {.rows = 3584, .cols = 18944, .nested = true};
	const uint64_t elements = 3584ull * 18944, blocks = elements / 64;
	uint8_t base[1];

	(void)state;
	assert_int_equal(bnb4_blocks(m.rows, m.cols), blocks);
	assert_int_equal(bnb4_groups(m.rows, m.cols), (blocks + 255) / 256);
	assert_int_equal(bnb4_bytes(m.rows, m.cols, true),
			 elements / 2 + blocks + ((blocks + 255) / 256 * 4 + 255) / 256 * 256 + 256 + 1024);
	assert_int_equal(bnb4_bytes(m.rows, m.cols, false), elements / 2 + blocks * 4);
	bnb4_place(&m, NULL);
	assert_true(!m.codes && !m.absmax_codes && !m.absmax && !m.offset && !m.map);
	bnb4_place(&m, base);
	assert_ptr_equal(m.codes, base);
	assert_int_equal(m.absmax_codes - m.codes, elements / 2);
	m.nested = false;
	bnb4_place(&m, base);
	assert_null(m.offset);
	assert_string_equal(bnb4_type_name(BNB4_NF4), "nf4");
	assert_string_equal(bnb4_type_name(BNB4_FP4), "fp4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bnb4__codes_and_absmax_are_those_of_bitsandbytes),
		cmocka_unit_test(
			test_bnb4__double_quantization_is_that_of_bitsandbytes_for_any_number_of_threads),
		cmocka_unit_test(test_bnb4__numbers_are_those_of_bitsandbytes),
		cmocka_unit_test(test_bnb4__a_number_on_a_limit_gets_the_code_that_the_cuda_kernel_gives),
		cmocka_unit_test(test_bnb4__an_approximate_inverse_gives_bf16_weights_the_same_codes_of_nf4),
		cmocka_unit_test(test_bnb4__zeros_stay_zeros_and_equal_absmax_come_back),
		cmocka_unit_test(test_bnb4__a_scale_that_is_no_number_is_noticed),
		cmocka_unit_test(test_bnb4__memory_is_planned_as_it_is_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
