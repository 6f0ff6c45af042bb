/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"
#include "test.h"
#include "weights_bed.h"

#include <math.h>

#include "core/file/file.h"
#include "core/math/random.h"
#include "gguf_bed.h"
#include "model/tensor/dtype.h"
#include "model/files/model_folder.h"
#include "core/json/file.h"
#include "model/files/random_weights.h"
#include "text/files/tokenizer_files.h"

static void test_weights__a_sharded_folder_gives_back_every_number(void **state)
{
	char dir[PATH_MAX];
	struct weights w;
	struct shape s;
	struct named n;

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"tiny", "tiny-qwen3", "tiny-llama"};
		struct error err = {0};

		shape_by_name(&s, names[i], NULL);
		make(dir, *state, names[i], &s, DTYPE_F32, i ? 200000 : UINT64_MAX);
		if (weights_open(&w, dir, &err))
			fail_msg("%s", err.text);
		assert_memory_equal(&w.shape, &s, sizeof(s.family));
		for (size_t k = 0; k < names_count(&s); k++) {
			float *due, *is;

			names_at(&n, &s, k);
			is = load(&w, n.hf);
			due = malloc(sizeof(float) * (size_t)(n.rows * n.cols));
			random_weights(&n, SEED, 0, n.rows, due);
			assert_memory_equal(is, due, sizeof(float) * (size_t)(n.rows * n.cols));
			free(is);
			free(due);
		}
		assert_int_equal(weights_find(&(struct weights_raw){0}, &w, "lm_head.weight"), !s.tied);
		weights_release(&w);
	}
}

/* A slot may be a part of a larger matrix; what lies between rows stays. */
static void test_weights__a_view_in_another_type_is_filled_and_nothing_beside_it(void **state)
{
	enum { LD = 100 };
	uint16_t half[96 * LD], due;
	struct weights_slot slot = {.name = "model.layers.1.self_attn.o_proj.weight"};
	struct error err = {0};
	char dir[PATH_MAX];
	struct weights w;
	struct shape s;
	float *numbers;

	shape_by_name(&s, "tiny", NULL);
	s.head_dim = 16;
	make(dir, *state, "m", &s, DTYPE_F32, UINT64_MAX);
	assert_int_equal(weights_open(&w, dir, &err), STATUS_OK);
	numbers = load(&w, slot.name);
	memset(half, 0xab, sizeof(half));
	slot.to = (struct mat){.data = half, .rows = 96, .cols = 96, .ld = LD, .dtype = DTYPE_BF16};
	assert_int_equal(weights_load(&w, &slot, 1, &err), STATUS_OK);
	for (int row = 0; row < 96; row++) {
		for (int col = 0; col < LD; col++) {
			due = col < 96 ? bf16_of_f32(numbers[row * 96 + col]) : 0xabab;
			assert_int_equal(half[row * LD + col], due);
		}
	}
	slot.to.cols = 95;
	assert_int_equal(weights_load(&w, &slot, 1, &err), STATUS_BUG);
	slot.name = "lm_head.bias";
	assert_int_equal(weights_load(&w, &slot, 1, NULL), STATUS_BUG);
	free(numbers);
	weights_release(&w);
}

/* config.json of a folder with one key changed. */
static void change(const char *dir, const char *key, json_t *value)
{
	char path[PATH_MAX];
	json_t *config;

	snprintf(path, sizeof(path), "%s/config.json", dir);
	assert_int_equal(json_file_read(&config, path, 1 << 20, NULL), STATUS_OK);
	json_object_set_new(config, key, value);
	assert_int_equal(json_file_write(dir, "config.json", config, 0, NULL), STATUS_OK);
}

