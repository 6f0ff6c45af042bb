/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"
#include "test.h"

#include <math.h>

#include "core/file/file.h"
#include "core/math/random.h"
#include "core/json/file.h"
#include "model/files/peft/names.h"
#include "model/files/peft/pattern.h"

enum { SLOTS_MAX = 64 };

/* An adapter in memory: every matrix that the configuration asks for, at random. */
struct bed {
	struct shape shape;
	struct peft_config config;
	struct peft_place place[SLOTS_MAX];
	struct peft_slot slot[SLOTS_MAX];
	size_t count;
};

static void bed_open(struct bed *b, const char *shape, unsigned targets, unsigned save)
{
	*b = (struct bed){
		.config = {.rank = 3, .alpha = 7, .dropout = 0.05, .targets = targets, .save = save}};
	snprintf(b->config.base, sizeof(b->config.base), "a/model");
	assert_int_equal(shape_by_name(&b->shape, shape, NULL), STATUS_OK);
	b->count = peft_names_count(&b->shape, &b->config);
	assert_in_range(b->count, 1, SLOTS_MAX);
	for (size_t i = 0; i < b->count; i++) {
		struct peft_place *at = &b->place[i];
		struct mat *m = &b->slot[i].mat;

		peft_names_at(at, &b->shape, &b->config, i);
		b->slot[i].name = at->base.hf;
		b->slot[i].part = at->part;
		m->rows = at->part == PEFT_A ? 3 : at->base.rows;
		m->cols = at->part == PEFT_B ? 3 : at->base.cols;
		m->ld = m->cols + 1; /* a view: rows do not touch */
		m->data = calloc((size_t)(m->rows * m->ld), sizeof(float));
		random_fill_f32(m->data, (size_t)(m->rows * m->ld), 1, (uint32_t)i, 0);
	}
}

static void bed_close(struct bed *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->slot[i].mat.data);
}

static const unsigned all = (1u << PEFT_TARGET_COUNT) - 1;

static void test_peft__what_is_written_is_loaded_back(void **state)
{
	struct error err = {0};
	struct bed b, back;
	struct peft p;

	bed_open(&b, "tiny-llama", all, PEFT_SAVE_HEAD);
	bed_open(&back, "tiny-llama", all, PEFT_SAVE_HEAD);
	b.config.rslora = true;
	assert_int_equal(peft_write(*state, &b.config, &b.shape, b.slot, b.count, &err), STATUS_OK);
	assert_int_equal(peft_open(&p, *state, &b.shape, &err), STATUS_OK);
	assert_int_equal(p.config.rank, 3);
	assert_true(p.config.alpha == 7 && p.config.dropout == 0.05 && p.config.rslora);
	assert_true(fabs(peft_scale(&p.config) - 7 / sqrt(3)) < 1e-12);
	assert_string_equal(p.config.base, "a/model");
	assert_int_equal(p.config.targets, all);
	assert_int_equal(p.config.save, PEFT_SAVE_HEAD);
	for (size_t i = 0; i < back.count; i++)
		memset(back.slot[i].mat.data, 0, sizeof(float) * (size_t)back.slot[i].mat.rows);
	assert_int_equal(peft_load(&p, back.slot, back.count, &err), STATUS_OK);
	for (size_t i = 0; i < b.count; i++) {
		const struct mat *m = &b.slot[i].mat;

		for (int64_t row = 0; row < m->rows; row++)
			assert_memory_equal((float *)m->data + row * m->ld,
					    (float *)back.slot[i].mat.data + row * m->ld,
					    sizeof(float) * (size_t)m->cols);
	}
	assert_int_equal(peft_load(&p, back.slot, back.count - 1, &err), STATUS_BAD_INPUT);
	peft_release(&p);
	bed_close(&b);
	bed_close(&back);
}

