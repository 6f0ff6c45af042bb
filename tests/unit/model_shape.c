/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include "model/decoder/rope.h"
#include "model/shape/tensor_names.h"
#include "model/shape/shape.h"

static enum status parse(struct shape *s, const char *json, struct error *err)
{
	json_t *j = json_loads(json, JSON_DECODE_ANY, NULL);
	enum status st;

	assert_non_null(j);
	*err = (struct error){0};
	st = shape_of_config(s, j, "dir/config.json", err);
	json_decref(j);
	return st;
}

/* Sizes that published models have; parameters as their tables print them. */
static void test_shape__known_shapes_have_their_published_parameters(void **state)
{
	static const struct {
		const char *name;
		int64_t parameters;
	} known[] = {
		{"qwen2-0.5b", 494032768},    {"qwen2-1.5b", 1543714304},   {"qwen2.5-3b", 3085938688},
		{"qwen2-7b", 7615616512},     {"qwen2.5-14b", 14770033664}, {"qwen2.5-32b", 32763876352},
		{"qwen2-72b", 72706203648},
		{"qwen3-0.6b", 596049920},    {"qwen3-4b", 4022468096},	    {"qwen3-8b", 8190735360},
		{"llama-3.1-8b", 8030261248}, {"smollm2-135m", 134515008},
	};
	struct error err = {0};
	struct shape s;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(shape_by_name(&s, known[i].name, NULL), STATUS_OK);
		assert_int_equal(shape_parameters(&s), known[i].parameters);
	}
	assert_int_equal(shape_by_name(&s, "qwen3-7b", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "did you mean \"qwen"));
}

static void test_shape__every_known_shape_survives_its_own_config(void **state)
{
	(void)state;
	for (int i = 0; shape_names[i]; i++) {
		struct shape s, back;
		struct error err = {0};
		json_t *config;

		assert_int_equal(shape_by_name(&s, shape_names[i], NULL), STATUS_OK);
		assert_int_equal(shape_check(&s, "x", &err), STATUS_OK);
		config = shape_config(&s, DTYPE_BF16);
		assert_non_null(config);
		assert_int_equal(shape_of_config(&back, config, "x", &err), STATUS_OK);
		assert_memory_equal(&back.hidden, &s.hidden, 8 * sizeof(int64_t));
		assert_true(back.family == s.family && back.tied == s.tied && back.qkv_bias == s.qkv_bias &&
			    back.qk_norm == s.qk_norm && back.norm_eps == s.norm_eps &&
			    back.rope_theta == s.rope_theta && back.rope.llama3 == s.rope.llama3 &&
			    back.rope.factor == s.rope.factor && back.rope.context == s.rope.context);
		json_decref(config);
	}
}

#define QWEN2                                                                                                \
	"\"model_type\":\"qwen2\",\"hidden_size\":96,\"num_hidden_layers\":2,\"num_attention_heads\":6,"     \
	"\"num_key_value_heads\":2,\"intermediate_size\":160,\"vocab_size\":320,\"max_position_"             \
	"embeddings\":4096"

static void test_shape__old_and_new_words_mean_the_same(void **state)
{
	static const char *const words[] = {
		"{" QWEN2 ",\"rope_theta\":1000000.0,\"rms_norm_eps\":1e-05,\"torch_dtype\":\"bfloat16\","
		"\"rope_scaling\":null,\"sliding_window\":4096,\"use_sliding_window\":false}",
		"{" QWEN2 ",\"rope_parameters\":{\"rope_theta\":1000000,\"rope_type\":\"default\"},"
		"\"rms_norm_eps\":1e-05,\"dtype\":\"bfloat16\",\"head_dim\":null,"
		"\"layer_types\":[\"full_attention\",\"full_attention\"]}",
	};
	struct error err;
	struct shape s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(parse(&s, words[i], &err), STATUS_OK);
		assert_int_equal(s.family, FAMILY_QWEN2);
		assert_true(s.qkv_bias && !s.qk_norm && !s.tied && !s.rope.llama3);
		assert_int_equal(s.head_dim, 16);
		assert_true(s.rope_theta == 1e6 && s.norm_eps == 1e-5);
	}
	assert_int_equal(parse(&s,
			       "{" QWEN2 ",\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"llama3\","
			       "\"factor\":32,\"low_freq_factor\":1,\"high_freq_factor\":4.0,"
			       "\"original_max_position_embeddings\":8192}}",
			       &err),
			 STATUS_OK);
	assert_int_equal(s.family, FAMILY_LLAMA);
	assert_true(s.rope.llama3 && s.rope.factor == 32 && s.rope.context == 8192 && s.rope_theta == 1e4);
	assert_int_equal(parse(&s, "{" QWEN2 ",\"model_type\":\"qwen3\"}", &err), STATUS_OK);
	assert_int_equal(s.head_dim, 128); /* its own default */
	assert_true(s.qk_norm && !s.qkv_bias);
}

