/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of 4 bits: one that transformers wrote, what is refused in it, and what assay itself writes. */
#include "must.h"
#include "scratch.h"
#include "test.h"
#include "weights_bed.h"

#include <math.h>
#include "core/file/file.h"
#include "core/json/file.h"
#include "model/bnb4/bnb4.h"
#include "model/files/bnb4/bnb4_file.h"
#include "model/files/fingerprint.h"
#include "model/files/merge_adapter.h"
#include "model/tensor/dtype.h"

#define DATA SOURCE_DIR "/tests/data/model/bnb4/"
#define WEIGHT "model.layers.0.self_attn.k_proj.weight"
#define STATE WEIGHT ".quant_state.bitsandbytes__nf4"

static void test_bnb4__a_checkpoint_of_transformers_has_the_numbers_that_bitsandbytes_gives(void **state)
{
	struct safetensors due;
	struct error err = {0};
	struct weights w;
	struct named n;

	(void)state;
	must(weights_open(&w, DATA "checkpoint", &err), &err);
	must(safetensors_open(&due, DATA "checkpoint.safetensors", &err), &err);
	assert_int_equal(w.bnb4_count, 7);
	assert_int_equal(due.count, names_count(&w.shape));
	for (size_t i = 0; i < names_count(&w.shape); i++) {
		struct weights_slot slot;
		struct weights_raw raw;
		uint16_t *halves;
		float *floats;

		names_at(&n, &w.shape, i);
		halves = calloc((size_t)(n.rows * n.cols), sizeof(*halves));
		slot = (struct weights_slot){.name = n.hf,
					     .to = {.data = halves,
						    .rows = n.rows,
						    .cols = n.cols,
						    .ld = n.cols,
						    .dtype = DTYPE_BF16}};
		must(weights_load(&w, &slot, 1, &err), &err);
		assert_memory_equal(halves, tensor_of(&due, n.hf)->data,
				    (size_t)(n.rows * n.cols) * sizeof(*halves));
		assert_true(weights_find(&raw, &w, n.hf));
		assert_int_equal(raw.bnb4 != NULL, n.layer >= 0 && !n.vector);
		floats = load(&w, n.hf); /* of 4 bits, not rounded to BF16 */
		for (int64_t k = 0; k < n.rows * n.cols; k++)
			assert_int_equal(bf16_of_f32(floats[k]), halves[k]);
		free(floats);
		free(halves);
	}
	safetensors_release(&due);
	weights_release(&w);
}

/* How a checkpoint differs from the good one. */
struct change {
	const char *tensor;
	enum { LEAVE_OUT, TYPE, SHORTER, BYTES, TEXT, ADD } what;
	const char *from,
		*to;	  /* TEXT: parts of the JSON object; ADD: `to` is the name of a copy of `tensor` */
	enum dtype dtype; /* TYPE: with as many bytes */
	size_t at;	  /* BYTES: the number at this place becomes `number` */
	float number;
	enum status due;
	const char *why;
};

enum { TENSORS_MOST = 64 };

struct copied {
	struct tensor tensor[TENSORS_MOST];
	uint8_t *data[TENSORS_MOST];
	size_t count;
};

static void copy_tensor(struct copied *c, const struct tensor *t, const struct change *change)
{
	const bool chosen = change && !strcmp(t->name, change->tensor);
	struct tensor *to = &c->tensor[c->count];
	uint8_t *data;

	if (chosen && change->what == LEAVE_OUT)
		return;
	assert_true(c->count < TENSORS_MOST);
	*to = *t;
	data = c->data[c->count++] = calloc(1, t->size + 64);
	memcpy(data, t->data, t->size);
	if (chosen && change->what == TYPE) {
		struct tensor one = {.dtype = change->dtype};

		dtype_measure(&one);
		to->dtype = change->dtype;
		to->dim[0] = (int64_t)(t->size / one.size);
	} else if (chosen && change->what == SHORTER) {
		to->dim[0]--;
	} else if (chosen && change->what == BYTES) {
		memcpy(data + change->at * 4, &change->number, 4);
	} else if (chosen && change->what == TEXT) {
		char *at = strstr((char *)data, change->from), rest[256];

		assert_non_null(at);
		snprintf(rest, sizeof(rest), "%s", at + strlen(change->from));
		snprintf(at, 256, "%s%s", change->to, rest);
		to->dim[0] = (int64_t)strlen((char *)data);
	}
	dtype_measure(to);
}

