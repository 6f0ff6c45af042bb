/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts from files of conversations: which messages become prompts, the salt before them, tools, lengths,
 * and what is wrong with a row. */
#include "scratch.h"

#include "core/file/file.h"
#include "load/content/content.h"
#include "load/content/dataset.h"
#include "serve/prompt.h"

#define QWEN SOURCE_DIR "/tests/data/tokenizer/qwen.json"

static const char rows[] =
	"{\"messages\":[{\"role\":\"system\",\"content\":\"only a system\"}]}\n"
	"{\"conversations\":[{\"from\":\"system\",\"value\":\"be kind\"},{\"from\":\"human\",\"value\":\"one\"},{\"from\":\"gpt\","
	"\"value\":\"first answer\"},{\"from\":\"human\",\"value\":\"two\"},{\"from\":\"gpt\",\"value\":\"second\"}]}\n"
	"{\"messages\":[{\"role\":\"user\",\"content\":\"no answer\"}]}\n"
	"{\"messages\":[{\"role\":\"user\",\"content\":\"three \\\"q\\\"\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":"
	"[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
	"\"parameters\":{}}}]}\n";

/* The path of a new file. */
static const char *file_with(const char *folder, const char *text)
{
	static char path[PATH_MAX];
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/rows.jsonl", folder);
	assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
	return path;
}

static void expect_prompt(const struct dataset *d, uint64_t row, uint32_t turn, const char *system,
			  const char *user, const char *answer)
{
	struct dataset_prompt p;
	struct error err = {0};

	if (dataset_find(d, row, turn, NULL, NULL, &p, &err))
		fail_msg("%s", err.text);
	assert_string_equal(p.user, user);
	assert_string_equal(text_str(&p.answer), answer);
	assert_string_equal(p.system ? p.system : "-", system);
	dataset_prompt_release(&p);
}

static void test_load_dataset__messages_with_an_answer(void **state)
{
	struct error err = {0};
	struct dataset *d;

	assert_int_equal(dataset_open(&d, file_with(*state, rows), &err), STATUS_OK);
	assert_int_equal(dataset_rows(d), 4);
	expect_prompt(d, 1, 0, "be kind", "one", "first answer");
	expect_prompt(d, 0, 0, "be kind", "one", "first answer"); /* rows without a prompt are passed over */
	expect_prompt(d, 1, 1, "be kind", "two", "second");
	expect_prompt(d, 2, 0, "-", "three \"q\"", "{\"name\": \"f\", \"arguments\": {\"a\": 1}}");
	expect_prompt(d, 1, 2, "-", "three \"q\"",
		      "{\"name\": \"f\", \"arguments\": {\"a\": 1}}"); /* goes on */
	expect_prompt(d, 3, 1, "be kind", "one", "first answer");      /* and begins again */
	expect_prompt(d, 3, 3, "-", "three \"q\"", "{\"name\": \"f\", \"arguments\": {\"a\": 1}}");
	dataset_close(&d);
	assert_null(d);
}

static void open_refused(const char *folder, const char *text, const char *words)
{
	const struct load_content_spec spec = {.dataset = file_with(folder, text), .model = "m", .seed = -1};
	struct load_content *c;
	struct error err = {0};

	assert_int_equal(load_content_open(&c, &spec, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

static void test_load_dataset__what_is_wrong_is_said(void **state)
{
	open_refused(*state, "", "rows.jsonl: no rows");
	open_refused(*state, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n",
		     "rows.jsonl: no row has a user's message with an answer");
	open_refused(*state, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"messages\":1}\n",
		     "rows.jsonl:2: ");
}

/* The body of a request, as JSON. Owner: caller. */
static json_t *body_of(struct load_worker *w, uint64_t row, uint32_t turn, uint64_t index,
		       struct load_dialogue *d, struct load_asked *asked)
{
	const struct load_request r = {.source = row, .turn = turn};
	struct error err = {0};
	struct text body = {0};
	json_t *root;

	if (load_worker_body(w, &r, index, d, &body, asked, &err))
		fail_msg("%s", err.text);
	root = json_loadb(body.data, body.size, 0, NULL);
	assert_non_null(root);
	text_release(&body);
	return root;
}

static const char *content_at(const json_t *body, size_t i)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(body, "messages"), i), "content"));
}

