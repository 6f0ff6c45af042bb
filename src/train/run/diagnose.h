/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds problems of a training run, and names the setting to change for each. The functions are pure: they
 * use only their arguments. Each finding is reported once per run.
 */
#ifndef TRAIN_RUN_DIAGNOSE_H
#define TRAIN_RUN_DIAGNOSE_H
#include <stdbool.h>
#include <stdint.h>
#include "core/text/text.h"
#include "train/run/rank_account.h"

/* name, word, ends the run, setting to change */
/* clang-format off */
#define FINDINGS(X) \
	X(RATE_ZERO, "learning_rate_zero", true, "training: learning_rate, or a warm-up shorter than the run") \
	X(ALL_MASKED, "all_masked", true, "data: format, model: chat_template, or a longer max_seq_length") \
	X(END_UNTRAINED, "end_untrained", false, "lora: modules_to_save: [embed_tokens, lm_head], or an instruct model") \
	X(FP8_SATURATES, "fp8_saturates", false, "training: fp8_layers without that layer, max_grad_norm: 1, or a lower learning_rate") \
	X(NOT_FINITE, "not_finite", true, "training: a lower learning_rate, a longer warmup_steps, max_grad_norm: 1") \
	X(ZERO_GRADIENT, "zero_gradient", true, "training: a lower learning_rate, lora: a lower alpha; the values of the adapter or the activations overflowed float32") \
	X(EXPLODING, "exploding_gradient", false, "training: max_grad_norm: 1, or a lower learning_rate") \
	X(LOSS_SPIKE, "loss_spike", false, "training: a lower learning_rate or a longer warmup_steps; look at the rows of these steps") \
	X(DATA_BOUND, "data_bound", false, "data: cache_dir, shorter rows, or more CPUs") \
	X(STRAGGLER, "straggler", false, "the machine of that rank: what the largest candidate names; or train without it") \
	X(NO_FREE_CPU, "no_free_cpu", false, "the node of that rank: stop other programs, or start fewer ranks; training: dataloader_num_workers: 0") \
	X(UNEQUAL_ROWS, "unequal_rows", false, "training: a larger global_batch_size, data: packing: true, or a shorter max_seq_length") \
	X(COMMUNICATION_BOUND, "communication_bound", false, "training: gradient_accumulation_steps, bucket_cap_mb; NCCL_NVLS_ENABLE=1 on NVSwitch; or fewer nodes") \
	X(MEMORY_BOUND, "memory_bound", false, "training: a larger per_device_train_batch_size, fused optimizers (optim: adamw_8bit), or less recompute") \
	X(LAUNCH_BOUND, "launch_bound", false, "training: graphs: true, a larger per_device_train_batch_size, or data: packing: true")
/* clang-format on */
#define X(name, ...) FINDING_##name,
enum finding { FINDINGS(X) FINDING_COUNT };
#undef X
const char *finding_word(enum finding f);
const char *finding_knob(enum finding f);
bool finding_ends(enum finding f); /* true: continuing would waste machine time */

/* Findings of one call. */
struct findings {
	size_t count;
	struct {
		enum finding what;
		char text[960]; /* message with its figures */
	} found[FINDING_COUNT];
};

struct diagnose_before {
	double rate;	  /* the first step's learning rate above 0; 0: every rate is 0 */
	uint64_t targets; /* target tokens of all rows, in one epoch */
	uint64_t rows;
	/* For the end-of-turn token, in the matrix that produces the logits: the norm of its row, and the
	 * median norm of rows. 0: not checked. `end_trained`: the run trains that matrix. */
	double end_norm, median_norm;
	const char *end_token;
	bool end_trained;
};
void diagnose_before(struct findings *out, const struct diagnose_before *b);

struct diagnose_step {
	uint64_t step;
	double loss, grad_norm, rate;
	uint64_t targets;
	double step_s, wait_s; /* step time, including the wait for rows; that wait */
	int64_t overflows;     /* FP8: scales that were not finite, and the first place with one; 0: none */
	const char *overflow_at;
	const struct rank_account *ranks; /* account of the last steps; NULL: none */
};
enum { DIAGNOSE_WINDOW = 32 };
struct diagnose { /* valid when zeroed */
	double loss[DIAGNOSE_WINDOW], norm[DIAGNOSE_WINDOW];
	unsigned count; /* number of steps so far */
	double step_s, wait_s;
	bool reported[FINDING_COUNT];
};
void diagnose_step(struct diagnose *d, struct findings *out, const struct diagnose_step *s);
#endif
