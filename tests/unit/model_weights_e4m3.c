/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in E4M3, of compressed-tensors and transformers' "fp8": what is read from them, and what is
 * refused. */
#include "fake_gpu.h"
#include "must.h"
#include "scratch.h"
#include "test.h"
#include "weights_bed.h"

#include <math.h>

#include "model/files/safetensors/safetensors.h"
#include "core/json/file.h"
#include "kernel/fatbin.h"
#include "model/gpu/backend.h"
#include "model/tensor/dtype.h"
#include "model/tensor/fp8.h"
#include "model/tensor/matrix.h"

enum { TENSORS_MOST = 128 };
#define CHOSEN "model.layers.1.mlp.down_proj.weight"

/* How the chosen tensor differs from a good one. */
enum fault {
	GOOD,
	NO_FACTOR,
	TOO_MANY_FACTORS,
	FACTOR_NAN,
	ELEMENT_NAN,
	FACTOR_OF_NOBODY,
	FACTOR_E4M3,
	FACTORS_TURNED,
	FACTORS_TWICE
};

/* Whether factors belong to blocks of 128 x 128 elements, and the tensor that has them. */
struct layout {
	bool blocks;
	const char *tail;
	enum dtype dtype;
};
static const struct layout of_rows = {false, "_scale", DTYPE_F32};
static const struct layout of_blocks = {true, "_scale_inv", DTYPE_F32};

struct folder {
	struct safetensors_writer writer;
	struct tensor tensor[TENSORS_MOST];
	char name[TENSORS_MOST][NAME_SIZE + 16];
	size_t count;
	const struct layout *layout;
};

static bool is_matrix(const struct named *n)
{
	return n->layer >= 0 && !n->vector;
}

static uint8_t element(const struct named *n, int64_t i, enum fault fault)
{
	const uint8_t bits = (uint8_t)((uint64_t)(i * 37 + n->rows) * 2654435761u >> 11);

	if (fault == ELEMENT_NAN && !strcmp(n->hf, CHOSEN) && i == 3 * n->cols + 5)
		return 0xff;
	return (bits & 0x7f) == 0x7f ? 0x12 : bits;
}

/* Without blocks: one factor for the tensors of even layers, one per row in the others. */
static int64_t factor_rows(const struct layout *l, const struct named *n)
{
	if (l->blocks)
		return fp8_tiles(n->rows);
	return n->layer % 2 ? n->rows : 1;
}

static int64_t factor_cols(const struct layout *l, const struct named *n)
{
	return l->blocks ? fp8_tiles(n->cols) : 1;
}

/* Factor number i of the tensor; BF16 can hold it. */
static float factor(const struct named *n, int64_t i)
{
	return ldexpf(1 + (float)(i % 5) / 8, -6 - (int)(n->layer % 2));
}

static float factor_at(const struct layout *l, const struct named *n, int64_t row, int64_t col)
{
	if (l->blocks)
		return factor(n, row / FP8_TILE * fp8_tiles(n->cols) + col / FP8_TILE);
	return factor(n, factor_rows(l, n) == 1 ? 0 : row);
}

static void add_tensor(struct folder *f, const char *name, enum dtype dtype, int64_t rows, int64_t cols)
{
	struct tensor *t = &f->tensor[f->count];

	assert_true(f->count < TENSORS_MOST);
	snprintf(f->name[f->count], sizeof(f->name[0]), "%s", name);
	*t = (struct tensor){
		.name = f->name[f->count++], .dtype = dtype, .rank = cols ? 2 : 1, .dim = {rows, cols}};
	assert_true(dtype_measure(t));
}

static void add_factor(struct folder *f, const struct named *n, enum fault fault)
{
	const bool chosen = !strcmp(n->hf, CHOSEN);
	const bool turned = chosen && fault == FACTORS_TURNED;
	const int64_t rows = factor_rows(f->layout, n), cols = factor_cols(f->layout, n);
	char name[NAME_SIZE + 16];

	snprintf(name, sizeof(name), "%s%s", n->hf, f->layout->tail);
	if (!chosen || fault != NO_FACTOR)
		add_tensor(f, name, chosen && fault == FACTOR_E4M3 ? DTYPE_E4M3 : f->layout->dtype,
			   (turned ? cols : rows) + (chosen && fault == TOO_MANY_FACTORS),
			   turned ? rows : cols);
	snprintf(name, sizeof(name), "%s_scale", n->hf);
	if (chosen && fault == FACTORS_TWICE)
		add_tensor(f, name, DTYPE_F32, 1, 0);
	snprintf(name, sizeof(name), "%.*sinput_scale", (int)strlen(n->hf) - 6, n->hf);
	if (n->layer == 0)
		add_tensor(f, name, DTYPE_F32, 1, 0);
}

