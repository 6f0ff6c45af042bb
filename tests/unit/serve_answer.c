/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of each API from made-up events: valid JSON whatever the text, the same contents whole and
 * streamed, one end. */
#include "serve_bed.h"

static struct serve_bed bed;

static int open_bed(void **state)
{
	(void)state;
	serve_bed_open(&bed, "qwen3");
	return 0;
}

static int close_bed(void **state)
{
	(void)state;
	serve_bed_close(&bed);
	return 0;
}

static void send_text(struct choice *c, const char *text)
{
	struct prompt_ids ids = {0};
	struct error err = {0};

	assert_int_equal(prompter_text(bed.worker, text, strlen(text), false, &ids, &err), STATUS_OK);
	for (size_t i = 0; i < ids.count; i++) {
		const struct engine_event e = {.kind = ENGINE_EVENT_TOKEN,
					       .token = ids.ids[i],
					       .logprob = -0.5f,
					       .tops = 1,
					       .top = {{ids.ids[i], -0.5f}}};

		answer_event(c, &e, 1000 + i);
	}
	free(ids.ids);
}

static void end_with(struct choice *c, enum engine_end end)
{
	const struct engine_event e = {.kind = ENGINE_EVENT_END,
				       .end = end,
				       .prompt_tokens = 5,
				       .cached_tokens = 3,
				       .text = "the \"reason\""};

	answer_event(c, &e, 2000);
}

static struct answer *answer_for(enum protocol protocol, const char *body)
{
	struct error err = {0};
	struct answer *a;

	assert_int_equal(answer_create(&a, serve_bed_good(&bed, protocol, body), bed.prompter, 100, &err),
			 STATUS_OK);
	return a;
}

/* Each event of the stream is JSON; returns them as an array. */
static json_t *events_of(const struct answer *a)
{
	json_t *all = json_array();
	const char *at = text_str(&a->out), *end;
	json_error_t why;

	for (; (at = strstr(at, "data: ")); at = end) {
		json_t *one;

		at += 6;
		end = strstr(at, "\n\n");
		assert_non_null(end);
		if (!strncmp(at, "[DONE]", 6))
			continue;
		one = json_loadb(at, (size_t)(end - at), 0, &why);
		if (!one)
			fail_msg("%s in %.*s", why.text, (int)(end - at), at);
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *body_of(const struct answer *a)
{
	json_error_t why;
	json_t *body = json_loadb(text_str(&a->out), a->out.size, 0, &why);

	if (!body)
		fail_msg("%s in %s", why.text, text_str(&a->out));
	return body;
}

/* Joins the texts at choices[0].delta.KEY or choices[0].KEY. */
static void joined(const json_t *events, const char *key, struct text *out)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event)
	{
		const json_t *choice = json_array_get(json_object_get(event, "choices"), 0);
		const json_t *delta = json_object_get(choice, "delta");
		const char *text = json_string_value(json_object_get(delta ? delta : choice, key));

		text_add(out, text ? text : "");
	}
}

static const char odd[] = "quote \" slash \\ tab \t line \n bell \x07 wörld \xf0\x9f\x98\x80 </script>";

#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void test_answer__chat_whole_and_streamed(void **state)
{
	struct answer *a = answer_for(PROTOCOL_CHAT, "{" HI ",\"logprobs\":true,\"top_logprobs\":1}");
	json_t *root, *body, *events;
	struct text text = {0}, thought = {0};

	(void)state;
	send_text(&a->choices[0], "<think>\nOh \"dear\"\n</think>\n\n");
	send_text(&a->choices[0], odd);
	assert_false(a->complete || a->streaming);
	end_with(&a->choices[0], ENGINE_END_STOP);
	assert_true(a->complete && a->http == 200);
	root = body_of(a);
	body = json_array_get(json_object_get(root, "choices"), 0);
	assert_string_equal(json_string_value(json_object_get(json_object_get(body, "message"), "content")),
			    odd);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(body, "message"), "reasoning_content")),
		"Oh \"dear\"");
	assert_true(json_array_size(json_object_get(json_object_get(body, "logprobs"), "content")) > 20);
	json_decref(root);
	answer_destroy(&a);

	a = answer_for(PROTOCOL_CHAT,
		       "{" HI
		       ",\"stream\":true,\"logprobs\":true,\"stream_options\":{\"include_usage\":true}}");
	send_text(&a->choices[0], "<think>\nOh \"dear\"\n</think>\n\n");
	send_text(&a->choices[0], odd);
	assert_true(a->streaming && !a->complete);
	end_with(&a->choices[0], ENGINE_END_LENGTH);
	events = events_of(a);
	joined(events, "content", &text);
	joined(events, "reasoning_content", &thought);
	assert_string_equal(text_str(&text), odd);
	assert_string_equal(text_str(&thought), "Oh \"dear\"");
	body = json_array_get(events, json_array_size(events) - 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(body, "usage"), "prompt_tokens")),
			 a->request->prompts[0].count);
	assert_non_null(strstr(a->out.data, "\"finish_reason\":\"length\""));
	assert_string_equal(a->out.data + a->out.size - 14, "data: [DONE]\n\n");
	json_decref(events);
	text_release(&text);
	text_release(&thought);
	answer_destroy(&a);
}