/* Frequencies and factor of attention as transformers computes them, at whole and at real ends of the ramp. */
static void test_shape__yarn_scales_as_in_transformers(void **state)
{
	static const struct {
		const char *scaling;
		int64_t head_dim;
		double theta, attention;
		struct {
			int64_t at;
			double frequency;
		} some[6];
	} cases[] = {
		{"{\"rope_type\":\"yarn\",\"factor\":42.75,\"original_max_position_embeddings\":8192}",
		 128,
		 500000,
		 1.37553692,
		 {{0, 1}, {17, 0.0306345209}, {18, 0.0249554087}, {25, 0.00355176794}, {30, 0.000661988628}, {63, 5.74301939e-08}}},
		{"{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":2048,\"truncate\":false}",
		 64,
		 10000,
		 1.13862944,
		 {{0, 1}, {8, 0.1}, {9, 0.0706175538}, {15, 0.00757417909}, {20, 0.000811290382}, {31, 3.33380358e-05}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mat table = {.rows = 2, .cols = cases[i].head_dim, .ld = cases[i].head_dim, .dtype = DTYPE_F64};
		struct error err = {0};
		struct shape s, again;
		json_t *config;
		char text[600];
		double *x;

		snprintf(text, sizeof(text),
			 "{" QWEN2 ",\"model_type\":\"llama\",\"head_dim\":%d,\"rope_theta\":%g,\"rope_scaling\":%s}",
			 (int)cases[i].head_dim, cases[i].theta, cases[i].scaling);
		assert_int_equal(parse(&s, text, &err), STATUS_OK);
		assert_true(fabs(s.rope.attention / cases[i].attention - 1) < 1e-8);
		table.data = x = malloc((size_t)table.rows * (size_t)table.cols * sizeof(*x));
		rope_table(&s, table);
		for (int k = 0; k < 6; k++) { /* of position 1 */
			const double c = x[table.ld + cases[i].some[k].at],
				     sine = x[table.ld + table.cols / 2 + cases[i].some[k].at];

			assert_true(fabs(atan2(sine, c) / cases[i].some[k].frequency - 1) < 1e-6);
			assert_true(fabs(hypot(sine, c) / cases[i].attention - 1) < 1e-8);
		}
		free(x);
		config = shape_config(&s, DTYPE_BF16);
		assert_int_equal(shape_of_config(&again, config, "again", &err), STATUS_OK);
		assert_true(again.rope.yarn && again.rope.factor == s.rope.factor && again.rope.low == s.rope.low &&
			    again.rope.high == s.rope.high && again.rope.attention == s.rope.attention &&
			    again.rope.smooth == s.rope.smooth && again.rope.context == s.rope.context);
		json_decref(config);
	}
}

static void test_shape__what_is_not_done_is_refused_by_name(void **state)
{
	static const struct {
		const char *rest, *why;
	} cases[] = {
		{",\"model_type\":\"gemma2\"",
		 "model_type gemma2 is not supported; llama, qwen2 and qwen3 are"},
		{",\"model_type\":null", "model_type is missing"},
		{",\"hidden_size\":null", "hidden_size is missing"},
		{",\"hidden_size\":96.5", "hidden_size is not a positive integer"},
		{",\"hidden_size\":-96", "hidden_size is not a positive integer"},
		{",\"hidden_size\":4611686018427387904", "the hidden size is 4611686018427387904"},
		{",\"vocab_size\":99999999", "the vocabulary size is"},
		{",\"num_key_value_heads\":4", "6 heads cannot be divided evenly among 4 KV heads"},
		{",\"num_key_value_heads\":12", "the number of KV heads is 12"},
		{",\"head_dim\":15", "an even head size, not 15"},
		{",\"rms_norm_eps\":0", "the norm's epsilon is 0"},
		{",\"rms_norm_eps\":\"1e-6\"", "rms_norm_eps is not a number"},
		{",\"rope_theta\":0", "RoPE's base is 0"},
		{",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}",
		 "rope_scaling has the unsupported type dynamic; without it "
		 "the model supports only 4096 positions"},
		{",\"rope_scaling\":{\"type\":\"yarn\"}", "RoPE scaling is inconsistent: factor 0"},
		{",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"attention_factor\":-1}",
		 "RoPE scaling has an attention_factor of -1"},
		{",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_fast\":1,\"beta_slow\":32}",
		 "RoPE scaling is inconsistent: factor 4, low 32, high 1"},
		{",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}", "RoPE scaling is inconsistent"},
		{",\"rope_scaling\":8", "rope_scaling is not an object"},
		{",\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2}",
		 "has the unsupported type linear"},
		{",\"hidden_act\":\"gelu\"", "hidden_act gelu is not supported"},
		{",\"use_sliding_window\":true", "use_sliding_window is true"},
		{",\"mlp_bias\":true", "mlp_bias is true"},
		{",\"model_type\":\"llama\",\"attention_bias\":true", "attention_bias is true"},
		{",\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
		 "layer_types has sliding_attention"},
		{",\"partial_rotary_factor\":0.5", "partial_rotary_factor 0.5"},
		{",\"quantization_config\":{\"bits\":4}", "quantized checkpoints are not supported"},
		{",\"quantization_config\":[]", "quantization_config is not an object"},
		{",\"quantization_config\":{\"quant_method\":\"gptq\"}",
		 "quantized checkpoints are not supported with quant_method gptq"},
		{",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}",
		 "LLM.int8 of bitsandbytes is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"bnb_4bit_quant_type\":\"af4\"}",
		 "bnb_4bit_quant_type af4 is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[64,128]}",
		 "weight_block_size: blocks of 64 x 128 are not supported"},
		{",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":128}",
		 "weight_block_size is not a list of two numbers"},
		{",\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}",
		 "fmt e5m2 is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"}",
		 "activation_scheme static is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\"}",
		 "format pack-quantized is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\"}",
		 "config_groups is not an object with a group"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"kv_cache_scheme\":{}}",
		 "kv_cache_scheme is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"g\":8}}",
		 "group g has no weights"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"type\":\"int\"}}}}",
		 "weights of type int with 8 bits are not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\",\"block_structure\":[32,32]}}}}",
		 "block_structure: blocks of 32 x 32 are not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"group\"}}}}",
		 "strategy group of weights is not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"tensor\",\"symmetric\":false}}}}",
		 "weights with a zero point are not supported"},
		{",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"tensor\"},\"output_activations\":{}}}}",
		 "quantized outputs are not supported"},
		{",\"tie_word_embeddings\":1", "tie_word_embeddings is neither true nor false"},
	};
	struct error err;
	struct shape s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char json[1024];

		snprintf(json, sizeof(json), "{" QWEN2 "%s}", cases[i].rest);
		if (!parse(&s, json, &err) || !strstr(err.text, cases[i].why) ||
		    strncmp(err.text, "dir/config.json: ", 17))
			fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].rest, err.text, cases[i].why);
	}
	assert_int_equal(parse(&s, "[]", &err), STATUS_BAD_INPUT);
}

