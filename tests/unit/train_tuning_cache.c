/* SPDX-License-Identifier: Apache-2.0 */
/* Choices for other runs: each part of their key, what of a kept text is believed, what is kept, and when others are at
 * work on the card. */
#include "test.h"

#include <stdlib.h>
#include "cmd/train/train.h"
#include "train/tuning/tuning_cache.h"

#define WORDS "00000000000000010000000000000002000000000000000300000000000000040000000000000005000000000000000600000000000000070000000000000008"
#define PRODUCT(name, more) "{\"product\":\"" name "\",\"algorithm\":\"algo66\",\"seconds\":0.001,\"first_seconds\":0.002,\"alike\":false,\"words\":\"" WORDS "\"" more "}"
#define WAY(docs, more) "{\"docs\":" docs ",\"length\":32,\"by_own\":true,\"candidate\":\"\"" more "}"

static struct tuning_cache_key a_key(void)
{
	return (struct tuning_cache_key){.card = "NVIDIA H100 80GB HBM3",
				   .driver = "580.159.04",
				   .mig = "off",
				   .gemm = "cuBLASLt 13.1.1",
				   .attention = "cuDNN 9.14.0",
				   .build = "0123456789abcdef",
				   .shape = "family 1",
				   .power_limit_w = 700,
				   .sms = 132};
}

static void assert_other(const struct tuning_cache_key *k, const char *what)
{
	const struct tuning_cache_key before = a_key();
	char *x = tuning_cache_key_text(&before), *y = tuning_cache_key_text(k);

	assert_non_null(x);
	assert_non_null(y);
	if (!strcmp(x, y))
		fail_msg("another %s has the same key", what);
	free(x);
	free(y);
}

static void each_part_of_the_key_makes_another_one(void **state)
{
	struct tuning_cache_key k = a_key(), same = a_key();
	char *x = tuning_cache_key_text(&k), *y = tuning_cache_key_text(&same);

	(void)state;
	assert_string_equal(x, y);
	assert_null(strchr(x, '\n'));
	free(x);
	free(y);
#define OTHER(field, value)                                                                                  \
	k = a_key();                                                                                         \
	k.field = value;                                                                                     \
	assert_other(&k, #field)
	OTHER(card, "NVIDIA H200");
	OTHER(driver, "580.159.05");
	OTHER(mig, "on");
	OTHER(gemm, "cuBLASLt 13.1.2");
	OTHER(attention, "cuDNN 9.14.1");
	OTHER(build, "0123456789abcde0");
	OTHER(shape, "family 2");
	OTHER(power_limit_w, 699);
	OTHER(sms, 16);
#undef OTHER
}

static void configure(struct config *c, const char *lora, const char *training, const char *data)
{
	struct error err = {0};
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {path: /m}\n%s\ndata: {train: /t, %s}\ntraining: {device: gpu, %s}\n", lora, data,
		 training);
	if (config_parse(c, "t", text, strlen(text), &err))
		fail_msg("%s", err.text);
}

static void shape_text(char out[400], const struct shape *s, const char *lora, const char *training,
		       const char *data)
{
	struct text text = {0};
	struct config c;

	configure(&c, lora, training, data);
	tuning_cache_shape(&text, s, &c);
	snprintf(out, 400, "%s", text_str(&text));
	text_release(&text);
	config_release(&c);
}

static void the_shape_is_model_adapters_and_micro_batch(void **state)
{
	static const char lora[] = "lora: {r: 4, alpha: 8}";
	static const struct {
		const char *model, *lora, *training, *data;
	} others[] = {
		{"tiny-qwen3", lora, "per_device_train_batch_size: 2", "max_seq_length: 128"},
		{"tiny", "lora: {r: 8, alpha: 8}", "per_device_train_batch_size: 2", "max_seq_length: 128"},
		{"tiny", lora, "per_device_train_batch_size: 4", "max_seq_length: 128"},
		{"tiny", lora, "per_device_train_batch_size: 2", "max_seq_length: 256"},
		{"tiny", lora, "per_device_train_batch_size: 2, attention: own", "max_seq_length: 128"},
	};
	char first[400], other[400];
	struct error err = {0};
	struct shape s;

	(void)state;
	assert_int_equal(shape_by_name(&s, "tiny", &err), STATUS_OK);
	shape_text(first, &s, lora, "per_device_train_batch_size: 2", "max_seq_length: 128");
	shape_text(other, &s, lora, "per_device_train_batch_size: 2, learning_rate: 1e-3",
		   "max_seq_length: 128");
	assert_string_equal(first, other);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(shape_by_name(&s, others[i].model, &err), STATUS_OK);
		shape_text(other, &s, others[i].lora, others[i].training, others[i].data);
		assert_string_not_equal(first, other);
	}
}

