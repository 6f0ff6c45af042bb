/* SPDX-License-Identifier: Apache-2.0 */
/* assay serve: options, and the two processes that it starts and restarts. */
#ifndef CMD_SERVE_SERVE_H
#define CMD_SERVE_SERVE_H
#include <jansson.h>
#include "cmd/command.h"
#include "cmd/serve/adapters.h"
#include "cmd/serve/record.h"
#include "cmd/shared/child_lines.h"
#include "core/process/process.h"
#include "engine/load/load.h"
#include "run/supervisor/lines.h"

struct serve_opts {
	const char *model, *adapter, *name, *host, *api_keys, *certificate, *key, *cors, *template,
		*request_log, *out;
	uint64_t port, context, sequences, rows, queue, memory, page, connections, body, answer_s;
	uint32_t device, cache, weights;
	double step_ms;
	bool any_base, deterministic, no_prefix_cache, log_requests, sample, real_names, plan, json;
	struct serve_adapters adapters; /* what `adapter` means; not an option of its own */
};

struct serving;
/* Fills o->adapters. BAD_INPUT: a wrong or ambiguous name. Owner: caller, serve_adapters_release. */
enum status serve_opts_adapters(struct serve_opts *o, struct error *err);

/* Reads the headers of the model's files, so that a wrong path leaves no run directory behind. Warns if
 * --context is longer than the model supports. */
enum status serve_check_model(const struct serve_opts *o, const struct log *log, struct error *err);

/* The memory plan for the options, for --plan. Prints it. */
enum status serve_show_plan(const struct serve_opts *o, const struct log *log, struct error *err);
/* Sequences and context that the options mean on a device. */
struct load_options serve_load_options(const struct serve_opts *o);
/* The name of the model in requests; `out` is room for it. */
const char *serve_name(const struct serve_opts *o, char out[256]);
/* The lines that the two processes get first. A front end that was ready before keeps its port. */
json_t *serve_front_line(const struct serving *s);
json_t *serve_engine_line(const struct serve_opts *o, uint32_t epoch);

/* One of the two processes. */
struct serve_child {
	struct process process;
	struct lines in;
	bool running;
	struct child_end end;
};

enum { SERVE_GPUS_MOST = 64 };

struct serving {
	const struct command_context *c;
	const struct serve_opts *o;
	struct serve_child front, engine;
	int control; /* socket to the front end; -1: none */
	uint32_t epoch, port;
	json_t *ready; /* what the engine said when it was ready; NULL: it never was */
	bool engine_ready, shown, draining;
	uint64_t alive_ns;	 /* last sign of life of the engine */
	double expected_s;	 /* until the next one */
	uint64_t restart_ns;	 /* when the engine is to start again; 0: now */
	unsigned failures;	 /* of the engine without being ready in between */
	uint64_t front_ns;	 /* when the front end started */
	uint64_t front_alive_ns; /* its last sign of life */
	bool front_serves;	 /* it reports once a second */
	uint64_t looked_ns;	 /* when the supervisor last looked at both */
	unsigned front_failures; /* of the front end, each soon after its start */
	struct serve_record record;
	uint64_t xid_seen_ns[SERVE_GPUS_MOST]; /* last Xid event of each GPU that was logged, in the order of
						  their series */
	json_t *summary;  /* of the requests, from the front end at its end; NULL: none */
	uint64_t live_ns; /* time of the last live line; 0: none is shown */
};
/* Seconds of silence after which an engine has hung. */
unsigned serve_hang_s(void);
/* Starts both processes and restarts them until a stop request. */
enum status serve_supervise(struct serving *s, struct error *err);
/* On a terminal: shows the engine's facts of a line "alive", at most once a second. */
void serve_show_live(struct serving *s, const json_t *line);
/* Removes the live line before other output. */
void serve_clear_live(struct serving *s);
/* Logs the Xid events that the sampler has read since the last call. */
void serve_note_xids(struct serving *s);
/* Appends the last Xid event of the last minute to the text that says how the engine ended. */
void serve_add_xid(const struct serving *s, char *how, size_t size);
/* Prints model, device, memory and addresses, once the engine is ready. */
void serve_show_ready(const struct serving *s);
#endif
