/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model at work: memory planned and placed, micro-batches in, one optimiser step out. The loss of a step is
 * the sum over all target tokens of its micro-batches divided by their number, whichever micro-batch they
 * stand in.
 */
#ifndef TRAIN_STEP_STEPPER_H
#define TRAIN_STEP_STEPPER_H
#include "model/cpu/cpu.h"
#include "model/gpu/backend.h"
#include "model/model.h"
#include "train/step/optimiser.h"

/* What memory is planned for. */
struct step_size {
	int64_t tokens, row_tokens; /* of a micro-batch; of its longest document */
};

struct stepper {
	bool begun; /* a step: from the second on choices are not held (gpu_backend_hold) */
	struct model *model;
	struct backend back;
	struct arena arena;
	void *memory;	 /* the arena's on a CPU; NULL while planning */
	struct mat sums; /* F64: the losses' sum, the sum of the gradient's squares */
	struct saved saved;
	struct arena_mark placed; /* what stays */
	struct optimiser optimiser;
	uint64_t seed;
	double dropout;
	struct op_cost forward, backward; /* a planned micro-batch's; 0 in one that works */
};

/* Of a configuration: what is trained. */
struct model_options stepper_model_options(const struct config *c, struct peft_config *lora);
/* Of a micro-batch that is trained; evaluation's is planned beside it where rows are held out. */
struct step_size stepper_size(const struct config *c);
/* Plans: no memory is taken, arena and costs say what it would be. Owner: caller, stepper_release. */
enum status stepper_plan(struct stepper *s, const struct shape *shape, const struct config *c,
			 unsigned threads, struct error *err);
/* Plans, takes the memory and places everything on the device that the configuration names; parameters are
 * not yet loaded. */
enum status stepper_create(struct stepper *s, const struct shape *shape, const struct config *c,
			   unsigned threads, struct error *err);
void stepper_release(struct stepper *s);
/* After the last pass: what passes needed is no longer this process's memory, what is trained stays. */
void stepper_rest(struct stepper *s);

struct step_part {
	double forward_s, backward_s;
	double gemm_s;				    /* of both, in products */
	double flop;				    /* that the model asks for, whatever was made again */
	double optimiser_s;			    /* of a GPU, by stepper_end */
	double parts_s[GPU_PART_COUNT];		    /* the same, where the configuration asks for them */
	struct gpu_part_work parts[GPU_PART_COUNT]; /* their work */
};
/* Gradient and loss to zero. */
enum status stepper_begin(struct stepper *s, struct error *err);
/* One micro-batch of step number `step` (0 first), whose micro-batches have `targets` together. */
enum status stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
			  struct step_part *took, struct error *err);
/* Before stepper_end: the micro-batch that is trained next, of the next step, whose lists a GPU takes while
 * it works. `b` is lent until then. */
enum status stepper_prefetch(struct stepper *s, const struct batch *b, struct error *err);
/* AdamW; *loss is the step's sum, not yet divided; *norm the gradient's. This waits for a GPU, for all that
 * the step is; it has its times then. */
enum status stepper_end(struct stepper *s, double rate, uint64_t step, double *loss, double *norm,
			struct error *err);
/* After stepper_end: a GPU's times, which micro-batches left at 0. */
enum status stepper_times(struct stepper *s, struct step_part *took, struct error *err);
/* Adds the sum of a micro-batch's losses; nothing is trained, dropout is off. */
enum status stepper_evaluate(struct stepper *s, const struct batch *b, double *loss, struct error *err);
#endif
