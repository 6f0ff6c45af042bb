/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a run: verdicts, causes, gaps and advice. All are pure functions of a run's record and an
 * expectation set. */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "journal/figure/expected.h"
#include "journal/record/record.h"
#include "machine/machine.h"

struct expectations;

/* Where a bound comes from. CEILING: another probe of the same run (probe peak). It serves machines that hide
 * the facts a bound needs, such as the CPU of a VM. */
enum bound_from { BOUND_NONE, BOUND_DEVICE, BOUND_CEILING, BOUND_DATASHEET };
struct bound {
	double value; /* in the figure's unit */
	enum bound_from from;
	char formula[160]; /* "132 SM x 4096 FLOP x 1.980 GHz" */
};

/* The reference that the figure was compared with. A bound can refuse a figure, but no case passes by a
 * bound. */
#define JUDGED_LIST(X)                                                                                       \
	X(NOTHING, "")                                                                                       \
	X(BAND, "band")                                                                                      \
	X(CEILING, "ceiling")                                                                                \
	X(SIBLINGS, "siblings")                                                                              \
	X(HISTORY, "history")                                                                                \
	X(RULE, "rule")                                                                                      \
	X(BOUND, "bound")
#define X(name, text) JUDGED_##name,
enum judged_by { JUDGED_LIST(X) JUDGED_COUNT };
#undef X
const char *judged_by_name(enum judged_by by);
enum { CONFIDENCE_LOW = 1, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
/* "low", "medium" or "high"; "" for any other value. */
const char *confidence_name(int confidence);
struct band {
	double low, high;
	int confidence;					  /* CONFIDENCE_LOW .. */
	char phase[16], source[160], date[12], place[96]; /* place: file:line of the expectation */
	char basis[64];					  /* "one card, 3 runs of 1.5 to 6 s" */
};

/* The reference of a case without an expected range: what healthy machines reach at least, as a share of the
 * bound or of what fewer nodes of this run reached. A figure below it is looked into; a figure above it gives
 * no verdict. */
struct fallback_expectation {
	enum expected_from from; /* EXPECTED_SHARE or EXPECTED_GROUP */
	double value, share;	 /* value: in the figure's unit; 0: none */
	int confidence;
	char source[160], date[12], place[96];
};

/* The reason why the clock stayed below its maximum. */
enum clock_limit {
	HELD_BY_NOTHING,
	HELD_BY_POWER,
	HELD_BY_TEMPERATURE,
	HELD_BY_BRAKE,
	HELD_BY_CURRENT,
	HELD_BY_UNNAMED
};

/* A factor of the gap. Its signal is never the rate that it explains. A factor without a signal of its own is
 * merged with its neighbour, and its name shows this. */
struct factor {
	char name[40], signal[160];
	double value, error; /* share; 1 = costs nothing */
	bool shown_only;     /* part of another factor: shown, not multiplied */
	bool assumed;	     /* multiplied, but no signal of this run confirms it: it explains nothing */
	bool present;	     /* false: no signal shows it, so it stays in the residual */
	enum clock_limit clock_limit; /* of the factor "clock" */
};

/* How much the units of the GPU were used while the judged iterations ran, next to published targets for such
 * kernels. Columns: name, text shown, unit, target. They decide no verdict.
 * docs/explanation/methods/report.md, "Metrics against targets". */
#define UNIT_USES(X)                                                                                         \
	X(SM, "sm_active", "SM active", "", 0.85)                                                            \
	X(TENSOR, "tensor_active", "tensor pipe", "", 0.90)                                                  \
	X(MEMORY, "memory_rate", "memory", "B/s", 2.5e12)                                                    \
	X(OCCUPANCY, "occupancy", "occupancy", "", 0.85)
#define X(id, ...) UNIT_USE_##id,
enum unit_use_id { UNIT_USES(X) UNIT_USE_COUNT };
#undef X
/* Times the library's error: docs/explanation/methods/attention.md, "Comparison with cuDNN's accuracy". */
#define JUDGE_ERROR_GATE 1.2
/* Largest share by which the energy counter's power and the power readings may differ. */
#define JUDGE_ENERGY_AGREES 0.05
struct unit_use_row {
	const char *name, *shown, *unit;
	double target;
};
extern const struct unit_use_row unit_use_rows[UNIT_USE_COUNT];
struct unit_use {
	double value;	  /* the target is reached if this is above the row's target */
	const char *from; /* source of the value, a static text; NULL: no source */
};

struct judgement {
	enum verdict verdict;
	enum cause cause;
	char reason[320];      /* one line */
	char figure_field[40]; /* "flop_rate" ..; "" if there is no rate */
	char figure_unit[16];
	char phase[16]; /* the phase that was judged */
	double figure;	/* valid if has_figure */
	bool has_figure;
	struct bound bound;
	enum judged_by judged_by;
	struct band band;
	bool has_band, low_confidence;
	bool below_range; /* a headline case that fails by its range, even if the finding names another cause
			   */
	struct fallback_expectation least;
	struct expected_before_run ahead; /* filled before a run */
	double share_of_bound;		  /* 0: no bound */
	double efficiency_held;		  /* at the held clock; 0: does not apply */
	struct factor gap[16];
	size_t gap_count;
	double unexplained;   /* residual R/(B*product); 0: no factors */
	bool explained;	      /* residual within [0.97, 1.03] and every needed factor present */
	bool clock_recovered; /* the clock comes from a measurement after the window, because the window had
				 none */
	/* Host link: share of (bound - figure) that the factors explain. explained_share counts the factors
	 * with a signal, assumed_share also the assumed ones. Above 1: the factors explain more than there
	 * is. */
	double explained_share, assumed_share;
	bool has_explained_share;
	struct advice {
		char knob[240], evidence[200], gain[96];
	} advice[6];
	size_t advice_count;
	struct unit_use metric[UNIT_USE_COUNT];
	double error_over_library; /* attention: its error over the library's on the same data; 0: one of them
				      is not known */
	char part[16];	 /* PCI address of the GPU that the finding is about; "": the GPU of the case */
	bool superseded; /* another round of this case counts for the exit code instead */
};

/* A fact in which nodes differ: the value that most nodes have, and the nodes that have another one. */
struct judge_difference {
	char fact[128];	   /* place in the facts tree; "[]" stands for every entry of a list */
	char majority[96]; /* the value of most nodes; if list entries differ: "16 (7), 8" */
	unsigned alike;	   /* number of nodes that have it */
	struct judge_node_value {
		unsigned node;
		char value[96];
	} * other;
	size_t other_count;
	bool how_many;		    /* the values are lengths of a list */
	const char *hurts, *source; /* how the difference hurts a team, and the source of that statement;
				       NULL: no harm is known */
};

/* The fastest way of a collective that was run in several ways at one size. Texts belong to the record; NULL:
 * not reported. */
struct judge_way {
	size_t best, plain; /* case indices; plain: NCCL's own choice, on a stream */
	bool has_plain;
	bool searched;	     /* best is a variant that the case's search found, not the case's own way */
	const char *variant; /* variant that the search found */
	const char *algorithm, *protocol; /* NCCL's report for the best */
	double figure;			  /* figure of the best, in `unit`; NaN: its search kept no variant */
	char unit[16];
	double ratio;	      /* time of plain / time of best; 1: plain is the best; 0: there is no plain */
	double low, high;     /* its 95 % interval; 0: not known */
	unsigned ways, tried; /* cases that were compared, and variants that their searches tried */
};

struct judgements {
	struct judgement *of_case; /* one per record case, in the same order */
	size_t count;
	int exit_code;	      /* 0, 1, 2 */
	enum verdict verdict; /* of the whole run */
	char headline[512];   /* names cases by their full keys; the report replaces these by titles */
	char expectations_hash[65];
	/* Comparison of the stated machine (--expect, site file) with the machine present. Counts for exit
	 * code and headline. */
	struct judgement stated;
	bool has_stated;
	/* Things that needed more rights to read, and things that only a person knows. */
	char (*could_not_look)[200];
	size_t could_not_look_count;
	char (*operator_input)[200];
	size_t operator_input_count;
	struct judge_difference *difference; /* differences between nodes; harmful ones first */
	size_t difference_count;
	struct judge_way *way; /* by collective and growing size */
	size_t way_count;
};

/* Loads an expectation set. `from` is a folder, which is also checked against itself and physics, or a file
 * as saved in a run directory, or the name of marks ("d2": the embedded set and
 * marks/d2.yaml; a path of this name comes first); NULL: the embedded set. At most 16 MiB and 1024 files.
 * BAD_INPUT with file, line and the broken rule. The caller frees it with expectations_free. */
enum status expectations_load(struct expectations **e, const char *from, struct error *err);
/* Returns whether a case can have the value `text` for `word`, which is an option, "probe" or "engine". If
 * not, *nearest is the most similar known value, or NULL. */
typedef bool expect_values(const char *word, const char *text, const char **nearest);
/* BAD_INPUT with its place if a row requires a value that no case can have. `values` comes from a caller that
 * knows the probes; the judge does not know them. */
enum status expectations_check_values(const struct expectations *e, expect_values *values, struct error *err);
/* The set as one file that expectations_load reads, as saved in the run directory. Its SHA-256 is the hash of
 * the set. Empty for the embedded set. The set owns the text. */
#define JUDGE_EXPECTATIONS_FILE "expectations.txt"
struct text;
const struct text *expectations_text(const struct expectations *e);
void expectations_free(struct expectations *e);
const char *expectations_hash(const struct expectations *e);
/* Name of the SKU row that fits this GPU ("h100-sxm-80"), or "". The GPU's name alone never decides. The set
 * owns the text. */
const char *expectations_sku(const struct expectations *e, const struct gpu *g);

/* A rule that a reading breaks. The set owns the texts. */
struct broken_rule {
	enum verdict verdict;
	enum cause cause;
	const char *text, *action, *source;
};
/* Finds the most severe rule that depends on `field` alone and that this value breaks. It looks at no case.
 * False: none. */
bool expectations_rule(const struct expectations *e, const char *field, const char *value,
		       struct broken_rule *out);

/* The buyer's statement: "h100-sxm:8", or a site file (docs/explanation/design/exit.md). NULL: nothing
 * stated. */
struct judge_site {
	const char *expect;
	const char *file;
};

/* Writes everything that is stated as one equivalent site file ("" if nothing is). The run directory stores
 * it, so that a later judgement elsewhere gives the same result. BAD_INPUT with the place and the nearest
 * known name if a statement is not understood; this happens before anything is measured. */
#define JUDGE_SITE_FILE "site.yaml"
enum status judge_site_text(struct text *out, const struct judge_site *site, const struct expectations *e,
			    struct error *err);

/* Judges every case. Pure: the same record, set and site give the same judgements on any machine. The caller
 * frees the result with judgements_release. */
enum status judge_record(struct judgements *out, const struct record *r, const struct expectations *e,
			 const struct judge_site *site, struct error *err);
/* Names the reference of each case before anything runs: expected range, bound, source. The record holds only
 * a plan and a machine. */
enum status judge_plan(struct judgements *out, const struct record *r, const struct expectations *e,
		       struct error *err);
void judgements_release(struct judgements *j);
#endif
