/* SPDX-License-Identifier: Apache-2.0 */
/* Compares runs. One machine: the last run with the earlier ones, to find regressions beyond noise. Several
 * machines: each value with the others of its kind, to find outliers. docs/explanation/methods/comparing.md.
 */
#ifndef JUDGE_COMPARE_COMPARE_H
#define JUDGE_COMPARE_COMPARE_H
#include "judge/judge.h"

struct compare_run {
	const char *name; /* the folder, as the user named it */
	const struct record *record;
	const struct judgements *judged;
	bool after; /* for one machine: compared with the runs that are not marked. If no run is marked, only
		       the last one is compared */
};

enum compare_as { COMPARE_AUTO, COMPARE_HISTORY, COMPARE_FLEET };

/* SAME: within noise. FASTER, SLOWER: changed at an equal clock, so software or the part itself changed. ..
 * _CLOCK: changed together with the held clock (for a CPU: with its interleaved ceiling). UNSUPPORTED: larger
 * than the spread within the runs, but not larger than the drift between runs that this machine's clock
 * allows. NOT_COMPARABLE: one side is untrusted or in error; `why` says which. */
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
	const struct record_case *c; /* case of the last run; the run owns it, and key and target */
	const char *key, *target;
	const char *field, *shown; /* static; a load test has a row for each of its figures. NULL: the case
				      has one figure */
	char unit[16], phase[16];
	double before, after; /* before: median of the earlier runs */
	double raw;	      /* after / before - 1 */
	double normalised;    /* the same at an equal held clock */
	bool has_normalised;
	double noise, noise_raw; /* shares; a change within them is no change */
	unsigned baselines;
	/* A CPU without a stable clock: the inputs from which compare_drift computes `support`. */
	bool floats, lower_is_better;
	unsigned runs_before, runs_after, degrees; /* degrees of freedom: rounds minus sides */
	double scatter,
		scatter_normalised; /* standard deviation of the logarithm of one round, within each side */
	double lost;		    /* largest loss that missing CPU time can explain, as a logarithm */
	double support, support_normalised; /* logarithm; a change up to this may be drift; 0: not computed */
	enum compare_change change;
	enum verdict verdict_before, verdict_after;
	bool fails_otherwise; /* a later run fails, for another reason than its CPU's own ceiling */
	bool judged; /* the later run was compared with a reference. A case that no plan requires to be judged
			does not decide the comparison */
	char why[200];
};

struct compare_outlier {
	const struct record_case *c; /* the run owns it, and key and target */
	const char *key, *target, *run;
	char unit[16];
	double value, median, deviation, limit;
	unsigned siblings;
	bool slower;
};

/* The same case on the first machine and on another. It has no verdict, because two values cannot show which
 * one is the outlier. */
struct compare_pair {
	const struct record_case *c; /* case of the first run, which owns it */
	const char *run;	     /* the other run */
	char unit[16], phase[16];
	double first, other, ratio; /* other / first */
};

struct compare_difference {
	char path[128], before[512], after[512];
	const char *run; /* the run that differs from the first */
	char node[64];	 /* first node with this difference; "" in runs of one process */
	unsigned nodes;	 /* number of nodes with this difference */
};

struct comparison {
	bool fleet;
	struct compare_row *row;
	size_t row_count;
	struct compare_outlier *outlier;
	size_t outlier_count;
	size_t groups;		   /* several machines: kinds of value with four or more values */
	struct compare_pair *pair; /* for two machines, and for more if no kind has four values */
	size_t pair_count;
	struct compare_difference *difference;
	size_t difference_count;
	size_t only_before, only_after; /* cases that the other side does not have */
	int exit_code; /* 0; 1: a judged case is slower or newly fails, or an outlier is slow; 2: nothing is
			  comparable, or a judged case is slower without support */
	char headline[400];
	char advice[200]; /* advice that would lead to a verdict if the noise allows none; "": no case is
			     undecided */
};

/* Compares two or more judged runs. The caller frees the result with comparison_release. */
enum status compare_runs(struct comparison *out, const struct compare_run *runs, size_t count,
			 enum compare_as as, struct error *err);
void comparison_release(struct comparison *c);
/* Compares one case of the last run with the same measurement of the earlier runs, as a row of compare_runs
 * for one machine. COMPARE_NOT_COMPARABLE: no earlier run has a usable one. */
enum status compare_case(struct compare_row *out, const struct compare_run *runs, size_t count,
			 const struct record_case *c, struct error *err);
/* True if both cases measure the same: key, target, alone or together with others. */
bool compare_same_measurement(const struct record_case *a, const struct record_case *b);
/* True if both runs come from one machine: by the GPUs' UUIDs, else by CPU model and host name or boot. */
bool compare_same_machine(const struct record *a, const struct record *b);
/* True if the case is slower beyond noise, with or without a change of its clock. */
bool compare_slower(const struct compare_row *r);

/* For the parts of compare. A run of one process has one node with the name "". */
enum { COMPARE_NO_NODE = 0xffff };
size_t compare_nodes(const struct record *r);
const char *compare_node_name(const struct record *r, size_t node);
/* The record owns the facts; NULL: not known. */
const json_t *compare_node_facts(const struct record *r, size_t node);
/* Finds the node of another run that corresponds to this one: the node of the same name. Nodes whose name
 * occurs in only one run are matched by their order. COMPARE_NO_NODE: none. No node is matched twice. */
size_t compare_node_of(const struct record *r, size_t node, const struct record *other);
enum status compare_inventory(struct comparison *out, const struct compare_run *runs, size_t count,
			      struct error *err);
/* Adds the cache levels in which runs of one machine disagree to the differences. */
enum status compare_levels(struct comparison *out, const struct compare_run *runs, size_t count,
			   struct error *err);
enum status compare_fleet(struct comparison *out, const struct compare_run *runs, size_t count,
			  struct error *err);
enum status compare_side(struct comparison *out, const struct compare_run *runs, size_t count,
			 struct error *err);
/* Adds the rows of a load test. */
enum status compare_load(struct comparison *out, const struct compare_run *runs, size_t count,
			 const struct record_case *c, struct error *err);
/* True if the run belongs to the later side: a marked run, or the last one if none is marked. */
bool compare_is_after(const struct compare_run *runs, size_t count, size_t i);
enum status compare_history(struct comparison *out, const struct compare_run *runs, size_t count,
			    struct error *err);
/* True for a CPU case whose clock is not fixed: on a virtual machine, or with a range of clocks. */
bool compare_floats(const struct record *r, const struct record_case *c);
/* Computes for each such row how much it may drift, from the rounds of both sides, and sets its change
 * accordingly. docs/explanation/methods/comparing.md, "Machines without a stable clock". */
enum status compare_drift(struct comparison *c, struct error *err);
/* True if the figure can be compared: measured, data right, trusted. */
bool compare_fit(const struct judgement *j);
#endif
