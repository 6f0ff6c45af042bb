/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of servers, as they stream them: vLLM, llama.cpp, TGI, OpenAI and `assay serve`. */
#include "test.h"

#include "load/answer/answer.h"

#define VLLM                                                                                                 \
	"data: {\"id\":\"chatcmpl-c4ee\",\"object\":\"chat.completion.chunk\",\"created\":1749904375,\"model\":\"m\","
#define VLLM_TEXT(t)                                                                                         \
	VLLM "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t "\",\"tool_calls\":[]}}]}\n\n"
#define VLLM_FIRST                                                                                           \
	VLLM "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"                \
	     "\"logprobs\":null,\"finish_reason\":null}]}\n\n"
#define VLLM_LAST                                                                                            \
	VLLM "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"logprobs\":null,"                     \
	     "\"finish_reason\":\"stop\",\"stop_reason\":null}]}\n\n"
#define VLLM_USAGE(n)                                                                                        \
	VLLM "\"choices\":[],\"usage\":{\"prompt_tokens\":21,\"total_tokens\":24,\"completion_tokens\":" n   \
	     ",\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\n"
#define DONE "data: [DONE]\n\n"

#define ASSAY                                                                                                \
	"data: {\"id\":\"chatcmpl-9f\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,"         \
	"\"model\":\"smol\",\"choices\":[{\"index\":0,\"delta\":{"
#define ASSAY_PART(members) ASSAY members "},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"

#define LLAMA(delta, finish, more)                                                                           \
	"data: {\"choices\":[{\"finish_reason\":" finish ",\"index\":0,\"delta\":" delta                     \
	"}],\"created\":1754524122,"                                                                         \
	"\"id\":\"chatcmpl-pk\",\"model\":\"gpt-oss\",\"system_fingerprint\":\"b6881\","                     \
	"\"object\":\"chat.completion.chunk\"" more "}\n\n"

#define OPENAI(delta, finish)                                                                                \
	"data: {\"id\":\"chatcmpl-ET\",\"object\":\"chat.completion.chunk\",\"created\":1790700378,"         \
	"\"model\":\"gpt\",\"service_tier\":\"default\",\"system_fingerprint\":null,\"choices\":["           \
	"{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":" finish "}],\"usage\":null,"  \
	"\"obfuscation\":\"aZ3\"}\n\n"

struct read {
	struct load_record record;
	struct load_answer_text text;
};

static struct load_record new_record(void)
{
	return (struct load_record){.scheduled_ns = 1,
				    .sent_ns = 1,
				    .first_token_ns = LOAD_NEVER,
				    .last_token_ns = LOAD_NEVER,
				    .end_ns = 1000000000,
				    .output_counted = LOAD_UNKNOWN,
				    .status = 200};
}

/* Every byte arrives by itself: byte i at 1000 (i + 1) ns. */
static struct read read_body(const char *body, size_t size, bool stream, bool completion)
{
	struct load_stamp *stamp = malloc((size + 1) * sizeof(*stamp));
	char *own = malloc(size ? size : 1); /* of exactly its size, for the sanitizers */
	struct read r = {.record = new_record()};
	struct error err = {0};
	struct load_answer a = {.size = size,
				.stamp = stamp,
				.stamps = size,
				.stream = stream,
				.usage = true,
				.completion = completion};

	assert_true(stamp && own);
	memcpy(own, body, size);
	a.bytes = own;
	for (size_t i = 0; i < size; i++)
		stamp[i] = (struct load_stamp){1000 * (i + 1), i + 1};
	assert_int_equal(load_answer_read(&a, &r.record, &r.text, &err), STATUS_OK);
	free(stamp);
	free(own);
	return r;
}

static void end_read(struct read *r)
{
	load_record_release(&r->record);
	load_answer_text_release(&r->text);
}

static struct read read_stream(const char *body)
{
	return read_body(body, strlen(body), true, false);
}

/* Time of the n-th event (from 0) of a stream with LF: that of the second LF. */
static uint64_t event_ns(const char *body, int n)
{
	const char *at = body;

	for (; n >= 0; n--)
		at = strstr(at, "\n\n") + 2;
	return 1000 * (uint64_t)(at - body);
}

