/* SPDX-License-Identifier: Apache-2.0 */
/* What every rendering shows, worked out once: rows by target in plain words, counts, what to do, parts for
 * tickets. */
#ifndef REPORT_VIEW_VIEW_H
#define REPORT_VIEW_VIEW_H
#include <stdbool.h>
#include <stddef.h>
#include "report/plot/curve.h"
#include "report/tables/pair_matrix.h"
#include "report/text/pseudonym_map.h"
#include "report/report.h"

struct view_row {
	const struct record_case *c;
	const struct judgement *j;
	const struct record_phase *phase; /* the one judged; NULL: nothing was measured */
	char where[192];		  /* its target, with its node where there are several */
	bool headline;			  /* has a sustained figure: shown with its gap */
	bool aside;			  /* of the suite, but for a target nobody asked for: counted alone */
	bool in_curve;			  /* a point of one of the curves: shown there alone */
	bool in_matrix; /* a cell of a matrix; beside it shown only where it asks for something */
	char base[112]; /* the title before it was told apart from its like */
	char title[112], figure[40], expected[72], share[16], clock[24], power[16], temperature[16];
	char *reason;	  /* names replaced; "" none */
	const char *over; /* static: why its share may be above 100 %; "" where it is not above */
	char why[96]; /* in few words, where the whole reason is said elsewhere or by the figures beside it;
		       * "": show the reason. view_why() */
};

struct view_group {
	const struct record_case *lead;	  /* its first */
	char target[192];		  /* "gpu0", "gpu0>gpu1", "node-b/gpu0" */
	char name[256];			  /* "GPU 0, NVIDIA H200, 0000:1b:00.0"; the CPU's model */
	const struct gpu *gpu;		  /* NULL: not one GPU */
	size_t first, count;		  /* rows */
	size_t tabled;			  /* of them: rows for the table of figures */
	bool clock, power, temperature;	  /* some row of the table has one */
	size_t asked;			  /* of them: not aside; 0: the group is not shown */
	size_t aside;			  /* cases that no rank was asked for */
	unsigned verdicts[VERDICT_COUNT]; /* of those asked for */
	enum verdict worst;
};

/* Cases of one group without a figure that end alike: one line. Readings that pass share one. */
struct view_fold {
	size_t group;
	enum verdict verdict;
	const char *reason; /* lent from a row, or static; "" none */
	struct text cases;  /* all of them; beyond FOLD_CASES the first few and how many more */
	unsigned count;
};

/* What nothing judged, by its reason. */
struct view_unjudged {
	enum verdict verdict;
	const char *reason;
	struct text some;
	unsigned count;
	bool absent; /* this machine has not what they need: all such reasons are one entry */
};

/* Whom advice is for. Of the same advice for many targets the first speaks for all. */
struct view_spread {
	char target[192]; /* its own */
	unsigned node;
	bool said;	 /* by an earlier one: not laid out */
	char where[640]; /* its target, or "64 targets on 64 nodes, such as n0/gpu0, .." */
};

/* A knob that could buy more, and the cases it is for with their gains; who is farthest from its bound first.
 */
struct view_knob {
	struct view_spread spread;
	const char *knob;
	struct text some; /* "BF16 GEMM 8192, cuBLASLt (at most x 1.47); .." */
	unsigned count;
};

/* One action, with the cases that ask for it. */
struct view_todo {
	enum verdict verdict;
	enum cause cause;
	struct view_spread spread;
	const char *action; /* static, or the judge's */
	struct text cases;  /* all: "BF16 GEMM 8192, cuBLASLt; .." */
	struct text some;   /* the first few, and how many more */
	const char *reason; /* of the first case, lent from its row; of several residuals their range */
	char range[80];
	double residual_low, residual_high;
	unsigned count;
};

/* A part that a ticket can name. Evidence is lent from rows. */
struct view_part {
	const struct gpu *gpu, *peer;	  /* peer: of a pair, who receives; else NULL */
	char serial[64], peer_serial[64]; /* "" unreadable */
	char node[64];			  /* of several; "" else */
	enum verdict verdict;
	enum cause cause;
	const struct view_row *row; /* the first of the worst verdict */
};

/* PCI address, slot or serial number of a part; of both ends where it is a pair: "0000:1b:00.0 >
 * 0000:5d:00.0". Of several nodes the address has its node before it.
 */
