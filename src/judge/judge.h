/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is worth and why: pure functions of a run's record and an expectation set. */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"
#include "journal/figure/expected.h"
#include "journal/record/record.h"
#include "machine/machine.h"

struct expectations;

/* Where a bound is from. CEILING: another instrument of the same run (probe peak), where facts are hidden: a
 * VM's CPU. */
enum bound_from { BOUND_NONE, BOUND_DEVICE, BOUND_CEILING, BOUND_DATASHEET };
struct bound {
	double value; /* in the figure's unit */
	enum bound_from from;
	char formula[160]; /* "132 SM x 4096 FLOP x 1.980 GHz" */
};

/* What it was held against. A bound can refuse a figure; it passes none. */
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
/* "low" "medium" "high"; "" of any other. */
const char *confidence_name(int confidence);
struct band {
	double low, high;
	int confidence;					  /* CONFIDENCE_LOW .. */
	char phase[16], source[160], date[12], place[96]; /* place: file:line of the expectation */
	char basis[64];					  /* "one card, 3 runs of 1.5 to 6 s" */
};

/* Where no band fits: what sound machines reach at least, a share of the bound or of what fewer nodes of this
 * run reached. Below it a figure is looked into; above it nothing is said. */
struct fallback_expectation {
	enum expected_from from; /* EXPECTED_SHARE, EXPECTED_GROUP */
	double value, share;	 /* value: in the figure's unit; 0: none */
	int confidence;
	char source[160], date[12], place[96];
};

/* What kept the clock below its maximum. */
enum held_by {
	HELD_BY_NOTHING,
	HELD_BY_POWER,
	HELD_BY_TEMPERATURE,
	HELD_BY_BRAKE,
	HELD_BY_CURRENT,
	HELD_BY_UNNAMED
};

/* A factor's signal is never the rate it explains. One without a signal is merged into its neighbour and
 * named so. */
struct factor {
	char name[40], signal[160];
	double value, error;  /* share; 1 = costs nothing */
	bool shown_only;      /* part of another factor: shown, not multiplied */
	bool assumed;	      /* multiplied, but nothing here tells it: it explains nothing */
	bool present;	      /* false: nothing here tells it, stays in the residual */
	enum held_by held_by; /* of the factor "clock" */
};

/* How far units of the GPU were used while the judged iterations ran, beside the targets that are published
 * for such kernels: name, shown, unit, target. They decide nothing. METHODS "Metrics against targets". */
#define JUDGE_METRICS(X)                                                                                     \
	X(SM, "sm_active", "SM active", "", 0.85)                                                            \
	X(TENSOR, "tensor_active", "tensor pipe", "", 0.90)                                                  \
	X(MEMORY, "memory_rate", "memory", "B/s", 2.5e12)                                                    \
	X(OCCUPANCY, "occupancy", "occupancy", "", 0.85)
#define X(id, ...) METRIC_##id,
enum metric_id { JUDGE_METRICS(X) METRIC_COUNT };
#undef X
#define JUDGE_ERROR_GATE 1.2 /* times the library's error: METHODS "Attention", "Tolerance" */
struct metric_row {
	const char *name, *shown, *unit;
	double target;
};
extern const struct metric_row metric_rows[METRIC_COUNT];
struct metric {
	double value;	  /* reached: above the row's target */
	const char *from; /* what told it, static; NULL: nothing did */
};

struct judgement {
	enum verdict verdict;
	enum cause cause;
	char reason[320];      /* one line */
	char figure_field[40]; /* "flop_rate" ..; "" where there is no rate */
	char figure_unit[16];
	char phase[16]; /* which phase was judged */
	double figure;	/* present when has_figure */
	bool has_figure;
	struct bound bound;
	enum judged_by judged_by;
	struct band band;
	bool has_band, low_confidence;
	bool below_range; /* a headline case that fails by its range, whatever finding names the cause */
	struct fallback_expectation least;
	struct expected_before_run ahead; /* ahead of a run */
	double share_of_bound;		  /* 0: no bound */
	double efficiency_held;		  /* at the held clock; 0: not applicable */
	struct factor gap[16];
	size_t gap_count;
	double unexplained;   /* residual R/(B*product); 0: no chain */
	bool explained;	      /* residual within [0.97, 1.03] and every needed factor present */
	bool clock_recovered; /* the stamp after the window tells a clock that the window did not have */
	/* Host link: of bound less figure, what the factors account for that have a signal, and with those
	 * that are assumed; above 1: more than there is. */
	double explained_share, assumed_share;
	bool has_explained_share;
	struct advice {
		char knob[240], evidence[200], gain[96];
	} advice[6];
	size_t advice_count;
	struct metric metric[METRIC_COUNT];
	double error_over_library; /* attention: its error over the library's on the same data; 0: not both
				      are known */
	char part[16];		   /* PCI address of the GPU that the finding is about; "": the case's own */
	bool superseded;	   /* another round of this case counts for the exit code */
};