static void expect(const struct read *r, const char *content, uint32_t chunks, int64_t usage, uint32_t flags)
{
	assert_string_equal(text_str(&r->text.content), content);
	assert_int_equal(r->record.error, LOAD_ERROR_NONE);
	assert_int_equal(r->record.chunks, chunks);
	assert_int_equal(r->record.gap_count, chunks ? chunks - 1 : 0);
	assert_int_equal(r->record.output_usage, usage);
	assert_int_equal(r->record.flags, flags);
}

static void test_vllm__text_times_and_usage(void **state)
{
	static const char body[] =
		VLLM_FIRST VLLM_TEXT("\xec\x95\x88") VLLM_TEXT("\\ub155") VLLM_LAST VLLM_USAGE("3") DONE;
	struct read r = read_stream(body);

	(void)state;
	expect(&r, "\xec\x95\x88\xeb\x85\x95", 2, 3, 0);
	assert_int_equal(r.record.prompt_usage, 21);
	assert_int_equal(r.record.cached, 16);
	assert_int_equal(r.record.blanks, 1); /* the last event, not the first one with the role */
	assert_string_equal(r.text.finish, "stop");
	assert_int_equal(r.record.first_token_ns, event_ns(body, 1));
	assert_int_equal(r.record.last_token_ns, event_ns(body, 3)); /* that of the end token */
	assert_int_equal(r.record.gap_us[0], (event_ns(body, 2) - event_ns(body, 1)) / 1000);
	end_read(&r);
}

static void test_vllm__a_token_without_text_has_an_event(void **state)
{
	static const char body[] = VLLM_FIRST VLLM_TEXT("a") VLLM_TEXT("") VLLM_TEXT("b") VLLM_TEXT("")
		VLLM_LAST VLLM_USAGE("5") DONE;
	struct read r = read_stream(body);

	(void)state;
	expect(&r, "ab", 2, 5, 0);
	assert_int_equal(r.record.blanks, 3);
	assert_int_equal(r.record.gap_us[0], (event_ns(body, 3) - event_ns(body, 1)) / 1000);
	end_read(&r);
}

static void test_assay__thought_and_text(void **state)
{
	static const char body[] = ASSAY_PART("\"role\":\"assistant\",\"content\":\"\"")
		ASSAY_PART("\"reasoning_content\":\"hm\"") ASSAY_PART("\"content\":\"a\\\"b\"") ASSAY
		"},\"logprobs\":null,\"finish_reason\":\"length\"}],\"usage\":null}\n\n"
		"data: {\"id\":\"chatcmpl-9f\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,"
		"\"model\":\"smol\",\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,"
		"\"total_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\n" DONE;
	struct read r = read_stream(body);

	(void)state;
	expect(&r, "a\"b", 2, 2, 0);
	assert_string_equal(text_str(&r.text.reasoning), "hm");
	assert_int_equal(r.record.cached, 0);
	assert_string_equal(r.text.finish, "length");
	end_read(&r);
}

static void test_llama_cpp__usage_beside_the_end(void **state)
{
	struct read r = read_stream(
		LLAMA("{\"role\":\"assistant\",\"content\":null}", "null",
		      "") LLAMA("{\"content\":\"Hel\"}", "null", "") LLAMA("{\"content\":\"lo\"}", "null", "")
			LLAMA("{}", "\"stop\"",
			      ",\"usage\":{\"completion_tokens\":2,\"prompt_tokens\":1085,\"total_tokens\":1087},"
			      "\"timings\":{\"prompt_n\":1085,\"predicted_per_second\":264.5587652496171}")
				DONE);

	(void)state;
	expect(&r, "Hello", 2, 2, 0);
	assert_int_equal(r.record.cached, LOAD_UNKNOWN);
	end_read(&r);
}

