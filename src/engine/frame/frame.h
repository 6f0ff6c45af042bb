/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of engine/message.h as frames over a stream socket between the front end and the engine
 * process. Each process holds one frame_link. Nothing here blocks: what the socket does not take waits in a
 * bounded queue, and a full queue is an error of the caller's.
 *
 * A frame is a header of 16 bytes (bytes of the body, kind, layout, epoch, zero) and a body. All numbers are
 * little-endian. The epoch counts starts of the engine: a frame of another epoch is an error.
 */
#ifndef ENGINE_FRAME_FRAME_H
#define ENGINE_FRAME_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "engine/message.h"

enum {
	FRAME_BODY_MOST = 48 << 20,    /* bytes of a frame's body */
	FRAME_PROMPT_MOST = 4 << 20,   /* tokens of a prompt */
	FRAME_GRAMMAR_MOST = 4 << 20,  /* bytes of a grammar's source */
	FRAME_EVENTS_MOST = 1 << 16,   /* events of a step */
	FRAME_QUEUE_DEFAULT = 64 << 20 /* bytes that wait for the peer */
};

enum frame_kind {
	/* front end to engine */
	FRAME_REQUEST = 1,
	FRAME_CANCEL,
	FRAME_DRAIN, /* finish what runs, take nothing new, then exit */
	/* engine to front end */
	FRAME_READY,
	FRAME_STEP, /* all events of one step, and the facts after it */
	FRAME_HEARTBEAT
};

/* Sent at least once a second and before each step that is predicted to take longer. */
struct frame_heartbeat {
	uint64_t step;	      /* number of the step that runs */
	uint64_t expected_ns; /* predicted time until the next message; 0: nothing runs */
};

struct frame_step {
	struct engine_facts facts;
	const struct engine_event *events;
	size_t count;
};

/* A received message. Pointers in it are valid until the next frame_receive. */
struct frame_message {
	enum frame_kind kind;
	union {
		struct engine_request request;
		uint64_t cancel; /* id of the request */
		struct engine_ready ready;
		struct frame_step step;
		struct frame_heartbeat heartbeat;
	};
};

struct frame_link;
/* Takes ownership of `fd`, a connected stream socket, on failure too, and makes it non-blocking.
 * `queue_bytes`: most bytes that wait for the peer; 0: FRAME_QUEUE_DEFAULT. Owner: caller. */
enum status frame_link_create(struct frame_link **out, int fd, uint32_t epoch, size_t queue_bytes,
			      struct error *err);
void frame_link_destroy(struct frame_link **link); /* NULL-safe; closes the socket */
int frame_link_fd(const struct frame_link *link);
/* True while bytes wait for the socket: poll it for writing, then call frame_flush. */
bool frame_link_waits(const struct frame_link *link);
/* Writes as much as the socket takes. UNAVAILABLE: the peer is gone. */
enum status frame_flush(struct frame_link *link, struct error *err);

/* Each puts one frame into the queue and tries to write. NO_RESOURCE: the queue is full, and nothing of the
 * frame was put there. BAD_INPUT: a size is over its limit. UNAVAILABLE: the peer is gone. */
enum status frame_send_request(struct frame_link *link, const struct engine_request *r, struct error *err);
enum status frame_send_cancel(struct frame_link *link, uint64_t id, struct error *err);
enum status frame_send_drain(struct frame_link *link, struct error *err);
enum status frame_send_ready(struct frame_link *link, const struct engine_ready *ready, struct error *err);
enum status frame_send_step(struct frame_link *link, const struct engine_facts *facts,
			    const struct engine_event *events, size_t count, struct error *err);
enum status frame_send_heartbeat(struct frame_link *link, const struct frame_heartbeat *beat,
				 struct error *err);

/*
 * Reads what the socket holds and decodes one message. *got is false if no complete message is there yet.
 * Call it until *got is false. UNAVAILABLE: the peer closed the socket. BAD_INPUT: the bytes are no frame of
 * this epoch, or a size or value in it is wrong; the link is of no use any more.
 */
enum status frame_receive(struct frame_link *link, struct frame_message *out, bool *got, struct error *err);

/* The body of one frame from memory, for tests. Pointers in *out are valid until the next call. */
enum status frame_decode(struct frame_link *link, enum frame_kind kind, const void *body, size_t size,
			 struct frame_message *out, struct error *err);
#endif
