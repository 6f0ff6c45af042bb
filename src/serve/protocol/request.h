/* SPDX-License-Identifier: Apache-2.0 */
/* A request of any endpoint, read from its JSON body, checked, and encoded into token ids. */
#ifndef SERVE_PROTOCOL_REQUEST_H
#define SERVE_PROTOCOL_REQUEST_H
#include <jansson.h>
#include "engine/message.h"
#include "serve/prompt.h"
#include "serve/protocol/error.h"
#include "text/stop_text.h"

enum {
	REQUEST_STOPS_MOST = 16,
	REQUEST_STOP_BYTES_MOST = 256,
	REQUEST_PROMPTS_MOST = 256,
	REQUEST_CHOICES_MOST = 1024, /* prompts times n */
	REQUEST_N_MOST = 128,
	REQUEST_TOOLS_MOST = 512,
	REQUEST_SCHEMA_BYTES_MOST = 1 << 20,
	REQUEST_JSON_COST_MOST = 4 << 20, /* of json_cost: 256 MiB. A body of 32 MiB could take 4 GiB */
	REQUEST_IGNORED_MOST = 8,	  /* names of ignored fields that are kept for the log */
};

enum protocol {
	PROTOCOL_CHAT,
	PROTOCOL_COMPLETION,
	PROTOCOL_RESPONSES,
	PROTOCOL_MESSAGES,
	PROTOCOL_TOKENIZE,
	PROTOCOL_DETOKENIZE,
};

/* The settings of a server that requests are read with. */
struct request_rules {
	const struct prompter *prompter;
	const char *const *models; /* served names; the first is the default. NULL-terminated */
	const char *const
		*adapters; /* names of adapters in the order of loading. NULL-terminated; may be NULL */
	size_t messages_most;
	size_t prompt_most; /* tokens */
};

struct request {
	enum protocol protocol;
	char model[128];	      /* as the response names it */
	struct engine_request engine; /* all but id, client and prompt; its lists are below */
	int32_t stop_ids[ENGINE_STOPS_MOST];
	struct engine_bias *bias;
	char *grammar;
	const char *grammar_field; /* static: the field that asks for the grammar; NULL: none does */

	struct prompt_ids *prompts; /* [prompt_count] */
	size_t prompt_count;
	struct text *prompt_text; /* [prompt_count] if echo; else NULL */
	size_t n;		  /* choices per prompt */
	bool own_length; /* engine.max_tokens is the model's default, so the context may shorten it */

	bool stream, include_usage, usage_always;
	bool echo, control; /* control: the text shows control tokens */
	bool chat_logprobs;
	char *stops[REQUEST_STOPS_MOST];
	size_t stop_count;
	struct stop_texts *stop_texts; /* of `stops`; NULL: none */
	bool include_stop;

	bool calls;	 /* look for tool calls in the text */
	bool one_call;	 /* parallel_tool_calls is false */
	bool must_call;	 /* tool_choice is required or names a function */
	bool think;	 /* split thoughts from the text */
	bool think_open; /* the prompt ends within a thought */

	struct text reply; /* TOKENIZE and DETOKENIZE: the response without its last brace */
	const char *ignored[REQUEST_IGNORED_MOST]; /* static: fields of other servers that it has */
	size_t ignored_count;
	size_t unknown_count; /* fields that no server is known to have. Their names are the client's text */
	json_t *body;	      /* RESPONSES: the request, of which the response repeats parts; else NULL */
};

/* The field of a protocol that holds the prompt. */
const char *request_prompt_field(enum protocol protocol);
/* The field that the engine means when it refuses a request with this text; "": none of one field. */
const char *request_refused_field(const struct request *r, const char *text);
/*
 * Reads a request's body, renders its template and encodes it. False: *err says what is wrong. Owner: caller,
 * request_destroy. Thread-safe with one worker per thread.
 */
bool request_read(struct request **out, enum protocol protocol, const char *body, size_t size,
		  const struct request_rules *rules, struct prompter_worker *worker, struct api_error *err);
void request_destroy(struct request **r); /* NULL-safe */
#endif
