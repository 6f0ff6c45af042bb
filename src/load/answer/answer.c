/* SPDX-License-Identifier: Apache-2.0 */
#include "load/answer/answer.h"
#include <stdlib.h>
#include <string.h>
#include "core/json/member.h"
#include "load/answer/sse.h"

/* Where a server puts the text of thoughts: most, and vLLM since 2026. */
static const char *const reasoning_names[] = {"reasoning_content", "reasoning"};

enum found {
	FOUND_TEXT = 1,	  /* text, thought or part of a call */
	FOUND_FINISH = 2, /* the reason of the end */
	FOUND_BLANK = 4,  /* an empty text, as of a token that has none */
};

struct reader {
	const struct load_answer *answer;
	struct load_record *record;
	struct load_answer_text *text;
	size_t stamp;		/* index; times only go forward */
	struct sse_event chunk; /* the last event with text; raw NULL: none */
	uint64_t chunk_ns;
	uint32_t gap_room, repeats, numbered_repeats;
	bool done, usage, no_memory;
};

static uint64_t time_of(struct reader *r, size_t offset)
{
	const struct load_answer *a = r->answer;

	while (r->stamp + 1 < a->stamps && a->stamp[r->stamp].end <= offset)
		r->stamp++;
	return a->stamps ? a->stamp[r->stamp].at_ns : r->record->end_ns;
}

static void set_error(struct reader *r, enum load_error error)
{
	if (r->record->error == LOAD_ERROR_NONE)
		r->record->error = error;
}

/* ---- JSON of an answer or an event ---- */

static int64_t count_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	const double number = json_number_value(value);

	return json_is_number(value) && number >= 0 && number < 1e15 ? (int64_t)number : LOAD_UNKNOWN;
}

