/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests: their length as the server's own reading of them counts it, what they share with
 * others, and their members. */
#include "scratch.h"

#include <math.h>
#include <pthread.h>
#include "core/file/file.h"
#include "core/json/file.h"
#include "core/math/random.h"
#include "load/content/content.h"
#include "serve/prompt.h"
#include "text/files/tokenizer_files.h"

#define TOKENIZER(name) SOURCE_DIR "/tests/data/tokenizer/" name

/* Contents, a worker, and the server's reader of prompts. */
struct bed {
	struct load_content *c;
	struct load_worker *w;
	struct prompter *prompter;
	struct prompter_worker *reader;
	bool completion;
};

static struct load_content_spec spec_of(const char *tokenizer, const char *template)
{
	return (struct load_content_spec){.tokenizer = tokenizer,
					  .chat_template = template,
					  .salt = "salt",
					  .model = "m",
					  .stream = true,
					  .usage = true,
					  .temperature = 0,
					  .seed = -1};
}

static void bed_open(struct bed *b, const struct load_content_spec *spec)
{
	struct error err = {0};

	*b = (struct bed){.completion = spec->completion};
	if (load_content_open(&b->c, spec, &err) || load_worker_create(&b->w, b->c, &err))
		fail_msg("%s", err.text);
	if (spec->tokenizer && (prompter_open(&b->prompter, spec->tokenizer,
					      spec->completion ? "chatml" : spec->chat_template, &err) ||
				prompter_worker_create(&b->reader, b->prompter, &err)))
		fail_msg("%s", err.text);
}

static void bed_close(struct bed *b)
{
	load_worker_destroy(&b->w);
	load_content_close(&b->c);
	prompter_worker_destroy(&b->reader);
	prompter_close(&b->prompter);
}

/* The body's JSON. Owner: caller. */
static json_t *body_in(struct bed *b, const struct load_request *r, struct load_dialogue *d,
		       struct load_asked *asked)
{
	struct text body = {0};
	struct error err = {0};
	json_t *root;

	if (load_worker_body(b->w, r, 5, d, &body, asked, &err))
		fail_msg("%s", err.text);
	root = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL);
	if (!root)
		fail_msg("not JSON: %.300s", body.data);
	text_release(&body);
	return root;
}

/* Prompt tokens as the server counts them. */
static size_t server_count(struct bed *b, const json_t *body, bool generation_prompt)
{
	const struct prompt_ask ask = {.generation_prompt = generation_prompt,
				       .kwargs = json_object_get(body, "chat_template_kwargs")};
	const json_t *prompt = json_object_get(body, "prompt");
	struct prompt_ids ids = {0};
	enum thought thought;
	struct error err = {0};
	enum status st;

	if (b->completion)
		st = prompter_text(b->reader, json_string_value(prompt), json_string_length(prompt), true,
				   &ids, &err);
	else
		st = prompter_chat(b->reader, json_deep_copy(body), &ask, &ids, &thought, &err);
	if (st)
		fail_msg("%s", err.text);
	free(ids.ids);
	return ids.count;
}

static const char *text_of(const json_t *body)
{
	const json_t *messages = json_object_get(body, "messages");
	const json_t *last = json_array_get(messages, json_array_size(messages) - 1);

	return json_string_value(messages ? json_object_get(last, "content")
					  : json_object_get(body, "prompt"));
}

static struct load_request request_of(uint32_t tokens, uint64_t source)
{
	return (struct load_request){.prompt_tokens = tokens, .output_tokens = 7, .source = source};
}

/* Every length from the least one, and random ones. */
static void check_lengths(const struct load_content_spec *spec)
{
	struct load_asked asked;
	struct bed b;
	uint32_t least;

	bed_open(&b, spec);
	assert_true(load_content_exact(b.c));
	least = load_content_template_tokens(b.c) + 1;
	for (uint32_t i = 0; i < 60; i++) {
		struct load_request r =
			request_of(i < 30 ? least + i : least + random_u32(1, 2, i) % 3000, i);
		json_t *body;

		if (i % 3 == 1) {
			r.prefix = 2;
			r.prefix_tokens = 1 + i;
		}
		body = body_in(&b, &r, NULL, &asked);
		if (server_count(&b, body, true) != r.prompt_tokens + r.prefix_tokens)
			fail_msg("%s %s: %zu of %u + %u", spec->tokenizer, spec->chat_template,
				 server_count(&b, body, true), r.prompt_tokens, r.prefix_tokens);
		assert_int_equal(asked.prompt_tokens, r.prompt_tokens + r.prefix_tokens);
		assert_int_equal(asked.output_tokens, 7);
		json_decref(body);
	}
	bed_close(&b);
}