static void test_answer__completions_of_several_prompts(void **state)
{
	struct answer *a = answer_for(PROTOCOL_COMPLETION,
				      "{\"prompt\":[\"One\",\"Two\"],\"n\":2,\"echo\":true,\"stream\":true}");
	struct engine_request r;
	json_t *events;

	(void)state;
	assert_int_equal(a->count, 4);
	answer_engine_request(&a->choices[2], 0, &r);
	assert_int_equal(r.prompt_count, a->request->prompts[1].count);
	assert_int_equal(r.max_tokens, 16);
	a->request->own_length = true; /* each prompt leaves its own room */
	answer_engine_request(&a->choices[2], 10, &r);
	assert_int_equal(r.max_tokens, 10 - (int64_t)a->request->prompts[1].count);
	answer_engine_request(&a->choices[2], 100, &r);
	assert_int_equal(r.max_tokens, 16);
	for (size_t i = 0; i < 4; i++)
		send_text(&a->choices[3 - i], odd);
	for (size_t i = 0; i < 4; i++) {
		assert_false(a->complete);
		end_with(&a->choices[i], ENGINE_END_STOP);
		end_with(&a->choices[i], ENGINE_END_STOP); /* a second end changes nothing */
	}
	assert_true(a->complete);
	events = events_of(a);
	assert_non_null(strstr(a->out.data, "\"index\":2,\"text\":\"Two\""));
	json_decref(events);
	answer_destroy(&a);
}

/* Load generators divide by these counts, which grow with each chunk. */
static void test_answer__each_chunk_tells_the_usage_if_asked(void **state)
{
	static const enum protocol protocols[] = {PROTOCOL_CHAT, PROTOCOL_COMPLETION};
	static const char *const requests[] = {"{" HI, "{\"prompt\":\"hi\""};
	static const char *const options[] = {
		",\"stream\":true}", ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		",\"stream\":true,\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true}}"};
	char body[256];

	(void)state;
	for (int i = 0; i < 6; i++) {
		json_t *events, *event;
		int64_t made = 0;
		struct answer *a;
		size_t k;

		snprintf(body, sizeof(body), "%s%s", requests[i / 3], options[i % 3]);
		a = answer_for(protocols[i / 3], body);
		send_text(&a->choices[0], "one two three");
		end_with(&a->choices[0], ENGINE_END_LENGTH);
		events = events_of(a);
		json_array_foreach(events, k, event)
		{
			const json_t *usage = json_object_get(event, "usage");
			bool last = !json_array_size(json_object_get(event, "choices"));

			assert_int_equal(json_is_object(usage), i % 3 == 2 || (i % 3 == 1 && last));
			assert_int_equal(!usage, i % 3 == 0);
			if (!json_is_object(usage))
				continue;
			assert_true(json_integer_value(json_object_get(usage, "completion_tokens")) >= made);
			made = json_integer_value(json_object_get(usage, "completion_tokens"));
			assert_true(made > 0);
			if (k == 0)
				assert_int_equal(made, 1);
		}
		assert_int_equal(made, i % 3 ? a->choices[0].tokens : 0);
		json_decref(events);
		answer_destroy(&a);
	}
}

static const char *const streamed[] = {"false", "true"};

