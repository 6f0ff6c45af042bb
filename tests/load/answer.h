/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One answer, step by step: which bytes are due, with the planned fault, and what was really sent. It knows
 * no sockets: the caller sends the bytes of a step and says when.
 */
#ifndef TESTS_LOAD_ANSWER_H
#define TESTS_LOAD_ANSWER_H
#include "load/event.h"
#include "load/plan.h"
#include "load/request.h"

enum answer_next {
	ANSWER_WAITS,  /* for due_ns */
	ANSWER_DONE,   /* the connection stays */
	ANSWER_CLOSES, /* the connection is closed after these bytes */
	ANSWER_RESETS  /* the same, with RST */
};
enum answer_stage {
	STAGE_REPLY,
	STAGE_HEADER,
	STAGE_ROLE,
	STAGE_TOKENS,
	STAGE_PIECES,
	STAGE_WHOLE,
	STAGE_NEVER
};
enum { ANSWER_PIECES = 4, ANSWER_STEP_BYTES = 65536 };

struct answer {
	const struct stub_options *options;
	struct request request;
	struct event_shape shape;
	struct stub_plan plan;
	uint64_t number, key, received_ns;
	enum answer_stage stage;
	uint64_t due_ns; /* of the next step; UINT64_MAX: none will come */
	uint64_t token_due_ns;
	uint32_t next; /* the first token that is neither sent nor lost */
	struct buf held;
	size_t cut[ANSWER_PIECES + 1];
	unsigned piece;
	bool head_built, role_built;

	/* What was done. */
	int status; /* of HTTP; 0: none */
	uint32_t sent, events, lost_count;
	bool duplicated, finish_sent, done_sent, usage_sent;
	struct usage usage; /* as reported */
	uint64_t first_due_ns, last_due_ns;
	uint64_t header_ns, role_ns;
	bool keep_times;
	uint32_t stamped;
	struct buf times; /* uint64_t for each token up to `stamped`; 0: lost */
	uint64_t fill;	  /* so many bytes of filler follow the bytes of the last step, and then `after` */
	struct buf after;
	const char *end; /* NULL: not yet */
};

/* The memory of a former answer in *a is used again. `body` lasts for this call. Tokens are due from `begin_ns` on. */
void answer_begin(struct answer *a, const struct stub_options *o, const struct request *r, const char *body,
		  uint64_t number, uint64_t received_ns, uint64_t begin_ns);
/* Adds the bytes that are due. */
enum answer_next answer_step(struct answer *a, struct buf *out, uint64_t now_ns);
/* The bytes of the last step are being sent now. */
void answer_stamp(struct answer *a, uint64_t now_ns);
bool answer_lost(const struct answer *a, uint32_t token);
void answer_release(struct answer *a);
#endif
