/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gguf_bed.h"
#include "model/shape/shape.h"

enum { F32 = 0, Q8_0 = 8 };

/* Two keys and an array, two tensors; places of lies are told by the tests. */
static uint8_t *good(size_t *size)
{
	struct gguf_bed b;

	bed_begin(&b, 3, 2, 5);
	bed_string(&b, "general.name", "bed");
	bed_u32(&b, "a.count", 7);
	bed_f32(&b, "a.eps", 0.5f);
	bed_array(&b, "texts", GGUF_TEXT, 2);
	bed_text(&b, "");
	bed_text(&b, "two");
	bed_array(&b, "numbers", GGUF_I16, 3);
	bed_bytes(&b, 0xfffe000300ff, 6);
	bed_tensor(&b, "z", 2, 32, Q8_0, 68);
	bed_tensor(&b, "m", 0, 5, F32, 20);
	return bed_end(&b, size);
}

static void test_gguf__a_good_file_is_read(void **state)
{
	struct error err = {0};
	struct gguf_text text;
	struct gguf g;
	int64_t count = 0;
	double eps = 0;
	bool flag = true;
	size_t size;
	uint8_t *file = good(&size);

	(void)state;
	assert_int_equal(gguf_parse(&g, "x.gguf", file, size, &err), STATUS_OK);
	assert_int_equal(gguf_string(&g.metadata, "general.name", &text, &err), STATUS_OK);
	assert_int_equal(text.size, 3);
	assert_memory_equal(text.data, "bed", 3);
	assert_int_equal(gguf_i64(&g.metadata, "a.count", 1, 9, &count, &err), STATUS_OK);
	assert_int_equal(count, 7);
	assert_int_equal(gguf_f64(&g.metadata, "a.eps", &eps, &err), STATUS_OK);
	assert_true(eps == 0.5);
	assert_int_equal(gguf_bool(&g.metadata, "absent", &flag, &err), STATUS_OK);
	assert_true(flag);
	assert_int_equal(gguf_find(&g.metadata, "texts")->texts[1].size, 3);
	assert_int_equal(gguf_item(gguf_find(&g.metadata, "numbers"), 0), 255);
	assert_int_equal(gguf_item(gguf_find(&g.metadata, "numbers"), 2), -2);
	assert_int_equal(gguf_tensor(&g, "z")->dim[0], 2); /* outermost first */
	assert_int_equal(gguf_tensor(&g, "z")->dim[1], 32);
	assert_int_equal(gguf_tensor(&g, "z")->size, 68);
	assert_int_equal(gguf_tensor(&g, "m")->rank, 1);
	assert_int_equal(gguf_tensor(&g, "m")->data[0], 96);
	assert_null(gguf_tensor(&g, "y"));
	assert_null(gguf_find(&g.metadata, "a"));
	gguf_release(&g);
	free(file);
}

static void test_gguf__a_key_of_another_type_or_range_is_refused(void **state)
{
	struct gguf_text text;
	struct gguf g;
	int64_t count = 0;
	double eps = 0;
	bool flag;
	size_t size;
	uint8_t *file = good(&size);

	(void)state;
	assert_int_equal(gguf_parse(&g, "x.gguf", file, size, NULL), STATUS_OK);
	assert_int_equal(gguf_i64(&g.metadata, "a.count", 8, 9, &count, NULL), STATUS_BAD_INPUT);
	assert_int_equal(gguf_i64(&g.metadata, "a.eps", 0, 9, &count, NULL), STATUS_BAD_INPUT);
	assert_int_equal(gguf_i64(&g.metadata, "numbers", 0, 999, &count, NULL), STATUS_BAD_INPUT);
	assert_int_equal(gguf_f64(&g.metadata, "a.count", &eps, NULL), STATUS_BAD_INPUT);
	assert_int_equal(gguf_bool(&g.metadata, "a.count", &flag, NULL), STATUS_BAD_INPUT);
	assert_int_equal(gguf_string(&g.metadata, "texts", &text, NULL), STATUS_BAD_INPUT);
	gguf_release(&g);
	free(file);
}

static void test_gguf__a_file_cut_anywhere_is_refused(void **state)
{
	size_t size;
	uint8_t *file = good(&size);

	(void)state;
	for (size_t cut = 0; cut < size - 12; cut++) { /* the last 12 bytes are padding */
		uint8_t *copy = malloc(cut + 1);       /* its own block: a read past its end is seen */
		struct error err = {0};
		struct gguf g;

		memcpy(copy, file, cut);
		assert_int_equal(gguf_parse(&g, "x.gguf", copy, cut, &err), STATUS_BAD_INPUT);
		assert_int_equal(strncmp(err.text, "x.gguf: ", 8), 0);
		free(copy);
	}
	free(file);
}

static void expect(struct gguf_bed *b, const char *why)
{
	struct error err = {0};
	struct gguf g;
	size_t size;
	uint8_t *file = bed_end(b, &size);

	if (gguf_parse(&g, "x.gguf", file, size, &err) != STATUS_BAD_INPUT || !strstr(err.text, why))
		fail_msg("\"%s\" lacks \"%s\"", err.text, why);
	assert_null(g.metadata.values);
	free(file);
}

