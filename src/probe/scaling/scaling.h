/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `scaling`: every rank runs the same training step. The model has `layers` linear layers of width x
 * width. Each rank has `m` rows of its own (weak scaling). Forward is one GEMM per layer, backward two
 * (gradient of the input, gradient of the weight), from the last layer to the first. Gradients are contiguous
 * in memory. Each bucket is averaged over the ranks as soon as its layers are done, on a second stream unless
 * overlap is off. At the end of the step, the update copies each gradient once. The output of a layer is not
 * the input of the next, so every gradient is a known sum over known inputs.
 */
#ifndef PROBE_SCALING_SCALING_H
#define PROBE_SCALING_SCALING_H
#include "gpu/device/gpu.h"
#include "gpu/matmul/matmul.h"
#include "team/account/step_breakdown.h"
#include "run/worker/fault_injection.h"
#include "run/probe.h"
#include "team/libraries/nccl.h"

enum scaling_type { SCALING_BF16, SCALING_FP16 };
struct scaling_opts {
	uint32_t layers, m, width, buckets, type;
	bool overlap;
};

/* SCALING_SETS: sets of inputs, used alternately */
enum { SCALING_SETS = 2, SCALING_BUCKETS_MAX = 64, SCALING_TRACE_MAX = 64 };
/* Streams of the generator: the inputs and gradients of each rank, and the weight of each layer, which is the
 * same on all ranks. */
enum { SCALING_STREAM_INPUT = 0x10000, SCALING_STREAM_GRADIENT = 0x20000, SCALING_STREAM_WEIGHT = 0x30000 };

/* name, unit, kind, better, help */
#define SCALING_FIELDS(X)                                                                                    \
	X(step_ns, "ns", F64, -1, "time of a step, mean over ranks and steps of the breakdown")              \
	X(efficiency, "", F64, 1, "step time of one rank alone divided by the step time of all")             \
	X(tokens_rate, "1/s", F64, 1, "rows (tokens) of all ranks per second")                               \
	X(compute_share, "", F64, 1, "share of the step: computation and update")                            \
	X(exposed_share, "", F64, -1, "share of the step: communication that computation does not hide")     \
	X(waiting_share, "", F64, -1, "share of the step: waiting for the slowest rank, mean over ranks")    \
	X(waiting_others_share, "", F64, -1, "the same, mean over all ranks but the slowest")                \
	X(contention_ratio, "", F64, -1,                                                                     \
	  "computation time during collectives divided by the time without them")                            \
	X(slowest_rank, "", TEXT, 0, "rank that was last in most steps and made the others wait")            \
	X(slowest_share, "", F64, 0,                                                                         \
	  "share of the steps in which the rank that was last most often was last")                          \
	X(largest_loss, "", TEXT, 0, "largest cause of lost time, compared with one rank alone")             \
	X(largest_loss_share, "", F64, -1, "time lost to this cause, as a share of the step")                \
	X(unexplained_share, "", F64, -1,                                                                    \
	  "difference between the sum of the parts and the host's time of the same steps, as a share")       \
	X(one_ns, "ns", F64, -1, "step time of one rank while the others are idle: median over ranks")       \
	X(together_ns, "ns", F64, -1, "computation time of all ranks at once, without collectives: mean")    \
	X(collective_ns, "ns", F64, -1, "time of the collectives alone: mean")                               \
	X(bus_rate, "B/s", F64, 1, "bus bandwidth of the collectives alone")                                 \
	X(exposed_model_share, "", F64, -1,                                                                  \
	  "second estimate of exposed_share, from parts measured separately")                                \
	X(bucket_bytes, "B", U64, 0, "bytes of one all-reduce")                                              \
	X(account_steps, "", U64, 0, "number of steps in the breakdown")                                     \
	X(nccl_version, "", TEXT, 0, "version of the NCCL library in use")
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
	/* events of the breakdown: see step_breakdown_run.c */
	struct gpu_event *mark[3][SCALING_TRACE_MAX + 1];
	struct fault_injection_late late; /* delay that a test injects */
	uint64_t steps;
};

struct gpu_stream *scaling_wire(const struct scaling_state *s); /* stream of the collectives */
uint64_t scaling_bucket_count(const struct scaling_opts *o);	/* elements per bucket */
double scaling_alpha(const struct scaling_state *s, enum scaling_product p);

/* Events to record in one step; NULL: not recorded. */
struct scaling_marks {
	/* first bucket's gradients ready, all gradients ready, last bucket done */
	struct gpu_event *first, *ready, *end;
};

/* step.c: these functions enqueue work and do not wait for it. */
enum status scaling_compute(struct scaling_state *s, struct error *err);     /* without collectives */
enum status scaling_communicate(struct scaling_state *s, struct error *err); /* all buckets */
enum status scaling_step(struct scaling_state *s, const struct scaling_marks *marks, struct error *err);
/* Waits for both streams. If a rank left the run, the wait fails and the communicator is aborted. */
enum status scaling_wait(struct scaling_state *s, struct error *err);

/* step_breakdown_run.c */
/* Makes this rank's steps longer from now on, if a test asked for it. */
enum status scaling_plant_late(struct scaling_state *s, struct error *err);
enum status scaling_finish(void *state, struct result *out, struct error *err);
/* verify.c */
enum status scaling_verify(void *state, struct wrong *wrong, struct error *err);
extern const struct engine scaling_nccl_engine;
#endif
