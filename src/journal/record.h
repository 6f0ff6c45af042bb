/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run directory read into memory: what judge, report, compare and roofline work on. */
#ifndef JOURNAL_RECORD_H
#define JOURNAL_RECORD_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/require.h"
#include "journal/series.h"

struct record_phase {
	char name[16];
	uint64_t t0_ns, t1_ns;
	bool has_window;
	json_t *values; /* object: field -> value; NULL: no result event for it */
	double *ns;	/* raw samples, ns an iteration */
	size_t ns_count;
	uint64_t batch;
};

struct record_case {
	unsigned id, step;
	const char *key, *probe, *engine, *target, *limit, *phases, *group; /* lent from `plan`; never NULL */
	const json_t *plan; /* the CASE object, borrowed from the record */
	bool reading, together;
	unsigned round; /* of several, 1 first; 0: the run has one */
	enum require require;
	bool skipped; /* by the plan */
	enum status skip_status;
	enum cause skip_cause;
	const char *skip_reason;
	bool begun, ended;
	enum ending ending; /* CUT where begun and not ended; NOT_RUN where neither begun nor skipped */
	enum status status;
	enum cause cause;
	char text[512];
	uint64_t t0_ns, t1_ns;
	struct record_phase *phase;
	size_t phase_count;
	double work_flop, work_read, work_write, work_link, work_messages; /* one iteration */
};

struct record {
	char dir[4096];
	json_t *open, *plan;	   /* bodies; NULL where the journal has none */
	json_t *machine;	   /* the facts tree of the `machine` event; NULL likewise */
	struct record_case *cases; /* in plan order */
	size_t case_count;
	struct series *series;
	size_t series_count;
	bool closed;
	enum ending close_ending;
	uint64_t cut_line; /* 1 first: where what cannot be read begins; the bytes from there: 0 is nothing */
	uint64_t cut_bytes, t_first_ns, t_last_ns;
};

/* Owner: caller, record_release (empty again). A torn journal reads; cut_bytes says what was dropped. One of
 * a schema that is not known is BAD_INPUT. */
enum status record_read(struct record *r, const char *dir, struct error *err);
/* As record_read; BAD_INPUT where not even the first line of a run is there. */
enum status record_read_run(struct record *r, const char *dir, struct error *err);
void record_release(struct record *r);
const struct record_phase *record_phase(const struct record_case *c, const char *name); /* NULL: not there */
/* The phase's value as a number (BITS: their integer); false where absent. */
bool record_number(const struct record_phase *p, const char *field, double *out);
const char *record_text(const struct record_phase *p, const char *field); /* NULL: absent */
/* An option of the case as text; NULL: no such option. */
const char *record_option(const struct record_case *c, const char *name);
/* Its figure is to be judged, where anything can judge it. */
bool record_asks_judgement(const struct record_case *c);
/* One probe, engine and target, and equal options but those named (NULL ends the list). */
bool record_same_but(const struct record_case *a, const struct record_case *b, const char *const *but);
const struct series *record_series(const struct record *r, const char *source, const char *signal);
#endif
