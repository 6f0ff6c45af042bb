/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to one request: its choices, and the bytes for the client. Events of the engine go in; a body or
 * a stream of server-sent events comes out, in the form of the request's API. Knows no socket.
 */
#ifndef SERVE_PROTOCOL_ANSWER_H
#define SERVE_PROTOCOL_ANSWER_H
#include "serve/protocol/request.h"
#include "serve/stream/stream.h"

struct answer;
struct answer_form;

struct answer_call {
	char *name;
	struct text arguments;
};

/* Log probabilities that wait for the next chunk, or for the body. CHAT uses `entries` only. */
struct answer_logprobs {
	struct text entries; /* objects (CHAT), or texts of tokens (COMPLETION) */
	struct text values, tops, offsets;
	size_t count;
};

struct choice {
	struct answer *answer;
	size_t index;
	size_t prompt; /* index of its prompt */
	uint64_t id;   /* the engine's; 0: not submitted */
	struct stream stream;
	struct text prefix; /* of its chunks */
	struct text text, thought;
	struct answer_call *calls;
	size_t call_count;
	struct answer_logprobs logprobs;
	struct text text_logprobs; /* RESPONSES: entries of the text so far */
	bool first_noted;
	size_t offset;	    /* characters of the text so far, for text_offset */
	bool begun;	    /* something was streamed */
	bool ended;	    /* the engine's last event came */
	bool finished;	    /* the last part and the reason are written */
	const char *reason; /* "stop", "length", "tool_calls" */
	const char *stop;   /* the stop string that ended it; NULL: none */
	int32_t prompt_tokens, cached_tokens, tokens, thought_tokens;
	uint64_t last_ns; /* when the last token came; 0: none */
	uint64_t block;	  /* index of the open block of MESSAGES and RESPONSES, plus 1. 0: none */
	enum part_kind block_kind;
	size_t block_call; /* index of the call that the block holds */
};

struct answer {
	struct request *request; /* owned */
	void *owner;		 /* the caller's */
	const struct prompter *prompter;
	const struct answer_form *form;
	char id[48];	 /* "chatcmpl-.." */
	int64_t created; /* Unix time, seconds */
	struct choice *choices;
	size_t count, live; /* live: submitted or to be, without a last event */
	struct text out;    /* for the client */
	int http;	    /* status of a body; 0 while there is none */
	unsigned retry_s;
	bool streaming; /* the first event of the stream is in `out` */
	bool complete;	/* `out` holds the end */
	bool failed;
	bool keep;			      /* texts are kept, not only streamed */
	uint64_t sequence;		      /* RESPONSES */
	uint64_t blocks;		      /* MESSAGES, RESPONSES: blocks so far */
	uint64_t began_ns, first_ns, last_ns; /* monotonic times of receipt, first and last token. 0: none */
	unsigned crashes;		      /* losses of the engine while it ran */
};

/* Takes ownership of `r`, on failure too. Owner: caller, answer_destroy. */
enum status answer_create(struct answer **out, struct request *r, const struct prompter *p, uint64_t now_ns,
			  struct error *err);
void answer_destroy(struct answer **a); /* NULL-safe */

/* The request of a choice for the engine; lists are lent by the answer. A length that is the model's default
 * ends at `context` (0: not known). */
void answer_engine_request(const struct choice *c, int64_t context, struct engine_request *out);
/* One event of the engine. Returns true if the engine is to cancel this choice: a stop string came. */
bool answer_event(struct choice *c, const struct engine_event *e, uint64_t now_ns);
/* Ends the answer with an error: a body, or the last event of a stream. */
void answer_fail(struct answer *a, const struct api_error *e);
/* Forgets what came of the choices, so that they can be submitted again. Only while nothing was streamed. The
 * answer fails if memory is out. */
void answer_restart(struct answer *a);

struct answer_usage {
	int64_t prompt, cached, tokens, thought;
};
struct answer_usage answer_usage(const struct answer *a);

/* How an API writes an answer. `begin` to `end` are for streams; `whole` appends a body. */
struct answer_form {
	const char *id_prefix;
	void (*begin)(struct answer *a);
	void (*part)(struct choice *c, enum part_kind kind, const char *text, size_t size);
	void (*choice_end)(struct choice *c);
	void (*end)(struct answer *a);
	void (*error)(struct answer *a, const struct api_error *e);
	void (*whole)(struct answer *a);
};
extern const struct answer_form answer_form_chat, answer_form_completion, answer_form_responses,
	answer_form_messages;

/* For the forms. Appends "\"usage\":{..}" of OpenAI's shape. */
void answer_add_usage(struct text *out, const struct answer_usage *u);
/* What a chunk of a stream says of it: the usage so far, null, or nothing. */
void answer_add_chunk_usage(struct text *out, const struct answer *a);
/* Notes a token's log probabilities in the form of its API. */
void answer_note_chat_logprob(struct choice *c, const struct engine_event *e);
void answer_note_completion_logprob(struct choice *c, const struct engine_event *e);
/* With log probabilities of the prompt: its first token, which has none. Does so once. */
void answer_note_first_token(struct choice *c);
void answer_clear_logprobs(struct answer_logprobs *l);
/* Appends the value of "logprobs": an object, or null if there are none. */
void answer_add_logprobs(struct text *out, const struct choice *c);
void answer_call_id(char out[64], const struct choice *c, size_t call);
#endif