static void test_tgi__the_last_text_has_the_reason(void **state)
{
	struct read r = read_stream(
		"data:{\"object\":\"chat.completion.chunk\",\"id\":\"\",\"created\":1726656043,\"model\":\"t\","
		"\"system_fingerprint\":\"3.0.0-sha\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
		"\"content\":\" a\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"
		"data:{\"object\":\"chat.completion.chunk\",\"id\":\"\",\"created\":1726656043,\"model\":\"t\","
		"\"system_fingerprint\":\"3.0.0-sha\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
		"\"content\":\" b\"},\"logprobs\":null,\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":4,"
		"\"completion_tokens\":2,\"total_tokens\":6}}\n\ndata: [DONE]\n\n");

	(void)state;
	expect(&r, " a b", 2, 2, 0);
	end_read(&r);
}

static void test_openai__comments_and_calls(void **state)
{
	struct read r = read_stream(": OPENROUTER PROCESSING\n\n" OPENAI(
		"{\"role\":\"assistant\",\"content\":null,\"refusal\":null}",
		"null") OPENAI("{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{"
			       "\"name\":\"f\",\"arguments\":\"\"}}]}",
			       "null") ": ping\n\n" OPENAI("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}",
							   "null") OPENAI("{}", "\"tool_calls\"") DONE);

	(void)state;
	expect(&r, "", 2, LOAD_UNKNOWN, LOAD_FLAG_NO_USAGE);
	assert_int_equal(r.text.calls, 2);
	assert_string_equal(r.text.finish, "tool_calls");
	end_read(&r);
}

#define COMPLETION(t, finish)                                                                                  \
	"data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":1,\"model\":\"m\",\"choices\":[{" \
	"\"index\":0,\"text\":\"" t "\",\"logprobs\":null,\"finish_reason\":" finish                           \
	"}],\"usage\":null}\n\n"

static void test_completions__text_is_in_the_choice(void **state)
{
	static const char body[] =
		COMPLETION("x", "null") COMPLETION(" y", "null") COMPLETION("", "\"length\"") DONE;
	struct read r = read_body(body, strlen(body), true, true);

	(void)state;
	expect(&r, "x y", 2, LOAD_UNKNOWN, LOAD_FLAG_NO_USAGE);
	end_read(&r);
}

/* ---- the stream itself ---- */

static char *replace(const char *body, const char *what, const char *with)
{
	char *out = calloc(strlen(body) + 1, 3), *to = out;

	assert_non_null(out);
	for (const char *at = body; *at;) {
		if (!strncmp(at, what, strlen(what))) {
			memcpy(to, with, strlen(with));
			to += strlen(with);
			at += strlen(what);
		} else {
			*to++ = *at++;
		}
	}
	return out;
}

static const char plain[] =
	VLLM_FIRST VLLM_TEXT("a") VLLM_TEXT("b") VLLM_TEXT("c") VLLM_LAST VLLM_USAGE("4") DONE;