static void test_answer__messages_and_responses_are_json(void **state)
{
	static const enum protocol protocols[] = {PROTOCOL_MESSAGES, PROTOCOL_RESPONSES};
	static const char *const bodies[] = {
		"{" HI ",\"max_tokens\":99,\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],\"stream\":%s}",
		"{\"input\":\"hi\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}],\"stream\":%s}"};
	char body[256];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct answer *a;

		snprintf(body, sizeof(body), bodies[i / 2], streamed[i % 2]);
		a = answer_for(protocols[i / 2], body);
		send_text(&a->choices[0], "<think>Hm \"\n</think>");
		send_text(&a->choices[0], odd);
		send_text(
			&a->choices[0],
			"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"\\n\"}}\n</tool_call>\n<tool_call>\n"
			"{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
		end_with(&a->choices[0], ENGINE_END_STOP);
		assert_true(a->complete && !a->failed);
		json_decref(i % 2 ? events_of(a) : body_of(a));
		if (i % 2 && i / 2)
			assert_non_null(strstr(a->out.data, "\"type\":\"response.completed\""));
		answer_destroy(&a);
	}
}

/* The response of a body, or that of a stream's last event. Owner of the root: caller. */
static const json_t *response_of(const struct answer *a, json_t **root)
{
	*root = a->request->stream ? events_of(a) : body_of(a);
	return a->request->stream
		       ? json_object_get(json_array_get(*root, json_array_size(*root) - 1), "response")
		       : *root;
}

/* The tokens of the text, without those of the thought and of the call. */
static void expect_tokens(const json_t *logprobs, const char *want)
{
	struct text tokens = {0};
	const json_t *one;
	size_t i;

	json_array_foreach(logprobs, i, one)
	{
		text_add(&tokens, json_string_value(json_object_get(one, "token")));
		assert_true(json_real_value(json_object_get(one, "logprob")) == -0.5);
		assert_int_equal(json_array_size(json_object_get(one, "top_logprobs")), 1);
	}
	assert_string_equal(text_str(&tokens), want);
	text_release(&tokens);
}

static void test_answer__responses_have_log_probabilities_of_their_text(void **state)
{
	char body[256];

	(void)state;
	for (int i = 0; i < 2; i++) {
		const json_t *response, *item, *event;
		json_t *root, *deltas = json_array();
		struct answer *a;
		size_t k;

		snprintf(
			body, sizeof(body),
			"{\"input\":\"hi\",\"include\":[\"message.output_text.logprobs\"],\"top_logprobs\":1,\"stream\":%s,\"tools\":"
			"[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}]}",
			streamed[i]);
		a = answer_for(PROTOCOL_RESPONSES, body);
		send_text(&a->choices[0], "<think>\nHm\n</think>\n\n");
		send_text(&a->choices[0], "Let me see.");
		send_text(&a->choices[0], "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
		end_with(&a->choices[0], ENGINE_END_STOP);
		response = response_of(a, &root);
		item = json_array_get(json_object_get(response, "output"), 1);
		assert_string_equal(json_string_value(json_object_get(item, "type")), "message");
		item = json_array_get(json_object_get(item, "content"), 0);
		expect_tokens(json_object_get(item, "logprobs"),
			      json_string_value(json_object_get(item, "text")));
		assert_int_equal(json_integer_value(json_object_get(response, "top_logprobs")), 1);
		if (i) {
			json_array_foreach(root, k, event)
			{
				const char *type = json_string_value(json_object_get(event, "type"));

				if (!strcmp(type, "response.output_text.delta"))
					json_array_extend(deltas, json_object_get(event, "logprobs"));
				if (!strcmp(type, "response.output_text.done"))
					expect_tokens(json_object_get(event, "logprobs"), "Let me see.");
			}
			expect_tokens(deltas, "Let me see.");
		}
		json_decref(deltas);
		json_decref(root);
		answer_destroy(&a);
	}
}

static const char *status_of(const json_t *response, size_t item)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(response, "output"), item), "status"));
}

static void test_answer__the_last_item_of_a_cut_response_is_incomplete(void **state)
{
	char body[128];

	(void)state;
	for (int i = 0; i < 2; i++) {
		const json_t *response, *event;
		json_t *root;
		struct answer *a;

		snprintf(body, sizeof(body),
			 "{\"input\":\"hi\",\"temperature\":null,\"top_p\":0.25,\"stream\":%s}", streamed[i]);
		a = answer_for(PROTOCOL_RESPONSES, body);
		send_text(&a->choices[0], "<think>\nHm\n</think>\n\nYes, it");
		end_with(&a->choices[0], ENGINE_END_LENGTH);
		response = response_of(a, &root);
		assert_string_equal(json_string_value(json_object_get(response, "status")), "incomplete");
		assert_string_equal(status_of(response, 0), "completed");
		assert_string_equal(status_of(response, 1), "incomplete");
		assert_true(json_number_value(json_object_get(response, "temperature")) == 1);
		assert_true(json_number_value(json_object_get(response, "top_p")) == 0.25);
		if (i) {
			event = json_array_get(root, json_array_size(root) - 2);
			assert_string_equal(
				json_string_value(json_object_get(json_object_get(event, "item"), "status")),
				"incomplete");
		}
		json_decref(root);
		answer_destroy(&a);
	}
}

