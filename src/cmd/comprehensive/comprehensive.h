/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assay comprehensive: ten stages in one run. Each stage starts another assay command as a child process,
 * with a run directory of its own, and judges what that command left behind.
 * docs/explanation/design/comprehensive.md
 */
#ifndef CMD_COMPREHENSIVE_COMPREHENSIVE_H
#define CMD_COMPREHENSIVE_COMPREHENSIVE_H
#include <limits.h>
#include "cmd/command.h"
#include "cmd/stages/stage_result.h"
#include "core/text/text.h"
#include "machine/machine.h"

struct comprehensive_opts {
	const char *model, *data, *only, *input, *output, *out;
	double rate, duration, stress;
	bool quick, plan, archive, keep_model, json;
};

/* In their order. The number of a stage is its place, from 1. */
enum stage_id {
	STAGE_DEVICES,
	STAGE_LOAD,
	STAGE_LINKS,
	STAGE_MEMORY,
	STAGE_ACCURACY,
	STAGE_MOE,
	STAGE_LARGE,
	STAGE_STRESS,
	STAGE_POWER,
	STAGE_NVLINK,
	STAGE_COUNT
};

/* What this machine can run, and how much of it. */
struct comprehensive_size {
	unsigned gpus;		 /* usable */
	bool nvlink;		 /* a usable GPU has an active NVLink */
	uint64_t gpu_bytes;	 /* memory of the first usable GPU; 0: not known */
	const char *device;	 /* "gpu" or "cpu" */
	const char *shape;	 /* of the model that is made */
	double model_s;		 /* expected time to make it */
	double rate, duration_s; /* of the load test */
	char input[64], output[64];
	double grace_s, stress_s;
	bool marked; /* the load is D2's own, so its marks decide */
};

struct comprehensive {
	const struct command_context *c;
	const struct comprehensive_opts *o;
	struct comprehensive_size size;
	char dir[PATH_MAX];
	char model[PATH_MAX + 16]; /* folder or GGUF file that the stages use */
	bool own_model;		   /* made by this run */
	char model_why[400];	   /* why there is none; "": there is one */
	char archive[PATH_MAX + 32], began[32];
	struct stage_result result[STAGE_COUNT];
	double seconds;
};

struct stage {
	const char *word, *title, *says; /* says: one sentence about what it does */
	bool core;			 /* it always runs */
	bool model;			 /* it needs the model */
	bool report;			 /* its command writes report.html into the stage's folder */
	unsigned needs;			 /* bits of the stages whose results it reads */
	unsigned beside;		 /* bits of the stages that run while its own command runs */
	/* Why it cannot run here; NULL: it can. */
	const char *(*skip)(const struct comprehensive *);
	/* Fills the command; leaves it empty if the stage only reads results of others. */
	void (*command)(const struct comprehensive *, struct stage_command *);
	double (*expected_s)(const struct comprehensive *);
	/* Sets verdict, reason, headline and figures. `code`: exit code of the command, 0 without one. */
	void (*judge)(const struct comprehensive *, struct stage_result *, int code);
};
extern const struct stage stage_list[STAGE_COUNT];

/* The folder of a stage: DIR/stage-2-load. */
void stage_dir(const struct comprehensive *s, enum stage_id id, char out[PATH_MAX + 32]);

/* The load test of a size, without --out; `own`: the model has random weights. */
void comprehensive_load_command(struct stage_command *k, const struct comprehensive_size *z,
				const char *model, bool own);
double comprehensive_load_expected_s(const struct comprehensive_size *z);

/* Decides the size from the machine and the options. */
void comprehensive_size_set(struct comprehensive_size *out, const struct machine *m,
			    const struct comprehensive_opts *o);
/* Sets result[].asked from --only, with the stages that those need. BAD_INPUT: an unknown stage. */
enum status comprehensive_only(struct comprehensive *s, struct error *err);

/* Runs everything that is asked; never fails, because each stage says itself how it ended. */
void comprehensive_run(struct comprehensive *s);
/* 1: a stage failed; 2: a core stage is inconclusive or did not run, or the run was stopped; else 0. */
int comprehensive_code(const struct comprehensive *s);

/* Prints stages, commands and expected times. */
void comprehensive_show_plan(const struct comprehensive *s);
void comprehensive_add_summary(struct text *out, const struct comprehensive *s);
json_t *comprehensive_json(const struct comprehensive *s);
/* Writes SUMMARY.md, summary.json, index.html and a page for each stage that has no report of its own. */
enum status comprehensive_write(struct comprehensive *s, struct error *err);
enum status comprehensive_write_pages(struct comprehensive *s, struct error *err);

/* INCONCLUSIVE: the command did not leave what it should. `what` says so; the last of its messages is added.
 */
void comprehensive_say_lost(const struct comprehensive *s, enum stage_id id, struct stage_result *r,
			    const char *what, int code);
/* Reads the JSON that a stage's command printed; NULL: it is no JSON. Owner: caller. */
json_t *comprehensive_read_output(const struct comprehensive *s, enum stage_id id);

/* The judges of the stages; see struct stage. */
void judge_check(const struct comprehensive *s, struct stage_result *r, enum stage_id id, int code);
void judge_load(const struct comprehensive *s, struct stage_result *r, int code);
void judge_memory(const struct comprehensive *s, struct stage_result *r, int code);
void judge_accuracy(const struct comprehensive *s, struct stage_result *r, int code);
void judge_power(const struct comprehensive *s, struct stage_result *r, int code);
void judge_nvlink(const struct comprehensive *s, struct stage_result *r, int code);

/* The built-in text of stage accuracy. */
extern const char comprehensive_text[];
#endif
