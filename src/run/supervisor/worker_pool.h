/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of the pool, what worker_pool.c (steps), worker_process.c (a worker's life) and worker_lines.c
 * (its words) share. */
#ifndef RUN_SUPERVISOR_WORKER_POOL_H
#define RUN_SUPERVISOR_WORKER_POOL_H
#include "run/supervisor/supervisor.h"

/* The case's GPUs are used no more in this run. */
void worker_pool_quarantine(struct run *r, const struct bench_case *c, enum lost why);

/* Waits for the next thing to happen to any of them, to the sampler or to the team, then attends to it. */
void worker_pool_attend(struct run *r, struct worker *pool, size_t count);
/* Another worker, where this one is not of the case's kind. */
enum status worker_ready(struct run *r, struct worker *w, const struct bench_case *c, struct error *err);
/* What a worker of the team is told first, and where rank 0's listens. Caller decrefs. */
/* "rank 2 on node-a": this launched one. */
void team_own_name(const struct run *r, char *text, size_t size);
json_t *team_place_json(const struct run *r);
json_t *team_links_json(const struct run *r);
/* Gives the case to the worker, hiring one where there is none that fits. */
void worker_give(struct run *r, struct worker *w, const struct bench_case *c);
/* Whether it can take the case as it is; else another is hired. */
bool worker_fits(const struct worker *w, const struct bench_case *c);
/* An idle one is told to leave; worker_pool_dismiss waits for it. */
void worker_hang_up(struct worker *w);
/* Owns `line`. */
enum status worker_send(struct worker *w, json_t *line, struct error *err);
/* Its lines and words, as far as they have come; and its end, where it has ended. */
void worker_hear(struct run *r, struct worker *w);
/* TERM at once; the loop goes on hearing it until `patience_ns` have passed. */
void worker_ask(struct run *r, struct worker *w, enum ending ending, enum cause cause, const char *why,
		uint64_t patience_ns);
/* TERM did not help. */
void worker_force(struct run *r, struct worker *w);
/* Ends it, with `term_ms` to leave by itself. */
void worker_home(struct run *r, struct worker *w, unsigned term_ms);
/* Told to end, it did, somehow. */
void worker_fell_forced(struct run *r, struct worker *w, const char *how);

/* One line of it, as lines_read hands it over; `arg` is the worker. False: none of ours. */
bool worker_line(void *arg, const char *line, size_t size);
#endif