static void test_load_content__lengths_are_exact(void **state)
{
	static const char *const tokenizers[] = {TOKENIZER("qwen.json"), TOKENIZER("llama.json"),
						 TOKENIZER("smollm.json"), NULL};
	static const char *const templates[] = {"chatml", "qwen2",    "qwen2.5", "qwen3",
						"llama3", "llama3.1", "smollm2"};
	struct error err = {0};

	assert_int_equal(tokenizer_files_of_bytes(*state, &err), STATUS_OK);
	for (size_t i = 0; i < 4; i++) {
		struct load_content_spec spec = spec_of(tokenizers[i] ? tokenizers[i] : *state, NULL);

		for (size_t k = 0; k < sizeof(templates) / sizeof(templates[0]); k++) {
			spec.chat_template = templates[k];
			check_lengths(&spec);
		}
		spec.completion = true;
		check_lengths(&spec);
	}
}

static void write_json(const char *folder, const char *name, json_t *json)
{
	struct error err = {0};

	assert_int_equal(json_file_write(folder, name, json, 0, &err), STATUS_OK);
}

/* A model's own template in Jinja. */
static void write_template(const char *folder, const char *template)
{
	char path[PATH_MAX], *json;
	struct error err = {0};
	json_t *config = json_pack("{ss ss}", "eos_token", "<|im_end|>", "chat_template", template);
	size_t size;

	assert_int_equal(file_read(&json, &size, TOKENIZER("qwen.json"), 1 << 20, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/tokenizer.json", folder);
	assert_int_equal(file_write(path, json, size, &err), STATUS_OK);
	free(json);
	write_json(folder, "tokenizer_config.json", config);
}

static void test_load_content__templates_of_models(void **state)
{
	static const char *const templates[] = {
		/* removes white space */
		"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>{% endfor %}"
		"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
		/* adds a token before some letters: lengths must be corrected */
		"{% for m in messages %}<|im_start|>{% if m.content[:1] in 'abcdehij' %}<|im_end|>{% endif %}{{ m.content }}{% endfor %}",
		/* says the text twice, so that only every other length is possible */
		"{{ messages[0].content }}<|im_start|>{{ messages[0].content }}",
	};
	struct load_content_spec spec = spec_of(*state, NULL);
	struct load_request r = request_of(100, 1);
	struct error err = {0};
	struct text body = {0};
	struct load_asked asked;
	struct bed b;

	for (size_t i = 0; i < 2; i++) {
		write_template(*state, templates[i]);
		check_lengths(&spec);
	}
	write_template(*state, templates[2]);
	bed_open(&b, &spec);
	assert_int_equal(load_worker_body(b.w, &r, 0, NULL, &body, &asked, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "no prompt of exactly 100 tokens was found"));
	bed_close(&b);
	text_release(&body);
	write_template(*state, "{{ raise_exception('never') }}");
	assert_int_equal(load_content_open(&b.c, &spec, &err), STATUS_BAD_INPUT);
	assert_null(b.c);
}

static void test_load_content__a_later_turn_adds_its_length(void **state)
{
	static const char answer[] = "It's <|im_end|> \"so\"\n\\ \xc3\xa9.";
	static const char *const templates[] = {"chatml", "qwen3", "llama3.1", NULL};
	struct load_dialogue *d;
	struct error err = {0};
	struct load_asked asked;
	struct bed b;

	(void)state;
	assert_int_equal(load_dialogue_create(&d, &err), STATUS_OK);
	for (size_t i = 0; i < 4; i++) {
		struct load_content_spec spec = spec_of(TOKENIZER("qwen.json"), templates[i]);

		spec.completion = !templates[i];
		bed_open(&b, &spec);
		for (uint32_t turn = 0; turn < 4; turn++) {
			struct load_request r = request_of(280 + turn, turn);
			size_t before = 0, after;
			json_t *body;

			r.turn = turn;
			body = body_in(&b, &r, d, &asked);
			after = server_count(&b, body, true);
			assert_int_equal(asked.prompt_tokens, after);
			assert_int_equal(json_array_size(json_object_get(body, "messages")),
					 spec.completion ? 0 : 2 * turn + 1);
			if (turn && !spec.completion) {
				json_array_remove(json_object_get(body, "messages"), 2 * turn);
				assert_string_equal(text_of(body), answer);
				before = server_count(&b, body, false);
			}
			if (turn && spec.completion) {
				char *cut = strdup(text_of(body)), *end = cut;

				for (char *at = cut; (at = strstr(at, answer)); at++)
					end = at;
				end[strlen(answer)] = 0;
				json_object_set_new(body, "prompt", json_string(cut));
				before = server_count(&b, body, true);
				free(cut);
			}
			assert_int_equal(after - before, 280 + turn);
			json_decref(body);
			assert_int_equal(load_dialogue_answer(d, answer, strlen(answer), &err), STATUS_OK);
		}
		bed_close(&b);
	}
	assert_int_equal(load_dialogue_answer(d, "\xff", 1, &err), STATUS_BAD_INPUT);
	load_dialogue_destroy(&d);
}

/* Bytes that two texts have in common at their beginning. */
static size_t shared(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

static char *text_with(const struct load_content_spec *spec, const struct load_request *r)
{
	struct load_asked asked;
	struct bed b;
	json_t *body;
	char *text;

	bed_open(&b, spec);
	body = body_in(&b, r, NULL, &asked);
	text = strdup(text_of(body));
	json_decref(body);
	bed_close(&b);
	return text;
}

/* Frees both. */
static size_t shared_of(char *a, char *b)
{
	size_t n = shared(a, b);

	free(a);
	free(b);
	return n;
}

static void test_load_content__what_requests_share(void **state)
{
	struct load_content_spec spec = spec_of(NULL, NULL), warm = spec, other = spec;
	struct load_request a = request_of(300, 1), b = request_of(300, 2);
	size_t whole = 0, n;

	(void)state;
	warm.salt = NULL;
	other.salt = "other";
	whole = shared_of(text_with(&spec, &a), text_with(&spec, &a));
	assert_true(whole > 1000);
	assert_true(shared_of(text_with(&spec, &a), text_with(&spec, &b)) < 30);
	assert_true(shared_of(text_with(&spec, &a), text_with(&other, &a)) < 30); /* caches of other runs */
	assert_true(shared_of(text_with(&spec, &a), text_with(&warm, &a)) < 30);
	assert_true(shared_of(text_with(&warm, &a), text_with(&warm, &a)) > 1000);
	a.prefix = b.prefix = 3;
	a.prefix_tokens = b.prefix_tokens = 200;
	n = shared_of(text_with(&spec, &a), text_with(&spec, &b));
	assert_true(n > 200 * 3 && n < 200 * 7);
	assert_true(shared_of(text_with(&spec, &a), text_with(&other, &b)) < 30);
	b.prefix = 4;
	assert_true(shared_of(text_with(&spec, &a), text_with(&spec, &b)) < 30);
}

/* Word `i` of a text. */
static const char *word_at(const char *text, size_t i)
{
	while (i--)
		text = strchr(text, ' ') + 1;
	return text;
}

static void test_load_content__blocks_of_a_trace(void **state)
{
	static const uint32_t first[] = {5, 6, 7}, second[] = {5, 6, 8};
	struct load_content_spec spec = spec_of(NULL, NULL);
	struct load_request a = request_of(1300, 1),
			    b = request_of(1600, 2); /* the last 64 words have no block */
	char *one, *two;

	(void)state;
	a.blocks = first;
	b.blocks = second;
	a.block_count = b.block_count = 3;
	one = text_with(&spec, &a);
	two = text_with(&spec, &b);
	assert_true(shared(one, two) >= (size_t)(word_at(one, 1024) - one));
	assert_true(shared(one, two) < (size_t)(word_at(one, 1040) - one));
	assert_true(shared(word_at(one, 0), word_at(one, 512)) < 30);
	free(one);
	b.blocks = first;
	a.prompt_tokens = 1600;
	one = text_with(&spec, &a);
	free(two);
	two = text_with(&spec, &b);
	assert_true(shared(one, two) >= (size_t)(word_at(one, 1536) - one) && shared(one, two) < strlen(one));
	free(one);
	free(two);
}

static void expect_members(const struct load_content_spec *spec, const char *want)
{
	struct load_request r = request_of(40, 1);
	json_t *expected = json_loads(want, 0, NULL), *body;
	struct load_asked asked;
	struct bed b;

	bed_open(&b, spec);
	body = body_in(&b, &r, NULL, &asked);
	assert_non_null(text_of(body));
	json_object_del(body, spec->completion ? "prompt" : "messages");
	if (!json_equal(body, expected))
		fail_msg("%s, not %s", json_dumps(body, 0), want);
	json_decref(body);
	json_decref(expected);
	bed_close(&b);
}

static void test_load_content__members(void **state)
{
	struct load_content_spec spec = spec_of(NULL, NULL);

	(void)state;
	expect_members(
		&spec,
		"{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_tokens\":7,"
		"\"temperature\":0.0}");
	spec.max_completion_tokens = true;
	spec.usage = false;
	spec.temperature = NAN;
	spec.seed = 5;
	expect_members(&spec, "{\"model\":\"m\",\"stream\":true,\"max_completion_tokens\":7,\"seed\":5}");
	spec.completion = spec.ignore_eos = spec.min_tokens = spec.usage = true;
	spec.stream = false;
	spec.model = "a \"b\"\n";
	expect_members(
		&spec,
		"{\"model\":\"a \\\"b\\\"\\n\",\"stream\":false,\"max_tokens\":7,\"min_tokens\":7,\"seed\":5,"
		"\"ignore_eos\":true}");
	spec.extra = "{\"seed\": 6, \"top_p\": 0.5, \"nested\": {\"a\": [null]}}";
	expect_members(
		&spec,
		"{\"model\":\"a \\\"b\\\"\\n\",\"stream\":false,\"max_tokens\":7,\"min_tokens\":7,\"seed\":6,"
		"\"ignore_eos\":true,\"top_p\":0.5,\"nested\":{\"a\":[null]}}");
}

/* What all prompts begin with: the template until its first message. */
static void test_load_content__the_beginning_of_all_prompts(void **state)
{
	struct load_content_spec spec = spec_of(TOKENIZER("qwen.json"), "chatml");
	struct bed b;
	uint32_t plain;

	(void)state;
	bed_open(&b, &spec);
	plain = load_content_shared_tokens(b.c);
	assert_int_equal(plain, load_worker_count(b.w, "user\n", 5) + 1); /* and <|im_start|> */
	assert_true(plain < load_content_template_tokens(b.c));
	bed_close(&b);
	spec.chat_template = "qwen2.5"; /* it has a system message of its own */
	bed_open(&b, &spec);
	assert_true(load_content_shared_tokens(b.c) > plain + 10);
	bed_close(&b);
	spec.completion = true;
	bed_open(&b, &spec);
	assert_int_equal(load_content_shared_tokens(b.c), 0);
	bed_close(&b);
}

/* Settings of the template count as the server counts them. */
static void test_load_content__settings_of_the_template(void **state)
{
	struct load_content_spec spec = spec_of(TOKENIZER("qwen.json"), "qwen3");
	struct bed b;
	uint32_t plain;

	(void)state;
	bed_open(&b, &spec);
	plain = load_content_template_tokens(b.c);
	bed_close(&b);
	spec.extra = "{\"chat_template_kwargs\": {\"enable_thinking\": false}}";
	bed_open(&b, &spec);
	assert_true(load_content_template_tokens(b.c) > plain); /* an empty thought */
	bed_close(&b);
	check_lengths(&spec);
}

static void test_load_content__without_a_tokenizer(void **state)
{
	struct load_content_spec spec = spec_of(NULL, NULL);
	struct load_request r = request_of(100, 1);
	struct load_asked asked;
	size_t words = 1;
	struct bed b;
	json_t *body;

	(void)state;
	bed_open(&b, &spec);
	assert_false(load_content_exact(b.c));
	assert_int_equal(load_content_template_tokens(b.c), 0);
	assert_int_equal(load_worker_count(b.w, "hello", 5), -1);
	body = body_in(&b, &r, NULL, &asked);
	for (const char *at = text_of(body); *at; at++)
		words += *at == ' ';
	assert_int_equal(words, 100);
	assert_int_equal(asked.prompt_tokens, 100);
	json_decref(body);
	bed_close(&b);
}

static void test_load_content__answers_are_counted(void **state)
{
	struct load_content_spec spec = spec_of(TOKENIZER("qwen.json"), "chatml");
	struct bed b;

	(void)state;
	bed_open(&b, &spec);
	assert_int_equal(load_worker_count(b.w, "", 0), 0);
	assert_int_equal(load_worker_count(b.w, "hello", 5), 1);
	assert_int_equal(load_worker_count(b.w, "hello<tool_call>", 16), 2);
	assert_true(load_worker_count(b.w, "<|im_end|>", 10) > 1); /* a text is not a control token */
	assert_int_equal(load_worker_count(b.w, "\xff", 1), -1);
	bed_close(&b);
	spec.uncounted = true;
	bed_open(&b, &spec);
	assert_int_equal(load_worker_count(b.w, "hello", 5), -1);
	bed_close(&b);
}

static void test_load_content__prompts_that_are_too_short(void **state)
{
	struct load_content_spec spec = spec_of(TOKENIZER("qwen.json"), "chatml");
	struct load_request r[2] = {request_of(1000, 1), request_of(3, 1)};
	struct load_plan p = {.request = r, .count = 2};
	struct text body = {0};
	struct load_asked asked;
	struct error err = {0};
	uint32_t template;
	uint64_t raised;
	char want[128];
	struct bed b;

	(void)state;
	bed_open(&b, &spec);
	template = load_content_template_tokens(b.c);
	assert_true(template > 3);
	snprintf(want, sizeof(want), "a prompt of 3 tokens is impossible: the chat template alone has %u",
		 template);
	assert_int_equal(load_worker_body(b.w, &r[1], 0, NULL, &body, &asked, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, want));
	err = (struct error){0};
	assert_int_equal(load_content_check(b.c, &p, &raised, &err), STATUS_BAD_INPUT);
	snprintf(want, sizeof(want), "alone has %u; the least length is %u", template, template + 1);
	assert_non_null(strstr(err.text, want));
	p.trace = true;
	assert_int_equal(load_content_check(b.c, &p, &raised, &err), STATUS_OK);
	assert_int_equal(raised, 1);
	assert_int_equal(r[1].prompt_tokens, template + 1);
	r[1].turn = 1; /* without a dialogue */
	err = (struct error){0};
	assert_int_equal(load_worker_body(b.w, &r[1], 0, NULL, &body, &asked, &err), STATUS_BUG);
	text_release(&body);
	bed_close(&b);
}

static void refused(struct load_content_spec spec, enum status st, const char *words)
{
	struct load_content *c;
	struct error err = {0};

	assert_int_equal(load_content_open(&c, &spec, &err), st);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" lacks \"%s\"", err.text, words);
	assert_null(c);
}

static void test_load_content__what_is_refused(void **state)
{
	static const char *const taken[] = {"messages",	      "prompt",	    "stream",
					    "stream_options", "max_tokens", "max_completion_tokens",
					    "min_tokens",     "n"};
	struct load_content_spec spec = spec_of(NULL, NULL);
	char extra[64], words[64];

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		snprintf(extra, sizeof(extra), "{\"%s\": 1}", taken[i]);
		snprintf(words, sizeof(words), "--body: \"%s\" cannot be given", taken[i]);
		spec.extra = extra;
		refused(spec, STATUS_BAD_INPUT, words);
	}
	spec.extra = "[1]";
	refused(spec, STATUS_BAD_INPUT, "not a JSON object");
	spec.extra = "{\"a\":";
	refused(spec, STATUS_BAD_INPUT, "--body is not a JSON object: ");
	spec.extra = NULL;
	spec.model = "\xff";
	refused(spec, STATUS_BAD_INPUT, "the model's name is not UTF-8");
	spec.model = "m";
	spec.tokenizer = "/nowhere";
	refused(spec, STATUS_UNAVAILABLE, "/nowhere");
	spec.tokenizer = TOKENIZER("qwen.json"); /* it has no template */
	refused(spec, STATUS_BAD_INPUT, "--chat-template");
	spec.chat_template = "qwen9";
	refused(spec, STATUS_BAD_INPUT, "qwen9");
	spec.tokenizer = NULL;
	spec.dataset = "/nowhere";
	refused(spec, STATUS_UNAVAILABLE, "/nowhere");
	spec.dataset = *state; /* an empty folder is not bfcl's */
	refused(spec, STATUS_UNAVAILABLE, "BFCL");
}

/* A vocabulary in which every two letters merge has no words. */
static void test_load_content__a_tokenizer_without_words(void **state)
{
	json_t *vocab = json_object(), *merges = json_array(), *root;
	struct load_content_spec spec = spec_of(*state, "chatml");
	static const char letters[] = "ab";
	char word[3] = {0};

	for (int i = 0; i < 2; i++) {
		word[0] = letters[i];
		word[1] = 0;
		json_object_set_new(vocab, word, json_integer((json_int_t)json_object_size(vocab)));
	}
	for (int i = 0; i < 4; i++) {
		word[0] = letters[i / 2];
		word[1] = letters[i % 2];
		json_object_set_new(vocab, word, json_integer((json_int_t)json_object_size(vocab)));
		json_array_append_new(merges, json_pack("[s%s%]", word, (size_t)1, word + 1, (size_t)1));
	}
	root = json_pack("{s{ss so so} s{ss sb} s[]}", "model", "type", "BPE", "vocab", vocab, "merges",
			 merges, "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0, "added_tokens");
	assert_non_null(root);
	write_json(*state, "tokenizer.json", root);
	refused(spec, STATUS_UNSUPPORTED, "no two words or letters that are one token each");
}

struct task {
	const struct load_content *c;
	char *text;
};

static void *work(void *arg)
{
	struct task *t = arg;
	struct load_worker *w;
	struct error err = {0};
	struct text all = {0};

	if (load_worker_create(&w, t->c, &err))
		return NULL;
	for (uint32_t i = 0; i < 40; i++) {
		struct load_request r = request_of(100 + i, i);
		struct load_asked asked;

		if (load_worker_body(w, &r, i, NULL, &all, &asked, &err))
			return NULL;
	}
	load_worker_destroy(&w);
	t->text = all.data;
	return t->text;
}

static void test_load_content__threads_share_it(void **state)
{
	struct load_content_spec spec = spec_of(TOKENIZER("qwen.json"), "qwen2.5");
	struct task task[4];
	pthread_t thread[4];
	struct bed b;

	(void)state;
	spec.extra = "{\"chat_template_kwargs\": {\"a\": 1}}";
	bed_open(&b, &spec);
	for (int i = 0; i < 4; i++) {
		task[i] = (struct task){.c = b.c};
		assert_int_equal(pthread_create(&thread[i], NULL, work, &task[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 4; i++) {
		assert_non_null(task[i].text);
		assert_string_equal(task[i].text, task[0].text);
	}
	for (int i = 0; i < 4; i++)
		free(task[i].text);
	bed_close(&b);
}

/* A real vocabulary, whose words are many. */
static void test_load_content__smollm2(void **state)
{
	const char *path = getenv("ASSAY_SMOLLM2");
	struct load_content_spec spec = spec_of(path, NULL);

	(void)state;
	if (!path || access(path, R_OK)) {
		print_message("# ASSAY_SMOLLM2 names no SmolLM2-135M-Instruct.Q4_1.gguf\n");
		skip();
	}
	check_lengths(&spec);
	spec.completion = true;
	check_lengths(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_load_content__lengths_are_exact),
		scratch_test(test_load_content__templates_of_models),
		cmocka_unit_test(test_load_content__a_later_turn_adds_its_length),
		cmocka_unit_test(test_load_content__what_requests_share),
		cmocka_unit_test(test_load_content__blocks_of_a_trace),
		cmocka_unit_test(test_load_content__members),
		cmocka_unit_test(test_load_content__the_beginning_of_all_prompts),
		cmocka_unit_test(test_load_content__settings_of_the_template),
		cmocka_unit_test(test_load_content__without_a_tokenizer),
		cmocka_unit_test(test_load_content__answers_are_counted),
		cmocka_unit_test(test_load_content__prompts_that_are_too_short),
		scratch_test(test_load_content__what_is_refused),
		scratch_test(test_load_content__a_tokenizer_without_words),
		cmocka_unit_test(test_load_content__threads_share_it),
		cmocka_unit_test(test_load_content__smollm2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
