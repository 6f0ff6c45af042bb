/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd: its daemon, its callbacks, and the open connections. */
#ifndef SERVE_HTTP_SERVER_H
#define SERVE_HTTP_SERVER_H
#include <microhttpd.h>
#include "serve/http/exchange.h"

struct peer {
	struct front_end *fe;
	int fd;
	bool closed;		   /* the client closed its sending half */
	bool excess;		   /* beyond the limit of connections (serve/http/excess.h) */
	bool ended;		   /* an excess one that the server has shut down */
	uint64_t since_ns;	   /* accepted, or the last response ended */
	struct exchange *exchange; /* the present one; NULL: none */
	struct peer *next, **link;
};

enum status server_start(struct front_end *fe, struct error *err);
/* Descriptor to poll for reading. */
int server_fd(const struct front_end *fe);
/* Milliseconds until server_run has something to do without an event; -1: never. */
int server_timeout_ms(const struct front_end *fe);
void server_run(struct front_end *fe);
/* No new connections. */
void server_quiesce(struct front_end *fe);
void server_stop(struct front_end *fe);
/* The client's end of the connection is closed. */
void server_peer_left(struct peer *p);
/* After server_run: closes connections whose client ended within a request. */
void server_close_cut(struct front_end *fe);
/* Closes connections that are idle or slow. */
void server_tick(struct front_end *fe);
#endif