static void test_stream__line_ends_and_lines_of_data(void **state)
{
	static const char *const changes[][2] = {
		{"\n", "\r\n"},
		{"\n", "\r"},
		{"data: ", "data:"},
		{"data: ", ": comment\nevent: message\nid: 7\nretry: 5\nother\ndata: "},
		{",\"choices\"", ",\ndata: \"choices\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		char *body = replace(plain, changes[i][0], changes[i][1]);
		struct read r = read_stream(body);

		expect(&r, "abc", 3, 4, 0);
		end_read(&r);
		free(body);
	}
}

/* With CR LF, an event is complete at the CR of its empty line. */
static void test_stream__times_with_cr_lf(void **state)
{
	char *body = replace(plain, "\n", "\r\n");
	struct read r = read_stream(body);
	const char *at = strstr(strstr(body, "\r\n\r\n") + 4, "\r\n\r\n");

	(void)state;
	assert_int_equal(r.record.first_token_ns, 1000 * (uint64_t)(at + 3 - body));
	end_read(&r);
	free(body);
}

static void test_stream__a_byte_order_mark_is_skipped(void **state)
{
	char body[sizeof(plain) + 3] = "\xef\xbb\xbf";
	struct read r;

	(void)state;
	memcpy(body + 3, plain, sizeof(plain));
	r = read_stream(body);
	expect(&r, "abc", 3, 4, 0);
	end_read(&r);
}

/* However the bytes are divided into pieces, the answer is the same, and only times differ. */
static void test_stream__pieces_of_any_size(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof(plain); piece += 1 + piece / 3) {
		struct load_stamp stamp[sizeof(plain)];
		struct load_answer a = {
			.bytes = plain, .size = strlen(plain), .stamp = stamp, .stream = true, .usage = true};
		struct read r = {.record = new_record()};
		struct error err = {0};

		for (size_t end = piece; a.stamps == 0 || stamp[a.stamps - 1].end < a.size; end += piece)
			stamp[a.stamps++] =
				(struct load_stamp){1000 * (end / piece), end < a.size ? end : a.size};
		assert_int_equal(load_answer_read(&a, &r.record, &r.text, &err), STATUS_OK);
		expect(&r, "abc", 3, 4, 0);
		/* bytes 0 .. e - 1 hold the event; byte e - 1 is in piece (e - 1) / piece + 1 */
		assert_int_equal(r.record.first_token_ns,
				 1000 * ((event_ns(plain, 1) / 1000 - 1) / piece + 1));
		assert_int_equal(r.record.last_token_ns,
				 1000 * ((event_ns(plain, 4) / 1000 - 1) / piece + 1));
		end_read(&r);
	}
}

/* ---- what may be wrong ---- */

static void test_cut__at_any_byte(void **state)
{
	const size_t done_at = (size_t)(strstr(plain, "data: [DONE]") - plain);
	const size_t finish_at = (size_t)(strstr(plain, VLLM_USAGE("4")) - plain);

	(void)state;
	for (size_t size = 0; size < sizeof(plain) - 1; size++) {
		struct read r = read_body(plain, size, true, false);
		/* an event is whole if only its empty line is missing */
		const bool finished = size + 2 >= finish_at, done = size >= done_at + strlen("data: [DONE]");
		const bool torn = size > finish_at && size + 2 < done_at;
		/* "data: [DON" is no JSON; "data: " has no data yet */
		const bool torn_done = size > done_at + strlen("data: ") && !done;

		if (finished && !torn && !torn_done)
			assert_int_equal(r.record.error, LOAD_ERROR_NONE);
		else if (!finished)
			assert_int_equal(r.record.error, LOAD_ERROR_CUT);
		assert_int_equal(!(r.record.flags & LOAD_FLAG_NO_DONE), done);
		end_read(&r);
	}
}

static void expect_error(const char *body, bool stream, enum load_error error)
{
	struct read r = read_body(body, strlen(body), stream, false);

	if (r.record.error != error)
		fail_msg("%s instead of %s: %s", load_error_word(r.record.error), load_error_word(error),
			 body);
	end_read(&r);
}

static void test_errors__in_the_body(void **state)
{
	(void)state;
	expect_error("", true, LOAD_ERROR_CUT);
	expect_error("<html>502</html>", true, LOAD_ERROR_GARBAGE);
	expect_error("{\"error\":{\"message\":\"no\"}}", true, LOAD_ERROR_SERVER);
	expect_error("{\"choices\":[]}", true, LOAD_ERROR_GARBAGE);
	expect_error(VLLM_FIRST "data: {\"error\":{\"message\":\"no\"}}\n\n" DONE, true, LOAD_ERROR_SERVER);
	expect_error(VLLM_FIRST "data: {\"object\":\"error\",\"message\":\"no\"}\n\n", true,
		     LOAD_ERROR_SERVER);
	expect_error(VLLM_FIRST "event: error\ndata: broken\n\n", true, LOAD_ERROR_SERVER);
	expect_error(VLLM_FIRST "error: {\"code\":500}\n\n", true, LOAD_ERROR_SERVER);
	expect_error(VLLM_FIRST "data: {\"choices\":[}\n\n" VLLM_LAST DONE, true, LOAD_ERROR_GARBAGE);
	expect_error(VLLM_FIRST "data: 7\n\n" VLLM_LAST DONE, true, LOAD_ERROR_GARBAGE);
	expect_error(VLLM_FIRST VLLM "\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n" VLLM_LAST DONE,
		     true, LOAD_ERROR_GARBAGE);
	expect_error(VLLM_TEXT("a") "data: {\"choi", true, LOAD_ERROR_CUT);
	expect_error("", false, LOAD_ERROR_CUT);
	expect_error("{\"choices\":", false, LOAD_ERROR_GARBAGE);
	expect_error("{\"choices\":[]}", false, LOAD_ERROR_GARBAGE);
	expect_error("{\"error\":\"no\"}", false, LOAD_ERROR_SERVER);
	expect_error(VLLM_FIRST DONE, false, LOAD_ERROR_GARBAGE);
	expect_error(VLLM_TEXT("a") "data: {\"error\":null,\"choices\":[]}\n\n" VLLM_LAST DONE, true,
		     LOAD_ERROR_NONE);
}