/* Some servers report usage in every event; the last one counts. */
static void read_usage(struct reader *r, const json_t *root)
{
	const json_t *usage = json_object_get(root, "usage");
	const int64_t output = count_of(usage, "completion_tokens");

	if (output == LOAD_UNKNOWN)
		return;
	r->usage = true;
	r->record->output_usage = output;
	r->record->prompt_usage = count_of(usage, "prompt_tokens");
	r->record->cached = count_of(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
}

static bool add_text(struct reader *r, struct text *to, const json_t *value)
{
	const size_t size = json_string_length(value);

	text_add_bytes(to, size ? json_string_value(value) : "", size);
	r->no_memory |= to->failed;
	return size > 0;
}

/* A message, or what is new of it in an event. */
static bool read_message(struct reader *r, const json_t *message)
{
	const json_t *calls = json_object_get(message, "tool_calls");
	bool call = json_array_size(calls) > 0 || json_is_object(json_object_get(message, "function_call"));
	bool found = add_text(r, &r->text->content, json_object_get(message, "content"));

	for (size_t i = 0; i < sizeof(reasoning_names) / sizeof(reasoning_names[0]); i++)
		if (add_text(r, &r->text->reasoning, json_object_get(message, reasoning_names[i]))) {
			found = true;
			break;
		}
	r->text->calls += call;
	return found || call;
}

static bool is_empty(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_string(value) && !json_string_length(value);
}

/* The first event has the role and an empty text, which is no token's. */
static bool is_blank(const struct reader *r, const json_t *choice, const json_t *message)
{
	if (r->answer->completion)
		return is_empty(choice, "text");
	return !json_object_get(message, "role") &&
	       (is_empty(message, "content") || is_empty(message, reasoning_names[0]) ||
		is_empty(message, reasoning_names[1]));
}

static unsigned read_choice(struct reader *r, const json_t *choice)
{
	const char *finish = json_member_text(choice, "finish_reason");
	const json_t *message = json_object_get(choice, r->answer->stream ? "delta" : "message");
	bool found = r->answer->completion ? add_text(r, &r->text->content, json_object_get(choice, "text"))
					   : read_message(r, message);

	if (*finish)
		text_copy(r->text->finish, sizeof(r->text->finish), finish);
	return (found ? FOUND_TEXT : 0) | (*finish ? FOUND_FINISH : 0) |
	       (is_blank(r, choice, message) ? FOUND_BLANK : 0);
}

static bool is_error(const json_t *root)
{
	const json_t *error = json_object_get(root, "error");

	return (error && !json_is_null(error)) || !strcmp(json_member_text(root, "object"), "error");
}

/* NULL: no JSON object, or no memory. Owner: caller. */
static json_t *read_object(struct reader *r, const char *data, size_t size)
{
	json_error_t wrong;
	json_t *root = json_loadb(data, size, JSON_ALLOW_NUL, &wrong);

	if (!root && (!wrong.text[0] ||
		      json_error_code(&wrong) == json_error_out_of_memory)) /* mostly without a text */
		r->no_memory = true;
	if (root && !json_is_object(root)) {
		json_decref(root);
		return NULL;
	}
	return root;
}

static unsigned read_choices(struct reader *r, const json_t *root)
{
	unsigned found = 0;
	json_t *choice;
	size_t i;

	json_array_foreach(json_object_get(root, "choices"), i, choice) found |= read_choice(r, choice);
	read_usage(r, root);
	return found;
}

/* ---- a stream ---- */

static void add_gap(struct reader *r, uint64_t gap_ns)
{
	struct load_record *record = r->record;
	const uint64_t us = (gap_ns + 500) / 1000;

	if (record->gap_count == r->gap_room) {
		const uint32_t room = r->gap_room ? 2 * r->gap_room : 64;
		uint32_t *more = realloc(record->gap_us, room * sizeof(*more));

		if (!more) {
			r->no_memory = true;
			return;
		}
		record->gap_us = more;
		r->gap_room = room;
	}
	record->gap_us[record->gap_count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void look_for_repeat(struct reader *r, const struct sse_event *e)
{
	const struct sse_event *before = &r->chunk;
	const bool equal =
		before->raw && before->raw_size == e->raw_size && !memcmp(before->raw, e->raw, e->raw_size);

	r->repeats += equal;
	r->numbered_repeats += equal && e->numbered;
}

static void take_chunk(struct reader *r, const struct sse_event *e, uint64_t at_ns)
{
	struct load_record *record = r->record;

	if (record->chunks)
		add_gap(r, at_ns > r->chunk_ns ? at_ns - r->chunk_ns : 0);
	if (record->first_token_ns == LOAD_NEVER)
		record->first_token_ns = at_ns;
	record->chunks++;
	look_for_repeat(r, e);
	r->chunk = *e;
	r->chunk_ns = at_ns;
}

static void take_event(struct reader *r, const struct sse_event *e)
{
	json_t *root;
	unsigned found;
	uint64_t at_ns;

	if (e->data_size == 6 && !memcmp(e->data, "[DONE]", 6)) {
		r->done = true;
		return;
	}
	if (r->done) {
		r->record->flags |= LOAD_FLAG_AFTER_DONE;
		return;
	}
	root = read_object(r, e->data, e->data_size);
	if (e->error || is_error(root)) {
		set_error(r, LOAD_ERROR_SERVER);
	} else if (!root) {
		set_error(r, e->complete ? LOAD_ERROR_GARBAGE : LOAD_ERROR_CUT);
	} else {
		at_ns = time_of(r, e->done);
		found = read_choices(r, root);
		if (found & FOUND_TEXT)
			take_chunk(r, e, at_ns);
		else if (found)
			r->record->blanks++;
		if (found & (FOUND_TEXT | FOUND_FINISH) && r->record->chunks)
			r->record->last_token_ns = at_ns;
	}
	json_decref(root);
}

static bool has_repeated(const struct reader *r)
{
	const int64_t chunks = r->record->chunks;

	return r->numbered_repeats ||
	       (r->repeats && r->usage && !r->text->calls && chunks > r->record->output_usage);
}

/* One token may end the reasoning and begin the text, which makes two events. */
static bool has_low_usage(const struct reader *r)
{
	return r->usage && !r->text->calls && !has_repeated(r) &&
	       (int64_t)r->record->chunks > r->record->output_usage + 1;
}

static void judge_stream(struct reader *r)
{
	const bool finished = r->text->finish[0];
	uint32_t *flags = &r->record->flags;

	*flags |= r->done ? 0 : LOAD_FLAG_NO_DONE;
	*flags |= finished ? 0 : LOAD_FLAG_NO_FINISH;
	*flags |= has_repeated(r) ? LOAD_FLAG_DUPLICATE : 0;
	*flags |= has_low_usage(r) ? LOAD_FLAG_LOW_USAGE : 0;
	if (!r->done && !finished)
		set_error(r, LOAD_ERROR_CUT);
}

/* As far as the text goes, it may be the begin of an event stream. */
static bool may_be_stream(const char *text, size_t size)
{
	static const char *const begins[] = {"data:", "event:", "id:", "retry:", ":"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		const size_t length = strlen(begins[i]);

		if (!memcmp(text, begins[i], size < length ? size : length))
			return true;
	}
	return false;
}

/* A body without a single event: an early cut, an error in JSON with status 200, or no event stream. */
static void judge_no_events(struct reader *r)
{
	const struct load_answer *a = r->answer;
	json_t *root = a->size ? read_object(r, a->bytes, a->size) : NULL;

	if (is_error(root))
		set_error(r, LOAD_ERROR_SERVER);
	else if (a->size && !may_be_stream(a->bytes, a->size))
		set_error(r, LOAD_ERROR_GARBAGE);
	json_decref(root);
}

static void read_stream(struct reader *r)
{
	struct sse_event e;
	struct sse s;
	size_t events = 0;

	sse_begin(&s, r->answer->bytes, r->answer->size);
	for (; !r->no_memory && sse_next(&s, &e); events++)
		take_event(r, &e);
	r->no_memory |= s.joined.failed;
	sse_end(&s);
	if (!events)
		judge_no_events(r);
	judge_stream(r);
}

/* ---- a whole answer ---- */

static void read_whole(struct reader *r)
{
	json_t *root = read_object(r, r->answer->bytes, r->answer->size);

	if (is_error(root))
		set_error(r, LOAD_ERROR_SERVER);
	else if (!r->answer->size)
		set_error(r, LOAD_ERROR_CUT);
	else if (!json_array_size(json_object_get(root, "choices")))
		set_error(r, LOAD_ERROR_GARBAGE);
	else
		read_choices(r, root);
	r->record->flags |= r->text->finish[0] ? 0 : LOAD_FLAG_NO_FINISH;
	json_decref(root);
}

enum status load_answer_read(const struct load_answer *a, struct load_record *record,
			     struct load_answer_text *text, struct error *err)
{
	struct reader r = {.answer = a, .record = record, .text = text};

	*text = (struct load_answer_text){0};
	record->prompt_usage = record->output_usage = record->cached = LOAD_UNKNOWN;
	if (a->stream)
		read_stream(&r);
	else
		read_whole(&r);
	if (a->usage && !r.usage)
		record->flags |= LOAD_FLAG_NO_USAGE;
	if (r.no_memory)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory to read an answer of %zu bytes", a->size);
	return STATUS_OK;
}

void load_answer_text_release(struct load_answer_text *t)
{
	text_release(&t->content);
	text_release(&t->reasoning);
	*t = (struct load_answer_text){0};
}
