/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: long work that is not a probe, recorded as a run with one case. It has the run directory, journal
 * and sampler of a suite's run. docs/explanation/design/processes.md, "Jobs".
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
	const char *dir;	    /* run directory; must not contain a journal, unless resume */
	const char *const *command; /* command line for the journal; NULL ends it */
	const char *name;	    /* the job's name: suite and probe of the record */
	const char *key;	    /* key of the case: name and subject, one line */
	const struct field *fields; /* fields of its results */
	size_t field_count;
	/* limit of its work, which selects the result that is its figure (journal/figure/figure.h); NULL:
	 * none */
	const char *limit;
	const char *hash; /* hash of its settings; NULL: none. A resumed job must have the same */
	json_t *settings; /* {section: {name: text}}, so that a resumed job can name those that differ;
			     borrowed by job_begin; NULL: none */
	const char *expectations; /* as the user named them; NULL: the built-in set */
	json_t *kept; /* checksums of the files in `dir` that judge the run, borrowed; NULL: none are saved */
	bool resume;  /* continues the journal as another attempt */
	bool sample, real_names;
	uint64_t every_ns;   /* readings of a signal closer together are dropped, except for Xids; 0: all are
				kept */
	uint64_t started_ns; /* start of the program; 0: unknown */
	const struct log *log;
	const struct clock *clock;
};

struct job;
/* Creates the directory and the journal, writes open, machine, plan and begin, and starts the sampler for all
 * GPUs granted to assay. The caller owns the job until job_end(). */
enum status job_begin(struct job **out, const struct job_spec *s, const struct machine *m, struct error *err);
/* Descriptor to poll for input; -1: no telemetry, or no more. */
int job_channel(const struct job *j);
/* Reads what the sampler has sent. Call it when the channel has input, or every second. */
void job_receive(struct job *j);
/* Takes one telemetry line of another sampler. It is a callback of lines_read(), whose argument is the job.
 * Lines that are not telemetry are ignored. Always true. */
bool job_take_line(void *job, const char *line, size_t size);
/* Whether the journal can still be written; otherwise *why is the error. */
enum status job_state(const struct job *j, struct error *why);
/* Readings of the job itself at one time, written to the journal at once as telemetry of `source`. Values
 * that are not finite are left out. */
struct job_reading {
	const char *signal;
	double value;
};
void job_report(struct job *j, const char *source, uint64_t t_ns, const struct job_reading *readings,
		size_t count);
/* Writes a phase that has ended, and its values (taken; NULL: none). */
void job_phase(struct job *j, const char *phase, uint64_t t0_ns, uint64_t t1_ns, json_t *values);
/* Ends the sampler after it has passed the current time, so that job_series() is complete. */
void job_quiet(struct job *j);
/* All telemetry of the job. Valid until job_end(). */
const struct series *job_series(const struct job *j, size_t *count);
/* Writes end and close, and frees the job. Returns the first error of writing the journal. */
enum status job_end(struct job **j, enum ending ending, enum status status, enum cause cause,
		    const char *text, struct error *err);
#endif
