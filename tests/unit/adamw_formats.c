/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW on the CPU with small states: against bitsandbytes (tests/oracles/optimizer_states.py), exactness of split
 * weights, stochastic rounding. */
#include "test.h"
#include <float.h>
#include <math.h>
#include "core/math/random.h"
#include "kernel/train/dynamic_map.h"
#include "model/cpu/cpu.h"
#include "model/model.h"
#include "model/tensor/dtype.h"
#include "must.h"

static const float signed_map[DYNAMIC_CODES] = {DYNAMIC_SIGNED}, unsigned_map[DYNAMIC_CODES] = {DYNAMIC_UNSIGNED};

static struct mat vector(enum dtype dtype, void *data, int64_t cols)
{
	return (struct mat){.data = data, .rows = 1, .cols = cols, .ld = cols, .dtype = dtype};
}

/* A CPU back end with `threads` threads. */
struct cpu_bed {
	struct backend back;
	struct arena arena;
};

static void bed_make(struct cpu_bed *b, unsigned threads)
{
	const struct cpu_options options = {.threads = threads};
	struct error err = {0};

	*b = (struct cpu_bed){0};
	must(cpu_backend_create(&b->back, &options, &b->arena, &err), &err);
}

static struct adamw settings(const double *squares, uint32_t step)
{
	return (struct adamw){
		.lr = 1e-2f,
		.beta1 = 0.9f,
		.beta2 = 0.999f,
		.eps = 1e-8f,
		.decay = 0.1f,
		.correction1 = (float)(1 - pow(0.9, step)),
		.correction2 = (float)(1 - pow(0.999, step)),
		.squares = squares,
		.seed = 42,
		.step = step,
	};
}

