/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: long work that is no probe, as the one case of a run. It has the run directory, the journal and the
 * sampler that suites have, and reads as a run of one case. docs/explanation/design/processes.md, "Jobs".
 */
#ifndef RUN_SUPERVISOR_JOB_H
#define RUN_SUPERVISOR_JOB_H
#include <jansson.h>
#include <stdbool.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/status.h"
#include "journal/field.h"
#include "journal/telemetry/series.h"

struct machine;

struct job_spec {
	const char *dir;	    /* run directory; must not hold a journal, unless resume */
	const char *const *command; /* our words, for the record; NULL ends */
	const char *name;	    /* of the job: the record's suite and probe */
	const char *key;	    /* of this case: name and what it is of, one line */
	const struct field *fields; /* its results' */
	size_t field_count;
	const char *limit; /* of its work: says which result is its figure (journal/figure/figure.h); NULL:
			      none */
	const char *hash;  /* of what it was asked to do; NULL: none. One that goes on has the same */
	bool resume;	   /* goes on with the journal, as another attempt */
	bool sample, real_names;
	uint64_t started_ns; /* of the program; 0: not known */
	const struct log *log;
	const struct clock *clock;
};

struct job;
/* Creates the directory and the journal, writes open, machine, plan and begin, starts the sampler for all
 * GPUs granted to us. Owner: caller, job_end. */
enum status job_begin(struct job **out, const struct job_spec *s, const struct machine *m, struct error *err);
/* To be polled for input; -1: no telemetry (any more). */
int job_channel(const struct job *j);
/* Takes what the sampler has sent. Call it when the channel has input, or every second. */
void job_hear(struct job *j);
/* A line of telemetry as a sampler writes it, of another one than the job's; lines_read calls it with the
 * job. What is no telemetry is passed over: it is not worth the job. Always true. */
bool job_take_line(void *job, const char *line, size_t size);
/* The journal can be written no more, and why; OK: it can. */
enum status job_state(const struct job *j, struct error *why);
/* What the job says of itself at one moment, as telemetry of that source: journaled at once. What is not
 * finite is left out. */
struct job_reading {
	const char *signal;
	double value;
};
void job_tell(struct job *j, const char *source, uint64_t t_ns, const struct job_reading *readings,
	      size_t count);
/* A phase that has ended, and values of it (stolen; NULL: none). */
void job_phase(struct job *j, const char *phase, uint64_t t0_ns, uint64_t t1_ns, json_t *values);
/* Ends the sampler once it has passed this moment, so that job_series is whole. */
void job_quiet(struct job *j);
/* All that was sampled, lent until job_end. */
const struct series *job_series(const struct job *j, size_t *count);
/* Writes end and close and frees the job. The first error of writing the journal is told here. */
enum status job_end(struct job **j, enum ending ending, enum status status, enum cause cause,
		    const char *text, struct error *err);
#endif