static void test_gguf__counts_and_lengths_that_lie_are_refused(void **state)
{
	struct gguf_bed b;

	(void)state;
	bed_begin(&b, 1, 0, 0);
	expect(&b, "version 1 is not supported");
	bed_begin(&b, 0x03000000, 0, 0);
	expect(&b, "the other byte order");
	bed_begin(&b, 3, 0, UINT64_MAX);
	expect(&b, "18446744073709551615 keys");
	bed_begin(&b, 3, UINT64_MAX / 2, 0);
	expect(&b, "tensors in");
	bed_begin(&b, 3, 0, 1);
	bed_bytes(&b, UINT64_MAX, 8);
	bed_bytes(&b, 0, 8);
	expect(&b, "a key");
	bed_begin(&b, 3, 0, 1);
	bed_text(&b, "k");
	bed_bytes(&b, 13, 4);
	bed_bytes(&b, 0, 8);
	expect(&b, "k: type 13 is unknown");
	bed_begin(&b, 3, 0, 1);
	bed_array(&b, "k", GGUF_U64, (uint64_t)1 << 61); /* times 8 it wraps to 0 */
	expect(&b, "k: 2305843009213693952 numbers");
	bed_begin(&b, 3, 0, 1);
	bed_array(&b, "k", GGUF_TEXT, (uint64_t)1 << 60);
	expect(&b, "k: 1152921504606846976 texts");
	bed_begin(&b, 3, 0, 1);
	bed_array(&b, "k", GGUF_ARRAY, 1);
	bed_bytes(&b, 0, 16);
	expect(&b, "k: arrays of arrays");
	bed_begin(&b, 3, 0, 1);
	bed_array(&b, "k", GGUF_TEXT, 1);
	bed_bytes(&b, UINT64_MAX - 3, 8);
	expect(&b, "k");
	bed_begin(&b, 3, 0, 2);
	bed_u32(&b, "k", 1);
	bed_u32(&b, "k", 1);
	expect(&b, "key k occurs twice");
	bed_begin(&b, 3, 0, 1);
	bed_u32(&b, "general.alignment", 48);
	expect(&b, "general.alignment 48 is not a power of two");
	bed_begin(&b, 3, 0, 1);
	bed_u32(&b, "general.alignment", 0);
	expect(&b, "general.alignment is 0");
}

/* One tensor whose table says what is given; 64 bytes of data. */
static void lie(uint32_t dims, uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset, const char *why)
{
	struct gguf_bed b;

	bed_begin(&b, 3, 1, 0);
	bed_text(&b, "t");
	bed_bytes(&b, dims, 4);
	bed_bytes(&b, cols, 8);
	bed_bytes(&b, rows, 8);
	bed_bytes(&b, type, 4);
	bed_bytes(&b, offset, 8);
	b.data = 64;
	expect(&b, why);
}

static void test_gguf__tensors_that_lie_are_refused_by_name(void **state)
{
	struct gguf_bed b;

	(void)state;
	lie(0, 4, 4, F32, 0, "t: 0 dimensions");
	lie(5, 4, 4, F32, 0, "t: 5 dimensions");
	lie(2, 0, 4, F32, 0, "t: a dimension of 0");
	lie(2, UINT64_MAX, 4, F32, 0, "t: a dimension of 18446744073709551615");
	lie(2, (uint64_t)1 << 32, (uint64_t)1 << 32, F32, 0,
	    "t: rows of 4294967296 elements, or more than any memory");
	lie(2, 16, 1, Q8_0, 0, "t: rows of 16 elements");
	lie(2, 4, 4, 5, 0, "t: type 5 is unknown");
	lie(2, 4, 4, 99, 0, "t: type 99 is unknown");
	lie(2, 4, 5, F32, 0, "t ends beyond the file");
	lie(2, 4, 4, F32, UINT64_MAX - 15, "t ends beyond the file");
	lie(2, 4, 2, F32, 32, "32 bytes before t belong to no tensor");
	lie(2, 4, 1, F32, 0, "48 bytes after the last tensor belong to none");
	bed_begin(&b, 3, 2, 0);
	bed_tensor(&b, "t", 0, 16, F32, 0); /* as if it took nothing */
	bed_tensor(&b, "u", 0, 16, F32, 64);
	expect(&b, "overlaps");
	bed_begin(&b, 3, 2, 0);
	bed_tensor(&b, "t", 0, 8, F32, 32);
	bed_tensor(&b, "t", 0, 8, F32, 32);
	expect(&b, "tensor t occurs twice");
}