static void write_numbers(struct folder *f, const struct tensor *t, const struct shape *s, enum fault fault)
{
	struct error err = {0};
	uint8_t *bytes = calloc(1, t->size);
	struct named n;

	if (names_find(&n, s, t->name) && t->dtype == DTYPE_E4M3) {
		for (int64_t i = 0; i < n.rows * n.cols; i++)
			bytes[i] = element(&n, i, fault);
	} else if (names_find(&n, s, t->name)) {
		random_weights(&n, SEED, 0, n.rows, (float *)(void *)bytes);
	} else if (t->dtype != DTYPE_E4M3) {
		const char *tail = strstr(t->name, "_scale");
		char weight[NAME_SIZE + 16];
		const bool of_weight =
			tail && (snprintf(weight, sizeof(weight), "%.*s", (int)(tail - t->name), t->name),
				 names_find(&n, s, weight));
		const int64_t count = t->dim[0] * (t->rank > 1 ? t->dim[1] : 1);

		for (int64_t i = 0; i < count; i++) {
			const float x = !of_weight ? 0.5f
					: fault == FACTOR_NAN && !strcmp(n.hf, CHOSEN) && i == count - 1
						? NAN
						: factor(&n, i);

			if (t->dtype == DTYPE_F32)
				((float *)(void *)bytes)[i] = x;
			else
				((uint16_t *)(void *)bytes)[i] = bf16_of_f32(x);
		}
	}
	if (safetensors_write(&f->writer, bytes, t->size, &err))
		fail_msg("%s", err.text);
	free(bytes);
}

static json_t *quantization(const struct layout *l)
{
	if (l->blocks && strcmp(l->tail, "_scale"))
		return json_pack("{s:s,s:s,s:s,s:[i,i],s:[s]}", "quant_method", "fp8", "fmt", "e4m3",
				 "activation_scheme", "dynamic", "weight_block_size", 128, 128,
				 "modules_to_not_convert", "lm_head");
	return json_pack("{s:s,s:s,s:{s:{s:[s],s:{s:i,s:s,s:s,s:b,s:[i,i]}}}}", "quant_method",
			 "compressed-tensors", "format", "float-quantized", "config_groups", "group_0",
			 "targets", "Linear", "weights", "num_bits", 8, "type", "float", "strategy",
			 l->blocks ? "block" : "channel", "symmetric", 1, "block_structure", 128, 128);
}

/* A folder of the tiny model whose linear layers are E4M3. With blocks its sizes are more than a block. */
static void write_folder(char dir[PATH_MAX], const char *scratch, const char *name, enum fault fault,
			 const struct layout *layout)
{
	static struct folder f;
	char path[PATH_MAX + 32];
	struct error err = {0};
	json_t *config;
	struct shape s;
	enum status st;

	f.count = 0;
	f.layout = layout;
	shape_by_name(&s, "tiny", NULL);
	if (layout->blocks) {
		s.hidden = 136;
		s.ffn = 264;
	}
	make(dir, scratch, name, &s, DTYPE_F32, UINT64_MAX);
	for (size_t i = 0; i < names_count(&s); i++) {
		struct named n;

		names_at(&n, &s, i);
		add_tensor(&f, n.hf, is_matrix(&n) ? DTYPE_E4M3 : DTYPE_F32, n.vector ? n.cols : n.rows,
			   n.vector ? 0 : n.cols);
		if (is_matrix(&n))
			add_factor(&f, &n, fault);
	}
	if (fault == FACTOR_OF_NOBODY)
		add_tensor(&f, "model.layers.0.input_layernorm.weight_scale", DTYPE_F32, 1, 0);
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	st = safetensors_write_begin(&f.writer, path, f.tensor, f.count, NULL, &err);
	for (size_t i = 0; !st && i < f.count; i++)
		write_numbers(&f, &f.tensor[i], &s, fault);
	if (safetensors_write_end(&f.writer, st, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof(path), "%s/config.json", dir);
	assert_int_equal(json_file_read(&config, path, 1 << 20, NULL), STATUS_OK);
	json_object_set_new(config, "quantization_config", quantization(layout));
	assert_int_equal(json_file_write(dir, "config.json", config, 0, NULL), STATUS_OK);
}

static void check_numbers(const struct weights *w, const struct layout *layout)
{
	for (size_t k = 0; k < names_count(&w->shape); k++) {
		struct error err = {0};
		struct named n;
		float *is, *row;

		names_at(&n, &w->shape, k);
		if (!is_matrix(&n))
			continue;
		is = load(w, n.hf);
		row = malloc(sizeof(float) * (size_t)n.cols);
		for (int64_t i = 0; i < n.rows * n.cols; i++) {
			const uint8_t bits = element(&n, i, GOOD);
			float due;

			dtype_unpack(DTYPE_E4M3, &bits, &due, 1);
			due *= factor_at(layout, &n, i / n.cols, i % n.cols);
			assert_true(is[i] == due);
		}
		must(weights_rows(w, n.hf, n.rows - 1, 1, row, &err), &err);
		assert_memory_equal(row, is + (n.rows - 1) * n.cols, sizeof(float) * (size_t)n.cols);
		free(is);
		free(row);
	}
}

static void test_e4m3__numbers_of_blocks_are_their_elements_times_the_factor(void **state)
{
	static const struct layout layouts[] = {{true, "_scale_inv", DTYPE_F32},
						{true, "_scale_inv", DTYPE_BF16},
						{true, "_scale", DTYPE_F32}};

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		char dir[PATH_MAX], name[16];
		struct error err = {0};
		struct weights w;

		snprintf(name, sizeof(name), "blocks%zu", i);
		write_folder(dir, *state, name, GOOD, &layouts[i]);
		must(weights_open(&w, dir, &err), &err);
		check_numbers(&w, &layouts[i]);
		assert_false(weights_are_e4m3_of_rows(&w));
		weights_release(&w);
	}
}

