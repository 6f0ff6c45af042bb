/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its response on a connection. */
#ifndef SERVE_HTTP_EXCHANGE_H
#define SERVE_HTTP_EXCHANGE_H
#include "serve/internal.h"

enum exchange_state {
	EXCHANGE_READING,   /* the body comes */
	EXCHANGE_PREPARING, /* a thread reads the request */
	EXCHANGE_RUNNING,   /* in the engine */
	EXCHANGE_RETRYING,  /* waits for the next engine */
	EXCHANGE_READY,	    /* there is something to send */
	EXCHANGE_SENDING,   /* the response is MHD's */
};

struct route;
struct exchange {
	struct front_end *fe;
	struct MHD_Connection *connection;
	struct peer *peer;
	const struct route *route;
	enum exchange_state state;
	bool suspended; /* MHD does not look at the connection until exchange_wake */
	bool left;	/* the client is gone */
	bool discard;	/* the body is too large or not wanted; it is read and dropped */
	bool last;	/* the connection ends after the response */
	size_t received;
	struct text body;
	struct prepare_job job;
	struct answer *answer;
	size_t sent;	   /* bytes of answer->out that MHD took */
	struct text reply; /* the body, if there is no answer */
	int http;
	unsigned retry_s;
	const char *type;  /* content type of `reply` */
	const char *takes; /* of a response 405: the method that the endpoint takes */
	uint64_t begun_ns, retry_ns;
	uint64_t complete_ns; /* when the whole request was there; 0: not yet, or it is refused before */
	uint64_t done_ns;     /* when the whole response was there; 0: not yet */
	uint64_t client;
	struct exchange *next, **link;
};

struct exchange *exchange_create(struct front_end *fe, struct MHD_Connection *connection,
				 const struct route *route);
/* Cancels what still runs, writes the log, frees. */
void exchange_end(struct exchange *x, bool sent);
void exchange_error(struct exchange *x, const struct api_error *e);
/* The body is complete: the preparer gets it. The connection is suspended. */
void exchange_prepare(struct exchange *x);
void exchange_prepared(struct exchange *x);
/* The choices go to the engine, or the answer fails. */
void exchange_submit(struct exchange *x);
/* After events: lets MHD send what there is. */
void exchange_wake(struct exchange *x);
/* The client left or does not read: nothing more is computed for it. */
void exchange_abandon(struct exchange *x);
/* The server ends, and the preparer has ended: the connection must not stay suspended. */
void exchange_stop(struct exchange *x);
/* The engine was lost while it had choices of this. */
void exchange_lost(struct exchange *x, const char *cause);
void exchange_suspend(struct exchange *x);
#endif