static void what_no_choice_has_is_not_taken(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"products\":[]}",
		"{\"products\":[],\"attention\":[]",
		"{\"products\":[],\"attention\":[],\"products\":[]}",
		"{\"products\":[1],\"attention\":[]}",
		"{\"products\":[" PRODUCT("", "") "],\"attention\":[]}",
		"{\"products\":[" PRODUCT("a\\nb", "") "],\"attention\":[]}",
		"{\"products\":[{\"product\":\"a\",\"algorithm\":\"b\",\"seconds\":0,\"first_seconds\":0,\"alike\":false,\"words\":\"" WORDS "\"}],\"attention\":[]}",
		"{\"products\":[{\"product\":\"a\",\"algorithm\":\"b\",\"seconds\":-1,\"first_seconds\":0,\"alike\":true,\"words\":\"" WORDS "\"}],\"attention\":[]}",
		"{\"products\":[{\"product\":\"a\",\"algorithm\":\"b\",\"seconds\":1e9,\"first_seconds\":0,\"alike\":true,\"words\":\"" WORDS "\"}],\"attention\":[]}",
		"{\"products\":[{\"product\":\"a\",\"algorithm\":\"b\",\"seconds\":1,\"first_seconds\":0,\"alike\":true,\"words\":\"00\"}],\"attention\":[]}",
		"{\"products\":[{\"product\":\"a\",\"algorithm\":\"b\",\"seconds\":1,\"first_seconds\":0,\"alike\":1,\"words\":\"" WORDS "\"}],\"attention\":[]}",
		"{\"products\":[],\"attention\":[" WAY("-1", "") "]}",
		"{\"products\":[],\"attention\":[" WAY("1e3", "") "]}",
		"{\"products\":[],\"attention\":[" WAY("9999999999", "") "]}",
		"{\"products\":[],\"attention\":[{\"docs\":1,\"length\":1,\"by_own\":1,\"candidate\":\"\"}]}",
	};
	struct error err = {0};
	json_t *good = tuning_cache_parse(
		"{\"products\":[" PRODUCT("a", "") "],\"attention\":[" WAY("2", "") "]}", &err);

	(void)state;
	assert_non_null(good);
	json_decref(good);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct error){0};
		good = tuning_cache_parse(bad[i], &err);
		if (good)
			fail_msg("%s", bad[i]);
		assert_int_equal(err.status, STATUS_BAD_INPUT);
	}
}

static json_t *merge(const char *kept, const char *chosen)
{
	json_t *before = kept ? json_loads(kept, 0, NULL) : NULL, *now = json_loads(chosen, 0, NULL), *out;
	struct error err = {0};
	char *text;

	assert_non_null(now);
	text = tuning_cache_merge(before, now);
	out = text ? tuning_cache_parse(text, &err) : NULL;
	if (text && !out)
		fail_msg("%s", err.text);
	free(text);
	json_decref(before);
	json_decref(now);
	return out;
}