static void test_weights__what_does_not_fit_the_configuration_is_refused_by_name(void **state)
{
	static const struct {
		const char *key;
		int was, is;
		const char *why;
	} cases[] = {
		{"num_hidden_layers", 2, 3, "model.layers.2.input_layernorm.weight is missing"},
		{"num_hidden_layers", 2, 1,
		 "model.layers.1.input_layernorm.weight is not a tensor of such a model"},
		{"intermediate_size", 160, 128,
		 "model.layers.0.mlp.gate_proj.weight is 2-dimensional, 160 x 96; the "
		 "configuration makes it 128 x 96"},
		{"vocab_size", 320, 321, "model.embed_tokens.weight is 2-dimensional, 320 x 96"},
	};
	char dir[PATH_MAX], path[PATH_MAX + 32];
	struct error err = {0};
	struct weights w;
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	make(dir, *state, "m", &s, DTYPE_BF16, UINT64_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		change(dir, cases[i].key, json_integer(cases[i].is));
		err = (struct error){0};
		if (!weights_open(&w, dir, &err) || !strstr(err.text, cases[i].why) ||
		    strncmp(err.text, dir, strlen(dir)))
			fail_msg("\"%s\" lacks \"%s\"", err.text, cases[i].why);
		change(dir, cases[i].key, json_integer(cases[i].was));
	}
	change(dir, "tie_word_embeddings",
	       json_true()); /* its own head is then one too many, and left alone */
	assert_int_equal(weights_open(&w, dir, NULL), STATUS_OK);
	weights_release(&w);
	snprintf(path, sizeof(path), "%s/config.json", dir);
	assert_int_equal(unlink(path), 0);
	err = (struct error){0};
	assert_int_equal(weights_open(&w, dir, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "is not a model: it has no config.json"));
}

static void test_weights__a_number_that_is_none_is_refused_where_it_stands(void **state)
{
	const float nan = NAN;
	char dir[PATH_MAX], path[PATH_MAX + 32];
	struct error err = {0};
	struct weights w;
	struct shape s;
	float *numbers;
	FILE *f;

	shape_by_name(&s, "tiny", NULL);
	make(dir, *state, "m", &s, DTYPE_F32, UINT64_MAX);
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	f = fopen(path, "r+");
	assert_non_null(f);
	fseek(f, -4 * (96 + 1), SEEK_END); /* the last number of lm_head's last row but one */
	assert_int_equal(fwrite(&nan, sizeof(nan), 1, f), 1);
	fclose(f);
	assert_int_equal(weights_open(&w, dir, &err), STATUS_OK);
	numbers = malloc(sizeof(float) * 320 * 96);
	assert_int_equal(weights_load(&w,
				      &(struct weights_slot){
					      .name = "lm_head.weight",
					      .to = {.data = numbers, .rows = 320, .cols = 96, .ld = 96}},
				      1, &err),
			 STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "lm_head.weight: row 318 has NaN"));
	assert_int_equal(err.cause, CAUSE_BAD_INPUT); /* the file, not the device */
	free(numbers);
	weights_release(&w);
}

static void test_folder__nothing_is_overwritten(void **state)
{
	struct folder_options o = {.dtype = DTYPE_F16, .shard_bytes = 1, .rows = rows};
	struct error err = {0};
	char dir[PATH_MAX];
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	o.shape = &s;
	snprintf(dir, sizeof(dir), "%s/new/m/", (char *)*state);
	assert_int_equal(folder_write(dir, &o, &err), STATUS_OK);
	assert_int_equal(folder_write(dir, &o, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "exists and is not empty"));
	assert_int_equal(folder_write("", &o, NULL), STATUS_BAD_INPUT);
}

static bool stop_half_way(void *arg, uint64_t done, uint64_t all)
{
	(void)arg;
	return done * 2 < all;
}

static void test_folder__one_that_is_stopped_is_not_there(void **state)
{
	struct folder_options o = {
		.dtype = DTYPE_BF16, .shard_bytes = 100000, .rows = rows, .progress = stop_half_way};
	struct error err = {0};
	char dir[PATH_MAX];
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	o.shape = &s;
	snprintf(dir, sizeof(dir), "%s/m", (char *)*state);
	assert_int_equal(folder_write(dir, &o, &err), STATUS_CANCELLED);
	assert_int_equal(rmdir(*state), 0); /* empty */
	assert_int_equal(mkdir(*state, 0700), 0);
}

/* Somebody else begins a folder there while ours is being written. */
static bool put_there(void *arg, uint64_t done, uint64_t all)
{
	char path[PATH_MAX + 32];

	(void)done;
	(void)all;
	snprintf(path, sizeof(path), "%s/theirs", (char *)arg);
	assert_int_equal(file_make_dir(arg, NULL), STATUS_OK);
	assert_int_equal(file_write(path, "x", 1, NULL), STATUS_OK);
	return true;
}