/* What PEFT and vLLM look for; another prefix is what they pass over in silence. */
static void test_peft__names_are_those_that_peft_and_vllm_look_for(void **state)
{
	struct peft_place at;
	struct shape s;
	char name[PEFT_NAME_SIZE];

	(void)state;
	shape_by_name(&s, "tiny", NULL);
	assert_true(peft_place_of(&at, &s, "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight"));
	assert_string_equal(at.base.hf, "model.layers.1.self_attn.q_proj.weight");
	assert_int_equal(at.part, PEFT_B);
	peft_name(name, &at);
	assert_string_equal(name, "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight");
	assert_true(peft_place_of(&at, &s, "base_model.model.lm_head.weight"));
	assert_int_equal(at.save_bit, PEFT_SAVE_HEAD);
	static const char *const others[] = {
		"model.layers.1.self_attn.q_proj.lora_B.weight",
		"base_model.model.model.layers.2.self_attn.q_proj.lora_B.weight",
		"base_model.model.model.layers.01.self_attn.q_proj.lora_B.weight",
		"base_model.model.model.layers.1.self_attn.q_proj.lora_B.default.weight",
		"base_model.model.model.layers.1.self_attn.q_proj.weight",
		"base_model.model.model.layers.1.input_layernorm.lora_A.weight",
		"base_model.model.model.layers.1.self_attn.q_proj.bias",
		"base_model.model.lm_head.lora_A.weight",
		"base_model.model.",
		"",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(peft_place_of(&at, &s, others[i]));
}

/*
 * vLLM (vllm/lora/utils.py, parse_fine_tuned_lora_name): behind "base_model.model." a module, then
 * ".lora_A.weight" or
 * ".lora_B.weight"; every other ending is an error there. NULL: such a name. `module`: room for the module.
 */
static const char *vllm_module(char module[PEFT_NAME_SIZE], const char *name, bool *is_a)
{
	static const char before[] = "base_model.model.", a[] = ".lora_A.weight", b[] = ".lora_B.weight";
	size_t size = strlen(name);

	if (strncmp(name, before, sizeof(before) - 1) || size < sizeof(before) + sizeof(a))
		return NULL;
	*is_a = !strcmp(name + size - sizeof(a) + 1, a);
	if (!*is_a && strcmp(name + size - sizeof(b) + 1, b))
		return NULL;
	snprintf(module, PEFT_NAME_SIZE, "%.*s", (int)(size - sizeof(a) - sizeof(before) + 2),
		 name + sizeof(before) - 1);
	return module;
}

/* The linear maps of its Llama, Qwen2 and Qwen3 classes by the names that it takes apart
 * (packed_modules_mapping). */
static void test_peft__vllm_finds_a_module_of_its_own_in_every_name(void **state)
{
	static const char *const maps[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
					   "self_attn.o_proj", "mlp.gate_proj",	   "mlp.up_proj",
					   "mlp.down_proj"};
	static const char *const shapes[] = {"tiny", "tiny-qwen3", "tiny-llama"};

	(void)state;
	for (size_t s = 0; s < 3; s++) {
		unsigned seen[2][7] = {{0}};
		struct bed b;

		bed_open(&b, shapes[s], all, PEFT_SAVE_HEAD | PEFT_SAVE_EMBED);
		for (size_t i = 0; i < b.count; i++) {
			char name[PEFT_NAME_SIZE], module[PEFT_NAME_SIZE], due[PEFT_NAME_SIZE];
			bool is_a;

			peft_name(name, &b.place[i]);
			if (b.place[i].part ==
			    PEFT_WHOLE) { /* vLLM loads none: such adapters are merged first */
				assert_null(vllm_module(module, name, &is_a));
				continue;
			}
			assert_non_null(vllm_module(module, name, &is_a));
			assert_int_equal(is_a, b.place[i].part == PEFT_A);
			for (int64_t layer = 0; layer < b.shape.layers; layer++)
				for (int m = 0; m < 7; m++) {
					snprintf(due, sizeof(due), "model.layers.%d.%s", (int)layer, maps[m]);
					seen[is_a][m] += !strcmp(module, due);
				}
		}
		for (int m = 0; m < 7; m++)
			assert_true(seen[0][m] == b.shape.layers && seen[1][m] == b.shape.layers);
		bed_close(&b);
	}
}

static void test_peft__an_adapter_that_does_nothing_is_not_written(void **state)
{
	struct error err = {0};
	char path[PATH_MAX];
	struct bed b;

	bed_open(&b, "tiny", 1u << PEFT_Q | 1u << PEFT_V, 0);
	for (size_t i = 0; i < b.count; i++) {
		struct mat *m = &b.slot[i].mat;

		assert_false(peft_slots_do_nothing(b.slot, b.count)); /* as long as one B does something */
		if (b.slot[i].part == PEFT_B)
			memset(m->data, 0, sizeof(float) * (size_t)(m->rows * m->ld));
	}
	assert_int_equal(peft_write(*state, &b.config, &b.shape, b.slot, b.count, &err), STATUS_MISMATCH);
	assert_non_null(strstr(err.text, "every lora_B is still zero"));
	((float *)b.slot[3].mat.data)[4] = NAN;
	err = (struct error){0};
	assert_int_equal(peft_write(*state, &b.config, &b.shape, b.slot, b.count, &err), STATUS_MISMATCH);
	assert_non_null(strstr(err.text, "NaN"));
	snprintf(path, sizeof(path), "%s/" PEFT_WEIGHTS, (char *)*state);
	assert_int_equal(access(path, F_OK), -1);
	err = (struct error){0};
	assert_int_equal(peft_write(*state, &b.config, &b.shape, b.slot, b.count - 1, &err), STATUS_BUG);
	bed_close(&b);
}

static void test_peft__an_adapter_of_another_model_is_refused(void **state)
{
	static const struct {
		const char *shape;
		int64_t layers, ffn;
		const char *why;
	} others[] = {
		{"tiny", 3, 160, "layers.2.self_attn.q_proj.lora_A.weight is missing"},
		{"tiny", 1, 160, "layers.1.self_attn.q_proj.lora_A.weight does not fit this model"},
		{"tiny", 2, 176,
		 "layers.0.mlp.down_proj.lora_A.weight is 3 x 160; rank 3 and this model make it 3 x 176"},
		{"tiny", 2, 160, NULL},
	};
	struct error err = {0};
	struct bed b;

	bed_open(&b, "tiny", 1u << PEFT_Q | 1u << PEFT_DOWN, 0);
	assert_int_equal(peft_write(*state, &b.config, &b.shape, b.slot, b.count, &err), STATUS_OK);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct shape s;
		struct peft p;

		shape_by_name(&s, others[i].shape, NULL);
		s.layers = others[i].layers;
		s.ffn = others[i].ffn;
		err = (struct error){0};
		if (!peft_open(&p, *state, &s, &err))
			peft_release(&p);
		if (others[i].why ? !strstr(err.text, others[i].why) : err.status != STATUS_OK)
			fail_msg("\"%s\" lacks \"%s\"", err.text, others[i].why ? others[i].why : "");
	}
	bed_close(&b);
}