static void write_changed(char dir[PATH_MAX], const char *in, const struct change *change)
{
	struct safetensors from;
	struct safetensors_writer out;
	struct copied c = {.count = 0};
	struct error err = {0};
	char path[PATH_MAX + 32];
	json_t *config;

	snprintf(dir, PATH_MAX, "%s/changed", (const char *)in);
	must(file_make_dir(dir, &err), &err);
	must(json_file_read(&config, DATA "checkpoint/config.json", 1 << 20, &err), &err);
	must(json_file_write(dir, "config.json", config, 0, &err), &err);
	must(safetensors_open(&from, DATA "checkpoint/model.safetensors", &err), &err);
	for (size_t i = 0; i < from.count; i++)
		copy_tensor(&c, &from.tensors[i], change);
	if (change && change->what == ADD) {
		copy_tensor(&c, tensor_of(&from, change->tensor), NULL);
		c.tensor[c.count - 1].name = change->to;
	}
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	must(safetensors_write_begin(&out, path, c.tensor, c.count, NULL, &err), &err);
	for (size_t i = 0; i < c.count; i++) {
		must(safetensors_write(&out, c.data[i], c.tensor[i].size, &err), &err);
		free(c.data[i]);
	}
	must(safetensors_write_end(&out, STATUS_OK, &err), &err);
	safetensors_release(&from);
}

static const struct change changes[] = {
	{WEIGHT ".absmax", LEAVE_OUT, .due = STATUS_BAD_INPUT, .why = WEIGHT ".absmax is missing"},
	{WEIGHT ".quant_map", LEAVE_OUT, .due = STATUS_BAD_INPUT, .why = WEIGHT ".quant_map is missing"},
	{WEIGHT ".nested_absmax", LEAVE_OUT, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".nested_absmax is missing"},
	{WEIGHT ".nested_quant_map", LEAVE_OUT, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".nested_quant_map is missing"},
	{STATE, LEAVE_OUT, .due = STATUS_BAD_INPUT, .why = WEIGHT " is 2-dimensional, 1024 x 1"},
	{WEIGHT, LEAVE_OUT, .due = STATUS_BAD_INPUT, .why = WEIGHT " is missing"},
	{WEIGHT, SHORTER, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT " has 1023 bytes; 32 x 64 of 4 bits are 1024"},
	{WEIGHT ".absmax", SHORTER, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".absmax has 31 numbers of type U8; 32 of U8 are expected"},
	{WEIGHT ".absmax", TYPE, .dtype = DTYPE_F32, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".absmax has 8 numbers of type F32; 32 of U8 are expected"},
	{WEIGHT ".nested_absmax", TYPE, .dtype = DTYPE_U8, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".nested_absmax has 4 numbers of type U8; 1 of F32 are expected"},
	{WEIGHT ".quant_map", BYTES, .at = 3, .number = -0.4f, .due = STATUS_UNSUPPORTED,
	 .why = WEIGHT ".quant_map: number 3 is -0.400000006, not -0.394917488: its table is unknown"},
	{WEIGHT ".quant_map", BYTES, .at = 0, .number = NAN, .due = STATUS_UNSUPPORTED,
	 .why = WEIGHT ".quant_map: number 0 is nan"},
	{WEIGHT ".nested_quant_map", BYTES, .at = 200, .number = 0.5f, .due = STATUS_UNSUPPORTED,
	 .why = WEIGHT ".nested_quant_map: number 200 is 0.5"},
	{WEIGHT ".nested_absmax", BYTES, .number = NAN, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".nested_absmax has NaN or infinity"},
	{WEIGHT ".nested_absmax", BYTES, .number = INFINITY, .due = STATUS_BAD_INPUT,
	 .why = WEIGHT ".nested_absmax has NaN or infinity"},
	{STATE, TYPE, .dtype = DTYPE_I8, .due = STATUS_BAD_INPUT, .why = STATE " is not a list of U8"},
	{STATE, TEXT, "{\"quant_type", "[\"quant_type", .due = STATUS_BAD_INPUT,
	 .why = STATE " is not a JSON object"},
	{STATE, TEXT, "\"nf4\"", "\"fp4\"", .due = STATUS_BAD_INPUT,
	 .why = STATE ": its \"quant_type\" is fp4"},
	{STATE, TEXT, "\"nf4\"", "\"af4\"", .due = STATUS_BAD_INPUT,
	 .why = STATE ": \"quant_type\" is missing"},
	{STATE, TEXT, "\"blocksize\": 64", "\"blocksize\": 128", .due = STATUS_UNSUPPORTED,
	 .why = STATE ": blocksize 128 is not supported, only 64"},
	{STATE, TEXT, "\"blocksize\": 64", "\"blocksize\": 64.5", .due = STATUS_BAD_INPUT,
	 .why = STATE ": \"blocksize\" is missing or has a wrong value"},
	{STATE, TEXT, "\"nested_blocksize\": 256", "\"nested_blocksize\": 64", .due = STATUS_UNSUPPORTED,
	 .why = STATE ": nested_blocksize 64 is not supported"},
	{STATE, TEXT, "\"bfloat16\"", "\"int8\"", .due = STATUS_BAD_INPUT, .why = STATE ": \"dtype\""},
	{STATE, TEXT, "[32, 64]", "[64, 32]", .due = STATUS_BAD_INPUT,
	 .why = STATE ": \"shape\" is 64 x 32; the configuration makes it 32 x 64"},
	{STATE, TEXT, "[32, 64]", "[2048]", .due = STATUS_BAD_INPUT, .why = STATE ": \"shape\""},
	{STATE, TEXT, "\"float32\"", "\"float16\"", .due = STATUS_BAD_INPUT,
	 .why = STATE ": \"nested_dtype\""},
	{STATE, TEXT, "\"nested_offset\": 0", "\"nested_offset\": 1e300, \"x\": 0", .due = STATUS_UNSUPPORTED,
	 .why = STATE ": key \"x\" is unknown"},
	{STATE, TEXT, "\"nested_offset\": 0", "\"nested_offset\": 9999999999999999999999999999999999999990",
	 .due = STATUS_BAD_INPUT, .why = STATE ": \"nested_offset\""},
	{STATE, ADD, .to = WEIGHT ".quant_state.bitsandbytes__fp4", .due = STATUS_BAD_INPUT,
	 .why = "cannot both be there"},
	{STATE, ADD, .to = WEIGHT ".quant_state.bitsandbytes__int4", .due = STATUS_BAD_INPUT,
	 .why = "is not a tensor of such a model"},
	{WEIGHT ".absmax", ADD, .to = "model.norm.weight.absmax", .due = STATUS_BAD_INPUT,
	 .why = "model.norm.weight.absmax is not a tensor of such a model"},
};

