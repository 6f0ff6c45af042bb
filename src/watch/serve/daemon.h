/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's HTTP server: /metrics, /-/healthy, /-/ready and /. It has one thread and never blocks: the
 * caller polls two descriptors and calls daemon_run. A page is made once for each form and copied by every
 * scrape, until daemon_renew.
 */
#ifndef WATCH_SERVE_DAEMON_H
#define WATCH_SERVE_DAEMON_H
#include "core/log.h"
#include "watch/page/page.h"
#include "watch/serve/web_config.h"

struct daemon_spec {
	const char *address;
	uint16_t port;	    /* 0: any free one */
	size_t connections; /* most open ones */
	const struct web_config *web;
	const struct log *log;
	/* The server calls these for a page. */
	void *arg;
	void (*page)(void *arg, struct text *out, enum page_format format);
	void (*index)(void *arg, struct text *out);	  /* HTML */
	bool (*ready)(void *arg, char *why, size_t size); /* false: *why says what is missing */
};
struct daemon_counts {
	uint64_t scrapes, refused, closed;
	size_t connections;
};

struct daemon;
/* Listens. UNAVAILABLE: the port is in use, or a library is missing. Owner: caller, daemon_stop. The spec
 * and its pointers must stay valid. */
enum status daemon_start(struct daemon **out, const struct daemon_spec *spec, struct error *err);
/* Starts another one on the same socket, with a spec of its own, and stops the old one. Its open connections
 * end. After an error the old one goes on. */
enum status daemon_replace(struct daemon **d, const struct daemon_spec *spec, struct error *err);
void daemon_stop(struct daemon *d);
uint16_t daemon_port(const struct daemon *d);
/* Descriptors to poll for reading; the second one may be -1. */
void daemon_fds(const struct daemon *d, int fds[2]);
/* Milliseconds until daemon_run has something to do without an event, at most `most`. */
int daemon_timeout_ms(const struct daemon *d, int most);
void daemon_run(struct daemon *d);
/* The pages are old: the next scrape gets a new one. */
void daemon_renew(struct daemon *d);
/* Closes slow and idle connections; to be called every second. */
void daemon_tick(struct daemon *d);
struct daemon_counts daemon_counts(const struct daemon *d);
#endif