static void test_peft__what_a_configuration_asks_for_is_done_or_refused(void **state)
{
	static const struct {
		const char *json, *why; /* NULL: taken */
	} cases[] = {
		{"{\"peft_type\":\"LORA\"}", NULL},
		{"{\"peft_type\":\"LORA\",\"r\":16,\"lora_alpha\":32.5,\"unheard_of\":[1],\"rank_pattern\":{}"
		 ","
		 "\"target_modules\":\"all-linear\",\"modules_to_save\":null,\"use_dora\":false}",
		 NULL},
		{"{\"peft_type\":\"LORA\",\"target_modules\":[\"self_attn.q_proj\",\"up_proj\"]}", NULL},
		{"{}", "peft_type is missing"},
		{"[]", "peft_type is missing"},
		{"{\"peft_type\":\"LOHA\"}", "peft_type is LOHA; only LORA is supported"},
		{"{\"peft_type\":\"LORA\",\"r\":0}", "r is 0"},
		{"{\"peft_type\":\"LORA\",\"r\":1.5}", "r is 1.5"},
		{"{\"peft_type\":\"LORA\",\"r\":\"8\"}", "r is not a number"},
		{"{\"peft_type\":\"LORA\",\"lora_alpha\":0}", "lora_alpha 0"},
		{"{\"peft_type\":\"LORA\",\"lora_dropout\":1}", "lora_dropout 1"},
		{"{\"peft_type\":\"LORA\",\"rank_pattern\":{\"q_proj\":4},\"alpha_pattern\":{\"q_proj\":4}}", NULL},
		{"{\"peft_type\":\"LORA\",\"layers_to_transform\":[0]}", "layers_to_transform is not empty"},
		{"{\"peft_type\":\"LORA\",\"layers_to_transform\":0}", "layers_to_transform is not empty"},
		{"{\"peft_type\":\"LORA\",\"use_dora\":true}", NULL},
		{"{\"peft_type\":\"LORA\",\"bias\":\"all\"}", "bias is not \"none\""},
		{"{\"peft_type\":\"LORA\",\"init_lora_weights\":\"pissa_niter_4\"}",
		 "changes the base model"},
		{"{\"peft_type\":\"LORA\",\"target_modules\":[\"c_attn\"]}", "target_modules has c_attn"},
		{"{\"peft_type\":\"LORA\",\"target_modules\":[7]}", "target_modules has an item that is not a text"},
		{"{\"peft_type\":\"LORA\",\"modules_to_save\":[\"norm\"]}", "modules_to_save has norm"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j = json_loads(cases[i].json, 0, NULL);
		struct error err = {0};
		struct peft_config c;

		peft_config_parse(&c, j, "dir/adapter_config.json", &err);
		if (cases[i].why ? !strstr(err.text, cases[i].why) || strncmp(err.text, "dir/adapter_", 12)
				 : err.status != STATUS_OK)
			fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].json, err.text,
				 cases[i].why ? cases[i].why : "");
		json_decref(j);
	}
}

