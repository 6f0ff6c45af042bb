/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a report, prepared once for all renderers: rows per target in plain words, counts, what to
 * do, parts for tickets. */
#ifndef REPORT_VIEW_VIEW_H
#define REPORT_VIEW_VIEW_H
#include <stdbool.h>
#include <stddef.h>
#include "report/plot/curve.h"
#include "report/tables/pair_matrix.h"
#include "report/text/pseudonym_map.h"
#include "report/report.h"

enum { VIEW_TODO_CASES = 4, VIEW_KNOB_CASES = 3, VIEW_FOLD_CASES = 12 };

struct view_row {
	const struct record_case *c;
	const struct judgement *j;
	const struct record_phase *phase; /* the judged phase; NULL: nothing was measured */
	char where[192];		  /* its target; with the node's name in a run of several nodes */
	bool headline;			  /* has a sustained figure: shown with its gap to the bound */
	bool aside;			  /* for a target that was not requested: only counted */
	bool in_curve;			  /* a point of a curve: shown only there */
	bool in_matrix;	 /* a cell of a matrix; its table shows it too if it needs attention */
	size_t fold;	 /* 1 + index of its fold; 0: none */
	size_t unjudged; /* 1 + index of its entry in the list of cases without a verdict; 0: none */
	char base[112];	 /* the title before view_distinguish appended options */
	char title[112], figure[40], expected[72], share[16], clock[24], power[16], temperature[16];
	char *reason;	  /* pseudonyms applied; "" none */
	const char *over; /* static: why its share is above 100 %; "" if it is not */
	char why[96]; /* a short reason, used if the full one is shown elsewhere; "": show the full reason.
			 See view_why */
};

struct view_group {
	const struct record_case *lead;	  /* its first case */
	char target[192];		  /* "gpu0", "gpu0>gpu1", "node-b/gpu0" */
	char name[256];			  /* "GPU 0, NVIDIA H200, 0000:1b:00.0"; the CPU's model */
	const struct gpu *gpu;		  /* NULL: not one GPU */
	size_t first, count;		  /* rows */
	size_t tabled;			  /* rows in the table of figures */
	bool clock, power, temperature;	  /* a row of the table has such a value */
	size_t asked;			  /* rows that are not aside; 0: the group is not shown */
	size_t aside;			  /* cases that were not requested of any rank */
	unsigned verdicts[VERDICT_COUNT]; /* counts of requested cases */
	enum verdict worst;
};

/* One line for cases of a group without a figure that have the same verdict and reason. Readings that pass
 * share one line. */
struct view_fold {
	size_t group;
	enum verdict verdict;
	const char *reason; /* owned by a row, or static; "" none */
	struct text cases;  /* the titles; above VIEW_FOLD_CASES the first ones and a count */
	unsigned count;
};

/* Cases without a verdict for one reason. */
struct view_unjudged {
	enum verdict verdict;
	const char *reason;
	struct text some;
	unsigned count;
	bool absent; /* this machine lacks something they need: all such reasons become one entry */
};

/* The target of an advice. If many targets have the same advice, the first entry speaks for all. */
struct view_spread {
	char target[192]; /* its own */
	unsigned node;
	bool joined;	 /* an earlier entry speaks for this one: do not show it */
	char where[640]; /* its target, or "64 targets on 64 nodes, such as n0/gpu0, .." */
};

/* A setting that could improve a figure, with its cases and their gains. The case farthest from its bound
 * comes first. */
struct view_knob {
	struct view_spread spread;
	const char *knob;
	struct text some;			       /* "BF16 GEMM 8192, cuBLASLt (at most x 1.47); .." */
	const struct view_row *named[VIEW_KNOB_CASES]; /* the cases in `some` */
	const char *gain[VIEW_KNOB_CASES];
	unsigned count;
};

/* One action, with the cases that need it. */
struct view_todo {
	enum verdict verdict;
	enum cause cause;
	struct view_spread spread;
	const char *action; /* static, or owned by the judgements */
	struct text cases;  /* all titles: "BF16 GEMM 8192, cuBLASLt; .." */
	struct text some;   /* the first titles, and how many more there are */
	const char *reason; /* of the first case, owned by its row; for several unexplained factors their
			       range (`range`) */
	char range[80];
	double residual_low, residual_high;
	const struct view_row *named[VIEW_TODO_CASES]; /* the cases in `some` */
	unsigned count;
};

/* A part that a ticket can name. The evidence is in `row`. */
struct view_part {
	const struct gpu *gpu, *peer;	  /* peer: the receiving GPU of a pair, else NULL */
	char serial[64], peer_serial[64]; /* "" unreadable */
	char node[64];			  /* in a run of several nodes; else "" */
	enum verdict verdict;
	enum cause cause;
	const struct view_row *row; /* the first row with the worst verdict */
};

/* Writes the PCI address, slot or serial number of a part to `out`. For a pair: both ends, "0000:1b:00.0 >
 * 0000:5d:00.0". In a run of several nodes the node's name precedes the address. */
