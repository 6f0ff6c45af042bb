/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run directory read into memory: what judge, report, compare and roofline work on. */
#ifndef JOURNAL_RECORD_RECORD_H
#define JOURNAL_RECORD_RECORD_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/record/health.h"
#include "journal/require.h"
#include "journal/telemetry/series.h"

struct record_phase {
	char name[16];
	uint64_t t0_ns, t1_ns;
	bool has_window;
	json_t *values; /* object: field -> value; NULL: no result event for it */
	double *ns;	/* raw samples, ns an iteration */
	size_t ns_count;
	uint64_t batch;
};

/* What another rank of a team case told of it. */
struct record_rank {
	unsigned rank;
	bool ended;
	enum ending ending; /* CUT where it began and did not end */
	json_t *values;	    /* of its phase "rank"; NULL: none */
};

struct record_case {
	unsigned id, step;
	const char *key, *probe, *engine, *target, *limit, *phases, *group; /* lent from `plan`; never NULL */
	const json_t *plan; /* the CASE object, borrowed from the record */
	bool reading, together, lockstep;
	bool job;	/* long work that is no probe (run/supervisor/job.h) */
	unsigned round; /* of several, 1 first; 0: the run has one */
	enum require require;
	bool require_said; /* judgement was asked for in words, not by default */
	bool skipped;	   /* by the plan */
	enum status skip_status;
	enum cause skip_cause;
	const char *skip_reason;
	bool begun, ended;
	enum ending ending; /* CUT where begun and not ended; NOT_RUN where neither begun nor skipped */
	enum status status;
	enum cause cause;
	char text[512];
	uint64_t t0_ns, t1_ns;
	/* The run was taken up after the machine had been started anew: while it ran, or after it had ended.
	 */
	enum record_reboot { REBOOT_NONE, REBOOT_WITHIN, REBOOT_BEHIND } reboot;
	struct record_phase *phase;
	size_t phase_count;
	double work_flop, work_read, work_write, work_link, work_messages; /* one iteration */
	unsigned node, rank; /* whose journal has it; 0 in a run of one process */
	const char *
		where; /* its target, and of which node where there are several: no two parts have the same */
	struct record_rank *ranks; /* the others of a team case, by rank */
	size_t rank_count;
};

/* Of a team's node: all of its ranks' journals are whole; some are torn, open or not there; none is there. */
#define RECORD_NODE_STATES(X) X(WHOLE, "whole") X(CUT, "cut") X(MISSING, "missing")
#define X(name, word) NODE_##name,
enum record_node_state { RECORD_NODE_STATES(X) };
#undef X

/* A node's clock less rank 0's at a time of rank 0's. */
struct record_clock {
	bool known;
	int64_t offset_ns;
	uint64_t error_ns, at_ns;
};

struct record_node {
	char name[64];
	enum record_node_state state;
	char why[256];		      /* not whole: whose journal, and what is wrong with it */
	unsigned leader, last, ranks; /* lowest and highest rank, and how many */
	struct record_clock joined, parted;
	json_t *machine; /* facts of its lowest rank, and the GPUs that only the others saw; NULL: none */
	struct series *series;
	size_t series_count;
	struct health health;	       /* of the nodes but the first: as with series */
	size_t first_case, case_count; /* of the record's: a node's stand together */
};

struct record {
	char dir[4096];
	json_t *open, *plan;	   /* bodies; NULL where the journal has none */
	json_t *machine;	   /* the facts tree of the `machine` event; NULL likewise */
	struct record_case *cases; /* in plan order */
	size_t case_count;
	struct series *series;
	size_t series_count;
	struct health health;
	char boot[64]; /* the kernel's id of the boot in which it was written last; "": not known */
	bool closed;
	enum ending close_ending;
	uint64_t cut_line; /* 1 first: where what cannot be read begins; the bytes from there: 0 is nothing */
	uint64_t cut_bytes, t_first_ns, t_last_ns;
	json_t *close;		  /* body of the last `close`; NULL: none */
	struct record_node *node; /* of a team whose journals lie here: rank 0's node first. Then cases are
				     those of all, by node, rank, id, on rank 0's clock, and machine and
				     series above are node 0's */
	size_t node_count;	  /* 0: a run of one process */
	json_t *lent;		  /* what cases of other ranks lend from */
};

const char *record_node_state_word(enum record_node_state state);

/* Owner: caller, record_release (empty again). Of rank 0 of a team with the journals below nodes/: one that
 * is not there or not of this team leaves its rank's cases, as rank 0 has them, NOT_RUN with TEAM_LOST. A
 * torn journal reads; cut_bytes says what was dropped. One of a schema that is not known is BAD_INPUT. */
enum status record_read(struct record *r, const char *dir, struct error *err);
/* As record_read; BAD_INPUT where not even the first line of a run is there. */
enum status record_read_run(struct record *r, const char *dir, struct error *err);
/* What there is of a run when its plan stands and nothing has begun, without a file of it: `facts` are a
 * machine's, `plan` is the body that a journal would have; both are shared, not copied. */
enum status record_planned(struct record *r, const json_t *facts, const json_t *plan, struct error *err);
void record_release(struct record *r);
/* One node of it as a record of its own, all lent: its cases (with their numbers in the whole), machine and
 * series. A run of one process is its own only node. */
void record_slice(struct record *out, const struct record *r, unsigned node);
const struct record_phase *record_phase(const struct record_case *c, const char *name); /* NULL: not there */
/* The phase's value as a number (BITS: their integer); false where absent. */
bool record_number(const struct record_phase *p, const char *field, double *out);
const char *record_text(const struct record_phase *p, const char *field); /* NULL: absent */
/* An option of the case as text; NULL: no such option. */
const char *record_option(const struct record_case *c, const char *name);
/* A case of a search for what is bad with another: evidence, never judged by itself. */
bool record_follows(const struct record_case *c);
/* One that did the work of another by other kernels or another library: the setting or engine that it tried;
 * NULL: it is none such. */
const char *record_tries(const struct record_case *c);
/* Its figure is to be judged, where anything can judge it. */
bool record_asks_judgement(const struct record_case *c);
/* One probe, engine and target, and equal options but those named (NULL ends the list). */
bool record_same_but(const struct record_case *a, const struct record_case *b, const char *const *but);
/* Equal options but those named, whatever the engine and the target. */
bool record_same_options(const struct record_case *a, const struct record_case *b, const char *const *but);
const struct series *record_series(const struct record *r, const char *source, const char *signal);
#endif
