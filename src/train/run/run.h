/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training run from its configuration to its adapter, in one process. What happens is told line by line,
 * each a type and a JSON object:
 *
 * at       {"phase": "load" | "train" | "save"}
 * ready    {"parameters","trained","rows","tokens","targets","steps","memory_planned_bytes",
 *           "arena_planned_bytes","gemm_rate","gemm","attention","device"}
 * step     {"step","epoch","loss","grad_norm","learning_rate","tokens","targets","rows","step_s","forward_s",
 *           "backward_s","optimiser_s","wait_s","gemm_s","save_s","steady","tuning_s","tokens_per_s",
 *           "rows_per_s","flop_rate","mfu","arena_bytes","memory_bytes","memory_planned_share","left_s"}
 * products {"products": [{"product","algorithm","seconds","first_seconds","recalled","alike","cached",
 *           "words"}]}: of a GPU, after a step that met products which no step before had
 * chosen   {"key","chosen"}: of a GPU's run with a cache: under which key it keeps what it chose, and that as
 *           tuning_choices_json has it; after the first step that may choose, and before the last save where
 * more was chosen since eval     {"step","eval_loss","eval_s"} saved    {"step","path"} finding
 * {"finding","text","knob","step"} alive    {}: while steps and evaluations last, once a second
 */
#ifndef TRAIN_RUN_RUN_H
#define TRAIN_RUN_RUN_H
#include <jansson.h>
#include <signal.h>
#include "core/log.h"
#include "train/config/config.h"

struct train_job {
	const char *dir;	 /* run directory, with config.yaml */
	const char *config_hash; /* of config_write's text of what stands there; NULL: whatever it is */
	const char *gpu;	 /* PCI address of the one that was planned for; NULL or "": CUDA's first */
	/* {"driver","mig","power_limit_w"}: what a cache's key has of the card beside what CUDA says; lent.
	 * NULL: no cache is read, and nothing is told for one. */
	const json_t *card;
	uint64_t started_ns; /* of the program, monotonic; 0: not known */
	double tuned_s;	     /* spent since on choosing by time, before this process */
	bool resume;
	const volatile sig_atomic_t *stop; /* not 0: the step is finished, saved, and CANCELLED returned */
	const struct log *log;
	/* Steals body. */
	enum status (*emit)(void *arg, const char *type, json_t *body, struct error *err);
	void *arg;
};

/* *values: results by train/run/fields.h, as far as it came; owner: caller. */
enum status train_run(const struct train_job *job, json_t **values, struct error *err);
#endif
