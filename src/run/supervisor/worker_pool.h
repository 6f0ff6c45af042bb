/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on one worker process, shared by worker_pool.c (steps), worker_process.c (start to end of a
 * worker) and worker_lines.c (its messages). */
#ifndef RUN_SUPERVISOR_WORKER_POOL_H
#define RUN_SUPERVISOR_WORKER_POOL_H
#include "run/supervisor/supervisor.h"

/* Excludes the case's GPUs from the rest of the run. */
void worker_pool_quarantine(struct run *r, const struct bench_case *c, enum lost why);

/* Waits for the next event of any of these workers, the sampler or the team, and handles it. */
void worker_pool_attend(struct run *r, struct worker *pool, size_t count);
/* Ends a worker that does not fit the case, and starts another if none runs. */
enum status worker_ready(struct run *r, struct worker *w, const struct bench_case *c, struct error *err);
/* Name of this launched rank: "rank 2 on node-a". */
void team_own_name(const struct run *r, char *text, size_t size);
/* First message to a worker of the team, and the address of the first rank's worker. The caller decrefs both.
 */
json_t *team_place_json(const struct run *r);
json_t *team_links_json(const struct run *r);
/* Gives the case to the worker, and starts one if none fits. */
void worker_give(struct run *r, struct worker *w, const struct bench_case *c);
/* Whether the worker can run the case; otherwise another one is started. */
bool worker_fits(const struct worker *w, const struct bench_case *c);
/* Closes the channel of an idle worker, so that it exits; worker_pool_dismiss() waits for it. */
void worker_hang_up(struct worker *w);
/* Takes `line`. */
enum status worker_send(struct worker *w, json_t *line, struct error *err);
/* Reads its messages and output so far, and handles its exit. */
void worker_receive(struct run *r, struct worker *w);
/* Sends TERM. The loop keeps reading from the worker until `patience_ns` have passed. */
void worker_terminate(struct run *r, struct worker *w, enum ending ending, enum cause cause, const char *why,
		      uint64_t patience_ns);
/* Ends a worker that ignored TERM with KILL. */
void worker_force(struct run *r, struct worker *w);
/* Ends the worker; it has `term_ms` to exit after TERM. */
void worker_end(struct run *r, struct worker *w, unsigned term_ms);
/* Records the end of the case of a worker that was told to end. */
void worker_ended_by_force(struct run *r, struct worker *w, const char *how);

/* Handles one message of the worker `arg`; a callback of lines_read(). False: the line is not a valid
 * message. */
bool worker_line(void *arg, const char *line, size_t size);
#endif