static int by_size(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/* Element i of `parts` + 1 equally spaced numbers from 0.1 to 1, rounded as PyTorch rounds them. */
static float border(int i, int parts)
{
	const float step = (1.0f - 0.1f) / (float)parts;

	return i < (parts + 1) / 2 ? fmaf(step, (float)i, 0.1f) : fmaf(-step, (float)(parts - i), 1.0f);
}

static void the_maps_follow_their_rule(void **state)
{
	float map[2][DYNAMIC_CODES];

	(void)state;
	for (int is_unsigned = 0; is_unsigned < 2; is_unsigned++) {
		int n = 0;

		map[is_unsigned][n++] = 0;
		map[is_unsigned][n++] = 1;
		for (int decade = 0; decade < DYNAMIC_DECADES; decade++) {
			const int parts = 1 << (decade + is_unsigned);
			const float scale = (float)pow(10, decade - (DYNAMIC_DECADES - 1));

			for (int i = 0; i < parts; i++) {
				const float middle = (border(i, parts) + border(i + 1, parts)) / 2 * scale;

				map[is_unsigned][n++] = middle;
				if (!is_unsigned)
					map[is_unsigned][n++] = -middle;
			}
		}
		assert_int_equal(n, DYNAMIC_CODES);
		qsort(map[is_unsigned], DYNAMIC_CODES, sizeof(float), by_size);
	}
	assert_memory_equal(map[0], signed_map, sizeof(signed_map));
	assert_memory_equal(map[1], unsigned_map, sizeof(unsigned_map));
	assert_true(signed_map[DYNAMIC_SIGNED_ZERO] == 0 && unsigned_map[0] == 0);
}

/* A tensor of step `number`: "m2". */
static const struct tensor *at_step(const struct safetensors *s, const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%s%d", name, number);
	return tensor_of(s, text);
}

/* A copy that the step may change. Zeros if the file has none: before the first step. */
static void *copy_of(const struct safetensors *s, const char *name, int number, size_t size)
{
	uint8_t *out = calloc(1, size);

	assert_non_null(out);
	if (number || !strcmp(name, "w")) {
		const struct tensor *t = at_step(s, name, number);

		assert_int_equal(t->size, size);
		memcpy(out, t->data, size);
	}
	return out;
}

static void codes_are_equal(const struct tensor *expected, const uint8_t *found)
{
	uint64_t differ = 0;

	for (uint64_t i = 0; i < expected->size; i++) {
		assert_true(abs(expected->data[i] - found[i]) <= 1);
		differ += expected->data[i] != found[i];
	}
	assert_true(differ * 1000 <= expected->size); /* a number between two codes, rounded otherwise */
}

static void numbers_are_near(const struct tensor *expected, const float *found, double relative)
{
	const float *x = (const float *)(const void *)expected->data;

	for (uint64_t i = 0; i < expected->size / sizeof(float); i++)
		if (!(fabs((double)x[i] - (double)found[i]) <= relative * fabs((double)x[i]) + 1e-7))
			fail_msg("%s: element %llu is %.9g, not %.9g", expected->name, (unsigned long long)i,
				 (double)found[i], (double)x[i]);
}

/* The error is a share of the step, which is large where v has the code of 0. */
static void weights_are_near(const struct tensor *before, const struct tensor *expected, const float *found)
{
	const float *w = (const float *)(const void *)before->data, *x = (const float *)(const void *)expected->data;

	for (uint64_t i = 0; i < expected->size / sizeof(float); i++) {
		const double step = fabs((double)x[i] - (double)w[i]);

		assert_true(fabs((double)x[i] - (double)found[i]) <= 2e-5 * step + 1e-6 * fabs((double)x[i]) + 1e-8);
	}
}

static void steps_are_those_of_bitsandbytes(void **state)
{
	struct safetensors s;
	struct error err = {0};
	struct cpu_bed b;

	(void)state;
	must(safetensors_open(&s, SOURCE_DIR "/tests/data/train/adamw_8bit.safetensors", &err), &err);
	assert_memory_equal(tensor_of(&s, "signed")->data, signed_map, sizeof(signed_map));
	assert_memory_equal(tensor_of(&s, "unsigned")->data, unsigned_map, sizeof(unsigned_map));
	assert_int_equal(*(const int32_t *)(const void *)tensor_of(&s, "least")->data, PARAMS_8BIT_LEAST);
	bed_make(&b, 2);
	for (int step = 1; step <= 3; step++) {
		const double squares = 1;
		const struct adamw a = settings(&squares, (uint32_t)step);
		const size_t count = at_step(&s, "m", step)->size, blocks = (count + ADAMW_BLOCK - 1) / ADAMW_BLOCK;
		float *w = copy_of(&s, "w", step - 1, count * sizeof(float));
		uint8_t *m = copy_of(&s, "m", step - 1, count), *v = copy_of(&s, "v", step - 1, count);
		float *m_scale = copy_of(&s, "m_scale", step - 1, blocks * sizeof(float));
		float *v_scale = copy_of(&s, "v_scale", step - 1, blocks * sizeof(float));
		float *g = copy_of(&s, "g", step, count * sizeof(float));
		const struct adamw_part p = {
			.g = vector(DTYPE_F32, g, (int64_t)count),
			.m = vector(DTYPE_U8, m, (int64_t)count),
			.v = vector(DTYPE_U8, v, (int64_t)count),
			.m_scale = vector(DTYPE_F32, m_scale, (int64_t)blocks),
			.v_scale = vector(DTYPE_F32, v_scale, (int64_t)blocks),
			.w = vector(DTYPE_F32, w, (int64_t)count),
		};

		must(b.back.ops->adamw(&b.back, &p, &a, &err), &err);
		codes_are_equal(at_step(&s, "m", step), m);
		codes_are_equal(at_step(&s, "v", step), v);
		numbers_are_near(at_step(&s, "m_scale", step), m_scale, 1e-6);
		numbers_are_near(at_step(&s, "v_scale", step), v_scale, 2e-5); /* 1 - beta2 in F32 */
		weights_are_near(at_step(&s, "w", step - 1), at_step(&s, "w", step), w);
		free(w), free(m), free(v), free(m_scale), free(v_scale), free(g);
	}
	cpu_backend_release(&b.back);
	safetensors_release(&s);
}

/* Every number between two neighbours of the map gets the code of the nearer one, and halfway the lower. */
static void a_code_is_the_nearest_number(void **state)
{
	enum { N = ADAMW_BLOCK };
	const double squares = 1;
	struct adamw a = settings(&squares, 1);
	struct error err = {0};
	struct cpu_bed b;

	(void)state;
	a.beta1 = a.beta2 = 0; /* moments become the gradient and its square */
	bed_make(&b, 1);
	for (int side = -1; side <= 1; side++) {
		float g[N], w[N] = {0}, m_scale, v_scale;
		uint8_t m[N] = {0}, v[N] = {0};
		const struct adamw_part p = {
			.g = vector(DTYPE_F32, g, N),
			.m = vector(DTYPE_U8, m, N),
			.v = vector(DTYPE_U8, v, N),
			.m_scale = vector(DTYPE_F32, &m_scale, 1),
			.v_scale = vector(DTYPE_F32, &v_scale, 1),
			.w = vector(DTYPE_F32, w, N),
		};

		m_scale = v_scale = 0;
		for (int i = 0; i < N; i++) {
			const float halfway = i + 1 < N ? (signed_map[i] + signed_map[i + 1]) / 2 : 1;

			g[i] = !side || i + 1 == N ? halfway : nextafterf(halfway, (float)side);
		}
		must(b.back.ops->adamw(&b.back, &p, &a, &err), &err);
		assert_true(m_scale == 1 && v_scale == 1);
		for (int i = 0; i + 1 < N; i++)
			assert_int_equal(m[i], side > 0 ? i + 1 : i);
		for (int i = 0; i < N; i++) {
			int best = 0;

			for (int k = 1; k < DYNAMIC_CODES; k++)
				if (g[i] * g[i] > (unsigned_map[k - 1] + unsigned_map[k]) / 2)
					best = k;
			assert_int_equal(v[i], best);
		}
	}
	cpu_backend_release(&b.back);
}

static void halves_are_exact(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1u << 20; i++) {
		uint32_t bits = (uint32_t)(i * 4099 + 0x8000), back;
		int16_t low;
		uint16_t high;
		float f;

		memcpy(&f, &bits, sizeof(f));
		high = params_split(f, &low);
		f = params_join(high, low);
		memcpy(&back, &f, sizeof(back));
		assert_int_equal(back, bits);
		if (low != INT16_MIN && isfinite(f)) /* a tie, which goes away from zero */
			assert_int_equal(high, bf16_of_f32(f));
	}
}

