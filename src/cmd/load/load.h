/* SPDX-License-Identifier: Apache-2.0 */
/* assay load: the client process that sends and measures, the server that it may start, and the run
 * directory. */
#ifndef CMD_LOAD_LOAD_H
#define CMD_LOAD_LOAD_H
#include <limits.h>
#include "cmd/command.h"
#include "cmd/load/options.h"
#include "cmd/load/silence.h"
#include "cmd/shared/child_lines.h"
#include "core/process/process.h"
#include "run/supervisor/job.h"
#include "run/supervisor/lines.h"

/* A process that is followed by its lines. */
struct load_child {
	struct process process;
	struct lines in;
	bool running;
};

/* The sampler of the server's node. */
struct load_node {
	struct load_child child;
	int input;	   /* ssh's stdin */
	unsigned answers;  /* to the question for its time */
	uint64_t sent_ns;  /* the last question */
	uint64_t trip_ns;  /* of the quickest answer */
	uint64_t known_ns; /* its arrival */
	int64_t offset_ns; /* our clock minus the node's */
	bool samples;	   /* telemetry has come */
	struct load_silence silence;
	json_t *gpus; /* members: its GPUs, as sources of the telemetry */
};

struct loading {
	const struct command_context *c;
	const struct load_opts *o;
	struct load_run_spec spec;
	char dir[PATH_MAX], url[1100], key[512];
	struct job *job;
	struct load_child client, server; /* server: with --model */
	struct load_node node;		  /* with --node */
	struct child_end end;		  /* of the client */
	uint64_t began_ns, heard_ns;
	unsigned stages;
	unsigned own_gpus; /* with --model: GPUs of our server, once own_loaded */
	bool own_loaded;   /* our server has said its device */
	bool planned;	   /* the client has begun the load */
	bool asked;	   /* the client was asked to stop */
	bool garbled;	   /* it sent a line that is none */
	uint64_t live_ns;  /* time of the last live line; 0: none is shown */
};

/* Runs the command; returns its exit code. */
int load_perform(const struct command_context *c, const void *opts);

/* Reads the API's key, and looks at the file of certificates. */
enum status load_inputs_read(struct loading *l, struct error *err);
/* --plan: checks what the options name and prints the plan. Returns the exit code. */
int load_plan_show(struct loading *l, struct error *err);

/* Creates the run directory and begins the journal. */
enum status load_record_begin(struct loading *l, struct error *err);
/* Writes the phase `name` over the measured window of these figures, whose times are taken out of them.
 * `with_values`: the phase has them too. */
void load_record_window(struct loading *l, const char *name, json_t *values, bool with_values);
/* The last lines, the report, and SUMMARY.md. Returns the exit code. */
int load_record_end(struct loading *l, struct error *err);

/* Starts `assay serve` with --model and waits until it answers; fills l->url. */
enum status load_server_start(struct loading *l, struct error *err);
void load_server_stop(struct loading *l);

/* Starts the sampler of the server's node, with --node, and waits for its first telemetry. */
enum status load_node_start(struct loading *l, struct error *err);
void load_node_read(struct loading *l);
/* After the load, whether or not a sampler runs. */
void load_node_stop(struct loading *l);
void load_node_release(struct loading *l);
/* GPUs of the node that the telemetry came from; 0: none, or no telemetry came. */
size_t load_node_gpus(const struct loading *l);
/* The offset and the error of the node's clock, for the journal. NULL: the node sent no telemetry. Owner:
 * caller. */
json_t *load_node_values(const struct loading *l);

/* The figures of the requests that a client process wrote before it died; NULL: there are none. Owner:
 * caller. */
json_t *load_recover(const struct loading *l);

/* Starts the client process and follows it to its end. */
enum status load_follow(struct loading *l, struct error *err);

/* The live line on a terminal, from a line "alive". */
void load_show_live(struct loading *l, const json_t *line);
void load_clear_live(struct loading *l);
/* What was planned, from the client's line "planned". */
void load_show_planned(const struct loading *l, const json_t *line);
#endif
