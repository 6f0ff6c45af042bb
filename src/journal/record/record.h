/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory read into memory. Judge, report, compare and roofline work on it. */
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
	json_t *values; /* object: field -> value; NULL: no result */
	double *ns;	/* raw samples, ns per iteration */
	size_t ns_count;
	uint64_t batch;
};

/* The part of another rank in a team case. */
struct record_rank {
	unsigned rank;
	bool ended;
	enum ending ending; /* CUT: it began and did not end */
	json_t *values;	    /* of its phase "rank"; NULL: none */
};

struct record_case {
	unsigned id, step;
	const char *key, *probe, *engine, *target, *limit, *phases, *group; /* of `plan`, never NULL */
	const json_t *plan; /* the CASE object, borrowed from the record */
	bool reading, together, lockstep;
	bool job;	/* long work that is not a probe (run/supervisor/job.h) */
	unsigned round; /* from 1; 0: the run has only one round */
	enum require require;
	bool require_said; /* `require` was given explicitly, not by default */
	bool skipped;	   /* by the plan */
	enum status skip_status;
	enum cause skip_cause;
	const char *skip_reason;
	bool begun, ended;
	enum ending ending; /* CUT: begun and not ended; NOT_RUN: neither begun nor skipped */
	enum status status;
	enum cause cause;
	char text[512];
	uint64_t t0_ns, t1_ns;
	/* The machine was rebooted and the run resumed: during this case, or after it. */
	enum record_reboot { REBOOT_NONE, REBOOT_WITHIN, REBOOT_BEHIND } reboot;
	struct record_phase *phase;
	size_t phase_count;
	double work_flop, work_read, work_write, work_link, work_messages; /* of one iteration */
	unsigned node, rank;	   /* whose journal has the case; 0 in a run of one process */
	const char *where;	   /* target, with the node's name if there are several; unique among parts */
	struct record_rank *ranks; /* the others of a team case, by rank */
	size_t rank_count;
};

/* State of a team's node: all journals of its ranks are complete; some are torn, not closed or missing; all
 * are missing. */
#define RECORD_NODE_STATES(X) X(WHOLE, "whole") X(CUT, "cut") X(MISSING, "missing")
#define X(name, word) NODE_##name,
enum record_node_state { RECORD_NODE_STATES(X) };
#undef X

/* A node's clock minus rank 0's clock, at time at_ns of rank 0's clock. */
struct record_clock {
	bool known;
	int64_t offset_ns;
	uint64_t error_ns, at_ns;
};

struct record_node {
	char name[64];
	enum record_node_state state;
	char why[256];		      /* if not WHOLE: the rank, and what is wrong with its journal */
	unsigned leader, last, ranks; /* lowest rank, highest rank, number of ranks */
	struct record_clock joined, parted;
	json_t *machine; /* facts of its lowest rank, plus GPUs that only other ranks saw; NULL: none */
	struct series *series;
	size_t series_count;
	struct health health;	       /* health and series: of all nodes except the first */
	size_t first_case, case_count; /* the node's cases, contiguous in the record */
};

struct record {
	char dir[4096];
	json_t *open, *plan;	   /* line bodies; NULL: not in the journal */
	json_t *machine;	   /* facts of the `machine` line; NULL: none */
	struct record_case *cases; /* in plan order */
	size_t case_count;
	struct series *series;
	size_t series_count;
	struct health health;
	char boot[64]; /* the kernel's boot id when the journal was last written; "": not known */
	bool closed;
	enum ending close_ending;
	/* First line that cannot be read, from 1, and the number of bytes from there on; 0 bytes: the whole
	 * journal is readable. */
	uint64_t cut_line;
	uint64_t cut_bytes, t_first_ns, t_last_ns;
	json_t *close; /* body of the last `close`; NULL: none */
	/* Nodes of a team, rank 0's first. With nodes, `cases` holds the cases of all ranks, ordered by node,
	 * rank and id, with times on rank 0's clock; `machine` and `series` above are those of node 0. */
	struct record_node *node;
	size_t node_count; /* 0: a run of one process */
	json_t *lent;	   /* keeps data alive that cases of other ranks borrow */
};

const char *record_node_state_word(enum record_node_state state);

/* Reads a run directory. For rank 0 of a team it includes the journals below nodes/. If the journal of a rank
 * is missing or belongs to another team, the rank gets rank 0's cases as NOT_RUN with TEAM_LOST. A torn
 * journal can be read; cut_bytes is the size of the dropped part. BAD_INPUT: an unknown schema. Owner:
 * caller, record_release. */
enum status record_read(struct record *r, const char *dir, struct error *err);
/* As record_read; BAD_INPUT also if the journal lacks even the first line of a run. */
enum status record_read_run(struct record *r, const char *dir, struct error *err);
/* Makes the record of a run that is planned but not begun, without a journal. `facts`: of a machine; `plan`:
 * body of the `plan` line. Both are shared, not copied. */
enum status record_planned(struct record *r, const json_t *facts, const json_t *plan, struct error *err);
void record_release(struct record *r);
/* Makes a record of one node: its cases (with their ids in the whole record), machine and series, all
 * borrowed from `r`. A run of one process has exactly one node. */
void record_slice(struct record *out, const struct record *r, unsigned node);
const struct record_phase *record_phase(const struct record_case *c, const char *name); /* NULL: none */
/* Reads a value of the phase as a number (BITS: as an integer); false: absent. */
bool record_number(const struct record_phase *p, const char *field, double *out);
const char *record_text(const struct record_phase *p, const char *field); /* NULL: absent */
/* An option of the case as text; NULL: no such option. */
const char *record_option(const struct record_case *c, const char *name);
/* Whether the case belongs to an isolation search for another case. It is evidence and never judged itself.
 */
bool record_is_isolation(const struct record_case *c);
/* If the case repeats another with other kernels or another library, the setting or engine that it tried;
 * else NULL. */
const char *record_tries(const struct record_case *c);
/* Whether the case asks for a judgement, if a reference is known. */
bool record_asks_judgement(const struct record_case *c);
/* Whether probe, engine and target are equal, and all options except those in `but`, which ends with NULL. */
bool record_same_but(const struct record_case *a, const struct record_case *b, const char *const *but);
/* Whether all options are equal, except those in `but`; engine and target may differ. */
bool record_same_options(const struct record_case *a, const struct record_case *b, const char *const *but);
const struct series *record_series(const struct record *r, const char *source, const char *signal);
#endif