static void test_names__every_tensor_is_found_by_its_name_and_no_other(void **state)
{
	(void)state;
	for (int i = 0; shape_names[i]; i++) {
		struct named n, back;
		struct shape s;
		size_t count;

		shape_by_name(&s, shape_names[i], NULL);
		count = names_count(&s);
		for (size_t k = 0; k < count; k++) {
			names_at(&n, &s, k);
			assert_true(names_find(&back, &s, n.hf));
			assert_string_equal(back.gguf, n.gguf);
			assert_true(back.rows == n.rows && back.cols == n.cols && back.layer == n.layer);
		}
		assert_int_equal(names_find(&back, &s, "lm_head.weight"), !s.tied);
		assert_int_equal(names_find(&back, &s, "model.layers.0.self_attn.q_proj.bias"), s.qkv_bias);
		assert_int_equal(names_find(&back, &s, "model.layers.0.self_attn.q_norm.weight"), s.qk_norm);
	}
	static const char *const others[] = {"model.layers.2.input_layernorm.weight",
					     "model.layers.-1.input_layernorm.weight",
					     "model.layers.00.input_layernorm.weight",
					     "model.layers.",
					     "model.layers.0.",
					     "model.layers.99999999999999999999.input_layernorm.weight",
					     "",
					     "input_layernorm.weight"};
	struct named n;
	struct shape s;

	shape_by_name(&s, "tiny", NULL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(names_find(&n, &s, others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shape__known_shapes_have_their_published_parameters),
		cmocka_unit_test(test_shape__every_known_shape_survives_its_own_config),
		cmocka_unit_test(test_shape__old_and_new_words_mean_the_same),
		cmocka_unit_test(test_shape__yarn_scales_as_in_transformers),
		cmocka_unit_test(test_shape__what_is_not_done_is_refused_by_name),
		cmocka_unit_test(test_names__every_tensor_is_found_by_its_name_and_no_other),
	};

	return cmocka_run_group_tests_name("model_shape", tests, NULL, NULL);
}
