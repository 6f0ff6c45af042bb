/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One choice's tokens become parts of an answer: complete characters, up to a stop string, split into
 * thoughts, text and tool calls. Text that may begin a stop string or a mark waits for the next token.
 */
#ifndef SERVE_STREAM_STREAM_H
#define SERVE_STREAM_STREAM_H
#include "serve/protocol/request.h"
#include "serve/stream/call_stream.h"

struct stream {
	const struct prompter *prompter;
	const struct request *request;
	part_sink *sink;
	void *arg;
	char partial[4]; /* an incomplete character */
	size_t partial_size;
	struct text bytes, fresh; /* bytes of the present token, and the characters that they complete */
	int64_t tokens;		  /* that have come */
	struct stop_stream stops;
	struct text passed; /* text that belongs to no stop string */
	struct text thought_held;
	bool thought_said; /* something of the thought was delivered */
	enum { THINK_BEFORE, THINK_INSIDE, THINK_SPACE, THINK_AFTER } think;
	struct call_stream calls;
	bool stopped;	  /* a stop string came: later tokens add nothing */
	const char *stop; /* which; NULL: none */
};

/* Request and prompter are lent for the stream's life. Owner: caller, stream_release, also on failure. */
enum status stream_begin(struct stream *s, const struct prompter *p, const struct request *r, part_sink *sink,
			 void *arg, struct error *err);
/* Returns false once a stop string is complete. */
bool stream_token(struct stream *s, int32_t id);
/* The last token has come: delivers what is held. */
void stream_end(struct stream *s);
void stream_release(struct stream *s);
/* True while the text is within a thought. */
bool stream_thinks(const struct stream *s);
/* True within a thought and in the white space after it. */
bool stream_in_thought(const struct stream *s);
#endif
