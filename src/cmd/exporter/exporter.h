/* SPDX-License-Identifier: Apache-2.0 */
/* assay exporter: a feed of this machine or of a recording, and the HTTP server for its pages. */
#ifndef CMD_EXPORTER_EXPORTER_H
#define CMD_EXPORTER_EXPORTER_H
#include "cmd/command.h"
#include "watch/feed.h"
#include "watch/replay.h"
#include "watch/serve/daemon.h"

struct exporter_opts {
	const char *host, *web_config, *runs, *replay, *job_files, *pods;
	uint32_t port, names, processes, connections;
	double interval;
};

struct exporter {
	const struct command_context *c;
	const struct exporter_opts *o;
	struct web_config *web;	  /* the one in use */
	struct daemon_spec *spec; /* refers to it */
	struct daemon *daemon;
	char refused[512];	     /* why a changed web configuration was refused; "": it was not */
	uint64_t reread_ns;	     /* when it is read again */
	struct watch_replay *replay; /* NULL: this machine */
	struct watch_feed *feed;     /* NULL: a recording, or the feed ended and is not started again yet */
	char why[300];		     /* why there is no feed */
	uint64_t begun_ns, tick_ns, start_ns; /* start of the feed, next tick, next start of a feed */
	unsigned failures;		      /* starts of the feed since its last reading */
	struct page_own own;
};

/* Reads the web configuration, opens the feed and listens. The struct needs `c` and `o`. Release it in any
 * case. */
enum status exporter_start(struct exporter *x, struct error *err);
/* Reads the web configuration again, every ten seconds, and takes it into use if it has changed. */
void exporter_reread(struct exporter *x);
/* Warns about settings that are valid and have no effect. */
void exporter_warn(const struct exporter *x, const struct web_config *web);
/* The server's spec with this web configuration. NULL: no memory. Owner: caller, free(). */
struct daemon_spec *exporter_spec(struct exporter *x, const struct web_config *web);
/* Serves until a stop is requested. */
void exporter_loop(struct exporter *x);
void exporter_release(struct exporter *x);

/* Callbacks of the server (watch/serve/daemon.h); `arg` is the exporter. */
void exporter_page(void *arg, struct text *out, enum page_format format);
void exporter_index(void *arg, struct text *out);
bool exporter_ready(void *arg, char *why, size_t size);
#endif