enum { COUNT = 5000, STEPS = 40 };

struct vectors {
	float g[COUNT], w[COUNT], m[COUNT], v[COUNT], m_scale[20], v_scale[20];
	uint16_t half[COUNT], m_bf16[COUNT], v_bf16[COUNT];
	int16_t rest[COUNT];
	uint8_t m_code[COUNT], v_code[COUNT];
};

static void start(struct vectors *x)
{
	*x = (struct vectors){0};
	random_fill_f32(x->w, COUNT, 3, 1, 0);
	for (int i = 0; i < COUNT; i++) {
		x->half[i] = bf16_of_f32(x->w[i]);
		x->w[i] = bf16_to_f32(x->half[i]);
	}
}

static struct adamw_part part_of(struct vectors *x, enum moments moments, enum master master)
{
	struct adamw_part p = {
		.g = vector(DTYPE_F32, x->g, COUNT),
		.m = moments == MOMENTS_8BIT   ? vector(DTYPE_U8, x->m_code, COUNT)
		     : moments == MOMENTS_BF16 ? vector(DTYPE_BF16, x->m_bf16, COUNT)
					       : vector(DTYPE_F32, x->m, COUNT),
		.v = moments == MOMENTS_8BIT   ? vector(DTYPE_U8, x->v_code, COUNT)
		     : moments == MOMENTS_BF16 ? vector(DTYPE_BF16, x->v_bf16, COUNT)
					       : vector(DTYPE_F32, x->v, COUNT),
		.w = master ? vector(DTYPE_BF16, x->half, COUNT) : vector(DTYPE_F32, x->w, COUNT),
	};

	if (moments == MOMENTS_8BIT) {
		p.m_scale = vector(DTYPE_F32, x->m_scale, 20);
		p.v_scale = vector(DTYPE_F32, x->v_scale, 20);
	}
	if (master == MASTER_SPLIT)
		p.rest = vector(DTYPE_I16, x->rest, COUNT);
	return p;
}

