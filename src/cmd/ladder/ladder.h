/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assay ladder: what each optimization of training is worth on this machine, as ordinary training jobs.
 * docs/explanation/design/ladder.md
 */
#ifndef CMD_LADDER_LADDER_H
#define CMD_LADDER_LADDER_H
#include <jansson.h>
#include <limits.h>
#include "cmd/command.h"
#include "cmd/stages/stage_result.h"
#include "train/config/config.h"

struct ladder_opts {
	const char *config, *shape, *model, *loss_model, *resume, *out;
	uint32_t device;
	uint64_t steps, rounds, length;
	double within_s;
	bool plan, keep, json;
};

enum rung_id {
	RUNG_BASELINE,
	RUNG_BATCH,
	RUNG_TF32,
	RUNG_BF16,
	RUNG_FUSED,
	RUNG_ATTENTION,
	RUNG_PACKING,
	RUNG_LOADING,
	RUNG_GRAPHS,
	RUNG_RECOMPUTE,
	RUNG_FP8,
	RUNG_PARALLEL,
	RUNG_COUNT
};

enum { RUNG_SETTINGS = 8 };
/* A setting and its value on the rung. */
struct rung_setting {
	const char *section, *name, *value;
};
/* The field of a job's results that shows whether the rung's settings took effect. It is the text `value`, or
 * with `differs` any other text. Without a value it is a number above 0. A setting that leaves the choice to
 * assay may have no effect, and then the rung is skipped. A setting that demands something has failed. */
struct rung_effect {
	const char *phase, *field, *value; /* field NULL: nothing is recorded that could show it */
	bool differs, demanded;
	const char *hint; /* when there is none */
};
struct rung {
	const char *word, *title;
	const char *says;    /* one sentence about what it does */
	const char *not_cpu; /* why it does nothing on a CPU; NULL: it does something */
	struct rung_setting setting[RUNG_SETTINGS]; /* name NULL ends */
	struct rung_effect effect;
	/* Published factor; 0: none. It is that of this rung and the `with` rungs below it together. */
	double low, high;
	unsigned with;
	const char *source; /* of the published factor, or why there is none */
	unsigned least_cc;  /* compute capability that a GPU needs, times 10; 0: that of any training */
	bool trade;	    /* it gives up speed for memory: later rungs have it only if it is faster */
};
extern const struct rung rung_list[RUNG_COUNT];

/* What all jobs have in common. It is the first line of ladder.jsonl, so a resumed ladder has the same. */
struct ladder_plan {
	bool gpu;
	unsigned cc;   /* compute capability of the GPU, times 10; 0: not known */
	unsigned gpus; /* usable GPUs */
	bool random;   /* the weights that are timed are random numbers */
	bool own;      /* the ladder makes model and rows */
	char model[PATH_MAX], loss_model[PATH_MAX], given[PATH_MAX]; /* given: CONFIG; "": none */
	char shape[64];			/* the made model's; "": a model was given */
	uint64_t steps, rounds, length; /* length: tokens of a sequence of the ladder's own rows */
	double within_s;
	char host[256]; /* the device in words */
	char began[32];
};

/* What a job left behind. Values that it did not report are NAN. */
struct ladder_values {
	double tokens_per_s, step_s, half_width_share, memory_bytes, sm_active_share, tensor_active_share,
		power_w, mfu, loss_first, loss_last, steady_steps;
};
enum { LADDER_ROUNDS = 16, ROUND_LOSS = LADDER_ROUNDS }; /* ROUND_LOSS: that of the loss model */
struct ladder_job {
	bool ended;
	bool idle; /* the rung's settings had no effect; code is above 0 */
	int code;
	char why[400]; /* of code above 0 */
	double seconds;
	struct ladder_values v;
};

struct ladder_rung {
	enum stage_verdict verdict;
	char reason[400];		/* of every verdict but PASSED; then what a trade was worth, or "" */
	char lacks[400];		/* why the rung cannot be climbed here; "": it can */
	int below;			/* rung that it is compared with; -1: none */
	unsigned rounds;		/* with a factor */
	double factor, lowest, highest; /* NAN: none */
	struct ladder_values v;		/* medians of the rounds */
	double joules_per_token;
	double loss_first_share, loss_last_share; /* difference from the baseline; NAN: not compared */
};