static void test_errors__an_earlier_one_stays(void **state)
{
	struct load_answer a = {.bytes = "x", .size = 1, .stream = true};
	struct load_record record = new_record();
	struct load_answer_text text;
	struct error err = {0};

	(void)state;
	record.error = LOAD_ERROR_TIMEOUT;
	assert_int_equal(load_answer_read(&a, &record, &text, &err), STATUS_OK);
	assert_int_equal(record.error, LOAD_ERROR_TIMEOUT);
	load_answer_text_release(&text);
}

static void test_flags__of_complete_answers(void **state)
{
	struct read r = read_stream(VLLM_TEXT("a") VLLM_LAST);

	(void)state;
	expect(&r, "a", 1, LOAD_UNKNOWN, LOAD_FLAG_NO_DONE | LOAD_FLAG_NO_USAGE);
	end_read(&r);
	r = read_stream(VLLM_TEXT("a") VLLM_USAGE("1") DONE);
	expect(&r, "a", 1, 1, LOAD_FLAG_NO_FINISH);
	end_read(&r);
	r = read_stream(VLLM_TEXT("a") VLLM_LAST VLLM_USAGE("1") DONE VLLM_TEXT("b") DONE);
	expect(&r, "a", 1, 1, LOAD_FLAG_AFTER_DONE);
	end_read(&r);
}

/* Equal tokens make equal events; only more chunks than tokens prove a duplicate. */
static void test_duplicates__accuse_no_correct_server(void **state)
{
	struct read r =
		read_stream(VLLM_TEXT("ha") VLLM_TEXT("ha") VLLM_TEXT("ha") VLLM_LAST VLLM_USAGE("3") DONE);

	(void)state;
	expect(&r, "hahaha", 3, 3, 0);
	end_read(&r);
	r = read_stream(VLLM_TEXT("ha") VLLM_TEXT("ha") VLLM_LAST DONE); /* no usage: nothing is known */
	expect(&r, "haha", 2, LOAD_UNKNOWN, LOAD_FLAG_NO_USAGE);
	end_read(&r);
	r = read_stream(VLLM_TEXT("a") VLLM_TEXT("b") VLLM_LAST VLLM_USAGE("1") DONE); /* usage is wrong */
	expect(&r, "ab", 2, 1, 0);
	end_read(&r);
}

static void test_duplicates__are_found(void **state)
{
	static const char body[] =
		VLLM_TEXT("a") VLLM_TEXT("b") VLLM_TEXT("b") VLLM_LAST VLLM_USAGE("2") DONE;
	char *numbered;
	struct read r = read_stream(body);

	(void)state;
	expect(&r, "abb", 3, 2, LOAD_FLAG_DUPLICATE);
	end_read(&r);
	/* numbered events that are equal are one event, whatever usage says */
	numbered = replace(VLLM_TEXT("a") VLLM_TEXT("a") VLLM_LAST VLLM_USAGE("2") DONE,
			   "data: ", "id: 5\ndata: ");
	r = read_stream(numbered);
	expect(&r, "aa", 2, 2, LOAD_FLAG_DUPLICATE);
	end_read(&r);
	free(numbered);
}

