/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a training from its configuration to its adapter, in one process. The run emits lines; each is a type
 * and a JSON object:
 *
 * at       {"phase": "load" | "train" | "save"}
 * ready    {"parameters","trained","rows","tokens","targets","steps","memory_planned_bytes",
 *          "arena_planned_bytes","gemm_rate","gemm","attention","precision","adapters","device"}
 * step     {"step","epoch","loss","grad_norm","learning_rate","tokens","targets","rows","step_s","forward_s",
 *          "backward_s","optimiser_s","wait_s","comm_s","mean_compute_share","exposed_share","waiting_share",
 *          "mean_rows_share","mean_save_share","mean_host_share","late_rank","late_share","gemm_s","save_s","steady","tuning_s","tokens_per_s",
 *          "rows_per_s","flop_rate","mfu","arena_bytes","memory_bytes","memory_planned_share","left_s"}
 * products {"products": [{"product","algorithm","seconds","first_seconds","recalled","alike","cached",
 *          "words"}]}: GPU only, after a step with new GEMMs
 * chosen   {"key","chosen"}: GPU only, with a cache: the cache key, and the tuning choices as
 *          tuning_choices_json writes them. Emitted after the first step with choices, and before the last
 *          save if there are new choices.
 * eval     {"step","eval_loss","eval_s"}
 * saved    {"step","path"}
 * finding  {"finding","text","knob","step"}
 * alive    {}: once a second during steps and evaluations
 */
#ifndef TRAIN_RUN_RUN_H
#define TRAIN_RUN_RUN_H
#include <jansson.h>
#include <signal.h>
#include "core/log.h"
#include "team/team.h"
#include "train/config/config.h"

struct train_job {
	const char *dir; /* run directory, with config.yaml */
	/* SHA-256 of the configuration as config_write writes it; NULL: not checked */
	const char *config_hash;
	/* PCI address of the GPU that the plan is for; NULL or "": CUDA's first GPU */
	const char *gpu;
	/* {"driver","mig","power_limit_w"}: the part of the cache key that CUDA does not know. Lent. NULL:
	 * the tuning cache is neither read nor filled. */
	const json_t *card;
	uint64_t started_ns; /* start of the program, monotonic clock; 0: unknown */
	double tuned_s;	     /* tuning time after started_ns and before this process */
	bool resume;
	/* The ranks of a launched run, linked; lent. The run uses it on one thread. NULL: one process. Rank 0
	 * writes the checkpoints and the result, and a resumed run's other ranks receive them from it. */
	struct team *team;
	struct team_board *board;	   /* shared with the supervisor; NULL: none */
	const volatile sig_atomic_t *stop; /* nonzero: finish the step, save, and return CANCELLED */
	const struct log *log;
	/* Takes ownership of body. */
	enum status (*emit)(void *arg, const char *type, json_t *body, struct error *err);
	void *arg;
};

/* values: the results so far, as in train/run/fields.h. Owner: caller. After a failure of a run of several
 * ranks, the caller must end the process: other ranks may wait for this one, and memory stays in use. */
enum status train_run(const struct train_job *job, json_t **values, struct error *err);
#endif