static size_t server_count(const json_t *body)
{
	const struct prompt_ask ask = {.generation_prompt = true};
	struct prompter *prompter;
	struct prompter_worker *reader;
	struct prompt_ids ids = {0};
	enum thought thought;
	struct error err = {0};

	if (prompter_open(&prompter, QWEN, "qwen2.5", &err) ||
	    prompter_worker_create(&reader, prompter, &err) ||
	    prompter_chat(reader, json_deep_copy(body), &ask, &ids, &thought, &err))
		fail_msg("%s", err.text);
	prompter_worker_destroy(&reader);
	prompter_close(&prompter);
	free(ids.ids);
	return ids.count;
}

static struct load_worker *worker_of(struct load_content **c, const char *salt, const char *tokenizer,
				     const char *path, uint32_t most)
{
	const struct load_content_spec spec = {.tokenizer = tokenizer,
					       .chat_template = "qwen2.5",
					       .dataset = path,
					       .dataset_tokens = most,
					       .salt = salt,
					       .model = "m",
					       .seed = -1};
	struct load_worker *w;
	struct error err = {0};

	if (load_content_open(c, &spec, &err) || load_worker_create(&w, *c, &err))
		fail_msg("%s", err.text);
	return w;
}

static void test_load_dataset__bodies(void **state)
{
	struct load_content *c;
	struct load_worker *w = worker_of(&c, "s", QWEN, file_with(*state, rows), 0);
	struct load_asked asked, again;
	json_t *body, *other;
	size_t salt;

	assert_int_equal(load_content_rows(c), 4);
	body = body_of(w, 1, 0, 8, NULL, &asked);
	other = body_of(w, 1, 0, 9, NULL, &again);
	assert_int_equal(json_array_size(json_object_get(body, "messages")), 2);
	assert_string_equal(content_at(body, 1), "one");
	salt = strlen(content_at(body, 0)) - strlen("\nbe kind");
	assert_string_equal(content_at(body, 0) + salt,
			    "\nbe kind"); /* the salt is the beginning of all text */
	assert_true(strncmp(content_at(body, 0), content_at(other, 0), salt) != 0);
	assert_int_equal(asked.prompt_tokens, again.prompt_tokens); /* salts have a fixed length */
	assert_int_equal(asked.prompt_tokens, server_count(body));
	assert_int_equal(asked.output_tokens, load_worker_count(w, "first answer", 12));
	json_decref(body);
	json_decref(other);
	body = body_of(w, 3, 0, 8, NULL, &asked);
	assert_int_equal(json_array_size(json_object_get(body, "tools")), 1);
	assert_non_null(strstr(content_at(body, 0), "\nthree \"q\""));
	assert_int_equal(asked.prompt_tokens, server_count(body)); /* tools included */
	json_decref(body);
	load_worker_destroy(&w);
	load_content_close(&c);
	w = worker_of(&c, NULL, QWEN, file_with(*state, rows), 0);
	body = body_of(w, 3, 0, 8, NULL, &asked);
	assert_string_equal(content_at(body, 0), "three \"q\"");
	json_decref(body);
	load_worker_destroy(&w);
	load_content_close(&c);
}

static void test_load_dataset__conversations(void **state)
{
	struct load_content *c;
	struct load_worker *w = worker_of(&c, NULL, QWEN, file_with(*state, rows), 0);
	struct load_dialogue *d;
	struct error err = {0};
	struct load_asked asked;
	json_t *body;

	assert_int_equal(load_dialogue_create(&d, &err), STATUS_OK);
	json_decref(body_of(w, 1, 0, 0, d, &asked));
	assert_int_equal(load_dialogue_answer(d, "own answer", 10, &err), STATUS_OK);
	body = body_of(w, 1, 1, 1, d, &asked);
	assert_int_equal(json_array_size(json_object_get(body, "messages")), 4);
	assert_string_equal(content_at(body, 2), "own answer"); /* the server's, not the row's */
	assert_string_equal(content_at(body, 3), "two");
	assert_int_equal(asked.prompt_tokens, server_count(body));
	json_decref(body);
	body = body_of(w, 3, 0, 2, d, &asked); /* a new conversation */
	assert_int_equal(json_array_size(json_object_get(body, "messages")), 1);
	json_decref(body);
	load_dialogue_destroy(&d);
	load_worker_destroy(&w);
	load_content_close(&c);
}

