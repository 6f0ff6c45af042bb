/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `scaling`: a training-shaped step on every rank. `layers` linear layers of width x width; a rank has
 * `m` rows of its own (weak scaling). Forward is one product a layer, backward two (towards the input, and
 * the weight's gradient), from the last layer to the first. Gradients lie one after the other; each bucket
 * is averaged over the ranks as soon as its layers are done, on a second stream unless overlap is off. At
 * the end the update moves each gradient once. Layers do not feed each other, so that every gradient is a
 * known sum over known inputs.
 */
#ifndef PROBE_SCALING_SCALING_H
#define PROBE_SCALING_SCALING_H
#include "gpu/device/gpu.h"
#include "gpu/matmul/matmul.h"
#include "probe/scaling/step_breakdown.h"
#include "run/worker/fault_injection.h"
#include "run/probe.h"
#include "team/libraries/nccl.h"

enum scaling_type { SCALING_BF16, SCALING_FP16 };
struct scaling_opts {
	uint32_t layers, m, width, buckets, type;
	bool overlap;
};

enum { SCALING_SETS = 2 /* of inputs, in turn */, SCALING_BUCKETS_MAX = 64, SCALING_TRACE_MAX = 64 };
/* Streams of the generator: a rank's inputs, and each layer's weight, the same everywhere. */
enum { SCALING_STREAM_INPUT = 0x10000, SCALING_STREAM_GRADIENT = 0x20000, SCALING_STREAM_WEIGHT = 0x30000 };

/* name, unit, kind, better, help */
#define SCALING_FIELDS(X)                                                                                    \
	X(step_ns, "ns", F64, -1, "a step, mean over ranks and steps of the account")                        \
	X(efficiency, "", F64, 1, "the step of one rank alone over the step of all")                         \
	X(tokens_rate, "1/s", F64, 1, "rows of all ranks a second")                                          \
	X(compute_share, "", F64, 1, "of the step: computation and update")                                  \
	X(exposed_share, "", F64, -1, "of the step: communication that nothing covers")                      \
	X(waiting_share, "", F64, -1, "of the step: waiting for the slowest rank, mean over ranks")          \
	X(waiting_others_share, "", F64, -1, "the same, mean over all but the slowest")                      \
	X(contention_ratio, "", F64, -1, "computation beside collectives over the same without")             \
	X(slowest_rank, "", TEXT, 0, "who came last in most steps, and was waited for")                      \
	X(slowest_share, "", F64, 0, "of steps in which the one that was last most often was")               \
	X(largest_loss, "", TEXT, 0, "what the most is lost to, against one rank")                           \
	X(largest_loss_share, "", F64, -1, "that, of the step")                                              \
	X(unexplained_share, "", F64, -1, "the account's sum against the host's clock over the same steps")  \
	X(one_ns, "ns", F64, -1, "the step on one rank, the others idle: median over ranks")                 \
	X(together_ns, "ns", F64, -1, "the computation of all ranks at once, no collective: mean")           \
	X(collective_ns, "ns", F64, -1, "the collectives alone: mean")                                       \
	X(bus_rate, "B/s", F64, 1, "bus bandwidth of the collectives alone")                                 \
	X(exposed_model_share, "", F64, -1, "exposed_share by parts measured apart: a second sight")         \
	X(bucket_bytes, "B", U64, 0, "of one all-reduce")                                                    \
	X(account_steps, "", U64, 0, "steps that the account is over")                                       \
	X(nccl_version, "", TEXT, 0, "of the library that was used")
#define X(name, ...) SCALING_FIELD_##name,
enum scaling_field { SCALING_FIELDS(X) SCALING_FIELD_COUNT };
#undef X
extern const struct field scaling_fields[];

enum scaling_product { SCALING_FORWARD, SCALING_TO_INPUT, SCALING_TO_WEIGHT, SCALING_PRODUCTS };

struct scaling_state {
	struct scaling_opts opts;
	const struct bench *bench;
	struct team *team;
	const struct nccl *nccl;
	struct team_comm *comm;
	struct matmul *mm;
	struct matmul_plan *plan[SCALING_PRODUCTS];
	gpu_ptr input[SCALING_SETS], gradient_in[SCALING_SETS]; /* (m, width) */
	gpu_ptr out, back;					/* (m, width) */
	gpu_ptr weight, gradient, moved;			/* (layers, width, width) */
	struct gpu_event *ready[SCALING_BUCKETS_MAX], *drained, *done;
	struct gpu_event *mark[3][SCALING_TRACE_MAX + 1]; /* of the account: see step_breakdown_run.c */
	struct fault_injection_late late;		  /* of a test's own */
	uint64_t steps;
};

struct gpu_stream *scaling_wire(const struct scaling_state *s); /* that collectives are put on */
uint64_t scaling_bucket_count(const struct scaling_opts *o);	/* elements */
double scaling_alpha(const struct scaling_state *s, enum scaling_product p);

/* Marks of one step that are wanted; NULL: none. */
struct scaling_marks {
	struct gpu_event *first, *ready,
		*end; /* first bucket's gradients, all gradients, last bucket's end */
};

/* step.c: enqueued, never waited for. */
enum status scaling_compute(struct scaling_state *s, struct error *err);     /* without collectives */
enum status scaling_communicate(struct scaling_state *s, struct error *err); /* all buckets */
enum status scaling_step(struct scaling_state *s, const struct scaling_marks *marks, struct error *err);
/* Until both streams are done; a rank that left ends it, and the communicator. */
enum status scaling_wait(struct scaling_state *s, struct error *err);

/* step_breakdown_run.c */
/* Where a test planted it, this rank's steps take longer from now on. */
enum status scaling_plant_late(struct scaling_state *s, struct error *err);
enum status scaling_finish(void *state, struct result *out, struct error *err);
/* probe/attention/verify/verify.c */
enum status scaling_verify(void *state, struct wrong *wrong, struct error *err);
extern const struct engine scaling_nccl_engine;
#endif
