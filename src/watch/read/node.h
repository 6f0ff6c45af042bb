/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the node's process, which starts a process for each source and joins their lines. */
#ifndef WATCH_READ_NODE_H
#define WATCH_READ_NODE_H
#include <jansson.h>
#include "core/process/process.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"
#include "watch/state.h"

enum { NODE_PIDS_MAX = 1024, NODE_JOBS_TEXT = 256 };

/* A process that reads, with our ends of its pipes. */
struct child {
	const char *name;
	struct process process;
	bool running, stuck; /* stuck: it cannot be ended; no other one is started */
	int input, errors;   /* -1: none */
	struct text line;
	char error[160];   /* the last line of its stderr */
	uint64_t heard_ns; /* its last output, or its start */
	uint64_t asked_ns; /* when the kernel was last asked whether it has ended */
	uint64_t start_ns; /* when it may be started (again) */
	uint64_t limit_ns; /* longest time without output; 0: it waits for questions */
	unsigned failures; /* since its last complete round */
	char *page;	   /* shared with it: what it is reading; NULL: none */
	int page_fd;
	char skip[READER_GPUS_MAX * 16 + 1]; /* PCI addresses that it does not touch, with commas */
	pid_t stranger;			     /* an earlier reader that was seen stuck */
	bool told;			     /* a reason for this source was sent */
	uint32_t map[WATCH_ENTITIES_MAX];    /* numbers of its entities, as the node's */
};

/* Lines for the reader of the stream, which may be slow. */
struct queue {
	struct text text;
	bool full; /* lines were dropped: the whole state follows */
	bool closed;
};

struct node {
	const struct reader_spec *spec;
	struct watch_state state; /* what was sent */
	struct queue queue;
	struct child source[WATCH_SOURCE_COUNT], names;
	unsigned asked[NODE_PIDS_MAX]; /* processes whose names are asked for, in order */
	unsigned asked_count;
	char jobs[READER_GPUS_MAX][NODE_JOBS_TEXT]; /* of each GPU by its number, from files; "": none */
	json_t *pods;		   /* of GPUs, as pods_ask gives them; NULL: none were told */
	uint64_t jobs_ns, pods_ns; /* when they are asked for again */
	enum { ASKED_PROCESS, ASKED_JOBS, ASKED_PODS } question; /* the open one */
	uint64_t beat_ns, wall_ns, lifeline_ns;
	bool nameless; /* NVML's process numbers are not those of this PID namespace */
};

/* Sends a line (without newline) after the state has taken it. */
void node_send(struct node *n, const char *line, size_t size);
__attribute__((format(printf, 2, 3))) void node_sendf(struct node *n, const char *format, ...);
void node_send_why(struct node *n, unsigned source, const char *why);
/* A line of a source: its numbers become the node's. False: it is no line of a stream. */
bool node_take(struct node *n, unsigned source, const char *line, size_t size);
/* Declares a GPU before the driver answers. */
void node_declare_gpu(struct node *n, const char *pci, unsigned number);

/* Starts, reads and ends children. */
void reader_child_start(struct child *c, const struct reader_spec *spec, const char *proc);
/* Hands over complete lines. False: the child has ended. */
bool reader_child_read(struct child *c, bool (*take)(void *arg, const char *line, size_t size), void *arg);
/* Ends it; sets stuck if it cannot be ended. */
void reader_child_stop(struct child *c);
void reader_child_release(struct child *c);

/* Questions about processes. */
void names_ask(struct node *n, unsigned pid);
void names_turn(struct node *n, uint64_t now_ns);
/* Container and job of a GPU are those of its processes; the job is that of its file where there is one, and
 * the container that of its pod. */
void names_set_gpu(struct node *n, uint32_t gpu);
#endif