/* Metadata of a model with heads of 32 and an embedding; `more` adds keys and says how many. */
static void shape_begin(struct gguf_bed *b, uint64_t tensors, uint64_t more)
{
	static const struct {
		const char *key;
		uint32_t value;
	} sizes[] = {{"embedding_length", 64},	 {"block_count", 3},	       {"attention.head_count", 4},
		     {"context_length", 131072}, {"attention.key_length", 32}, {"feed_forward_length", 96}};
	char key[64];

	bed_begin(b, 3, tensors, 4 + sizeof(sizes) / sizeof(sizes[0]) + more);
	bed_string(b, "general.architecture", "llama");
	bed_f32(b, "llama.rope.freq_base", 5e5f);
	bed_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
	bed_array(b, "llama.attention.head_count_kv", GGUF_I32, 3);
	bed_bytes(b, 2, 4);
	bed_bytes(b, 2, 4);
	bed_bytes(b, 2, 4);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(key, sizeof(key), "llama.%s", sizes[i].key);
		bed_u32(b, key, sizes[i].value);
	}
}

static enum status shape_end(struct gguf_bed *b, struct shape *s, const float divisors[16], struct error *err)
{
	enum status st;
	struct gguf g;
	size_t size;
	uint8_t *file = bed_end(b, &size);

	if (divisors) /* the last tensor */
		memcpy(file + size - 64, divisors, 64);
	*err = (struct error){0};
	st = gguf_parse(&g, "x.gguf", file, size, err);
	if (!st)
		st = shape_of_gguf(s, &g, err);
	gguf_release(&g);
	free(file);
	return st;
}

/* Divisors as transformers computes them for theta 5e5, heads of 32, factor 8 over 8192 positions. */
static void test_shape_of_gguf__llama_3_s_scaling_is_known_by_its_divisors(void **state)
{
	float divisors[16] = {1, 1, 1, 1, 1, 1, 1, 1, 2.69453f, 8, 8, 8, 8, 8, 8, 8};
	struct gguf_bed b;
	struct error err;
	struct shape s;

	(void)state;
	shape_begin(&b, 2, 0);
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	bed_tensor(&b, "rope_freqs.weight", 0, 16, F32, 64);
	if (shape_end(&b, &s, divisors, &err))
		fail_msg("%s", err.text);
	assert_true(s.rope.llama3 && s.rope.factor == 8 && s.rope.low == 1 && s.rope.high == 4 &&
		    s.rope.context == 8192);
	assert_true(s.tied && s.kv_heads == 2 && s.vocab == 4 && s.head_dim == 32 && s.rope_theta == 5e5);
	divisors[8] = 2.7f;
	shape_begin(&b, 2, 0);
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	bed_tensor(&b, "rope_freqs.weight", 0, 16, F32, 64);
	assert_int_equal(shape_end(&b, &s, divisors, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "rope_freqs.weight has 2.7 for frequency 8"));
	shape_begin(&b, 2, 0);
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	bed_tensor(&b, "rope_freqs.weight", 0, 8, F32, 32);
	assert_int_equal(shape_end(&b, &s, NULL, &err), STATUS_BAD_INPUT);
}

static void test_shape_of_gguf__what_is_not_done_is_refused_by_key(void **state)
{
	struct gguf_bed b;
	struct error err;
	struct shape s;

	(void)state;
	shape_begin(&b, 1, 1);
	bed_string(&b, "llama.rope.scaling.type", "yarn");
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	assert_int_equal(shape_end(&b, &s, NULL, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(
		err.text,
		"llama.rope.scaling.type yarn is not supported; without it the model supports only 131072"));
	shape_begin(&b, 1, 1);
	bed_u32(&b, "llama.rope.dimension_count", 16);
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	assert_int_equal(shape_end(&b, &s, NULL, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "16 rotated"));
	shape_begin(&b, 1, 0);
	bed_tensor(&b, "token_embd.weight", 0, 64, F32, 256);
	assert_int_equal(shape_end(&b, &s, NULL, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "token_embd.weight is missing or not a matrix"));
	bed_begin(&b, 3, 1, 1);
	bed_string(&b, "general.architecture", "qwen3");
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	assert_int_equal(shape_end(&b, &s, NULL, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "qwen3.embedding_length is missing"));
	bed_begin(&b, 3, 1, 1);
	bed_array(&b, "qwen2.attention.head_count_kv", GGUF_I32, 2);
	bed_bytes(&b, 2, 4);
	bed_bytes(&b, 4, 4);
	bed_tensor(&b, "token_embd.weight", 4, 64, F32, 1024);
	assert_int_equal(shape_end(&b, &s, NULL, &err), STATUS_UNSUPPORTED); /* no architecture */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gguf__a_good_file_is_read),
		cmocka_unit_test(test_gguf__a_key_of_another_type_or_range_is_refused),
		cmocka_unit_test(test_gguf__a_file_cut_anywhere_is_refused),
		cmocka_unit_test(test_gguf__counts_and_lengths_that_lie_are_refused),
		cmocka_unit_test(test_gguf__tensors_that_lie_are_refused_by_name),
		cmocka_unit_test(test_shape_of_gguf__llama_3_s_scaling_is_known_by_its_divisors),
		cmocka_unit_test(test_shape_of_gguf__what_is_not_done_is_refused_by_key),
	};

	return cmocka_run_group_tests_name("model_gguf", tests, NULL, NULL);
}
