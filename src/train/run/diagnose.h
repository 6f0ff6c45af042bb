/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong in a training run, and the setting to turn. Pure functions of what is known before the
 * first step and of each step's figures; a finding is told once.
 */
#ifndef TRAIN_RUN_DIAGNOSE_H
#define TRAIN_RUN_DIAGNOSE_H
#include <stdbool.h>
#include <stdint.h>
#include "core/text/text.h"

/* name, word, ends the run, the setting to turn */
/* clang-format off */
#define FINDINGS(X) \
	X(RATE_ZERO, "learning_rate_zero", true, "training: learning_rate, or a warm-up shorter than the run") \
	X(ALL_MASKED, "all_masked", true, "data: format, model: chat_template, or a longer max_seq_length") \
	X(END_UNTRAINED, "end_untrained", false, "lora: modules_to_save: [embed_tokens, lm_head], or an instruct model") \
	X(NOT_FINITE, "not_finite", true, "training: a lower learning_rate, a longer warmup_steps, max_grad_norm: 1") \
	X(ZERO_GRADIENT, "zero_gradient", true, "training: a lower learning_rate, lora: a lower alpha; what was learned went over the edge of float32") \
	X(EXPLODING, "exploding_gradient", false, "training: max_grad_norm: 1, or a lower learning_rate") \
	X(LOSS_SPIKE, "loss_spike", false, "training: a lower learning_rate or a longer warmup_steps; look at the rows of these steps") \
	X(DATA_BOUND, "data_bound", false, "data: cache_dir, shorter rows, or more CPUs")
/* clang-format on */
#define X(name, ...) FINDING_##name,
enum finding { FINDINGS(X) FINDING_COUNT };
#undef X
const char *finding_word(enum finding f);
const char *finding_knob(enum finding f);
bool finding_ends(enum finding f); /* going on would waste the machine's time */

/* Room for what one look found. */
struct findings {
	size_t count;
	struct {
		enum finding what;
		char text[200]; /* with its numbers */
	} found[FINDING_COUNT];
};

struct diagnose_before {
	double rate;	  /* the first of a step's that is above 0; 0: none is */
	uint64_t targets; /* of all rows, in one epoch */
	uint64_t rows;
	/* The token that ends a turn, in the matrix that makes logits: its row's norm against the median
	 * row's; absent (0): not looked at. `end_trained`: that matrix is trained. */
	double end_norm, median_norm;
	const char *end_token;
	bool end_trained;
};
void diagnose_before(struct findings *out, const struct diagnose_before *b);

struct diagnose_step {
	uint64_t step;
	double loss, grad_norm, rate;
	uint64_t targets;
	double step_s, wait_s; /* the step with its wait for rows; that wait */
};
enum { DIAGNOSE_WINDOW = 32 };
struct diagnose { /* valid when zeroed */
	double loss[DIAGNOSE_WINDOW], norm[DIAGNOSE_WINDOW];
	unsigned count; /* steps seen */
	double step_s, wait_s;
	bool told[FINDING_COUNT];
};
void diagnose_step(struct diagnose *d, struct findings *out, const struct diagnose_step *s);
#endif