struct ladder {
	const struct command_context *c;
	const struct ladder_opts *o;
	struct ladder_plan plan;
	struct config base;
	char dir[PATH_MAX], cache[PATH_MAX + 8]; /* cache: of tokenized rows of CONFIG */
	struct ladder_job job[LADDER_ROUNDS + 1][RUNG_COUNT];
	struct ladder_rung rung[RUNG_COUNT];
	double total, total_lowest, total_highest; /* of all climbed rungs; NAN: none */
	int top;				   /* the highest rung of `total`; -1: none */
	double seconds;
	bool stopped;
	struct text lines; /* to change in CONFIG; empty: none */
};

/* -- config.c: configurations -- */
/* Makes the configuration below all rungs: of CONFIG, or of a made model and made rows. */
enum status ladder_base(struct ladder *l, struct error *err);
/* Writes a text as a file of the ladder's folder. */
enum status ladder_write_text(const struct ladder *l, const char *name, const struct text *t,
			      struct error *err);
/* Reads DIR/base.yaml of a ladder that goes on. */
enum status ladder_base_again(struct ladder *l, struct error *err);
/* Appends the configuration of a job. BAD_INPUT: the configuration's checks refuse it. */
enum status ladder_config(const struct ladder *l, struct text *out, enum rung_id id, bool loss,
			  struct error *err);
/* Whether a trade made training faster in the first round. Then the rungs above it have its settings. */
bool ladder_trade_pays(const struct ladder *l, enum rung_id on);
/* Finds the rungs that cannot be climbed here, and the rung below each. */
void ladder_find_rungs(struct ladder *l);
/* Writes model and rows of the ladder's own. */
enum status ladder_write_inputs(struct ladder *l, struct error *err);

/* -- jobs.c -- */
/* Runs what is missing. Never fails, because each rung says itself how it ended. */
void ladder_run(struct ladder *l);
/* The folder of a job below l->dir. */
void ladder_job_dir(const struct ladder *l, unsigned round, enum rung_id id, char out[PATH_MAX + 96]);

/* -- journal.c -- */
enum status ladder_journal_begin(const struct ladder *l, struct error *err);
enum status ladder_journal_add(const struct ladder *l, unsigned round, enum rung_id id, struct error *err);
/* Reads plan and ended jobs of DIR. BAD_INPUT: it holds no ladder. */
enum status ladder_journal_read(struct ladder *l, const char *dir, struct error *err);
json_t *ladder_values_json(const struct ladder_values *v);

/* -- judge.c -- */
/* Factors, losses and verdicts from the jobs that ended. */
void ladder_judge(struct ladder *l);
/* 1: a rung failed; 2: a rung is inconclusive or did not run, or no factor exists; else 0. */
int ladder_code(const struct ladder *l);
/* The lines to change in CONFIG. */
void ladder_find_lines(struct ladder *l);

/* -- summary.c, page.c, waterfall.c -- */
void ladder_show_plan(const struct ladder *l);
void ladder_add_summary(struct text *out, const struct ladder *l);
json_t *ladder_json(const struct ladder *l);
/* Writes SUMMARY.md, summary.json, report.html and waterfall.svg. */
enum status ladder_write(struct ladder *l, struct error *err);
enum status ladder_write_page(const struct ladder *l, struct error *err);
/* Writes waterfall.svg, the page's bars as a picture. */
enum status ladder_write_waterfall(const struct ladder *l, struct error *err);
/* The lowest and the highest rate of the rungs. False: no rung has a rate. */
bool ladder_rates(const struct ladder *l, double *lowest, double *highest);
/* The end of a rate's bar, from 0.1 for the lowest to 1 for the highest, on a logarithmic scale. */
double ladder_place(double rate, double lowest, double highest);
/* "1.31 (1.28 to 1.34)"; "–" for NAN. */
void ladder_factor_text(char *out, size_t size, double factor, double lowest, double highest,
			unsigned rounds);
void ladder_rate_text(char *out, size_t size, double tokens_per_s);
/* A difference of losses as a share: "4.2e-05". */
void ladder_difference_text(char *out, size_t size, double share);
/* The factor of a rung and of those that its published factor includes; NAN: one of them has none. */
double ladder_together(const struct ladder *l, int id);
void ladder_expected_text(char *out, size_t size, double low, double high);
/* Why utilization, power and energy are absent; NULL: they are not. */
const char *ladder_no_telemetry(const struct ladder *l);
#endif
