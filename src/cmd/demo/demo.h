/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assay demo: a guided tour. Each step starts another assay command as a child process, with a run directory
 * of its own, and shows what that command left behind. docs/explanation/design/demo.md
 */
#ifndef CMD_DEMO_DEMO_H
#define CMD_DEMO_DEMO_H
#include <limits.h>
#include "cmd/command.h"
#include "cmd/comprehensive/comprehensive.h"
#include "cmd/stages/stage_result.h"
#include "core/text/text.h"
#include "machine/machine.h"

enum demo_tour { TOUR_QUICK, TOUR_FULL, TOUR_BENCHMARK, TOUR_TRAINING, TOUR_SERVE, TOUR_COUNT };
/* What the first word may be: a tour, or one of these. */
enum demo_action { ACTION_START = TOUR_COUNT, ACTION_ATTACH, ACTION_KILL };

struct demo_opts {
	uint32_t action;  /* a tour, or an enum demo_action */
	const char *tour; /* that of ACTION_START; NULL: quick */
	const char *steps, *model, *out;
	double duration, price_per_hour;
	uint32_t train_steps;
	bool pause, plan, detach, keep_model;
};

/* Every step of any tour. The numbers of a tour's steps are their places in it. */
enum step_id {
	STEP_MACHINE,
	STEP_CHECK,
	STEP_CHECK_FULL,
	STEP_LINKS,
	STEP_ATTENTION,
	STEP_ROOFLINE,
	STEP_REPORT,
	STEP_MODEL,
	STEP_BEFORE,
	STEP_MEMORY,
	STEP_TRAIN,
	STEP_ANSWER,
	STEP_SPEED,
	STEP_WEIGHTS,
	STEP_PLACE,
	STEP_LOAD,
	STEP_SWEEP,
	STEP_COST,
	STEP_PROVE,
	STEP_COUNT
};
#define STEP_BIT(id) (1u << STEP_##id)

struct demo {
	const struct command_context *c;
	const struct demo_opts *o;
	enum demo_tour tour;
	struct comprehensive_size size; /* what this machine can serve, as `comprehensive` decides it */
	char host[160];			/* the machine in one line, without names */
	char dir[PATH_MAX], began[32];
	char learner[PATH_MAX + 32],
		weights[PATH_MAX + 32]; /* the model that learns; the one that is served */
	enum step_id step[STEP_COUNT];	/* the tour */
	size_t count;
	struct stage_result result[STEP_COUNT]; /* by step id */
	double seconds;				/* of the whole tour */
	bool ended;				/* the speaker ended it */
	bool unpaused;				/* nobody answers any more: no further pauses */
	uint64_t began_ns;
	int log;       /* log.txt; -1: it cannot be written */
	bool log_lost; /* a warning was given */
};

struct demo_step {
	const char *word, *title;
	const char *says;   /* what the step does and proves: a few plain sentences */
	unsigned needs;	    /* bits of the steps whose files it reads, in the same tour */
	const char *hidden; /* lines that begin with this are not shown, because they name the machine; NULL:
			       none */
	unsigned shown;	    /* lines of the command's output that are shown; 0: none */
	bool inner;	    /* its command needs an empty run directory */
	/* Why it cannot run here; NULL: it can. */
	const char *(*skips)(const struct demo *);
	void (*command)(const struct demo *, struct stage_command *);
	double (*expected_s)(const struct demo *);
	/* Sets verdict, reason, headline and figures. `code`: exit code of the command. */
	void (*judge)(const struct demo *, struct stage_result *, const char *dir, int code);
};
extern const struct demo_step step_list[STEP_COUNT];

/* -- tours.c -- */
extern const char *const demo_words[]; /* what the first word may be; NULL ends */
extern const char *const tour_words[]; /* the tours; NULL ends */
/* Fills step and count with the tour. */
void tour_fill(struct demo *d);
/* Sets result[].asked from --steps, with the steps that those need. BAD_INPUT: an unknown step. */
enum status tour_choose(struct demo *d, struct error *err);
/* The tour's first step among these bits that is in the tour; STEP_COUNT: none. */
enum step_id tour_first(const struct demo *d, unsigned bits);
/* The folder of a step: DIR/step-2-check. It has what the command printed. */
void tour_step_dir(const struct demo *d, enum step_id id, char out[PATH_MAX + 64]);
/* The run directory of a step: the same folder, or the one below it of a command that needs an empty one. */
void tour_run_dir(const struct demo *d, enum step_id id, char out[PATH_MAX + 80]);
/* Writes the rows and the configurations of the trainings that are asked for into the folder. */
enum status tour_write_rows(const struct demo *d, struct error *err);
/* The question that the trained model is asked, and the answer that it was taught. */
extern const char demo_question[], demo_taught[];

/* -- plan.c -- */
/* Sets the expected seconds of every step that will run. */
void plan_fill(struct demo *d);
/* The factor by which the present machine exceeds the expected times, from the steps that have ended. */
double plan_factor(const struct demo *d);
/* The seconds that a step with this expected time still needs after `elapsed_s`. */
double plan_step_left_s(double expected_s, double elapsed_s);
/* The seconds that the tour still needs. `at`: place of the present step; `elapsed_s`: its time until now. */
double plan_left_s(const struct demo *d, size_t at, double elapsed_s);

/* -- results.c: the judges of the steps -- */
void judge_machine(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_suite(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_roofline(const struct demo *d, struct stage_result *r, const char *dir, int code);
/* By the exit code; the headline is the first line of the output. */
void judge_text(const struct demo *d, struct stage_result *r, const char *dir, int code);
/* The same, but the text is noise: no headline. */
void judge_noise(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_train(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_answer(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_request_load(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_sweep(const struct demo *d, struct stage_result *r, const char *dir, int code);
void judge_prove(const struct demo *d, struct stage_result *r, const char *dir, int code);

/* -- tell.c: every text on the screen -- */
void tell_banner(struct text *out, const struct demo *d);
/* What the step at this place proves, and its command. */
void tell_step(struct text *out, const struct demo *d, size_t at);
/* Appends the first lines that a step's command printed, each after `indent` spaces and cut to `columns`. */
void tell_output(struct text *out, const struct demo *d, enum step_id id, unsigned indent, unsigned columns);
/* How it ended: the shown lines of its output, its verdict and headline. */
void tell_end(struct text *out, const struct demo *d, size_t at);
/* The progress line. `live`: the command's own; "": none. */
void tell_progress(struct text *out, const struct demo *d, size_t at, double elapsed_s, const char *live);
void tell_summary(struct text *out, const struct demo *d);
void tell_plan(struct text *out, const struct demo *d);

/* -- run.c -- */
/* Runs the tour; never fails, because each step says itself how it ended. */
void demo_run(struct demo *d);
/* 1: a step failed; 2: one is inconclusive or did not run because of a stop; else 0. */
int demo_code(const struct demo *d);

/* -- page.c -- */
/* Writes demo.html. */
enum status demo_write_page(struct demo *d, struct error *err);

/* -- tmux.c -- */
/* True if tmux can be run. */
bool tmux_there(const struct command_context *c);
/* False, after a message, if a session of ours runs already. */
bool tmux_free(const struct command_context *c);
/* start: makes the session for the tour in d->dir, and attaches to it on a terminal. The others need no tour.
 * Return the exit code. */
int tmux_start(const struct demo *d);
int tmux_attach(const struct command_context *c);
int tmux_kill(const struct command_context *c);
#endif
