/* SPDX-License-Identifier: Apache-2.0 */
/* What the user of `assay top` looks at: the page, the selection, order and filter, and how keys change them.
 */
#ifndef WATCH_SCREEN_VIEW_H
#define WATCH_SCREEN_VIEW_H
#include "watch/screen/cells.h"
#include "watch/screen/theme.h"
#include "watch/state.h"

/* A node to draw. All members are borrowed. */
struct screen_node {
	const char *name; /* as the user wrote it; "": this machine */
	const struct watch_state *state;
	const char *why;   /* why no more data comes; NULL: it comes */
	uint64_t local_ns; /* this machine's CLOCK_MONOTONIC now, for ages; not used for a recording */
	bool local;	   /* this machine: its processes can be ended */
};

/* name, what it orders: GPUs, processes, nodes */
/* clang-format off */
#define SCREEN_SORTS(X) \
	X(usual, "GPUs by number, processes by memory, nodes worst first") \
	X(utilization, "GPUs and nodes by utilization, processes by SM share") \
	X(memory, "by memory in use") \
	X(temperature, "GPUs and nodes by temperature") \
	X(power, "GPUs and nodes by power") \
	X(pid, "processes by number") \
	X(user, "processes by user") \
	X(command, "processes by command")
/* clang-format on */
#define X(name, help) SCREEN_SORT_##name,
enum screen_sort { SCREEN_SORTS(X) SCREEN_SORT_COUNT };
#undef X
/* Their names; NULL ends. */
extern const char *const screen_sort_names[];

/* NODE: one node. FLEET: a line per node. METRICS: every value of a node. GRAPH: one value over time. TEXT:
 * text of the caller, that can be scrolled. */
enum screen_page { SCREEN_NODE, SCREEN_FLEET, SCREEN_METRICS, SCREEN_GRAPH, SCREEN_HELP, SCREEN_LINES };

enum { SCREEN_FILTER = 64, SCREEN_QUESTION = 256, SCREEN_MESSAGE = 200 };

struct screen_view {
	enum screen_page page;
	enum screen_page back, help_from; /* where q and Esc lead from the graph and from help */
	enum screen_sort sort;
	enum screen_theme theme;
	bool reversed, tree, on_processes; /* on_processes: the selection is in the processes */
	char filter[SCREEN_FILTER];
	bool typing;	   /* keys go to the filter */
	bool printed;	   /* the page is printed as text: no keys, no selection */
	uint64_t only_pid; /* --pid: processes other than this one are not shown; 0: all */
	size_t node;	   /* the node that is shown, as its index */
	/* The selected line of each list, and its first line on the screen (set when it is drawn). */
	size_t gpu_at, process_at, fleet_at, metric_at, line_at;
	/* The value that the graph shows, by its entity's id. */
	uint32_t entity;
	enum catalogue row;
	char question[SCREEN_QUESTION]; /* "": none; else y and n answer it */
	char message[SCREEN_MESSAGE];	/* shown in the last line until the next key; "": none */
	/* A recording. */
	bool replay, paused;
	double at, length; /* seconds from its start */
	const char *lines; /* SCREEN_LINES: the text; borrowed */
	const char *title; /* SCREEN_LINES: its title; borrowed */
};

/* Keys beside characters. */
enum screen_key {
	SCREEN_KEY_NONE = 0,
	SCREEN_KEY_TAB = '\t',
	SCREEN_KEY_ENTER = '\n',
	SCREEN_KEY_ESCAPE = 0x1b,
	SCREEN_KEY_BACKSPACE = 0x7f,
	SCREEN_KEY_UP = 0x110000,
	SCREEN_KEY_DOWN,
	SCREEN_KEY_LEFT,
	SCREEN_KEY_RIGHT,
	SCREEN_KEY_PAGE_UP,
	SCREEN_KEY_PAGE_DOWN,
	SCREEN_KEY_HOME,
	SCREEN_KEY_END,
	SCREEN_KEY_CLICK,
	SCREEN_KEY_DOUBLE_CLICK,
	SCREEN_KEY_RESIZE,
	SCREEN_KEY_COUNT
};
struct screen_event {
	uint32_t key;  /* a character or a key above */
	unsigned x, y; /* of a click */
};

/* The caller's task after a key. */
enum screen_action {
	SCREEN_NOTHING, /* draw again */
	SCREEN_QUIT,
	SCREEN_ASK_END, /* the user wants to end the selected process: check, then set view->question */
	SCREEN_END,	/* the question was answered with yes */
	SCREEN_KEEP,	/* with no */
	SCREEN_SEEK	/* view->at was changed */
};
/* Takes a key. `drawn` is the last screen that was drawn with these nodes. Clicks and pages need it. */
enum screen_action screen_key(struct screen_view *v, const struct screen_node *nodes, size_t count,
			      const struct screen *drawn, struct screen_event event);

/* Draws the page into the cells. Selections outside of their list are moved into it. */
void screen_draw(struct screen *s, struct screen_view *v, const struct screen_node *nodes, size_t count);
/* One line about a node, without newline, for output that is no terminal. */
void screen_line(struct text *out, const struct screen_node *n);
#endif
