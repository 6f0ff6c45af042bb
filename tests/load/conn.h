/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: bytes in, bytes out, and the answer in progress. */
#ifndef TESTS_LOAD_CONN_H
#define TESTS_LOAD_CONN_H
#include "load/answer.h"
#include "load/timers.h"

struct conn {
	struct timer timer; /* first: a timer is its connection */
	int fd;		    /* -1: not in use */
	bool active;	    /* an answer is in progress */
	bool used;	    /* it has had a request before */
	bool closing;	    /* closed when all bytes are sent */
	bool closes;	    /* closing follows the answer in progress */
	bool discards;	    /* what comes is dropped, until the client closes the connection */
	uint64_t end_ns;    /* when the last bytes of the answer were sent */
	bool waits_out;	    /* epoll tells when there is room */
	bool continued;	    /* 100 Continue was sent */
	struct buf in, out;
	size_t out_done;
	uint64_t fill; /* filler after out, and then `after` */
	struct buf after;
	struct request request;
	struct answer answer;
	struct conn *next, *next_spare;
};

enum conn_state { CONN_OK, CONN_BLOCKED, CONN_LOST };

/* Sends bytes, or keeps what the kernel does not take. */
enum conn_state conn_send(struct conn *c, const struct buf *bytes);
/* Sends what was kept. OK: nothing is left. */
enum conn_state conn_flush(struct conn *c);
bool conn_sent_all(const struct conn *c);
/* Adds what has arrived to in. LOST: the client closed the connection. */
enum conn_state conn_receive(struct conn *c);
void conn_close(struct conn *c, bool reset);
void conn_release(struct conn *c);
#endif
