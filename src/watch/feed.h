/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of one node, from a child process, from ssh or from a file, and the state that it makes. A feed
 * never blocks its caller. It is used by `top` and by the exporter.
 */
#ifndef WATCH_FEED_H
#define WATCH_FEED_H
#include "core/log.h"
#include "watch/state.h"

struct watch_feed_spec {
	const char *host;	/* NULL: this machine; else a name for ssh (launch/hosts.h) */
	const char *ssh_config; /* NULL: the user's own */
	const char *program;	/* assay's path on the host; NULL: this program's own */
	double interval;	/* seconds */
	const char *sys, *proc; /* NULL: /sys and /proc */
	const char *runs;	/* folder of runs; NULL: the default */
};

struct watch_feed;
/* Starts the process. Owner: caller, watch_feed_close. */
enum status watch_feed_start(struct watch_feed **out, const struct watch_feed_spec *spec, struct error *err);
/* Opens a recording (plain or .zst). Nothing is read until watch_feed_seek. */
enum status watch_feed_open(struct watch_feed **out, const char *path, struct error *err);
void watch_feed_close(struct watch_feed *f);

/* Descriptor to poll for reading; -1: a recording, or ended. */
int watch_feed_fd(const struct watch_feed *f);
/* Takes what has arrived. True: a reading was completed since the last call. */
bool watch_feed_poll(struct watch_feed *f);
/* Borrowed; stays valid until close. */
const struct watch_state *watch_feed_state(const struct watch_feed *f);
/* Why there is no more data; NULL: the feed works. */
const char *watch_feed_why(const struct watch_feed *f);
/* Copies every later line to a descriptor (--record), with a header first. */
void watch_feed_record(struct watch_feed *f, int fd);

/* Of a recording: its length, and the state at a time from its start. Both in seconds. */
double watch_feed_length(const struct watch_feed *f);
enum status watch_feed_seek(struct watch_feed *f, double seconds, struct error *err);
#endif
