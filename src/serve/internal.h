/* SPDX-License-Identifier: Apache-2.0 */
/* The front end's state, for the files of this room. All of it belongs to the thread of front_end_run. */
#ifndef SERVE_INTERNAL_H
#define SERVE_INTERNAL_H
#include <signal.h>
#include <stdatomic.h>
#include "journal/metrics/metrics.h"
#include "serve/http/keys.h"
#include "serve/http/preparer.h"
#include "serve/http/request_log.h"
#include "serve/link/link.h"
#include "serve/serve.h"
#include "vendor/http/microhttpd.h"

struct exchange;
struct peer;

struct front_end {
	struct serve_options o;
	struct request_rules rules;
	struct prompter *prompter;
	struct preparer *preparer;
	struct link *link;
	struct microhttpd mhd;
	struct MHD_Daemon *daemon;
	struct keys keys;
	char *tls_certificate, *tls_key;
	uint16_t port;
	int listen_fd;	 /* -1 once the daemon has it or it is closed */
	int epoll, wake; /* wake: an eventfd, for the preparer and serve_drain */
	int link_fd;	 /* the one in `epoll`; -1: none */
	bool link_writes;
	struct request_log request_log;
	atomic_int drains; /* calls of serve_drain */
	bool draining, finished;
	uint64_t drain_ns, now_ns;
	uint64_t reported_ns;	    /* the last sign of life for the supervisor */
	struct exchange *exchanges; /* all that exist */
	struct peer *peers;	    /* open connections */
	size_t peer_count, exchange_count, body_bytes;
	size_t connections_most, excess_count; /* excess: open connections beyond the limit */
	size_t preparing;
	bool closing; /* a client has closed its half of a connection */
	struct metrics metrics;
	struct engine_facts facts; /* of the present engine */
	struct text noted; /* sentences about ignored fields that were logged, each between newlines */
};

uint64_t serve_now_ns(void);
#endif
