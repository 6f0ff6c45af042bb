/* SPDX-License-Identifier: Apache-2.0 */
/* The text side of a model: its own Jinja template, its defaults, the form of its calls, and where thoughts
 * begin. */
#include "scratch.h"

#include <float.h>
#include <math.h>

#include "core/file/file.h"
#include "serve_bed.h"

static const char thinking[] =
	"{%- for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{%- endfor %}"
	"{%- if add_generation_prompt %}<|im_start|>assistant\\n"
	"{%- if enable_thinking is defined and enable_thinking is false %}<think>\\n\\n</think>\\n\\n{%- endif %}{%- endif %}";

static void write_model(const char *folder, const char *config, const char *generation)
{
	char path[512], *tokenizer;
	struct error err = {0};
	size_t size;

	assert_int_equal(
		file_read(&tokenizer, &size, SOURCE_DIR "/tests/data/tokenizer/qwen.json", 1 << 20, &err),
		STATUS_OK);
	snprintf(path, sizeof(path), "%s/tokenizer.json", folder);
	assert_int_equal(file_write(path, tokenizer, size, &err), STATUS_OK);
	free(tokenizer);
	snprintf(path, sizeof(path), "%s/tokenizer_config.json", folder);
	assert_int_equal(file_write(path, config, strlen(config), &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/generation_config.json", folder);
	assert_int_equal(file_write(path, generation, strlen(generation), &err), STATUS_OK);
}

static void test_prompt__the_models_own_template(void **state)
{
	struct serve_bed own = {0}, bed;
	struct request *r;
	struct error err = {0};
	char config[1024];
	size_t count;

	snprintf(config, sizeof(config), "{\"eos_token\":\"<|im_end|>\",\"chat_template\":\"%s\"}", thinking);
	write_model(*state, config,
		    "{\"temperature\":0.5,\"top_k\":20,\"top_p\":0.25,\"eos_token_id\":[5,6]}");
	serve_bed_open(&bed, "qwen2.5");
	if (prompter_open(&own.prompter, *state, NULL, &err) ||
	    prompter_worker_create(&own.worker, own.prompter, &err))
		fail_msg("%s", err.text);
	own.rules = bed.rules;
	own.rules.prompter = own.prompter;
	prompter_ends(own.prompter, &count);
	assert_int_equal(count, 3);
	r = serve_bed_good(
		&own, PROTOCOL_CHAT,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"response_format\":{\"type\":\"json_object\"}}");
	assert_true(r->engine.sampling.temperature == 0.5f && r->engine.sampling.top_k == 20 &&
		    r->engine.sampling.top_p == 0.25f);
	assert_true(r->think && !r->think_open);
	/* an answer may begin with a thought, and the grammar comes after it */
	assert_string_equal(r->grammar,
			    "{\"opening\":\"<think>\",\"after\":\"</think>\",\"type\":\"json_object\"}");
	request_destroy(&r);
	r = serve_bed_good(
		&own, PROTOCOL_CHAT,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"response_format\":{\"type\":\"json_object\"},"
		"\"chat_template_kwargs\":{\"enable_thinking\":false}}");
	assert_string_equal(r->grammar, "{\"type\":\"json_object\"}");
	request_destroy(&r);
	serve_bed_close(&own);
	serve_bed_close(&bed);
}

static void test_prompt__an_open_thought(void **state)
{
	struct serve_bed own = {0}, bed;
	struct request *r;
	struct error err = {0};

	write_model(*state, "{\"chat_template\":\"{{ messages[0].content }}<think>\\n\"}", "{}");
	serve_bed_open(&bed, "qwen2.5");
	assert_int_equal(prompter_open(&own.prompter, *state, NULL, &err), STATUS_OK);
	assert_int_equal(prompter_worker_create(&own.worker, own.prompter, &err), STATUS_OK);
	own.rules = bed.rules;
	own.rules.prompter = own.prompter;
	assert_true(isnan(prompter_defaults(own.prompter)->temperature));
	r = serve_bed_good(&own, PROTOCOL_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}");
	assert_true(r->think_open);
	request_destroy(&r);
	r = serve_bed_good(
		&own, PROTOCOL_CHAT,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"response_format\":{\"type\":\"json_object\"}}");
	assert_string_equal(r->grammar, "{\"after\":\"</think>\",\"type\":\"json_object\"}");
	request_destroy(&r);
	serve_bed_close(&own);
	serve_bed_close(&bed);
}

static struct request *ask(struct serve_bed *bed, enum protocol protocol, const char *more)
{
	char body[256];

	snprintf(body, sizeof(body), "{%s%s%s}",
		 protocol == PROTOCOL_CHAT ? "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
					   : "\"prompt\":\"hi\"",
		 *more ? "," : "", more);
	return serve_bed_good(bed, protocol, body);
}

/* What a request does not give is the model's: whether it samples, and how long its answers are. */
static void test_prompt__the_models_defaults(void **state)
{
	static const struct {
		const char *generation, *more;
		float temperature, top_p;
		int32_t top_k;
		int64_t chat, completion;
	} cases[] = {
		{"{\"do_sample\":false,\"temperature\":0.6,\"top_p\":0.5,\"top_k\":9}", "", 0, 1, 0, 0, 16},
		{"{\"do_sample\":false,\"top_p\":0.5}", "\"temperature\":0.5", 0.5f, 1, 0, 0, 16},
		{"{\"do_sample\":true,\"temperature\":0.25,\"top_p\":0.5,\"top_k\":9}", "", 0.25f, 0.5f, 9, 0,
		 16},
		{"{\"top_p\":1e-300}", "", 1, FLT_MIN, 0, 0, 16}, /* above 0 as a float too */
		{"{\"max_new_tokens\":7}", "", 1, 1, 0, 7, 7},
		{"{\"max_new_tokens\":7}", "\"max_tokens\":9", 1, 1, 0, 9, 9},
		{"{\"max_new_tokens\":7}", "\"min_tokens\":7", 1, 1, 0, 7, 7},
		{"{\"max_new_tokens\":9000000000}", "", 1, 1, 0, INT32_MAX, INT32_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct serve_bed own = {0}, bed;
		struct request *r;
		struct error err = {0};

		write_model(*state, "{\"chat_template\":\"{{ messages[0].content }}\"}", cases[i].generation);
		serve_bed_open(&bed, "qwen2.5");
		assert_int_equal(prompter_open(&own.prompter, *state, NULL, &err), STATUS_OK);
		assert_int_equal(prompter_worker_create(&own.worker, own.prompter, &err), STATUS_OK);
		own.rules = bed.rules;
		own.rules.prompter = own.prompter;
		r = ask(&own, PROTOCOL_CHAT, cases[i].more);
		assert_float_equal(r->engine.sampling.temperature, cases[i].temperature, 0);
		assert_float_equal(r->engine.sampling.top_p, cases[i].top_p, 0);
		assert_int_equal(r->engine.sampling.top_k, cases[i].top_k);
		assert_int_equal(r->engine.max_tokens, cases[i].chat);
		request_destroy(&r);
		r = ask(&own, PROTOCOL_COMPLETION, cases[i].more);
		assert_int_equal(r->engine.max_tokens, cases[i].completion);
		request_destroy(&r);
		serve_bed_close(&own);
		serve_bed_close(&bed);
	}
}

static void test_prompt__what_cannot_be_opened(void **state)
{
	struct prompter *p;
	struct error err = {0};

	assert_int_not_equal(prompter_open(&p, "/nowhere", NULL, &err), STATUS_OK);
	assert_non_null(strstr(err.text, "/nowhere"));
	err = (struct error){0};
	write_model(*state, "{}", "{\"temperature\":\"hot\"}");
	assert_int_equal(prompter_open(&p, *state, NULL, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "temperature"));
	err = (struct error){0};
	write_model(*state, "{}", "{}");
	assert_int_equal(prompter_open(&p, *state, "qwen9", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "--chat-template"));
}

static void test_prompt__without_a_template_only_chat_is_refused(void **state)
{
	struct serve_bed bed;
	struct api_error err;
	struct request *r;

	(void)state;
	serve_bed_open(&bed, NULL);
	assert_int_equal(prompter_calls(bed.prompter), CALL_FORM_NONE);
	assert_null(serve_bed_read(&bed, PROTOCOL_CHAT,
				   "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", &err));
	assert_non_null(strstr(err.message, "--chat-template"));
	r = serve_bed_good(&bed, PROTOCOL_COMPLETION, "{\"prompt\":\"hi\"}");
	request_destroy(&r);
	serve_bed_close(&bed);
}

static void test_prompt__forms_of_calls(void **state)
{
	struct serve_bed bed;

	(void)state;
	serve_bed_open(&bed, "llama3.1");
	assert_int_equal(prompter_calls(bed.prompter), CALL_FORM_BARE);
	assert_string_equal(call_form_name(prompter_calls(bed.prompter)), "llama");
	serve_bed_close(&bed);
	serve_bed_open(&bed, "qwen3");
	assert_string_equal(call_form_name(prompter_calls(bed.prompter)), "chatml");
	serve_bed_close(&bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_prompt__the_models_own_template),
		scratch_test(test_prompt__an_open_thought),
		scratch_test(test_prompt__the_models_defaults),
		scratch_test(test_prompt__what_cannot_be_opened),
		cmocka_unit_test(test_prompt__without_a_template_only_chat_is_refused),
		cmocka_unit_test(test_prompt__forms_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