enum part_column { PART_PCI, PART_SLOT, PART_SERIAL, PART_COLUMNS };
void view_part_text(char *out, size_t size, const struct view_part *p, enum part_column column);

struct view {
	const struct report_input *in;
	char *headline; /* the judge's headline with pseudonyms, and with titles instead of keys */
	struct pseudonym_map names;
	struct view_row *rows;
	size_t row_count;
	struct view_group *groups;
	size_t group_count;
	struct view_todo *todos;
	size_t todo_count;
	struct view_part *parts;
	size_t part_count;
	struct curve *curves;
	size_t curve_count;
	struct matrix *matrices;
	size_t matrix_count;
	struct view_fold *folds; /* by group; in a group the worst verdict first */
	size_t fold_count;
	struct view_unjudged *unjudged;
	size_t unjudged_count;
	struct view_knob *knobs;
	size_t knob_count;
	size_t aside_count;   /* rows that are aside; counts a case of several ranks once per rank */
	size_t kernels_count; /* cases that repeated another case's GEMM with other kernels */
	size_t search_count;  /* cases that are part of an isolation search */
	size_t round_count, asked_count;  /* round_count: rounds that a later round replaced; asked_count: all
					     other requested rows */
	unsigned verdicts[VERDICT_COUNT]; /* all rows */
	unsigned asked_verdicts[VERDICT_COUNT]; /* of asked_count */
};

/* Builds the view; the caller frees it with view_release. The input must outlive it. NO_RESOURCE: out of
 * memory. BUG: the number of judgements differs from the number of cases. */
enum status view_build(struct view *v, const struct report_input *in, struct error *err);
void view_release(struct view *v);

/* Reads a value of the judged phase; false if absent. */
bool view_number(const struct view_row *row, const char *field, double *out);
/* True if the expectation is only an estimate, which reports mark with ≈. A ceiling measured in the same run
 * bounds computation, but data movement may be faster than a plain loop with the same traffic. */
bool view_estimate(const struct view_row *row);
/* The text of the reason column. */
const char *view_why(const struct view_row *row);
/* True if the case justifies a ticket: it failed or ended with an error, or its cause is a hardware part. */
bool view_for_ticket(const struct judgement *j);
/* True if a cell of a matrix is a finding, so that its table shows it too. */
bool view_matrix_asks(const struct view_row *row);
/* True if the row belongs in the table of figures: it has a figure that no curve or matrix shows. */
bool view_tabled(const struct view_row *row);
/* False if the section of this group would be empty. */
bool view_group_any(const struct view *v, size_t group);
/* Appends the meaning of the signs ≤, ≈ and ~ that occur in the tables; nothing if none occurs. */
void view_signs(struct text *out, const struct view *v);
/* " Low confidence: ..." if an expectation has little evidence; else "". Static. */
const char *view_low_confidence(const struct view *v);
/* True if every case passed, was measured without a verdict, or was skipped. */
bool view_group_quiet(const struct view_group *g);
/* True if the fold needs attention; reports show it above the table, the others below. */
bool view_fold_above(const struct view_fold *f);
/* Appends `before` and "61 more cases of the suite are for other targets (gpu, node)"; nothing if there are
 * none. */
void view_aside(struct text *out, const struct view *v, const char *before);
/* Appends the comparison with the machine stated by --expect or --site; false: nothing was stated. */
bool view_stated(struct text *out, const struct view *v);
/* Appends, to follow the word "the", that the journal does not cover the whole run; false: it does. */
bool view_ends_early(struct text *out, const struct record *r);
/* Appends that the machine restarted before the run was resumed, and during which case it had gone down.
 * False: it did not restart. */
bool view_rebooted(struct text *out, const struct view *v);
/* The row with the best trusted sustained figure of a group for a limit ("compute", "memory", "link"); NULL:
 * none. */
const struct view_row *view_best(const struct view *v, const struct view_group *g, const char *limit);
/* Ranks verdicts by verdict_weight in reverse: 0 is the worst. */
unsigned view_badness(enum verdict verdict);
/* Writes a case's target in words to `out`. *gpu: the GPU that the target names, or NULL. */
void view_target_name(char *out, size_t size, const struct view *v, const struct record_case *c,
		      const struct gpu **gpu);
/* The machine of the case's node; NULL if its facts are unknown. */
const struct machine *view_machine(const struct view *v, const struct record_case *c);
/* Writes the node's name, or its pseudonym, to `out`; "" in a run of one process. */
void view_node_name(char *out, size_t size, const struct view *v, unsigned node);
/* Appends "12 cases: 10 pass, 1 warn, 1 skip". */
void view_counts(struct text *out, const unsigned verdicts[VERDICT_COUNT], size_t cases);
/* Appends the counts of the whole run, with the number of repeated cases. */
void view_run_counts(struct text *out, const struct view *v);
/* Appends the command that repeats the run: "assay check quick --seed 7". */
void view_repeat(struct text *out, const struct view *v);
#endif