/* Elements [begin, end) of a part without codes or with borders at blocks. */
static struct adamw_part cut(const struct adamw_part *p, int64_t begin, int64_t end)
{
	struct adamw_part out = *p;
	struct mat *each[] = {&out.g, &out.m, &out.v, &out.w, &out.rest};

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		if (each[i]->rows) {
			each[i]->data = (uint8_t *)each[i]->data + dtype_bytes(each[i]->dtype, (uint64_t)begin);
			each[i]->cols = each[i]->ld = end - begin;
		}
	if (out.m_scale.rows) {
		out.m_scale.data = (float *)out.m_scale.data + begin / ADAMW_BLOCK;
		out.v_scale.data = (float *)out.v_scale.data + begin / ADAMW_BLOCK;
	}
	out.first += (uint64_t)begin;
	return out;
}

static void run(struct cpu_bed *b, struct vectors *x, const struct adamw_part *p, int parts)
{
	const double squares = 1;
	struct error err = {0};

	for (uint32_t step = 1; step <= STEPS; step++) {
		const struct adamw a = settings(&squares, step);

		random_fill_f32(x->g, COUNT, 5, step, 0);
		for (int i = 0; i < parts; i++) {
			const int64_t blocks = COUNT / ADAMW_BLOCK, begin = blocks * i / parts * ADAMW_BLOCK;
			const struct adamw_part one =
				cut(p, begin, i + 1 < parts ? blocks * (i + 1) / parts * ADAMW_BLOCK : COUNT);

			must(b->back.ops->adamw(&b->back, &one, &a, &err), &err);
		}
	}
}

/* The halves of a weight are at each time those of the F32 weight. */
static void split_weights_are_f32_weights(void **state)
{
	static struct vectors whole, halves;
	struct cpu_bed b;

	(void)state;
	for (enum moments moments = MOMENTS_F32; moments < MOMENTS_COUNT; moments++) {
		const struct adamw_part one = part_of(&whole, moments, MASTER_F32);
		const struct adamw_part two = part_of(&halves, moments, MASTER_SPLIT);

		bed_make(&b, 2);
		start(&whole);
		start(&halves);
		run(&b, &whole, &one, 1);
		run(&b, &halves, &two, 1);
		for (int i = 0; i < COUNT; i++)
			assert_true(params_join(halves.half[i], halves.rest[i]) == whole.w[i]);
		cpu_backend_release(&b.back);
	}
}

/* The bits depend neither on threads nor on how the vector is divided. */
static void division_changes_no_bit(void **state)
{
	static struct vectors x, y;
	struct cpu_bed one, three;

	(void)state;
	bed_make(&one, 1);
	bed_make(&three, 3);
	for (int format = 0; format < MOMENTS_COUNT * MASTER_COUNT; format++) {
		const enum moments moments = (enum moments)(format / MASTER_COUNT);
		const enum master master = (enum master)(format % MASTER_COUNT);
		const struct adamw_part p = part_of(&x, moments, master), q = part_of(&y, moments, master);

		start(&x);
		start(&y);
		run(&one, &x, &p, 1);
		run(&three, &y, &q, 4);
		assert_memory_equal(&x, &y, sizeof(x));
	}
	cpu_backend_release(&one.back);
	cpu_backend_release(&three.back);
}

static double mean_difference(const float *a, const uint16_t *b, double *rms)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < COUNT; i++) {
		const double d = (double)bf16_to_f32(b[i]) - (double)a[i];

		sum += d;
		squares += d * d;
	}
	*rms = sqrt(squares / COUNT);
	return sum / COUNT;
}