/* Products without a time, and what came from elsewhere, are nothing to keep. */
static void what_was_timed_here_is_kept(void **state)
{
	static const char kept[] =
		"{\"products\":[" PRODUCT("old", ",\"x\":1") "," PRODUCT("both", ",\"x\":1") "],\"attention\":[" WAY("0", "") "]}";
	json_t *out = merge(
		kept, "{\"products\":[" PRODUCT("both", ",\"cached\":false,\"recalled\":false") "," PRODUCT(
			      "mine", "") "," PRODUCT("cached", ",\"cached\":true") "," PRODUCT(
			      "earlier", ",\"recalled\":true") ",{\"product\":\"small\",\"algorithm\":\"x\",\"seconds\":0,\"first_seconds\":0,\"alike\":false,\"words\":\"" WORDS "\"}],\"attention\":[" WAY(
			      "2", "") "," WAY("3", ",\"cached\":true") "]}");
	static const char *const names[] = {"both", "mine", "old"};
	const json_t *products = json_object_get(out, "products");

	(void)state;
	assert_int_equal(json_array_size(products), 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(products, i), "product")), names[i]);
	assert_null(json_object_get(json_array_get(products, 0), "x")); /* chosen anew */
	assert_non_null(json_object_get(json_array_get(products, 2), "x"));
	assert_int_equal(json_array_size(json_object_get(out, "attention")), 2);
	json_decref(out);
	assert_null(merge(kept, "{\"products\":[" PRODUCT("old", ",\"cached\":true") "],\"attention\":[]}"));
	assert_null(merge(NULL, "{\"products\":[],\"attention\":[]}"));
}

/* So many that a kept text is one that may be read. */
static void what_is_kept_has_an_end(void **state)
{
	json_t *now = json_pack("{s:[], s:[]}", "products", "attention"), *out;
	struct error err = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		json_t *one = json_loads(PRODUCT("a", ""), 0, NULL);

		json_object_set_new(one, "product", json_sprintf("product %d", i));
		json_array_append_new(json_object_get(now, "products"), one);
	}
	text = tuning_cache_merge(NULL, now);
	assert_non_null(text);
	assert_true(strlen(text) < 1 << 20);
	out = tuning_cache_parse(text, &err);
	assert_non_null(out);
	assert_int_equal(json_array_size(json_object_get(out, "products")), 1024);
	json_decref(out);
	json_decref(now);
	free(text);
}

static struct gpu a_card(double processes, double used_gib)
{
	struct gpu g = {.pci = "0000:8d:00.0"};

	g.fact[GPU_FACT_processes] = processes;
	g.fact[GPU_FACT_memory_bytes] = 80.0 * (1 << 30);
	g.fact[GPU_FACT_memory_free_bytes] = (80.0 - used_gib) * (1 << 30);
	g.present = (uint64_t)1 << GPU_FACT_processes | (uint64_t)1 << GPU_FACT_memory_bytes |
		    (uint64_t)1 << GPU_FACT_memory_free_bytes;
	return g;
}

static void others_on_the_card_are_seen(void **state)
{
	const double planned = 20.0 * (1 << 30);
	static const struct {
		double before, used_before, now, used_now;
		const char *why; /* NULL: alone */
	} cases[] = {
		{0, 0.5, 1, 20, NULL},
		{0, 0.5, 0, 20, NULL}, /* a container that hides processes */
		{1, 0.5, 2, 20, "1 other process uses it"},
		{0, 3, 1, 20, "of its memory are in use"},
		{0, 0.5, 2, 20, "another process started to use it"},
		{0, 0.5, 0, 30, "more memory is in use than this run needs"},
	};
	struct gpu before, now;
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		before = a_card(cases[i].before, cases[i].used_before);
		now = a_card(cases[i].now, cases[i].used_now);
		assert_int_equal(train_cache_alone(&before, &now, planned, why, sizeof(why)), !cases[i].why);
		if (cases[i].why && !strstr(why, cases[i].why))
			fail_msg("%s", why);
	}
	before = a_card(0, 0.5);
	now = a_card(1, 20);
	before.present = now.present = 0;
	assert_false(train_cache_alone(&before, &now, planned, why, sizeof(why)));
	assert_non_null(strstr(why, "cannot tell whether other processes use it"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_of_the_key_makes_another_one),
		cmocka_unit_test(the_shape_is_model_adapters_and_micro_batch),
		cmocka_unit_test(what_no_choice_has_is_not_taken),
		cmocka_unit_test(what_was_timed_here_is_kept),
		cmocka_unit_test(what_is_kept_has_an_end),
		cmocka_unit_test(others_on_the_card_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