/* What PEFT's get_pattern_key gives: the first pattern that matches the name's end, from a dot on. */
static void test_peft__patterns_match_as_in_peft(void **state)
{
	static const char name[] = "model.layers.12.self_attn.q_proj";
	static const struct {
		const char *map;
		double due; /* 1: none matches */
	} cases[] = {
		{"{}", 1},
		{"{\"q_proj\":4}", 4},
		{"{\"_proj\":4}", 1},
		{"{\"self_attn\":4}", 1},
		{"{\"self_attn.q_proj\":4,\"q_proj\":5}", 4},
		{"{\"v_proj\":4,\"q_proj\":5}", 5},
		{"{\"model.layers.12.self_attn.q_proj\":4}", 4},
		{"{\"^model.layers.12.self_attn.q_proj\":4}", 4},
		{"{\"^layers.12.self_attn.q_proj\":4}", 1},
		{"{\"layers.2.self_attn.q_proj\":4}", 1},
		{"{\"layers\\\\.(1|12)\\\\..*\":4}", 4},
		{"{\"layers\\\\.\\\\d+\\\\.self_attn\\\\.[kq]_proj\":4}", 4},
		{"{\".*\":4}", 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *j = json_pack("{s:o}", "rank_pattern", json_loads(cases[i].map, 0, NULL));
		struct error err = {0};
		const struct json_keys r = {j, "config", &err};
		struct peft_patterns *p = NULL;

		assert_int_equal(peft_patterns_read(&p, &r, "rank_pattern"), STATUS_OK);
		if (peft_patterns_find(p, name, 1) != cases[i].due)
			fail_msg("%s gives %g", cases[i].map, peft_patterns_find(p, name, 1));
		peft_patterns_free(&p);
		json_decref(j);
	}
}

static void test_peft__patterns_that_posix_reads_differently_are_refused(void **state)
{
	static const char *const maps[] = {
		"{\"q{2}\":4}",      "{\"(?:q)\":4}", "{\"\\\\w\":4}", "{\"[\\\\d]\":4}", "{\"[[:digit:]]\":4}",
		"{\"(q)\\\\1\":4}", "{\"(\":4}",     "{\"q\\\\\":4}", "{\"q\\n\":4}",    "{\"q\":0}",
		"{\"q\":\"4\"}",
		"{\"(((((((((q+)+)+)+)+)+)+)+)+)\":4}",     "[1]",           "3"};

	(void)state;
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		json_t *j = json_pack("{s:o}", "rank_pattern", json_loads(maps[i], JSON_DECODE_ANY, NULL));
		struct error err = {0};
		const struct json_keys r = {j, "config", &err};
		struct peft_patterns *p = NULL;

		assert_non_null(j);
		if (!peft_patterns_read(&p, &r, "rank_pattern") || strncmp(err.text, "config: rank_pattern ", 21))
			fail_msg("%s: \"%s\"", maps[i], err.text);
		assert_null(p);
		json_decref(j);
	}
}