static void test_e4m3__numbers_are_their_elements_times_the_factor(void **state)
{
	struct error err = {0};
	char dir[PATH_MAX];
	struct weights w;
	uint16_t *half;

	write_folder(dir, *state, "good", GOOD, &of_rows);
	if (weights_open(&w, dir, &err))
		fail_msg("%s", err.text);
	check_numbers(&w, &of_rows);
	/* In another type they are rounded. */
	{
		struct weights_slot slot = {.name = CHOSEN};
		struct named n;
		float *is = load(&w, CHOSEN);

		assert_true(names_find(&n, &w.shape, CHOSEN));
		half = malloc(2 * (size_t)(n.rows * n.cols));
		slot.to = (struct mat){
			.data = half, .rows = n.rows, .cols = n.cols, .ld = n.cols, .dtype = DTYPE_BF16};
		must(weights_load(&w, &slot, 1, &err), &err);
		for (int64_t i = 0; i < n.rows * n.cols; i++)
			assert_int_equal(half[i], bf16_of_f32(is[i]));
		/* Memory of the host has no factors beside the elements. */
		slot.to.dtype = DTYPE_E4M3;
		assert_int_equal(weights_load(&w, &slot, 1, NULL), STATUS_BUG);
		free(half);
		free(is);
	}
	weights_release(&w);
}

/* A device whose weights are E4M3 with a scale per row. */
struct device {
	struct backend back;
	struct arena arena;
};

static struct mat place_e4m3(struct device *d, const struct named *n)
{
	struct mat m = {.rows = n->rows, .cols = n->cols, .dtype = DTYPE_E4M3};
	struct mat scale = {.rows = 1, .cols = n->rows, .dtype = DTYPE_F32};
	struct error err = {0};

	must(arena_mat(&d->arena, MEM_WEIGHTS, &m, "a matrix", &err), &err);
	must(arena_mat(&d->arena, MEM_WEIGHTS, &scale, "its scales", &err), &err);
	m.scales = scales_of_rows(scale.data, n->cols);
	return m;
}

/* Elements and factors have the bits of the file. */
static void check_kept(struct device *d, const struct mat *m, const struct named *n)
{
	const struct mat scale = {
		.data = m->scales.data, .rows = 1, .cols = m->rows, .ld = m->rows, .dtype = DTYPE_F32};
	float *factors = malloc(sizeof(float) * (size_t)m->rows);
	uint8_t *elements = malloc((size_t)(m->rows * m->cols));
	struct error err = {0};

	must(d->back.ops->get(&d->back, *m, elements, &err), &err);
	must(d->back.ops->get(&d->back, scale, factors, &err), &err);
	for (int64_t i = 0; i < m->rows * m->cols; i++)
		assert_int_equal(elements[i], element(n, i, GOOD));
	for (int64_t i = 0; i < m->rows; i++)
		assert_true(factors[i] == factor_at(&of_rows, n, i, 0));
	free(elements);
	free(factors);
}

static void test_e4m3__a_device_keeps_elements_and_factors(void **state)
{
	const struct gpu_backend_options options = {.attention = GPU_ATTENTION_OWN, .few_rows = true};
	struct device d = {0};
	struct error err = {0};
	char dir[PATH_MAX];
	struct weights w;

	if (!kernel_fatbin_at(0))
		skip();
	fakes_take();
	write_folder(dir, *state, "kept", GOOD, &of_rows);
	must(weights_open(&w, dir, &err), &err);
	assert_true(weights_are_e4m3_of_rows(&w));
	must(gpu_backend_create(&d.back, &options, &d.arena, &err), &err);
	must(gpu_backend_take(&d.back, 16 << 20, &err), &err);
	for (size_t i = 0; i < names_count(&w.shape); i++) {
		struct weights_slot slot = {0};
		struct named n;

		names_at(&n, &w.shape, i);
		if (!is_matrix(&n))
			continue;
		slot.name = n.hf;
		slot.to = place_e4m3(&d, &n);
		must(weights_load_to(&w, &d.back, &slot, 1, &err), &err);
		check_kept(&d, &slot.to, &n);
	}
	gpu_backend_release(&d.back);
	weights_release(&w);
}

