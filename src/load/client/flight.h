/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request between its sending and the end of its answer: what arrived, with the time of each part. A
 * sender owns it until the answer ends, then the parser.
 */
#ifndef LOAD_CLIENT_FLIGHT_H
#define LOAD_CLIENT_FLIGHT_H
#include <pthread.h>
#include "load/answer/answer.h"
#include "load/client/http.h"
#include "load/plan/plan.h"

struct flight {
	struct flight *next, *before; /* in one list at a time */
	const struct load_request *request;
	struct load_record record;
	struct text body; /* of the request */
	CURL *easy;	  /* set up once, used by one request after the other */
	char *bytes;	  /* of the answer */
	size_t size, room;
	struct load_stamp *stamp;
	size_t stamps, stamp_room;
	bool too_large; /* or out of memory */
	bool resending; /* its second sending has not begun yet */
	bool used_up;	/* libcurl keeps an error number of the system in `easy`, and would report it again */
	uint64_t epoch_ns; /* the run's begin on CLOCK_MONOTONIC */
	uint64_t begun_ns; /* its transfer began */
};

enum { FLIGHT_ANSWER_MOST = 16 << 20, FLIGHT_STAMPS_MOST = 1 << 20 }; /* bytes and parts of an answer */

/* NULL: no memory. Owner: caller, flight_destroy. */
struct flight *flight_create(const struct http *h, const char *path, uint64_t epoch_ns);
void flight_destroy(const struct http *h, struct flight *f);
/* Makes it ready for another request. Keeps its buffers, unless they are large. */
void flight_begin(struct flight *f, const struct load_request *r);
/* After the transfer: times of the connection, status and error. */
void flight_end(const struct http *h, struct flight *f, CURLcode code, uint64_t now_ns);

/*
 * Some servers close a connection after an answer without saying so: llama.cpp's does. A request that is sent
 * at this moment was not read, and its reused connection is lost at once, without a byte of an answer. Then
 * it may be sent again, once, on a new connection. Later, the server may have read it. Its time of sending
 * stays that of the first attempt.
 */
bool flight_may_resend(const struct http *h, const struct flight *f, CURLcode code, uint64_t now_ns);
void flight_resend(const struct http *h, struct flight *f);

/* The flights under way of one sender, the one that began last first. Zeroed is empty. */
struct flight_list {
	struct flight *first, *last;
	struct flight *unsent; /* all that began before it were sent; NULL: all were sent */
	uint32_t count, most;
};
/* Its transfer begins at now_ns, which is not before the time of those in the list. */
void flight_list_add(struct flight_list *l, struct flight *f, uint64_t now_ns);
void flight_list_remove(struct flight_list *l, struct flight *f);
/* The flight whose time limit ends first. Until the request is sent, the limit of the connection counts, too.
 * *end_ns: when the limit ends. NULL: the list is empty; then *end_ns is UINT64_MAX. */
struct flight *flight_list_limit(struct flight_list *l, const struct http_options *o, uint64_t *end_ns);

/* A list whose users are several threads. Zeroed is not valid. */
struct flight_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct flight *first, *last;
	bool closed;
};
#define FLIGHT_QUEUE_NEW                                                                                     \
	{                                                                                                    \
		.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER                        \
	}
void flight_queue_add(struct flight_queue *q, struct flight *f);
/* The whole list, first come first; NULL: it is empty. With `wait`, waits until it is not empty or closed. */
struct flight *flight_queue_take(struct flight_queue *q, bool wait);
/* Nothing more will be added. */
void flight_queue_close(struct flight_queue *q);
#endif
