/* SPDX-License-Identifier: Apache-2.0 */
/* What every rendering shows, worked out once: rows by target in plain words, counts, what to do, parts for
 * tickets. */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H
#include <stdbool.h>
#include <stddef.h>
#include "report/names.h"
#include "report/report.h"

struct view_row {
	const struct record_case *c;
	const struct judgement *j;
	const struct record_phase *phase; /* the one judged; NULL: nothing was measured */
	bool headline;			  /* has a sustained figure: shown with its gap */
	char base[112];			  /* the title before it was told apart from its like */
	char title[112], figure[40], expected[72], share[16], clock[24], power[16], temperature[16];
	char *reason; /* names replaced; "" none */
};

struct view_group {
	char target[32];       /* "gpu0" */
	char name[160];	       /* "GPU 0, NVIDIA H200, 0000:1b:00.0"; the CPU's model */
	const struct gpu *gpu; /* NULL: not one GPU */
	size_t first, count;   /* rows */
	unsigned verdicts[VERDICT_COUNT];
	enum verdict worst;
};

/* One action, with the cases that ask for it. */
struct view_todo {
	enum verdict verdict;
	enum cause cause;
	char target[32];
	const char *action; /* static, or the judge's */
	struct text cases;  /* all: "BF16 GEMM 8192, cuBLASLt; .." */
	struct text some;   /* the first few, and how many more */
	const char *reason; /* of the first case; lent from its row */
	unsigned count;
};

/* A part that a ticket can name. Evidence is lent from rows. */
struct view_part {
	const struct gpu *gpu;
	char serial[64]; /* "" unreadable */
	enum verdict verdict;
	enum cause cause;
	const struct view_row *row; /* the first of the worst verdict */
};

struct view {
	const struct report_input *in;
	char *headline; /* the judge's, names replaced, cases by their titles instead of their keys */
	struct names names;
	struct view_row *rows;
	size_t row_count;
	struct view_group *groups;
	size_t group_count;
	struct view_todo *todos;
	size_t todo_count;
	struct view_part *parts;
	size_t part_count;
	unsigned verdicts[VERDICT_COUNT];
};

/* Owner: caller, view_release. The input must outlive it. NO_RESOURCE out of memory; BUG where the judgements
 * are not those of the record (another count). */
enum status view_build(struct view *v, const struct report_input *in, struct error *err);
void view_release(struct view *v);

/* The judged phase's value; false where absent. */
bool view_number(const struct view_row *row, const char *field, double *out);
/* The order of badness: fail, error, untrusted, unknown, warn, pass, skip. 0 is the worst. */
unsigned view_badness(enum verdict verdict);
/* The machine in words for one target; *gpu: the GPU it names, or NULL. */
void view_target_name(char *out, size_t size, const struct report_input *in, const char *target,
		      const struct gpu **gpu);
/* "12 cases: 10 pass, 1 warn, 1 skip" */
void view_counts(struct text *out, const unsigned verdicts[VERDICT_COUNT], size_t cases);
/* "assay check quick --seed 7": how to run this again. */
void view_repeat(struct text *out, const struct view *v);
#endif