static void test_peft__files_that_contradict_their_configuration_are_refused(void **state)
{
	static const struct {
		const char *key, *value, *why;
	} lies[] = {
		{"r", "4", "rank 4 and this model make it 4 x 96"},
		{"target_modules", "[\"q_proj\"]", "v_proj is in the file, but not listed in target_modules"},
		{"target_modules", "[\"q_proj\",\"v_proj\",\"o_proj\"]",
		 "o_proj is listed in target_modules, but not in the file"},
		{"rank_pattern", "{\"v_proj\":2}", "v_proj.lora_"},
		{"rank_pattern", "{\"v_proj\":2.5}", "rank_pattern gives model.layers.0.self_attn.v_proj the rank 2.5"},
		{"use_dora", "true", "use_dora is true, but "},
		{"modules_to_save", "[\"lm_head\"]", "modules_to_save does not list the whole modules in the file"},
	};
	struct error err = {0};
	char path[PATH_MAX];
	struct bed b;

	bed_open(&b, "tiny", 1u << PEFT_Q | 1u << PEFT_V, 0);
	assert_int_equal(peft_write(*state, &b.config, &b.shape, b.slot, b.count, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/" PEFT_CONFIG, (char *)*state);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		json_t *config = peft_config_json(&b.config);
		struct peft p;

		json_object_set_new(config, lies[i].key, json_loads(lies[i].value, JSON_DECODE_ANY, NULL));
		assert_int_equal(json_file_write(*state, PEFT_CONFIG, config, 0, NULL), STATUS_OK);
		err = (struct error){0};
		assert_int_equal(peft_open(&p, *state, &b.shape, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, lies[i].why))
			fail_msg("\"%s\" lacks \"%s\"", err.text, lies[i].why);
	}
	assert_int_equal(unlink(path), 0);
	err = (struct error){0};
	struct peft p;
	assert_int_equal(peft_open(&p, *state, &b.shape, &err), STATUS_UNAVAILABLE);
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_peft__what_is_written_is_loaded_back),
		cmocka_unit_test(test_peft__names_are_those_that_peft_and_vllm_look_for),
		scratch_test(test_peft__vllm_finds_a_module_of_its_own_in_every_name),
		scratch_test(test_peft__an_adapter_that_does_nothing_is_not_written),
		scratch_test(test_peft__an_adapter_of_another_model_is_refused),
		cmocka_unit_test(test_peft__what_a_configuration_asks_for_is_done_or_refused),
		cmocka_unit_test(test_peft__patterns_match_as_in_peft),
		cmocka_unit_test(test_peft__patterns_that_posix_reads_differently_are_refused),
		scratch_test(test_peft__files_that_contradict_their_configuration_are_refused),
	};

	return cmocka_run_group_tests_name("model_peft", tests, NULL, NULL);
}