static void test_bnb4__a_layout_that_is_not_the_known_one_is_refused_by_name(void **state)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct error err = {0};
		char dir[PATH_MAX];
		struct weights w;
		enum status st;

		write_changed(dir, *state, &changes[i]);
		st = weights_open(&w, dir, &err);
		if (st != changes[i].due || strncmp(err.text, dir, strlen(dir)) ||
		    !strstr(err.text, changes[i].why))
			fail_msg("case %zu: %s: \"%s\" lacks \"%s\"", i, status_name(st), err.text,
				 changes[i].why);
		file_remove_tree(dir);
	}
}

/* The map of another machine may differ in its last places, and is then used. */
static void test_bnb4__a_map_of_another_machine_is_used_as_it_is(void **state)
{
	const struct change change = {WEIGHT ".nested_quant_map", BYTES, .at = 18, .number = -0.739843786f};
	struct error err = {0};
	struct weights_raw raw;
	char dir[PATH_MAX];
	struct weights w;
	float number;

	write_changed(dir, *state, &change);
	must(weights_open(&w, dir, &err), &err);
	assert_true(weights_find(&raw, &w, WEIGHT));
	memcpy(&number, (const uint8_t *)raw.bnb4->map + 18 * sizeof(number), sizeof(number));
	assert_true(number == change.number && number != bnb4_absmax_map()[18]);
	weights_release(&w);
}