/* Tokens that are parts of one character, and an id that the tokenizer does not have, twice. */
static void test_answer__tokens_that_are_no_text_are_told_apart(void **state)
{
	static const char whole[] = "\xf0\x90\x8d\x88";
	struct answer *a = answer_for(PROTOCOL_COMPLETION, "{\"prompt\":\"hi\",\"logprobs\":5}");
	struct engine_event e = {.kind = ENGINE_EVENT_TOKEN, .tops = 5};
	struct prompt_ids ids = {0};
	json_t *body, *logprobs, *tops;
	json_error_t why;
	struct error err = {0};

	(void)state;
	assert_int_equal(prompter_text(bed.worker, whole, strlen(whole), false, &ids, &err), STATUS_OK);
	assert_int_equal(ids.count, 3);
	for (int i = 0; i < 5; i++)
		e.top[i] = (struct engine_logprob){i < 3 ? ids.ids[i] : prompter_size(bed.prompter) + i,
						   -1 - (float)i};
	for (size_t i = 0; i < ids.count; i++) {
		e.token = ids.ids[i];
		answer_event(&a->choices[0], &e, 1000 + i);
	}
	end_with(&a->choices[0], ENGINE_END_STOP);
	body = json_loadb(text_str(&a->out), a->out.size, JSON_REJECT_DUPLICATES, &why);
	if (!body)
		fail_msg("%s in %s", why.text, text_str(&a->out));
	logprobs = json_object_get(json_array_get(json_object_get(body, "choices"), 0), "logprobs");
	assert_string_equal(json_string_value(json_array_get(json_object_get(logprobs, "tokens"), 2)),
			    "bytes:\\x88");
	tops = json_array_get(json_object_get(logprobs, "top_logprobs"), 0);
	assert_int_equal(json_object_size(tops), 4);
	assert_true(json_number_value(json_object_get(tops, "bytes:\\xf0\\x90")) == -1);
	assert_true(json_number_value(json_object_get(tops, "bytes:\\x88")) == -3);
	assert_true(json_number_value(json_object_get(tops, "")) == -4); /* the likelier one */
	json_decref(body);
	free(ids.ids);
	answer_destroy(&a);
}

/* The field of a 400 that the engine's refusal, in its own words, becomes. */
static void refused_for(enum protocol protocol, const char *body, const char *words, const char *field)
{
	struct engine_event e = {.kind = ENGINE_EVENT_END, .end = ENGINE_END_REFUSED};
	struct answer *a = answer_for(protocol, body);
	char wanted[80];

	snprintf(wanted, sizeof(wanted), *field ? "\"param\":\"%s\"" : "\"param\":null", field);
	snprintf(e.text, sizeof(e.text), "%s", words);
	answer_event(&a->choices[0], &e, 2000);
	assert_int_equal(a->http, 400);
	if (!strstr(text_str(&a->out), wanted))
		fail_msg("%s: %s", words, text_str(&a->out));
	answer_destroy(&a);
}

static void test_answer__a_refusal_of_the_engine_names_the_field(void **state)
{
	static const char schema[] = "{" HI ",\"response_format\":{\"type\":\"json_object\"}}";
	static const char presence[] = "{" HI ",\"presence_penalty\":1}";

	(void)state;
	refused_for(PROTOCOL_CHAT, "{" HI "}", "temperature is 5; it must be 0 or more", "temperature");
	refused_for(PROTOCOL_CHAT, "{" HI "}", "logit_bias names the id 9; ids are 0 to 8", "logit_bias");
	refused_for(PROTOCOL_CHAT, "{" HI "}", "token 3 of the prompt is 9; ids are 0 to 8", "messages");
	refused_for(PROTOCOL_COMPLETION, "{\"prompt\":\"a\"}", "token 3 of the prompt is 9; ids are 0 to 8",
		    "prompt");
	refused_for(PROTOCOL_RESPONSES, "{\"input\":\"a\"}", "token 3 of the prompt is 9; ids are 0 to 8",
		    "input");
	refused_for(PROTOCOL_COMPLETION, "{\"prompt\":\"a\"}",
		    "9 alternatives with log probabilities are asked for", "logprobs");
	refused_for(PROTOCOL_CHAT, presence, "this engine was started without memory for penalties of tokens",
		    "presence_penalty");
	refused_for(PROTOCOL_CHAT, schema, "the automaton has too many states", "response_format");
	refused_for(PROTOCOL_CHAT, "{" HI "}", "something else", "");
}

