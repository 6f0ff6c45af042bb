/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training of a model: plans and allocates its memory, takes micro-batches, and makes optimizer steps. The
 * loss of a step is the sum over all target tokens of its micro-batches divided by their number, however they
 * are distributed over micro-batches.
 */
#ifndef TRAIN_STEP_STEPPER_H
#define TRAIN_STEP_STEPPER_H
#include "model/backend/comm.h"
#include "model/cpu/cpu.h"
#include "model/gpu/backend.h"
#include "model/model.h"
#include "train/mesh/buckets.h"
#include "train/mesh/gradient_tree.h"
#include "train/step/host_states.h"
#include "train/step/lending.h"

/* The size to plan for. */
struct step_size {
	int64_t tokens, row_tokens; /* of a micro-batch; of its longest sequence */
};

/* The device adds these up during a step. SUM_LAYERS has the squares of those layers whose gradient is
 * complete. Updates that begin before the pass has ended need it. */
enum { SUM_LOSS, SUM_SQUARES, SUM_LAYERS, SUMS };

struct stepper {
	bool begun; /* a step was begun; later ones may make tuning choices (gpu_backend_hold) */
	struct model *model;
	struct backend back;
	struct arena arena;
	void *memory; /* the arena's memory on a CPU; NULL while planning */
	/* Offload: host memory of back->host, which is pinned for a GPU; own_host: allocated for a CPU. */
	struct arena host;
	void *own_host;
	struct mat sums; /* [SUMS], F64 */
	struct saved saved;
	struct lending lending;
	int64_t trained_most, evaluated_most;  /* tokens of the largest micro-batch; 0: none is evaluated */
	struct arena_mark placed, host_placed; /* end of the memory that outlives a pass */
	struct optimiser optimiser;
	struct host_states states;
	uint64_t early_step; /* number, from 1, of the step of which layers are updated */
	uint64_t seed;
	double dropout;
	/* Of the ranks that add their gradients; lent; NULL: one rank. Set by stepper_join */
	struct comm *comm;
	struct buckets
		buckets; /* parts of the gradient that are summed at once; one if only adapters are trained */
	bool last;	 /* the next micro-batch is this rank's last in the step; set by the caller */
	double rate;	 /* the step's learning rate; set by the caller before the last micro-batch */
	/* With each_pack (train/mesh/mesh.h): a micro-batch is one pack, and `tree` adds their gradients. */
	struct gradient_tree tree;
	bool each_pack;
	struct op_cost forward, backward; /* cost of a full micro-batch after stepper_plan; otherwise 0 */
};

/* The training micro-batch. The evaluation's is planned in addition if there is a held-out set. */
struct step_size stepper_size(const struct config *c);
/* Plans without allocating: arena and costs tell what a run would need. Owner: caller, stepper_release. */
enum status stepper_plan(struct stepper *s, const struct shape *shape, const struct config *c,
			 unsigned threads, struct error *err);
/* Plans, allocates and places everything on the configuration's device. Parameters are not loaded yet. */
enum status stepper_create(struct stepper *s, const struct shape *shape, const struct config *c,
			   unsigned threads, struct error *err);
/* Before the first step: the communication of the ranks that divide the rows, and of those that share this
 * copy of the model. Lent; NULL: no others. */
void stepper_join(struct stepper *s, struct comm *data, struct comm *tensor);
/* After stepper_plan, with the communication of a plan: makes the collectives of a step of `micros`
 * micro-batches of the largest size. */
enum status stepper_plan_comm(struct stepper *s, const struct config *c, uint64_t micros, struct error *err);
void stepper_release(struct stepper *s);
/* After the last pass: returns the passes' memory to the system. The trained parameters stay. */
void stepper_rest(struct stepper *s);

struct step_part {
	double forward_s, backward_s;
	double gemm_s;	    /* time of GEMMs in both passes */
	double flop;	    /* FLOP of the model, without recomputation */
	double optimiser_s; /* GPU only; set by stepper_times */
	/* GPU only, set by stepper_times: waiting for collectives of the tensor axis, which is in none of the
	 * times above */
	double wait_s;
	double parts_s[GPU_PART_COUNT];		    /* GPU only, with step_parts */
	struct gpu_part_work parts[GPU_PART_COUNT]; /* work of these parts */
	/* FP8 only, set by stepper_overflows: scales that were not finite, and the first linear layer with
	 * one. */
	int64_t overflows;
	char overflow_at[64];
};
/* Sets gradient and loss to zero. */
enum status stepper_begin(struct stepper *s, struct error *err);
/* After stepper_begin, before the first micro-batch: this rank has `packs` packs in the step. */
void stepper_packs(struct stepper *s, uint64_t packs);
/* Runs one micro-batch of step `step` (from 0). `targets`: target tokens of all micro-batches of the step. */
enum status stepper_micro(struct stepper *s, const struct batch *b, uint64_t step, uint64_t targets,
			  struct step_part *took, struct error *err);
/* In the place of a micro-batch or an evaluation that other ranks have and this one has not. If the ranks
 * divide gradient or weights, it takes part in their collectives. Otherwise no effect. */
enum status stepper_idle(struct stepper *s, bool training, struct error *err);
/* Whether the last micro-batch of a step changes parameters. stepper_end must then get its rate. */
bool stepper_updates_early(const struct stepper *s);
/* The `shape` of a step of that many packs of all ranks, for comm_part. */
uint64_t stepper_collectives(const struct stepper *s, uint64_t packs, bool has_targets);
/* Optional, before stepper_end: the first micro-batch of the next step, which a GPU receives while it still
 * computes. `b` is lent until that micro-batch runs. */
enum status stepper_prefetch(struct stepper *s, const struct batch *b, struct error *err);
/* Sums the gradient over the ranks; AdamW. *loss: sum of this rank's losses, not yet divided; with each_pack
 * those of each pack are in s->tree.loss. *norm: of the whole gradient. On a GPU this waits for
 * all work of the step. */
enum status stepper_end(struct stepper *s, double rate, uint64_t step, double *loss, double *norm,
			struct error *err);
/* If ranks divide the states: gives all ranks the weights of all ranges, or the copy of them that GEMMs read.
 * model_refresh must follow. Otherwise no effect. */
enum status stepper_gather(struct stepper *s, struct error *err);
/* After stepper_end. Without FP8 no effect. */
enum status stepper_overflows(struct stepper *s, struct step_part *took, struct error *err);
/* After stepper_end: the GPU's times, which stepper_micro left at 0. */
enum status stepper_times(struct stepper *s, struct step_part *took, struct error *err);
/* Adds the sum of a micro-batch's losses. No gradient, no dropout. */
enum status stepper_evaluate(struct stepper *s, const struct batch *b, double *loss, struct error *err);
#endif