/* Stochastic rounding has no bias: the mean error is within five of its own deviations. */
static void stochastic_rounding_keeps_the_mean(void **state)
{
	static struct vectors exact, rounded, again;
	const struct adamw_part one = part_of(&exact, MOMENTS_F32, MASTER_F32);
	const struct adamw_part two = part_of(&rounded, MOMENTS_BF16, MASTER_NONE);
	const struct adamw_part three = part_of(&again, MOMENTS_BF16, MASTER_NONE);
	const double squares = 1;
	struct adamw a = settings(&squares, 1);
	struct error err = {0};
	struct cpu_bed b;
	double rms, mean;

	(void)state;
	bed_make(&b, 2);
	start(&exact), start(&rounded), start(&again);
	random_fill_f32(exact.g, COUNT, 5, 1, 0);
	memcpy(rounded.g, exact.g, sizeof(exact.g));
	memcpy(again.g, exact.g, sizeof(exact.g));
	must(b.back.ops->adamw(&b.back, &one, &a, &err), &err);
	must(b.back.ops->adamw(&b.back, &two, &a, &err), &err);
	a.step = 2;
	must(b.back.ops->adamw(&b.back, &three, &a, &err), &err);
	assert_memory_not_equal(rounded.half, again.half, sizeof(rounded.half)); /* each step has its own numbers */
	a.step = 1;
	mean = mean_difference(exact.w, rounded.half, &rms);
	assert_true(rms > 0 && fabs(mean) < 5 * rms / sqrt(COUNT));
	mean = mean_difference(exact.m, rounded.m_bf16, &rms);
	assert_true(rms > 0 && fabs(mean) < 5 * rms / sqrt(COUNT));
	mean = mean_difference(exact.v, rounded.v_bf16, &rms);
	assert_true(rms > 0 && fabs(mean) < 5 * rms / sqrt(COUNT));
	cpu_backend_release(&b.back);
}

static void a_norm_that_is_not_finite_changes_nothing(void **state)
{
	static struct vectors x, before;
	struct error err = {0};
	struct cpu_bed b;

	(void)state;
	bed_make(&b, 2);
	for (int format = 0; format < MOMENTS_COUNT * MASTER_COUNT; format++) {
		const struct adamw_part p = part_of(&x, (enum moments)(format / MASTER_COUNT),
						    (enum master)(format % MASTER_COUNT));
		const double squares = INFINITY;
		const struct adamw a = settings(&squares, STEPS + 1);

		start(&x);
		run(&b, &x, &p, 1);
		before = x;
		must(b.back.ops->adamw(&b.back, &p, &a, &err), &err);
		assert_memory_equal(&x, &before, sizeof(x));
	}
	cpu_backend_release(&b.back);
}

/* Infinity and numbers too small for an inverse: no access beyond the maps (sanitizers), zero stays zero. */
static void extreme_moments_have_codes(void **state)
{
	static struct vectors x;
	const struct adamw_part p = part_of(&x, MOMENTS_8BIT, MASTER_F32);
	const double squares = 1;
	const struct adamw a = settings(&squares, 1);
	struct error err = {0};
	struct cpu_bed b;

	(void)state;
	bed_make(&b, 1);
	start(&x);
	x.g[0] = 3e38f; /* its square overflows */
	x.g[ADAMW_BLOCK] = 1e-38f;
	must(b.back.ops->adamw(&b.back, &p, &a, &err), &err);
	assert_true(x.v_scale[0] == FLT_MAX && x.v_code[0] == DYNAMIC_CODES - 1);
	assert_true(x.v_scale[1] == 0 && x.m_scale[2] == 0);
	assert_int_equal(x.m_code[2 * ADAMW_BLOCK], DYNAMIC_SIGNED_ZERO);
	x.g[0] = x.g[ADAMW_BLOCK] = 1;
	must(b.back.ops->adamw(&b.back, &p, &a, &err), &err);
	for (int i = 0; i < COUNT; i++)
		assert_true(isfinite(x.w[i]));
	cpu_backend_release(&b.back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_maps_follow_their_rule),
		cmocka_unit_test(steps_are_those_of_bitsandbytes),
		cmocka_unit_test(a_code_is_the_nearest_number),
		cmocka_unit_test(halves_are_exact),
		cmocka_unit_test(split_weights_are_f32_weights),
		cmocka_unit_test(division_changes_no_bit),
		cmocka_unit_test(stochastic_rounding_keeps_the_mean),
		cmocka_unit_test(a_norm_that_is_not_finite_changes_nothing),
		cmocka_unit_test(extreme_moments_have_codes),
	};

	cmocka_set_test_filter(getenv("TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
