/* SPDX-License-Identifier: Apache-2.0 */
/* assay top: what machines do now, on a screen, as lines, as JSON, or once. Views of the NVLinks, ports and
 * NCCL settings of this machine are in links/. */
#ifndef CMD_TOP_TOP_H
#define CMD_TOP_TOP_H
#include <jansson.h>
#include <poll.h>
#include "cmd/command.h"
#include "launch/hosts.h"
#include "watch/feed.h"
#include "watch/replay.h"
#include "watch/screen/terminal/module.h"

struct top_opts {
	const char *what, *hosts, *hosts_file, *ssh_config, *record, *replay, *program, *filter, *theme,
		*machine;
	double interval, at;
	uint64_t pid;
	uint32_t count, sort;
	bool once, json, gpus_only;
};

/* ---- a terminal that shows cells ---- */

enum { TOP_TOLD_MAX = 4096 };
struct top_terminal {
	const struct screen_module *module; /* NULL: not open */
	struct screen screen;
	enum screen_depth depth;
	bool typed;		 /* a key may wait, or the size may have changed */
	int told;		 /* reads stderr of this program and its children while the screen is open */
	int stderr_before;	 /* where stderr went */
	char last[TOP_TOLD_MAX]; /* the end of it */
	size_t last_size;
};
/* True if stdin and stdout are a terminal that can show a screen. Else *why says what is missing. */
bool top_terminal_can(const char **why);
/* Takes the terminal over; from then on, stderr is kept and printed at the end. UNAVAILABLE: the module is
 * missing, or the terminal's type is not known. */
enum status top_terminal_open(struct top_terminal *t, struct error *err);
/* Gives the terminal back as it was, and prints what was kept. Also for a zeroed or closed one. */
void top_terminal_close(struct top_terminal *t);
/* Draws and shows a view. */
enum status top_terminal_show(struct top_terminal *t, struct screen_view *v, const struct screen_node *nodes,
			      size_t count, struct error *err);
/* Waits for a key, for one of the descriptors or until the time; false: the terminal is gone. `feeds` has
 * room for two more entries behind its `count`. */
bool top_terminal_wait(struct top_terminal *t, struct pollfd *feeds, size_t count, unsigned ms);

/* ---- the nodes ---- */

/* How long a first reading may take before --once goes on without it, in seconds, beside the interval. */
#define TOP_FIRST_S 25.0

/* Zeroed is empty. */
struct top_nodes {
	const struct top_opts *o;
	struct watch_feed **feed; /* one per node; NULL: a recording */
	struct watch_feed **next; /* replaces a feed that has ended, once it answers; NULL: none */
	uint64_t *again_ns;	  /* when the next one is started; 0: the feed works */
	struct watch_replay *replay;
	struct watch_recorder *recorder;
	struct hosts hosts;	   /* their names; empty: this machine */
	struct screen_node *shown; /* what screen_draw takes */
	size_t count;
	struct pollfd *fds; /* one per node, and room for two more */
	double at, length;  /* place in a recording and its length, in seconds */
};
/* Starts the feeds, or opens the recording and goes to --at: without it, to the beginning, or with --once to
 * the end. */
enum status top_nodes_open(struct top_nodes *n, const struct top_opts *o, struct error *err);
/* Takes what has arrived. True: a node completed a reading, or ended. */
bool top_nodes_poll(struct top_nodes *n);
/* Keeps the history of a row from now on. */
void top_nodes_keep(struct top_nodes *n, enum catalogue row);
/* Moves a recording to a time in seconds from its start. */
enum status top_nodes_seek(struct top_nodes *n, double seconds, struct error *err);
/* True if no node can give more data. */
bool top_nodes_ended(const struct top_nodes *n);
/* The problem of the recording that is written or shown; NULL: none. Borrowed. */
const char *top_nodes_problem(const struct top_nodes *n);
/* Ends the feeds and completes the recording that is written. Not OK: that recording is not complete. */
enum status top_nodes_close(struct top_nodes *n, struct error *err);
/* The state of a node as JSON: labels, values, rates and ages. Owner: caller. */
json_t *top_json(const struct screen_node *n);

/* ---- ways to show them; each returns the exit code ---- */

int top_screen(const struct command_context *c, const struct top_opts *o);
int top_lines(const struct command_context *c, const struct top_opts *o);
/* The theme that --theme or NO_COLOR asks for. On a screen the preset has colours, in plain text none. */
enum screen_theme top_theme(const struct top_opts *o, bool screen);
/* nccl, nvlink, ib, links: views of this machine (links/links.h). */
int top_links(const struct command_context *c, const struct top_opts *o);

/* ---- ending a process ---- */

/* Checks that the selected process can be ended and opens it (a pidfd, so that its number cannot become
 * another process's). The question is set in view->question, or view->message says why not. Returns -1 then.
 */
int top_end_ask(struct screen_view *v, const struct screen_node *n);
/* Sends TERM to it and closes it. view->message says what happened. */
void top_end(struct screen_view *v, int pidfd);
#endif