/* A model of random numbers, quantized. */
static void quantize(char dir[PATH_MAX], const char *scratch, const char *name, enum bnb4_type type,
		     bool nested, uint64_t shard)
{
	const struct folder_bnb4 to = {.type = type, .nested = nested};
	const struct merge_options o = {.dtype = DTYPE_COUNT, .bnb4 = &to, .shard_bytes = shard};
	char base[PATH_MAX], model[64];
	struct error err = {0};
	struct weights w;
	struct shape s;

	snprintf(model, sizeof(model), "%s-base", name);
	shape_by_name(&s, "tiny", NULL);
	make(base, scratch, model, &s, DTYPE_BF16, UINT64_MAX);
	snprintf(dir, PATH_MAX, "%s/%s", scratch, name);
	must(weights_open(&w, base, &err), &err);
	must(merge_write(dir, &w, &o, &err), &err);
	weights_release(&w);
}

/* What a matrix of random numbers becomes, without a file. */
static void check_matrix(const struct weights *w, const struct named *n, enum bnb4_type type, bool nested)
{
	struct bnb4 m = {.rows = n->rows, .cols = n->cols, .type = type, .nested = nested};
	const size_t count = (size_t)(n->rows * n->cols);
	void *memory = malloc(bnb4_bytes(n->rows, n->cols, nested));
	uint16_t *halves = malloc(count * sizeof(*halves));
	float *numbers = malloc(count * sizeof(*numbers)), *is = load(w, n->hf);
	struct mat from = {
		.data = halves, .rows = n->rows, .cols = n->cols, .ld = n->cols, .dtype = DTYPE_BF16};

	random_weights(n, SEED, 0, n->rows, numbers);
	dtype_pack(DTYPE_BF16, numbers, halves, count);
	bnb4_place(&m, memory);
	must(bnb4_quantize(&m, &from, NULL, NULL), NULL);
	from.data = numbers;
	from.dtype = DTYPE_F32;
	bnb4_dequantize(&m, 0, &from, NULL);
	assert_memory_equal(is, numbers, count * sizeof(*numbers));
	free(is);
	free(numbers);
	free(halves);
	free(memory);
}

static void test_bnb4__a_quantized_model_reads_back_as_it_was_quantized(void **state)
{
	for (int i = 0; i < 4; i++) {
		const enum bnb4_type type = i % 2 ? BNB4_FP4 : BNB4_NF4;
		struct error err = {0};
		char dir[PATH_MAX], name[16];
		struct weights w;
		struct named n;

		snprintf(name, sizeof(name), "q%d", i);
		quantize(dir, *state, name, type, i < 2, i % 2 ? UINT64_MAX : 20000);
		must(weights_open(&w, dir, &err), &err);
		assert_int_equal(w.bnb4_count, 14);
		for (size_t k = 0; k < names_count(&w.shape); k++) {
			names_at(&n, &w.shape, k);
			if (n.layer >= 0 && !n.vector)
				check_matrix(&w, &n, type, i < 2);
		}
		weights_release(&w);
	}
}

/* PyTorch cannot read F32 at an address that is no multiple of 4. */
static void test_bnb4__numbers_of_a_file_begin_at_multiples_of_their_size(void **state)
{
	struct safetensors s;
	struct error err = {0};
	char dir[PATH_MAX], path[PATH_MAX + 32];
	size_t odd = 0;

	quantize(dir, *state, "aligned", BNB4_NF4, true, UINT64_MAX);
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	must(safetensors_open(&s, path, &err), &err);
	for (size_t i = 0; i < s.count; i++) {
		struct tensor one = {.dtype = s.tensors[i].dtype};

		dtype_measure(&one);
		assert_int_equal((uintptr_t)s.tensors[i].data % one.size, 0);
		odd += s.tensors[i].size % 4 != 0;
	}
	assert_true(odd);
	safetensors_release(&s);
}

static void test_bnb4__what_is_quantized_is_not_quantized_again(void **state)
{
	const struct folder_bnb4 to = {.type = BNB4_FP4};
	const struct merge_options o = {.dtype = DTYPE_COUNT, .bnb4 = &to, .shard_bytes = UINT64_MAX};
	char out[PATH_MAX];
	struct error err = {0};
	struct weights w;

	snprintf(out, sizeof(out), "%s/again", (const char *)*state);
	must(weights_open(&w, DATA "checkpoint", &err), &err);
	assert_int_equal(merge_write(out, &w, &o, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "7 matrices are in 4 bits already"));
	assert_int_equal(access(out, F_OK), -1);
	weights_release(&w);
}