static void test_folder__what_came_there_meanwhile_stays(void **state)
{
	char dir[PATH_MAX], theirs[PATH_MAX + 32];
	struct folder_options o = {
		.dtype = DTYPE_F16, .shard_bytes = 100000, .rows = rows, .progress = put_there, .arg = dir};
	struct error err = {0};
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	o.shape = &s;
	snprintf(dir, sizeof(dir), "%s/m", (char *)*state);
	snprintf(theirs, sizeof(theirs), "%s/theirs", dir);
	assert_int_equal(folder_write(dir, &o, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "m exists and is not empty"));
	assert_int_equal(unlink(theirs), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing of ours is in it, nor beside it */
	assert_int_equal(rmdir(*state), 0);
	assert_int_equal(mkdir(*state, 0700), 0);
}

/* What is written anew over a model leaves it until the new one is whole. */
static void test_folder__one_that_is_replaced_is_there_until_the_new_one_is(void **state)
{
	struct folder_options o = {.dtype = DTYPE_F16, .shard_bytes = 100000, .rows = rows, .replace = true};
	struct error err = {0};
	char dir[PATH_MAX], left[PATH_MAX + 32];
	struct weights w;
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	o.shape = &s;
	snprintf(dir, sizeof(dir), "%s/m", (char *)*state);
	snprintf(left, sizeof(left), "%s/left", dir);
	assert_int_equal(folder_write(dir, &o, &err), STATUS_OK);
	assert_int_equal(file_write(left, "x", 1, &err), STATUS_OK);
	o.progress = stop_half_way;
	assert_int_equal(folder_write(dir, &o, &err), STATUS_CANCELLED);
	assert_int_equal(access(left, F_OK), 0);
	assert_int_equal(weights_open(&w, dir, &err), STATUS_OK); /* the old one, whole */
	weights_release(&w);
	o.progress = NULL;
	assert_int_equal(folder_write(dir, &o, &err), STATUS_OK);
	assert_int_not_equal(access(left, F_OK), 0);
	assert_int_equal(weights_open(&w, dir, &err), STATUS_OK);
	weights_release(&w);
	file_remove_tree(dir);
	assert_int_equal(rmdir(*state), 0); /* nothing is left beside it */
	assert_int_equal(mkdir(*state, 0700), 0);
}

static void test_random_weights__parts_are_the_whole_and_their_spread_is_what_is_said(void **state)
{
	enum { ROWS = 64, COLS = 97 };
	struct named n = {.hf = "model.layers.0.mlp.up_proj.weight", .rows = ROWS, .cols = COLS};
	float whole[ROWS * COLS], part[ROWS * COLS];
	double sum = 0, squares = 0;

	(void)state;
	random_weights(&n, 1, 0, ROWS, whole);
	for (int row = 0; row < ROWS; row += 3)
		random_weights(&n, 1, row, ROWS - row < 3 ? ROWS - row : 3, part + row * COLS);
	assert_memory_equal(whole, part, sizeof(whole));
	for (int i = 0; i < ROWS * COLS; i++) {
		sum += (double)whole[i];
		squares += (double)whole[i] * (double)whole[i];
	}
	assert_true(fabs(sum / (ROWS * COLS)) < 0.001);
	assert_true(fabs(sqrt(squares / (ROWS * COLS)) - 0.02) < 0.0005);
	random_weights(&n, 2, 0, ROWS, part);
	assert_true(memcmp(whole, part, sizeof(whole)));
	n = (struct named){.hf = "model.norm.weight", .rows = 1, .cols = COLS, .vector = true};
	random_weights(&n, 1, 0, 1, part);
	for (int i = 0; i < COLS; i++)
		assert_true(fabsf(part[i] - 1) < 0.04f);
}

/* GGUF of a one-layer model: F32 matrices, of which each row of q begins with its number in the file. */
static void gguf_model(char path[PATH_MAX], const char *scratch, const char *arch, uint32_t q_type)
{
	enum { HIDDEN = 32, HEADS = 2, HEAD = 16, FFN = 64, VOCAB = 8 };
	const struct {
		const char *name;
		uint64_t rows, cols;
	} tensors[] = {{"token_embd.weight", VOCAB, HIDDEN},
		       {"blk.0.attn_norm.weight", 0, HIDDEN},
		       {"blk.0.attn_q.weight", HEADS * HEAD, HIDDEN},
		       {"blk.0.attn_k.weight", HEAD, HIDDEN},
		       {"blk.0.attn_v.weight", HEAD, HIDDEN},
		       {"blk.0.attn_output.weight", HIDDEN, HEADS * HEAD},
		       {"blk.0.ffn_norm.weight", 0, HIDDEN},
		       {"blk.0.ffn_gate.weight", FFN, HIDDEN},
		       {"blk.0.ffn_up.weight", FFN, HIDDEN},
		       {"blk.0.ffn_down.weight", HIDDEN, FFN},
		       {"output_norm.weight", 0, HIDDEN}};
	const size_t count = sizeof(tensors) / sizeof(tensors[0]);
	const struct {
		const char *key;
		uint32_t value;
	} sizes[] = {{"embedding_length", HIDDEN},    {"block_count", 1},
		     {"attention.head_count", HEADS}, {"attention.head_count_kv", 1},
		     {"feed_forward_length", FFN},    {"context_length", 128}};
	struct gguf_bed b;
	uint64_t q = 0;
	char key[64];
	uint8_t *file;
	size_t size;

	bed_begin(&b, 3, count, 2 + sizeof(sizes) / sizeof(sizes[0]));
	bed_string(&b, "general.architecture", arch);
	snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", arch);
	bed_f32(&b, key, 1e-5f);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(key, sizeof(key), "%s.%s", arch, sizes[i].key);
		bed_u32(&b, key, sizes[i].value);
	}
	for (size_t i = 0; i < count; i++) {
		bool is_q = strstr(tensors[i].name, "attn_q");
		uint64_t elements = (tensors[i].rows ? tensors[i].rows : 1) * tensors[i].cols;

		q = is_q ? b.data : q;
		if (is_q && q_type)
			bed_tensor(&b, tensors[i].name, tensors[i].rows, tensors[i].cols, q_type,
				   elements / 32 * 22);
		else
			bed_tensor(&b, tensors[i].name, tensors[i].rows, tensors[i].cols, 0, 4 * elements);
	}
	file = bed_end(&b, &size);
	memset(file + size - b.data, 0, b.data);
	for (int row = 0; row < HEADS * HEAD && !q_type; row++) {
		float number = (float)row;

		memcpy(file + size - b.data + q + (size_t)row * HIDDEN * 4, &number, 4);
	}
	snprintf(path, PATH_MAX, "%s/%s.gguf", scratch, arch);
	assert_int_equal(file_write(path, file, size, NULL), STATUS_OK);
	free(file);
}

