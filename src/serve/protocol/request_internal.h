/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of reading a request, one file each. All return false with the error set. */
#ifndef SERVE_PROTOCOL_REQUEST_INTERNAL_H
#define SERVE_PROTOCOL_REQUEST_INTERNAL_H
#include "serve/protocol/fields.h"
#include "serve/protocol/request.h"

struct request_reading {
	struct request *r;
	const struct request_rules *rules;
	struct prompter_worker *worker;
	struct api_error *err;
};

/* The common fields: model, stream, n, sampling, lengths, stops, bias, logprobs of completions. */
bool request_common(struct request_reading *in, const json_t *body);
/* An absent max_tokens is the model's max_new_tokens, or `usual` if it has none. min_tokens must not be more.
 */
bool request_default_length(struct request_reading *in, int64_t usual);
/* The field that limits the length of the answer. */
const char *request_length_field(const json_t *body);
/* response_format, tools and tool_choice, after the tools are known. */
bool request_grammar(struct request_reading *in, const json_t *body, const json_t *tools);
/* The grammar begins after a thought, if one comes first. `think_open` must be set. */
bool request_grammar_after_thought(struct request_reading *in);
bool request_chat(struct request_reading *in, json_t *body);
bool request_completion(struct request_reading *in, const json_t *body);
bool request_tokenize(struct request_reading *in, const json_t *body);
bool request_detokenize(struct request_reading *in, const json_t *body);
/* Reads "messages" and "chat_template_kwargs", and makes the prompt. `tools`: those that the template shows;
 * or NULL. */
bool request_prompt(struct request_reading *in, const json_t *body, const json_t *tools, bool generate);
/* Convert a body of their API into one of chat completions, and read that. Errors name the fields of their
 * API. */
bool request_responses(struct request_reading *in, const json_t *body);
bool request_messages(struct request_reading *in, const json_t *body);

/* The names of fields before they were converted to those of chat completions. */
struct renamed {
	const char *from, *to; /* NULL ends a list of them */
};
struct origin {
	const struct renamed *names;
	const char *list;  /* the field whose entries became messages */
	json_t *positions; /* for each message, an array of the entries that it was; null: it was `before` */
	const char *before;
	const char *schema;	/* the member of a tool that became its function's "parameters" */
	bool calls_are_entries; /* call k of a message was entry k of its entries */
};
/* Notes that entry i became the next message; -1: the field `before` did. */
void origin_add(struct origin *o, int64_t i);
/* Notes that entry i became a part of the last message. */
void origin_join(struct origin *o, int64_t i);
/* Renames the field of an error, at the beginning of its message too. */
void origin_rename(const struct origin *o, struct api_error *err);
/* Reads token ids below `size`. Owner of out->ids: caller. */
bool request_ids(const json_t *array, const char *name, int32_t size, size_t most, struct prompt_ids *out,
		 struct api_error *err);
bool request_out_of_memory(struct api_error *err);
#endif
