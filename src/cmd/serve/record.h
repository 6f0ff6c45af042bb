/* SPDX-License-Identifier: Apache-2.0 */
/* The run directory of a server: journal, telemetry, request log, report. The server goes on if the
 * directory can no longer be written; there is one warning then. */
#ifndef CMD_SERVE_RECORD_H
#define CMD_SERVE_RECORD_H
#include <limits.h>
#include "cmd/command.h"
#include "run/supervisor/job.h"

struct serve_opts;
struct serving;

struct serve_record {
	struct job *job; /* NULL: not begun */
	char dir[PATH_MAX], request_log[PATH_MAX + 32];
	uint64_t log_begin;		       /* size of the request log when the server started */
	uint64_t began_ns, phase_ns, drain_ns; /* start of the run; of the engine's phase; of the drain */
	uint64_t reading_ns;		       /* of the last reading */
	uint64_t served_ns;
	json_t *memory; /* of the present engine, as it said last; NULL: not yet */
	bool failed;	/* the warning was given */
};

/* Chooses and creates the run directory, and begins the journal. */
enum status serve_record_begin(struct serving *s, struct error *err);
/* The engine process was started, or its weights are loaded. */
void serve_record_start(struct serving *s);
void serve_record_ready(struct serving *s);
/* The engine ended; `how` says why. */
void serve_record_engine_end(struct serving *s, const char *how);
/* Readings of the engine, from its line "alive". */
void serve_record_reading(struct serving *s, const json_t *line);
/* The last lines and the report. `summary`: of the requests (request_summary.h), or NULL. */
void serve_record_end(struct serving *s, const json_t *summary, const struct error *err);
#endif