static void test_weights__rows_of_q_stand_in_the_model_s_order_whatever_the_file_s(void **state)
{
	char path[PATH_MAX];
	struct error err = {0};
	struct weights w;
	float *q;

	gguf_model(path, *state, "llama", 0);
	if (weights_open(&w, path, &err))
		fail_msg("%s", err.text);
	assert_true(w.shape.tied && w.shape.head_dim == 16 && w.shape.rope_theta == 1e4);
	q = load(&w, "model.layers.0.self_attn.q_proj.weight");
	for (int row = 0; row < 32; row++) { /* of a head's 16 rows, the first half stands at even places */
		int in = row % 16, due = row - in + (in < 8 ? 2 * in : 2 * (in - 8) + 1);

		assert_int_equal((int)q[row * 32], due);
	}
	free(q);
	weights_release(&w);
	gguf_model(path, *state, "qwen2", 0); /* its files keep them in order, but biases are missing here */
	assert_int_equal(weights_open(&w, path, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "blk.0.attn_q.bias is missing"));
	gguf_model(path, *state, "llama", 6);
	err = (struct error){0};
	assert_int_equal(weights_open(&w, path, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "blk.0.attn_q.weight is Q5_0; F32, BF16"));
	gguf_model(path, *state, "gemma", 0);
	err = (struct error){0};
	assert_int_equal(weights_open(&w, path, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "general.architecture \"gemma\" is not supported"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_weights__a_sharded_folder_gives_back_every_number),
		scratch_test(test_weights__a_view_in_another_type_is_filled_and_nothing_beside_it),
		scratch_test(test_weights__what_does_not_fit_the_configuration_is_refused_by_name),
		scratch_test(test_weights__a_number_that_is_none_is_refused_where_it_stands),
		scratch_test(test_weights__rows_of_q_stand_in_the_model_s_order_whatever_the_file_s),
		scratch_test(test_folder__nothing_is_overwritten),
		scratch_test(test_folder__one_that_is_stopped_is_not_there),
		scratch_test(test_folder__what_came_there_meanwhile_stays),
		scratch_test(test_folder__one_that_is_replaced_is_there_until_the_new_one_is),
		cmocka_unit_test(test_random_weights__parts_are_the_whole_and_their_spread_is_what_is_said),
	};

	return cmocka_run_group_tests_name("model_weights", tests, NULL, NULL);
}
