/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs held against each other. One machine: the last run against those before it (regressions, with noise).
 * Several machines: each value against the others of its kind (outliers). METHODS "Comparing runs".
 */
#ifndef JUDGE_COMPARE_COMPARE_H
#define JUDGE_COMPARE_COMPARE_H
#include "judge/judge.h"

struct compare_run {
	const char *name; /* as the user named it: a folder */
	const struct record *record;
	const struct judgements *judged;
	bool after; /* of one machine: held against those that are not. None is marked: the last alone is */
};

enum compare_as { COMPARE_AUTO, COMPARE_HISTORY, COMPARE_FLEET };

/* SAME: within noise. CLOCK: changed, and the held clock (a CPU: its ceiling in the same turns) changed with
 * it. Without CLOCK: changed at an equal clock: software or the part itself. UNSUPPORTED: beyond the spread
 * within the runs, and not beyond what the clock of this machine may drift between them. NOT_COMPARABLE: a
 * side is untrusted or in error; why says which. */
#define COMPARE_CHANGES(X)                                                                                   \
	X(SAME, "same")                                                                                      \
	X(FASTER, "faster")                                                                                  \
	X(SLOWER, "slower")                                                                                  \
	X(FASTER_CLOCK, "faster, by its clock")                                                              \
	X(SLOWER_CLOCK, "slower, by its clock")                                                              \
	X(UNSUPPORTED, "not supported by the noise") X(NOT_COMPARABLE, "not comparable")
#define X(name, text) COMPARE_##name,
enum compare_change { COMPARE_CHANGES(X) COMPARE_CHANGE_COUNT };
#undef X
const char *compare_change_text(enum compare_change change);

struct compare_row {
	const struct record_case *c; /* of the last run, lent as its key and target are */
	const char *key, *target;
	char unit[16], phase[16];
	double before, after; /* before: median of the earlier runs */
	double raw;	      /* after / before - 1 */
	double normalised;    /* the same at an equal held clock */
	bool has_normalised;
	double noise, noise_raw; /* share: changes within are none */
	unsigned baselines;
	/* A CPU without a stable clock: what compare_drift makes `support` of. */
	bool floats, lower_is_better;
	unsigned runs_before, runs_after, degrees; /* degrees: rounds less sides */
	double scatter,
		scatter_normalised; /* standard deviation of the logarithm of one round, within sides */
	double lost;		    /* the most that missing CPU time may have cost, as a logarithm */
	double support, support_normalised; /* logarithm: a change up to it may be drift; 0: not asked */
	enum compare_change change;
	enum verdict verdict_before, verdict_after;
	bool fails_otherwise; /* a run after fails, and not for less of its CPU's own ceiling */
	bool judged; /* after: held against a reference. A case that nobody asked to judge ends no comparison
		      */
	char why[200];
};

struct compare_outlier {
	const struct record_case *c; /* lent, as its key and target are */
	const char *key, *target, *run;
	char unit[16];
	double value, median, deviation, limit;
	unsigned siblings;
	bool slower;
};

/* The same case on the first machine and on another: no verdict, since two values tell no lemon. */
struct compare_pair {
	const struct record_case *c; /* of the first run, lent */
	const char *run;	     /* the other */
	char unit[16], phase[16];
	double first, other, ratio; /* other / first */
};

struct compare_difference {
	char path[128], before[512], after[512];
	const char *run; /* which differs from the first */
	char node[64];	 /* the first of those of which it holds; "" in runs of one process */
	unsigned nodes;	 /* of which it holds */
};

struct comparison {
	bool fleet;
	struct compare_row *row;
	size_t row_count;
	struct compare_outlier *outlier;
	size_t outlier_count;
	size_t groups;		   /* fleet: kinds of value that four or more gave */
	struct compare_pair *pair; /* of two machines, and of more where no kind came from four parts */
	size_t pair_count;
	struct compare_difference *difference;
	size_t difference_count;
	size_t only_before, only_after; /* cases without a partner */
	int exit_code; /* 0, 1 slower and judged, failing or an outlier; 2 nothing comparable, or a judged
			  case slower without support */
	char headline[400];
	char advice[200]; /* what would give a verdict where the noise gives none; "": nothing is open */
};

/* Two runs or more, each judged. Owner: caller, comparison_release. */
enum status compare_runs(struct comparison *out, const struct compare_run *runs, size_t count,
			 enum compare_as as, struct error *err);
void comparison_release(struct comparison *c);
/* Beyond noise, by its work or by its clock. */
bool compare_slower(const struct compare_row *r);

/* For the parts. A run of one process is its only node, whose name is "". */
enum { COMPARE_NO_NODE = 0xffff };
size_t compare_nodes(const struct record *r);
const char *compare_node_name(const struct record *r, size_t node);
/* Lent; NULL: not known. */
const json_t *compare_node_facts(const struct record *r, size_t node);
/* Which of the other run's nodes this is: the one of its name; what has its name on one side alone goes by
 * its order there. COMPARE_NO_NODE: none. Each is at most one's. */
size_t compare_node_of(const struct record *r, size_t node, const struct record *other);
enum status compare_inventory(struct comparison *out, const struct compare_run *runs, size_t count,
			      struct error *err);
/* Adds to the differences which cache levels the runs of one machine do not agree on. */
enum status compare_levels(struct comparison *out, const struct compare_run *runs, size_t count,
			   struct error *err);
enum status compare_fleet(struct comparison *out, const struct compare_run *runs, size_t count,
			  struct error *err);
enum status compare_side(struct comparison *out, const struct compare_run *runs, size_t count,
			 struct error *err);
enum status compare_history(struct comparison *out, const struct compare_run *runs, size_t count,
			    struct error *err);
/* A CPU case whose clock nothing holds: a virtual machine, or a range of clocks. */
bool compare_floats(const struct record *r, const struct record_case *c);
/* What each row of such a case may drift, from the rounds of both sides, and its change by that. METHODS
 * "Comparing runs". */
enum status compare_drift(struct comparison *c, struct error *err);
/* Fit to compare: measured, data right, trusted. */
bool compare_fit(const struct judgement *j);
#endif