/* A fact in which nodes differ: what most of them have, and who has what else. */
struct judge_difference {
	char fact[128];	   /* place in the facts tree; "[]": of every entry of a list */
	char majority[96]; /* its value, of entries that differ "16 (7), 8" */
	unsigned alike;	   /* nodes that have it */
	struct judge_node_value {
		unsigned node;
		char value[96];
	} * other;
	size_t other_count;
	bool how_many;		    /* values are lengths of a list */
	const char *hurts, *source; /* what it does to a team, and who says so; NULL: nothing that is known */
};

/* Of one collective at one size, run in several ways: the one that takes least. Texts are lent from the
 * record; NULL: not told. */
struct judge_way {
	size_t best, plain; /* cases; plain: NCCL's own way, by stream */
	bool has_plain;
	bool searched;			  /* best is what that case's search found, not the case's own way */
	const char *variant;		  /* of the search */
	const char *algorithm, *protocol; /* what NCCL told of the best */
	double figure;			  /* of the best, in `unit`; NaN: its search kept none */
	char unit[16];
	double ratio;	      /* plain's time over the best's; 1: it is the best; 0: there is no plain */
	double low, high;     /* 95 % interval of it; 0: not known */
	unsigned ways, tried; /* cases that were held against each other, and variants of their searches */
};

struct judgements {
	struct judgement *of_case; /* one a record case, same order */
	size_t count;
	int exit_code;	      /* 0, 1, 2 */
	enum verdict verdict; /* headline */
	char headline[512];   /* names cases by their whole keys: the report shows titles for them */
	char expectations_hash[65];
	/* What was stated (--expect, site file) against what is here; counts for exit code and headline. */
	struct judgement stated;
	bool has_stated;
	/* what needed rights, what only a person knows */
	char (*could_not_look)[200];
	size_t could_not_look_count;
	char (*operator_input)[200];
	size_t operator_input_count;
	struct judge_difference *difference; /* of several nodes; what hurts first */
	size_t difference_count;
	struct judge_way *way; /* of each collective by growing size */
	size_t way_count;
};

/*
 * From a folder, which is held against itself and physics as well, or from a file as a run keeps them; NULL:
 * embedded. 16 MiB and 1024 files at most. BAD_INPUT with file, line and the rule that is broken. Owner:
 * caller, expectations_free.
 */
enum status expectations_load(struct expectations **e, const char *from, struct error *err);
/* Can a case have `text` for `word`, an option or the name of a probe or an engine? Else the known one
 * nearest to it, or NULL. */
typedef bool expect_values(const char *word, const char *text, const char **nearest);
/* BAD_INPUT with its place where a row asks for a value that no case can have. `values` is of who knows the
 * probes, which judging does not. */
enum status expectations_check_values(const struct expectations *e, expect_values *values, struct error *err);
/* The set as one file that expectations_load reads, in the run directory; its SHA-256 is the set's hash.
 * Empty for the embedded set. Lent. */
#define JUDGE_EXPECTATIONS_FILE "expectations.txt"
struct text;
const struct text *expectations_text(const struct expectations *e);
void expectations_free(struct expectations *e);
const char *expectations_hash(const struct expectations *e);
/* SKU row name that fits this GPU ("h100-sxm-80"), or "" (never by name alone). Lent. */
const char *expectations_sku(const struct expectations *e, const struct gpu *g);

/* A rule that a reading breaks. Lent by the set. */
struct broken_rule {
	enum verdict verdict;
	enum cause cause;
	const char *text, *action, *source;
};
/* The weightiest rule about `field` alone that this value breaks, without a case around it; false: none. */
bool expectations_rule(const struct expectations *e, const char *field, const char *value,
		       struct broken_rule *out);

/* What the buyer said: "h100-sxm:8", or a site file (docs/explanation/design/exit.md). NULL: nothing stated.
 */
struct judge_site {
	const char *expect;
	const char *file;
};

/* What is stated as one site file that says the same ("" where nothing is): kept in the run directory, so
 * that the run is judged alike later and elsewhere. BAD_INPUT with the place and the nearest name where it is
 * not understood: before anything is measured. */
#define JUDGE_SITE_FILE "site.yaml"
enum status judge_site_text(struct text *out, const struct judge_site *site, const struct expectations *e,
			    struct error *err);

/* Judges every case. Pure: the same record, set and site give the same judgements on any machine. */
enum status judge_record(struct judgements *out, const struct record *r, const struct expectations *e,
			 const struct judge_site *site, struct error *err);
/* What WOULD judge it, before anything runs: band, bound, source. The record has a plan and a machine alone.
 */
enum status judge_ahead(struct judgements *out, const struct record *r, const struct expectations *e,
			struct error *err);
void judgements_release(struct judgements *j);
#endif