static void test_answer__errors_before_and_within_a_stream(void **state)
{
	static const struct {
		enum engine_end end;
		int http;
	} ends[] = {{ENGINE_END_REFUSED, 400},
		    {ENGINE_END_FAILED, 500},
		    {ENGINE_END_CANCELLED, 503},
		    {ENGINE_END_DEADLINE, 503}};
	static const enum protocol protocols[] = {PROTOCOL_CHAT, PROTOCOL_COMPLETION, PROTOCOL_MESSAGES,
						  PROTOCOL_RESPONSES};
	static const char *const bodies[] = {
		"{" HI ",\"stream\":true,\"n\":2}", "{\"prompt\":\"a\",\"stream\":true}",
		"{" HI ",\"max_tokens\":5,\"stream\":true}", "{\"input\":\"a\",\"stream\":true}"};
	struct answer *a;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		a = answer_for(PROTOCOL_CHAT, bodies[0]);
		end_with(&a->choices[1], ends[i].end);
		assert_true(a->complete && a->failed && a->http == ends[i].http && !a->streaming);
		json_decref(body_of(a));
		end_with(&a->choices[0], ENGINE_END_STOP);
		json_decref(body_of(a));
		answer_destroy(&a);
	}
	for (size_t i = 0; i < 4; i++) {
		json_t *events;

		a = answer_for(protocols[i], bodies[i]);
		send_text(&a->choices[0], "Hello");
		end_with(&a->choices[0], ENGINE_END_FAILED);
		assert_true(a->complete && a->failed && a->streaming);
		events = events_of(a);
		assert_non_null(strstr(a->out.data, "the \\\"reason\\\""));
		json_decref(events);
		answer_destroy(&a);
	}
}

static void test_answer__a_stop_string_cancels_and_waits(void **state)
{
	struct answer *a = answer_for(PROTOCOL_CHAT, "{" HI ",\"stop\":\"o\",\"stream\":true}");
	const struct engine_event last = {.kind = ENGINE_EVENT_TOKEN, .token = 10};
	struct prompt_ids ids = {0};
	struct error err = {0};
	bool cancel = false;

	(void)state;
	prompter_text(bed.worker, "Hello", 5, false, &ids, &err);
	for (size_t i = 0; i < ids.count; i++) {
		const struct engine_event e = {.kind = ENGINE_EVENT_TOKEN, .token = ids.ids[i]};

		cancel |= answer_event(&a->choices[0], &e, 1);
	}
	assert_true(cancel && a->choices[0].finished && !a->complete);
	assert_string_equal(a->choices[0].stop, "o");
	assert_false(answer_event(&a->choices[0], &last, 2)); /* later tokens add nothing */
	end_with(&a->choices[0], ENGINE_END_CANCELLED);
	assert_true(a->complete && !a->failed);
	assert_int_equal(answer_usage(a).tokens, ids.count);
	free(ids.ids);
	answer_destroy(&a);
}

static int32_t end_of_turn(void)
{
	size_t count;
	const int32_t *ends = prompter_ends(bed.prompter, &count);

	assert_true(count > 0);
	return ends[0];
}

/* The offsets of the tokens "a", the end of a turn, "b" and "c" after the prompt "h". */
static void expect_offsets(const char *fields, int32_t before, const char *want)
{
	struct engine_event e = {.kind = ENGINE_EVENT_TOKEN, .token = end_of_turn()};
	char body[128];
	struct answer *a;

	snprintf(body, sizeof(body), "{\"prompt\":\"h\",\"logprobs\":0%s}", fields);
	a = answer_for(PROTOCOL_COMPLETION, body);
	assert_int_equal(a->request->prompts[0].count, 1);
	if (before >= 0) { /* a token that a tokenizer puts before the text */
		const struct engine_event h = {.kind = ENGINE_EVENT_PROMPT,
					       .token = a->request->prompts[0].ids[0]};

		a->request->prompts[0].ids[0] = before;
		answer_event(&a->choices[0], &h, 900);
	}
	send_text(&a->choices[0], "a");
	answer_event(&a->choices[0], &e, 1000);
	send_text(&a->choices[0], "b");
	send_text(&a->choices[0], "c");
	end_with(&a->choices[0], ENGINE_END_LENGTH);
	if (!strstr(text_str(&a->out), want))
		fail_msg("%s: %s instead of %s", fields, text_str(&a->out), want);
	answer_destroy(&a);
}

