/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of one node, from a child process or over ssh, and the state that it makes. A feed never blocks
 * its caller. It is used by `top` and by the exporter. Recordings: watch/replay.h.
 */
#ifndef WATCH_FEED_H
#define WATCH_FEED_H
#include "watch/record.h"
#include "watch/state.h"

struct watch_feed_spec {
	const char *host;	/* NULL: this machine; else a name for ssh (launch/hosts.h) */
	const char *ssh_config; /* NULL: the user's own */
	const char *program;	/* assay's path on the host; NULL: this program's own */
	double interval;	/* seconds between readings */
	double slow;		/* seconds between readings of SLOW rows; 0: five */
	const char *sys, *proc; /* NULL: /sys and /proc */
	const char *runs;	/* folder of runs; NULL: the default */
	bool gpus_only;		/* reads GPUs with their links and processes only */
};

struct watch_feed;
/* Starts the process. Owner: caller, watch_feed_close. */
enum status watch_feed_start(struct watch_feed **out, const struct watch_feed_spec *spec, struct error *err);
/* Ends the process. NULL is allowed. */
void watch_feed_close(struct watch_feed *f);

/* Descriptor to poll for reading; -1: the feed has ended. */
int watch_feed_fd(const struct watch_feed *f);
/* Takes what has arrived. Call it when the descriptor is readable, and at least every 5 s: the node ends
 * itself when it does not hear from the feed for 20 s. True: a reading was completed since the last call. */
bool watch_feed_poll(struct watch_feed *f);
/* Borrowed; stays valid until close. Its entities may move with each poll. */
const struct watch_state *watch_feed_state(const struct watch_feed *f);
/* From now on, keeps the history of this row (watch_history). */
void watch_feed_keep(struct watch_feed *f, enum catalogue row);
/* Why there is no more data; NULL: the feed works. */
const char *watch_feed_why(const struct watch_feed *f);
/* Copies the state so far and every later line to a recording, as its node `node`. NULL: no longer. */
void watch_feed_record(struct watch_feed *f, struct watch_recorder *r, unsigned node);
#endif