enum part_column { PART_PCI, PART_SLOT, PART_SERIAL, PART_COLUMNS };
void view_part_text(char *out, size_t size, const struct view_part *p, enum part_column column);

struct view {
	const struct report_input *in;
	char *headline; /* the judge's, names replaced, cases by their titles instead of their keys */
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
	struct view_fold *folds; /* by group; within one: what asks for something first */
	size_t fold_count;
	struct view_unjudged *unjudged;
	size_t unjudged_count;
	struct view_knob *knobs;
	size_t knob_count;
	size_t aside_count;   /* rows aside; of ranks of one node each has its own of what one of them does */
	size_t kernels_count; /* cases that did another's product by other kernels */
	size_t search_count;  /* cases that searched what is bad with another */
	size_t round_count,
		asked_count; /* rounds that another of their case counts for; the rest but those aside */
	unsigned verdicts[VERDICT_COUNT];	/* all rows */
	unsigned asked_verdicts[VERDICT_COUNT]; /* of asked_count */
};

/* Owner: caller, view_release. The input must outlive it. NO_RESOURCE out of memory; BUG where the judgements
 * are not those of the record (another count). */
enum status view_build(struct view *v, const struct report_input *in, struct error *err);
void view_release(struct view *v);

/* The judged phase's value; false where absent. */
bool view_number(const struct view_row *row, const char *field, double *out);
/* Held against what it may beat, so that its share is marked: an instrument of the same run bounds what
 * computes; what moves data may be faster than a bare loop of the same traffic. */
bool view_estimate(const struct view_row *row);
/* What the reason column shows. */
const char *view_why(const struct view_row *row);
/* Worth a ticket: it failed, broke, or the hardware is named as the cause of less. */
bool view_for_ticket(const struct judgement *j);
/* A cell of a matrix that is a finding: it stands in its table too. */
bool view_matrix_asks(const struct view_row *row);
/* Row of the table of figures: has one, and neither curve nor matrix says all there is to it. */
bool view_tabled(const struct view_row *row);
/* False where nothing of a group is shown under its name. */
bool view_group_any(const struct view *v, size_t group);
/* What the signs in the tables' columns mean, of those that stand there; nothing where none does. */
void view_signs(struct text *out, const struct view *v);
/* " Low confidence: ..", of what rests on little evidence; "" where nothing does. */
const char *view_low_confidence(const struct view *v);
/* Every case of it passed, was measured or is none of this machine's. */
bool view_group_quiet(const struct view_group *g);
/* A fold that asks for something stands above the table, the others below it. */
bool view_fold_above(const struct view_fold *f);
/* "61 more cases of the suite are for other targets (gpu, node)" behind `before`; nothing where there are
 * none. */
void view_aside(struct text *out, const struct view *v, const char *before);
/* "stated: all that was stated is here"; false: nothing was stated. */
bool view_stated(struct text *out, const struct view *v);
/* Behind "the": that the record is not the whole run, and from which line on; false: it is. */
bool view_ends_early(struct text *out, const struct record *r);
/* That the machine was started anew before the run went on, and in which case it had gone down. False: it was
 * not. */
bool view_rebooted(struct text *out, const struct view *v);
/* The best trusted sustained figure of a group for a limit ("compute", "memory", "link"); NULL: none. */
const struct view_row *view_best(const struct view *v, const struct view_group *g, const char *limit);
/* The order of badness, verdict_weight the other way round: 0 is the worst. */
unsigned view_badness(enum verdict verdict);
/* A case's target in words; *gpu: the GPU it names, or NULL. */
void view_target_name(char *out, size_t size, const struct view *v, const struct record_case *c,
		      const struct gpu **gpu);
/* Of the case's node; NULL: its facts are not known. */
const struct machine *view_machine(const struct view *v, const struct record_case *c);
/* The node's name as the report may show it; "" in a run of one process. */
void view_node_name(char *out, size_t size, const struct view *v, unsigned node);
/* "12 cases: 10 pass, 1 warn, 1 skip" */
void view_counts(struct text *out, const unsigned verdicts[VERDICT_COUNT], size_t cases);
/* The run's own, with how many had another round. */
void view_run_counts(struct text *out, const struct view *v);
/* "assay check quick --seed 7": how to run this again. */
void view_repeat(struct text *out, const struct view *v);
#endif