static void test_e4m3__a_bad_checkpoint_is_refused_by_name(void **state)
{
	static const struct {
		enum fault fault;
		const struct layout *layout;
		const char *why;
	} cases[] = {
		{NO_FACTOR, &of_rows,
		 "model.safetensors: " CHOSEN " is E4M3 without scales (" CHOSEN "_scale or " CHOSEN
		 "_scale_inv)"},
		{TOO_MANY_FACTORS, &of_rows,
		 CHOSEN "_scale is 2-dimensional and has 97 scales of type F32 for 96 x 160 elements"},
		{FACTOR_E4M3, &of_rows, CHOSEN "_scale is 2-dimensional and has 96 scales of type E4M3"},
		{FACTOR_NAN, &of_rows, CHOSEN "_scale has NaN or infinity"},
		{FACTOR_OF_NOBODY, &of_rows,
		 "model.layers.0.input_layernorm.weight_scale is not a tensor of such a model"},
		{NO_FACTOR, &of_blocks, CHOSEN " is E4M3 without scales"},
		{TOO_MANY_FACTORS, &of_blocks,
		 "model.safetensors: " CHOSEN
		 "_scale_inv is 2-dimensional and has 9 scales of type F32 for 136 x 264 elements; one, one per "
		 "row, or one per 128 x 128 elements"},
		{FACTORS_TURNED, &of_blocks, CHOSEN "_scale_inv is 2-dimensional and has 6 scales"},
		{FACTORS_TWICE, &of_blocks, CHOSEN " has both " CHOSEN "_scale and " CHOSEN "_scale_inv"},
		{FACTOR_NAN, &of_blocks, CHOSEN "_scale_inv has NaN or infinity"},
		{FACTOR_E4M3, &of_blocks, CHOSEN "_scale_inv is 2-dimensional and has 6 scales of type E4M3"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char dir[PATH_MAX], name[16];
		struct error err = {0};
		struct weights w;

		snprintf(name, sizeof(name), "bad%zu", i);
		write_folder(dir, *state, name, cases[i].fault, cases[i].layout);
		if (!weights_open(&w, dir, &err) || !strstr(err.text, cases[i].why))
			fail_msg("\"%s\" lacks \"%s\"", err.text, cases[i].why);
	}
}

static void test_e4m3__an_element_that_is_nan_is_refused(void **state)
{
	struct weights_slot slot = {.name = CHOSEN};
	struct error err = {0};
	char dir[PATH_MAX];
	struct weights w;
	struct named n;

	write_folder(dir, *state, "nan", ELEMENT_NAN, &of_rows);
	if (weights_open(&w, dir, &err))
		fail_msg("%s", err.text);
	assert_true(names_find(&n, &w.shape, CHOSEN));
	slot.to = (struct mat){.rows = n.rows, .cols = n.cols, .ld = n.cols, .dtype = DTYPE_F32};
	slot.to.data = malloc(4 * (size_t)(n.rows * n.cols));
	assert_int_equal(weights_load(&w, &slot, 1, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, CHOSEN ": row 3 has NaN"))
		fail_msg("%s", err.text);
	free(slot.to.data);
	weights_release(&w);
}

static void test_e4m3__every_number_is_its_value(void **state)
{
	(void)state;
	for (unsigned b = 0; b < 256; b++) {
		const uint8_t bits = (uint8_t)b;
		const int exponent = (int)(b >> 3 & 15), fraction = (int)(b & 7);
		const double value = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
		float f;

		dtype_unpack(DTYPE_E4M3, &bits, &f, 1);
		if ((b & 0x7f) == 0x7f)
			assert_true(isnan(f));
		else
			assert_true((double)f == (b & 0x80 ? -value : value));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_e4m3__numbers_are_their_elements_times_the_factor,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(
			test_e4m3__numbers_of_blocks_are_their_elements_times_the_factor, scratch_create,
			scratch_remove),
		cmocka_unit_test_setup_teardown(test_e4m3__a_device_keeps_elements_and_factors,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_e4m3__a_bad_checkpoint_is_refused_by_name,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_e4m3__an_element_that_is_nan_is_refused, scratch_create,
						scratch_remove),
		cmocka_unit_test(test_e4m3__every_number_is_its_value),
	};

	return cmocka_run_group_tests_name("model_weights_e4m3", tests, NULL, NULL);
}