static void test_load_dataset__a_limit_of_tokens(void **state)
{
	const struct load_content_spec none = {.tokenizer = QWEN,
					       .chat_template = "qwen2.5",
					       .dataset_tokens = 1,
					       .dataset = file_with(*state, rows),
					       .model = "m",
					       .seed = -1};
	struct load_content *c;
	struct load_worker *w;
	struct error err = {0};
	struct load_asked asked;
	json_t *body;

	w = worker_of(&c, NULL, QWEN, none.dataset, 20); /* the call is longer */
	body = body_of(w, 3, 0, 0, NULL, &asked);
	assert_string_equal(content_at(body, 1), "one");
	json_decref(body);
	load_worker_destroy(&w);
	load_content_close(&c);
	assert_int_equal(load_content_open(&c, &none, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "fits the limit of tokens"));
}

static void test_load_dataset__without_a_tokenizer(void **state)
{
	struct load_content *c;
	struct load_worker *w = worker_of(&c, NULL, NULL, file_with(*state, rows), 0);
	struct load_asked asked;

	json_decref(body_of(w, 1, 0, 0, NULL, &asked));
	assert_int_equal(asked.output_tokens, 3); /* of four bytes each */
	assert_int_equal(asked.prompt_tokens, 3);
	load_worker_destroy(&w);
	load_content_close(&c);
}

static void test_load_dataset__completions(void **state)
{
	const struct load_content_spec spec = {.tokenizer = QWEN,
					       .completion = true,
					       .salt = "s",
					       .model = "m",
					       .seed = -1,
					       .dataset = file_with(*state, rows)};
	struct load_content *c;
	struct load_worker *w;
	struct load_asked asked;
	struct error err = {0};
	const char *prompt;
	json_t *body;

	assert_int_equal(load_content_open(&c, &spec, &err), STATUS_OK);
	assert_int_equal(load_worker_create(&w, c, &err), STATUS_OK);
	body = body_of(w, 1, 0, 0, NULL, &asked);
	prompt = json_string_value(json_object_get(body, "prompt"));
	assert_non_null(strstr(prompt, "\nbe kind one"));
	assert_int_equal(asked.prompt_tokens, load_worker_count(w, prompt, strlen(prompt)));
	json_decref(body);
	load_worker_destroy(&w);
	load_content_close(&c);
}

/* bfcl-eval's folder, as PyPI has it; here with one row. */
static void test_load_dataset__bfcl(void **state)
{
	static const char *const categories[] = {
		"simple_python",     "multiple",      "parallel",
		"parallel_multiple", "irrelevance",   "live_simple",
		"live_multiple",     "live_parallel", "live_parallel_multiple",
		"live_irrelevance"};
	static const char question[] =
		"{\"id\":\"q\",\"question\":[[{\"role\":\"user\",\"content\":\"area\"}]],\"function\":[{\"name\":\"f\","
		"\"description\":\"d\",\"parameters\":{\"type\":\"dict\",\"properties\":{\"a\":{\"type\":\"integer\"}},"
		"\"required\":[\"a\"]}}]}\n";
	static const char answer[] = "{\"id\":\"q\",\"ground_truth\":[{\"f\":{\"a\":[10]}}]}\n";
	struct load_content *c;
	struct load_worker *w;
	struct load_asked asked;
	struct error err = {0};
	char path[PATH_MAX];
	json_t *body;

	snprintf(path, sizeof(path), "%s/possible_answer", (char *)*state);
	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
		snprintf(path, sizeof(path), "%s/BFCL_v4_%s.json", (char *)*state, categories[i]);
		assert_int_equal(file_write(path, question, strlen(question), &err), STATUS_OK);
		snprintf(path, sizeof(path), "%s/possible_answer/BFCL_v4_%s.json", (char *)*state,
			 categories[i]);
		assert_int_equal(file_write(path, answer, strlen(answer), &err), STATUS_OK);
	}
	w = worker_of(&c, NULL, QWEN, *state, 0);
	assert_true(load_content_rows(c) >= 4);
	body = body_of(w, 2, 0, 0, NULL, &asked);
	assert_string_equal(content_at(body, 0), "area");
	assert_int_equal(json_array_size(json_object_get(body, "tools")), 1);
	assert_int_equal(asked.prompt_tokens, server_count(body));
	json_decref(body);
	load_worker_destroy(&w);
	load_content_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_load_dataset__messages_with_an_answer),
		scratch_test(test_load_dataset__what_is_wrong_is_said),
		scratch_test(test_load_dataset__bodies),
		scratch_test(test_load_dataset__conversations),
		scratch_test(test_load_dataset__a_limit_of_tokens),
		scratch_test(test_load_dataset__without_a_tokenizer),
		scratch_test(test_load_dataset__completions),
		scratch_test(test_load_dataset__bfcl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
