/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the bytes of one answer, streamed or not, after they have arrived: finds events, tokens and usage,
 * and fills a record. Nothing here knows of sockets.
 */
#ifndef LOAD_ANSWER_ANSWER_H
#define LOAD_ANSWER_ANSWER_H
#include "load/record/record.h"

/* The bytes up to `end` had arrived at at_ns. */
struct load_stamp {
	uint64_t at_ns;
	size_t end;
};

struct load_answer {
	const char *bytes; /* body, without chunk headers of HTTP */
	size_t size;
	const struct load_stamp *stamp; /* ascending; the last one ends at size */
	size_t stamps;
	bool stream;	 /* an event stream was asked for */
	bool usage;	 /* usage was asked for */
	bool completion; /* /v1/completions, not chat */
};

/* What a conversation or a counter needs besides the record. */
struct load_answer_text {
	struct text content; /* the answer's text; reasoning is not part of it */
	struct text reasoning;
	char finish[24]; /* finish_reason; "": none */
	uint32_t calls; /* events with parts of a call, whose text is not kept: usage counts more than content
			 */
};

/*
 * Fills first_token_ns, last_token_ns, chunks, gaps, usage, cached and flags of *r, and error if the body
 * says so: CUT, GARBAGE or SERVER. An error of r that is set already stays. A chunk's time is the
 * stamp of the bytes that completed its event. last_token_ns is the later one of the last chunk and of the
 * event with finish_reason, which has the time of an end token without text. A whole answer (no stream) has
 * no chunks and no times of tokens.
 *
 * LOAD_FLAG_DUPLICATE accuses no correct server. Two equal events in a row may be two equal tokens. They
 * count as a duplicate if events are numbered (a line "id:"). They also count if the answer has more chunks
 * than usage reports tokens, and no parts of calls. A correct server sends at least one token in a chunk. For
 * the same reason LOAD_FLAG_LOW_USAGE is set if there are at least two chunks more than tokens.
 *
 * Memory: one event at a time becomes a tree, at most 40 times as large as the event (fuzzed). NO_RESOURCE
 * only. Owner of *text: caller.
 */
enum status load_answer_read(const struct load_answer *a, struct load_record *r,
			     struct load_answer_text *text, struct error *err);
void load_answer_text_release(struct load_answer_text *t);
#endif