/* No correct server sends more events with text than tokens, but for one where the reasoning ends. */
static void test_usage__below_the_events_is_found(void **state)
{
	struct read r =
		read_stream(VLLM_TEXT("a") VLLM_TEXT("b") VLLM_TEXT("c") VLLM_LAST VLLM_USAGE("1") DONE);

	(void)state;
	expect(&r, "abc", 3, 1, LOAD_FLAG_LOW_USAGE);
	end_read(&r);
	r = read_stream(VLLM_TEXT("a") VLLM_TEXT("b") VLLM_TEXT("c") VLLM_LAST VLLM_USAGE("2") DONE);
	expect(&r, "abc", 3, 2, 0);
	end_read(&r);
	r = read_stream(VLLM_TEXT("a") VLLM_TEXT("b") VLLM_TEXT("c") VLLM_LAST VLLM_USAGE("9") DONE);
	expect(&r, "abc", 3, 9, 0);
	end_read(&r);
}

static void test_whole__an_answer_has_no_times_of_tokens(void **state)
{
	static const char chat[] =
		"{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,"
		"\"message\":{\"role\":\"assistant\",\"content\":\"Hi\",\"reasoning\":\"so\"},\"finish_reason\":\"stop\"}],"
		"\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"prompt_tokens_details\":null}}";
	static const char completion[] =
		"{\"choices\":[{\"text\":\"Hi\\u0000!\",\"finish_reason\":\"length\"}],"
		"\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}";
	struct read r = read_body(chat, strlen(chat), false, false);

	(void)state;
	expect(&r, "Hi", 0, 2, 0);
	assert_string_equal(text_str(&r.text.reasoning), "so");
	assert_true(r.record.first_token_ns == LOAD_NEVER && r.record.last_token_ns == LOAD_NEVER);
	end_read(&r);
	r = read_body(completion, strlen(completion), false, true);
	assert_int_equal(r.text.content.size, 4);
	assert_memory_equal(r.text.content.data, "Hi\0!", 4);
	end_read(&r);
}

static void test_usage__strange_values_are_unknown(void **state)
{
	struct read r = read_stream(
		VLLM_TEXT("a") VLLM_LAST
		"data: {\"choices\":[],\"usage\":{\"completion_tokens\":1,\"prompt_tokens\":-4,"
		"\"prompt_tokens_details\":{\"cached_tokens\":\"x\"}}}\n\ndata: {\"choices\":[],\"usage\":null}\n\n" DONE);

	(void)state;
	expect(&r, "a", 1, 1, 0);
	assert_int_equal(r.record.prompt_usage, LOAD_UNKNOWN);
	assert_int_equal(r.record.cached, LOAD_UNKNOWN);
	end_read(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vllm__text_times_and_usage),
		cmocka_unit_test(test_vllm__a_token_without_text_has_an_event),
		cmocka_unit_test(test_assay__thought_and_text),
		cmocka_unit_test(test_llama_cpp__usage_beside_the_end),
		cmocka_unit_test(test_tgi__the_last_text_has_the_reason),
		cmocka_unit_test(test_openai__comments_and_calls),
		cmocka_unit_test(test_completions__text_is_in_the_choice),
		cmocka_unit_test(test_stream__line_ends_and_lines_of_data),
		cmocka_unit_test(test_stream__times_with_cr_lf),
		cmocka_unit_test(test_stream__a_byte_order_mark_is_skipped),
		cmocka_unit_test(test_stream__pieces_of_any_size),
		cmocka_unit_test(test_cut__at_any_byte),
		cmocka_unit_test(test_errors__in_the_body),
		cmocka_unit_test(test_errors__an_earlier_one_stays),
		cmocka_unit_test(test_flags__of_complete_answers),
		cmocka_unit_test(test_duplicates__accuse_no_correct_server),
		cmocka_unit_test(test_duplicates__are_found),
		cmocka_unit_test(test_usage__below_the_events_is_found),
		cmocka_unit_test(test_whole__an_answer_has_no_times_of_tokens),
		cmocka_unit_test(test_usage__strange_values_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
