/* SPDX-License-Identifier: Apache-2.0 */
/* Splits an answer into text and tool calls while it grows. */
#ifndef SERVE_STREAM_CALL_STREAM_H
#define SERVE_STREAM_CALL_STREAM_H
#include "serve/prompt.h"
#include "text/chat/call_end.h"

enum part_kind {
	PART_TEXT,
	PART_THOUGHT,
	PART_CALL,	/* a call begins: its name */
	PART_ARGUMENTS, /* more of the call's arguments: JSON text */
};
typedef void part_sink(void *arg, enum part_kind kind, const char *text, size_t size);

/* Zeroed is empty, apart from the first four. */
struct call_stream {
	const struct prompter *prompter;
	enum call_form form;
	bool parts;    /* arguments come as they grow; else each call comes whole, once it has been parsed */
	bool one_call; /* later calls are left out */
	struct text held; /* white space, a possible mark, or the body of a call */
	enum { CALL_OUTSIDE, CALL_BODY, CALL_ARGUMENTS, CALL_REST } state;
	size_t calls;
	bool said;	       /* text other than white space came */
	bool cut;	       /* the text ended within a call, whose arguments may be no JSON */
	struct call_scan scan; /* of a body */
	/* the scan of arguments */
	int depth;
	bool in_text, escaped;
};
void call_stream_add(struct call_stream *s, const char *text, size_t size, part_sink *sink, void *arg);
/* The text is complete: what is held comes as a call if it is one, else as text. Sets `cut`. */
void call_stream_end(struct call_stream *s, part_sink *sink, void *arg);
void call_stream_release(struct call_stream *s);
#endif