/* A merge's result is BF16, and its configuration says so. */
static void test_bnb4__a_merge_of_a_quantized_model_is_not_quantized(void **state)
{
	const struct merge_options o = {.dtype = DTYPE_COUNT, .shard_bytes = UINT64_MAX};
	char fp4[PATH_MAX], out[PATH_MAX], path[PATH_MAX + 16];
	char bytes[2][FINGERPRINT_SIZE], numbers[2][FINGERPRINT_SIZE];
	struct error err = {0};
	struct weights w, merged;
	json_t *config;

	quantize(fp4, *state, "fp4", BNB4_FP4, false, UINT64_MAX);
	snprintf(path, sizeof(path), "%s/config.json", fp4);
	must(json_file_read(&config, path, 1 << 20, &err), &err);
	assert_string_equal(json_string_value(json_object_get(json_object_get(config, "quantization_config"),
							      "bnb_4bit_quant_type")),
			    "fp4");
	json_decref(config);
	snprintf(out, sizeof(out), "%s/merged", (const char *)*state);
	must(weights_open(&w, fp4, &err), &err);
	must(merge_write(out, &w, &o, &err), &err);
	must(weights_open(&merged, out, &err), &err);
	assert_int_equal(merged.bnb4_count, 0);
	snprintf(path, sizeof(path), "%s/config.json", out);
	must(json_file_read(&config, path, 1 << 20, &err), &err);
	assert_null(json_object_get(config, "quantization_config"));
	json_decref(config);
	/* the same numbers in other bytes */
	must(weights_fingerprint(bytes[0], &w, FINGERPRINT_BYTES, &err), &err);
	must(weights_fingerprint(bytes[1], &merged, FINGERPRINT_BYTES, &err), &err);
	must(weights_fingerprint(numbers[0], &w, FINGERPRINT_NUMBERS, &err), &err);
	must(weights_fingerprint(numbers[1], &merged, FINGERPRINT_NUMBERS, &err), &err);
	assert_string_not_equal(bytes[0], bytes[1]);
	assert_string_equal(numbers[0], numbers[1]);
	weights_release(&merged);
	weights_release(&w);
}

/* Without double quantization, absmax are as many as the blocks, so they are checked when they are loaded. */
static void test_bnb4__an_absmax_that_is_no_number_is_refused_when_it_is_loaded(void **state)
{
	char dir[PATH_MAX], path[PATH_MAX + 32];
	const float bad = NAN;
	struct safetensors s;
	struct error err = {0};
	struct weights w;
	float numbers[2 * 96];
	long at;
	FILE *f;

	quantize(dir, *state, "nan", BNB4_NF4, false, UINT64_MAX);
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	must(safetensors_open(&s, path, &err), &err);
	at = (long)(tensor_of(&s, WEIGHT ".absmax")->data - (const uint8_t *)s.map) + 4 * 7;
	safetensors_release(&s);
	f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_equal(fwrite(&bad, sizeof(bad), 1, f), 1);
	assert_int_equal(fclose(f), 0);
	must(weights_open(&w, dir, &err), &err);
	must(weights_rows(&w, WEIGHT, 0, 1, numbers, &err), &err);
	assert_int_equal(weights_rows(&w, WEIGHT, 4, 2, numbers, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, WEIGHT ".absmax has NaN or infinity"));
	weights_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_bnb4__a_checkpoint_of_transformers_has_the_numbers_that_bitsandbytes_gives,
			scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(
			test_bnb4__a_layout_that_is_not_the_known_one_is_refused_by_name, scratch_create,
			scratch_remove),
		cmocka_unit_test_setup_teardown(test_bnb4__a_map_of_another_machine_is_used_as_it_is,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_bnb4__a_quantized_model_reads_back_as_it_was_quantized,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_bnb4__numbers_of_a_file_begin_at_multiples_of_their_size,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_bnb4__what_is_quantized_is_not_quantized_again,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(test_bnb4__a_merge_of_a_quantized_model_is_not_quantized,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(
			test_bnb4__an_absmax_that_is_no_number_is_refused_when_it_is_loaded, scratch_create,
			scratch_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