static void test_answer__offsets_leave_out_what_the_text_does(void **state)
{
	(void)state;
	expect_offsets("", -1, "\"text_offset\":[0,1,1,2]");
	expect_offsets(",\"skip_special_tokens\":false", -1, "\"text_offset\":[0,1,11,12]"); /* <|im_end|> */
	expect_offsets(",\"echo\":true", -1, "\"text_offset\":[0,1,2,2,3]");
	expect_offsets(",\"echo\":true", end_of_turn(), "\"text_offset\":[0,0,1,2,2,3]");
}

/* The reason why an answer of these words ends at the stop string "END". */
static void expect_reason(enum protocol protocol, const char *fields, const char *text, const char *want)
{
	static const char tools[] =
		"\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],\"stop\":\"END\"";
	static const char messages[] =
		"\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],\"stop_sequences\":[\"END\"],\"max_tokens\":99";
	char body[512];

	for (int i = 0; i < 2; i++) {
		struct answer *a;

		snprintf(body, sizeof(body), "{" HI ",%s,\"stream\":%s%s}",
			 protocol == PROTOCOL_CHAT ? tools : messages, streamed[i], fields);
		a = answer_for(protocol, body);
		send_text(&a->choices[0], text);
		end_with(&a->choices[0], ENGINE_END_STOP);
		if (!strstr(text_str(&a->out), want))
			fail_msg("%s: %s instead of %s", text, text_str(&a->out), want);
		answer_destroy(&a);
	}
}

#define CALL "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\"}}"

static void test_answer__a_call_that_is_cut_is_no_reason(void **state)
{
	static const char cut[] =
		"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"xEND\"}}</tool_call>";

	(void)state;
	expect_reason(PROTOCOL_CHAT, "", CALL "</tool_call>END", "\"finish_reason\":\"tool_calls\"");
	expect_reason(PROTOCOL_CHAT, "", CALL "END", "\"finish_reason\":\"tool_calls\"");
	expect_reason(PROTOCOL_CHAT, "", cut, "\"finish_reason\":\"stop\"");
	expect_reason(PROTOCOL_CHAT, "",
		      CALL "</tool_call><tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [END",
		      "\"finish_reason\":\"stop\"");
	/* the second call is left out */
	expect_reason(PROTOCOL_CHAT, ",\"parallel_tool_calls\":false",
		      CALL "</tool_call><tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [END",
		      "\"finish_reason\":\"tool_calls\"");
	expect_reason(PROTOCOL_MESSAGES, "", CALL "</tool_call>", "\"stop_reason\":\"tool_use\"");
	expect_reason(PROTOCOL_MESSAGES, "", cut, "\"stop_reason\":\"stop_sequence\"");
}

static void test_answer__it_can_begin_again(void **state)
{
	struct answer *a = answer_for(PROTOCOL_CHAT, "{" HI "}");

	(void)state;
	send_text(&a->choices[0], "Hel");
	answer_restart(a);
	send_text(&a->choices[0], "Hello");
	end_with(&a->choices[0], ENGINE_END_STOP);
	assert_non_null(strstr(a->out.data, "\"content\":\"Hello\""));
	answer_destroy(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer__chat_whole_and_streamed),
		cmocka_unit_test(test_answer__completions_of_several_prompts),
		cmocka_unit_test(test_answer__each_chunk_tells_the_usage_if_asked),
		cmocka_unit_test(test_answer__tokens_that_are_no_text_are_told_apart),
		cmocka_unit_test(test_answer__messages_and_responses_are_json),
		cmocka_unit_test(test_answer__responses_have_log_probabilities_of_their_text),
		cmocka_unit_test(test_answer__the_last_item_of_a_cut_response_is_incomplete),
		cmocka_unit_test(test_answer__a_refusal_of_the_engine_names_the_field),
		cmocka_unit_test(test_answer__errors_before_and_within_a_stream),
		cmocka_unit_test(test_answer__a_stop_string_cancels_and_waits),
		cmocka_unit_test(test_answer__it_can_begin_again),
		cmocka_unit_test(test_answer__a_call_that_is_cut_is_no_reason),
		cmocka_unit_test(test_answer__offsets_leave_out_what_the_text_does),
	};

	return cmocka_run_group_tests(tests, open_bed, close_bed);
}
