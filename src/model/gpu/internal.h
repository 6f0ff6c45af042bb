/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the GPU's operations. */
#ifndef MODEL_GPU_INTERNAL_H
#define MODEL_GPU_INTERNAL_H
#include "gpu/matmul/matmul.h"
#include "model/backend/cost.h"
#include "model/gpu/backend.h"
#include "model/storage/slots.h"

/* Assay's kernels: file, entry, part of a step, and whether they exist for ONE type of activations or for
 * BOTH: those for F32 have _f32 behind both names. */
/* clang-format off */
#define GPU_KERNELS(X) \
	X(SUMS_ADD, "train_rows", "train_sums_add", GPU_PART_ELEMENTS, ONE) \
	X(RMSNORM, "train_norm", "train_rmsnorm", GPU_PART_ELEMENTS, BOTH) \
	X(RMSNORM_BWD, "train_norm", "train_rmsnorm_bwd", GPU_PART_ELEMENTS, BOTH) \
	X(HEAD_ROPE, "train_norm", "train_head_rope", GPU_PART_ELEMENTS, BOTH) \
	X(HEAD_ROPE_BWD, "train_norm", "train_head_rope_bwd", GPU_PART_ELEMENTS, BOTH) \
	X(SWIGLU, "train_rows", "train_swiglu", GPU_PART_ELEMENTS, BOTH) \
	X(SWIGLU_BWD, "train_rows", "train_swiglu_bwd", GPU_PART_ELEMENTS, BOTH) \
	X(GATHER, "train_rows", "train_gather", GPU_PART_LOSS, BOTH) \
	X(SCATTER_ADD, "train_rows", "train_scatter_add", GPU_PART_LOSS, BOTH) \
	X(EMBED_BWD, "train_rows", "train_embed_bwd", GPU_PART_LOSS, BOTH) \
	X(DROPOUT, "train_rows", "train_dropout", GPU_PART_ELEMENTS, BOTH) \
	X(TO_BF16, "train_rows", "train_to_bf16", GPU_PART_OPTIMISER, ONE) \
	X(TO_F32, "train_rows", "train_to_f32", GPU_PART_OPTIMISER, ONE) \
	X(COPY, "train_rows", "train_copy", GPU_PART_COPIES, ONE) \
	X(ZERO, "train_rows", "train_zero", GPU_PART_COPIES, ONE) \
	X(COLUMN_SUMS, "train_rows", "train_column_sums", GPU_PART_ELEMENTS, BOTH) \
	X(RANDOM_BF16, "train_rows", "train_random_bf16", GPU_PART_COPIES, ONE) \
	X(RANDOM_F32, "train_rows", "train_random_f32", GPU_PART_COPIES, ONE) \
	X(CROSS_ENTROPY, "train_loss", "train_cross_entropy", GPU_PART_LOSS, BOTH) \
	X(LOSS_PART, "train_loss", "train_loss_part", GPU_PART_LOSS, BOTH) \
	X(LOSS_JOIN, "train_loss", "train_loss_join", GPU_PART_LOSS, BOTH) \
	X(REDUCE, "train_flat", "train_reduce", GPU_PART_OPTIMISER, ONE) \
	X(REDUCE_END, "train_flat", "train_reduce_end", GPU_PART_OPTIMISER, ONE) \
	X(LIVE, "train_flat", "train_live_refresh", GPU_PART_OPTIMISER, ONE) \
	X(ADAMW, "train_flat", "train_adamw", GPU_PART_OPTIMISER, ONE) \
	X(ADAMW_STATES, "train_adamw", "train_adamw_states", GPU_PART_OPTIMISER, ONE) \
	X(ADAMW_8BIT, "train_adamw", "train_adamw_8bit", GPU_PART_OPTIMISER, ONE) \
	X(ATTENTION, "train_attention", "train_attention", GPU_PART_ATTENTION, BOTH) \
	X(ATTENTION_DELTA, "train_attention", "train_attention_delta", GPU_PART_ATTENTION_BWD, BOTH) \
	X(ATTENTION_BWD_KV, "train_attention", "train_attention_bwd_kv", GPU_PART_ATTENTION_BWD, BOTH) \
	X(ATTENTION_BWD_Q, "train_attention", "train_attention_bwd_q", GPU_PART_ATTENTION_BWD, BOTH) \
	X(FP8_QUANTIZE, "train_fp8", "train_fp8_quantize", GPU_PART_ELEMENTS, ONE) \
	X(FP8_RMSNORM, "train_fp8", "train_fp8_rmsnorm", GPU_PART_ELEMENTS, ONE) \
	X(FP8_SWIGLU, "train_fp8", "train_fp8_swiglu", GPU_PART_ELEMENTS, ONE) \
	X(FP8_SWIGLU_BWD, "train_fp8", "train_fp8_swiglu_bwd", GPU_PART_ELEMENTS, ONE) \
	X(FP8_SWIGLU_BWD_COLUMNS, "train_fp8", "train_fp8_swiglu_bwd_columns", GPU_PART_ELEMENTS, ONE) \
	X(FP8_WEIGHTS, "train_fp8", "train_fp8_weights", GPU_PART_ELEMENTS, ONE) \
	X(FP8_TRANSPOSE, "train_fp8", "train_fp8_transpose", GPU_PART_ELEMENTS, ONE) \
	X(FP8_COLUMNS, "train_fp8", "train_fp8_columns", GPU_PART_ELEMENTS, ONE) \
	X(FP8_ADD_BIAS, "train_fp8", "train_fp8_add_bias", GPU_PART_ELEMENTS, ONE) \
	X(PAGED_BF16_64, "paged_attention", "paged_bf16_d64", GPU_PART_ATTENTION, ONE) \
	X(PAGED_BF16_128, "paged_attention", "paged_bf16_d128", GPU_PART_ATTENTION, ONE) \
	X(PAGED_E4M3_64, "paged_attention", "paged_e4m3_d64", GPU_PART_ATTENTION, ONE) \
	X(PAGED_E4M3_128, "paged_attention", "paged_e4m3_d128", GPU_PART_ATTENTION, ONE) \
	X(PAGED_BF16_64_LATE, "paged_attention", "paged_bf16_d64_late", GPU_PART_ATTENTION, ONE) \
	X(PAGED_BF16_128_LATE, "paged_attention", "paged_bf16_d128_late", GPU_PART_ATTENTION, ONE) \
	X(PAGED_E4M3_64_LATE, "paged_attention", "paged_e4m3_d64_late", GPU_PART_ATTENTION, ONE) \
	X(PAGED_E4M3_128_LATE, "paged_attention", "paged_e4m3_d128_late", GPU_PART_ATTENTION, ONE) \
	X(PAGED_COPY_BF16, "paged_attention", "paged_copy_bf16", GPU_PART_ATTENTION, ONE) \
	X(PAGED_COPY_E4M3, "paged_attention", "paged_copy_e4m3", GPU_PART_ATTENTION, ONE) \
	X(STEP_EMBED, "step_rows", "step_embed", GPU_PART_LOSS, ONE) \
	X(STEP_RMSNORM, "step_rows", "step_rmsnorm", GPU_PART_ELEMENTS, ONE) \
	X(STEP_ROPE, "step_rows", "step_rope", GPU_PART_ELEMENTS, ONE) \
	X(STEP_SWIGLU, "step_rows", "step_swiglu", GPU_PART_ELEMENTS, ONE) \
	X(STEP_SWIGLU_E4M3, "step_rows", "step_swiglu_e4m3", GPU_PART_ELEMENTS, ONE) \
	X(STEP_SWIGLU_E4M3_WIDE, "step_rows", "step_swiglu_e4m3_wide", GPU_PART_ELEMENTS, ONE) \
	X(STEP_QUANTIZE, "step_rows", "step_quantize", GPU_PART_ELEMENTS, ONE) \
	X(STEP_ADAPTER_MASK, "step_rows", "step_adapter_mask", GPU_PART_ELEMENTS, ONE) \
	X(STEP_ADAPTER_SCALE, "step_rows", "step_adapter_scale", GPU_PART_ELEMENTS, ONE) \
	X(SAMPLE_GREEDY, "step_sample_plain", "step_sample_greedy", GPU_PART_LOSS, ONE) \
	X(SAMPLE_PLAIN, "step_sample_plain", "step_sample_plain", GPU_PART_LOSS, ONE) \
	X(SAMPLE_SCAN, "step_sample", "step_sample_scan", GPU_PART_LOSS, ONE) \
	X(SAMPLE_CHOOSE, "step_sample", "step_sample_choose", GPU_PART_LOSS, ONE) \
	X(SAMPLE_COUNT, "step_sample", "step_sample_count", GPU_PART_LOSS, ONE)
/* clang-format on */
enum gpu_kernel_types { GPU_KERNEL_ONE, GPU_KERNEL_BOTH };
#define X(name, ...) GPU_KERNEL_##name,
enum gpu_kernel_id { GPU_KERNELS(X) GPU_KERNEL_COUNT };
#undef X

struct staging;
struct gpu_times;
struct gemm_plans;
struct gemm_choices;
struct skinny;
struct attention_state;
struct filling;
struct turns;
struct background_copy;
struct layer_graphs;
struct fetching;
struct lanes;
struct paged_lists;
struct sample_turns;
struct fetches;
struct replays;

struct gpu_state {
	struct gpu_backend_options options;
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct staging *staging;
	struct gemm_plans *products;
	struct gemm_choices *choices; /* made before requests run; NULL: none */
	struct skinny *skinny;	      /* NULL: not asked for, or not for this device */
	bool no_fp8_bias;	      /* cuBLASLt has no bias with scales in blocks */
	bool is_shared;		      /* others had memory of the device when this back end took its own */
	bool no_e4m3_library;	      /* cuBLASLt has no GEMM of E4M3 with one factor per row */
	struct attention_state *attends;
	struct gpu_kernel *kernel[GPU_KERNEL_COUNT];
	struct gpu_times *phases, *parts; /* parts is NULL unless they are asked for */
	int before_wait;		  /* the phase that goes on after a wait; below 0: none */
	struct gpu_part_work
		part_work[GPU_PART_COUNT]; /* since gpu_backend_times_begin, if parts are asked for */
	/* The part of back->cost.bytes that is already assigned to a part. */
	double counted_bytes;
	gpu_ptr memory;	   /* of the arena */
	int64_t rows_most; /* of a micro-batch; 0: no padding */
	struct filling *filling;
	struct turns *turns;		    /* slots of micro-batches; NULL: not needed yet */
	struct background_copy *background; /* NULL: not needed yet */
	struct layer_graphs *spans;	    /* NULL: not needed yet */
	struct fetching *fetching;	    /* slots of weights; NULL: not needed yet */
	struct lanes *lanes;		    /* NULL: not needed yet */
	void *pinned;			    /* memory of back->host; NULL: none */
	struct paged_lists *paged;	    /* NULL: not needed yet */
	struct sample_turns *sampling;	    /* lists of samples; NULL: not needed yet */
	struct fetches *fetches;	    /* results; NULL: not needed yet */
	struct replays *replays;	    /* graphs of steps; NULL: not needed yet */
	bool capturing;	 /* enqueued work becomes part of a graph, so nothing may be timed */
	bool held;	 /* see gpu_backend_hold */
	double tuning_s; /* part of gpu_backend_tuning_s: timing candidates */
	gpu_ptr live;	 /* device table of gpu_refresh */
	const struct live_part *live_of;
	int live_count;
	unsigned shared_most; /* most bytes of shared memory per block */
};

static inline struct gpu_state *gpu_of(const struct backend *back)
{
	return back->device;
}

/* Checks that train_norm.h's and train_attention.h's kernels support the head size. UNSUPPORTED: they do
 * not. */
enum status gpu_check_heads(int64_t head_dim, struct error *err);

static inline gpu_ptr gpu_address(const void *data)
{
	return (gpu_ptr)(uintptr_t)data;
}

enum status gpu_run(struct backend *back, enum gpu_kernel_id kernel, unsigned blocks, unsigned threads,
		    unsigned shared_bytes, const void *args, struct error *err);
enum status gpu_run_3d(struct backend *back, enum gpu_kernel_id kernel, const unsigned grid[3],
		       unsigned threads, unsigned shared_bytes, const void *args, struct error *err);

enum gpu_part gpu_kernel_part(enum gpu_kernel_id kernel);
/* As gpu_run, for kernels that wait for the one before by themselves: begun early (gpu_launch_early). */
enum status gpu_run_early(struct backend *back, enum gpu_kernel_id kernel, unsigned blocks, unsigned threads,
			  unsigned shared_bytes, const void *args, struct error *err);

/* Timing (step_times.c). gpu_times_mark: the stream's work from now on is `what`; below 0: it is not timed.
 */
enum status gpu_times_create(struct gpu_times **t, struct error *err);
void gpu_times_release(struct gpu_times **t);
enum status gpu_times_mark(struct gpu_times *t, const struct gpu_state *g, int what, struct error *err);
/* The kind of the stream's work now; below 0: it is not timed. */
int gpu_times_now(const struct gpu_times *t);
void gpu_times_clear(struct gpu_times *t); /* NULL-safe */
/* Seconds of each of 0 .. whats - 1 between the first and the last mark. Waits for the last one, and clears
 * all marks. */
enum status gpu_times_read(struct gpu_times *t, double *s, int whats, struct error *err);
/* The same for a kind of operation, if parts are timed. It gets the bytes that back->cost counted since the
 * last call or the start of the phase. */
static inline enum status gpu_part(const struct backend *back, enum gpu_part part, struct error *err)
{
	struct gpu_state *g = gpu_of(back);

	if (!g->parts)
		return STATUS_OK;
	g->part_work[part].bytes += back->cost.bytes - g->counted_bytes;
	g->counted_bytes = back->cost.bytes;
	return gpu_times_mark(g->parts, g, part, err);
}
/* The same for work with FLOP: those in back->cost beyond `before`. So work that is only timed on the way
 * has none. */
static inline enum status gpu_part_flop(const struct backend *back, enum gpu_part part, double before,
					struct error *err)
{
	if (gpu_of(back)->parts)
		gpu_of(back)->part_work[part].flop += back->cost.flop - before;
	return gpu_part(back, part, err);
}

/* Seconds per call of `run`, for `times` calls after a warm-up (gemm/tune.c). Waits. */
enum status gpu_time(struct backend *back, enum status (*run)(void *arg, struct error *err), void *arg,
		     int times, double *seconds, struct error *err);
/* Enclose the timing of one choice. Begin first waits for all enqueued work, so that the time in between
 * belongs to the choice. */
enum status gpu_tuning_begin(struct backend *back, uint64_t *began_ns, struct error *err);
void gpu_tuning_end(struct backend *back, uint64_t began_ns);

/* Pinned memory for copies (staging.c). */
enum status staging_create(struct staging **s, struct gpu_device *d, struct gpu_stream *stream,
			   struct error *err);
void staging_release(struct staging **s); /* to be called after the stream's work has ended */
enum status gpu_backend_put(struct backend *back, struct mat to, const void *from, struct error *err);
enum status gpu_backend_get(struct backend *back, struct mat from, void *to, struct error *err);

/* Runs work on a list in pinned memory, piece by piece, each as the device sees it. */
typedef enum status gpu_staged_run(void *arg, gpu_ptr words, uint64_t first, uint64_t count,
				   struct error *err);
enum status gpu_staged_words(struct backend *back, const int32_t *words, uint64_t count, gpu_staged_run *run,
			     void *arg, struct error *err);

/* GEMMs by cuBLASLt, one plan per shape (gemm.c). */
enum status gemm_plans_create(struct gemm_plans **p, const struct gpu_state *g, struct error *err);
void gemm_plans_release(struct gemm_plans **p);
const char *gemm_plans_name(const struct gemm_plans *p);
enum status gpu_gemm(struct backend *back, const struct gemm *g, struct error *err);
enum status few_rows_open(struct gpu_state *g, struct error *err); /* gemm/few_rows.c */
/* Rows of `from` to E4M3 with a factor per row. */
enum status few_rows_quantize(struct gpu_state *g, const struct mat *from, const struct mat *to,
			      struct error *err);
enum status gpu_gemm_swiglu(struct backend *back, const struct gemm *g, struct mat h, struct error *err);
extern __typeof__(*((struct ops *)0)->gemm_adapted) gpu_gemm_adapted; /* gemm/adapted.c */
/* Whether the candidates of every GEMM shape so far are chosen, if they are to be timed. */
bool gemm_plans_settled(const struct gpu_state *g);

/* Attention, by one of its implementations (attention.c). */
enum status attention_state_create(struct attention_state **a, const struct gpu_state *g, struct error *err);
void attention_state_release(struct attention_state **a);
const char *attention_state_name(const struct attention_state *a);
double attention_state_planned_s(
	const struct attention_state *a); /* time spent building cuDNN's plans or waiting for them */
enum status gpu_attention_forward(struct backend *back, const struct attention *at, const struct batch *b,
				  struct mat qkv, struct mat o, struct mat lse, struct error *err);
enum status gpu_attention_bwd(struct backend *back, const struct attention *at, const struct batch *b,
			      struct mat qkv, struct mat o, struct mat lse, struct mat d_o, struct mat dqkv,
			      struct error *err);

/* Launches a kernel on rows of `cols` elements, one vector per thread; adds the sum of the rows of `sums` to
 * `to` (ops.c). */
enum status gpu_over(struct backend *back, enum gpu_kernel_id kernel, int64_t rows, int64_t cols,
		     const void *args, struct error *err);
enum status gpu_end_sums(struct backend *back, const struct mat *sums, struct mat to, struct error *err);

/* Entries of the table, one file per subject. */
extern __typeof__(*((struct ops *)0)->rmsnorm) gpu_rmsnorm;
extern __typeof__(*((struct ops *)0)->rmsnorm_bwd) gpu_rmsnorm_bwd;
extern __typeof__(*((struct ops *)0)->head_norm_rope) gpu_head_norm_rope;
extern __typeof__(*((struct ops *)0)->head_norm_rope_bwd) gpu_head_norm_rope_bwd;
extern __typeof__(*((struct ops *)0)->refresh) gpu_refresh;
/* The same on any stream, without timing. */
enum status gpu_refresh_on(struct backend *back, struct mat master, const struct live_range *range,
			   struct gpu_stream *stream, struct error *err);
extern __typeof__(*((struct ops *)0)->reduce) gpu_reduce;
extern __typeof__(*((struct ops *)0)->adamw) gpu_adamw;

/* Slots of weights (slots.c). */
void fetching_release(struct fetching **f);
extern __typeof__(*((struct ops *)0)->quantize) gpu_quantize;
extern __typeof__(*((struct ops *)0)->slot_fill) gpu_slot_fill;
extern __typeof__(*((struct ops *)0)->slot_ready) gpu_slot_ready;
extern __typeof__(*((struct ops *)0)->slot_free) gpu_slot_free;

/* Lanes (lanes.c). */
void lanes_release(struct lanes **l);
extern __typeof__(*((struct ops *)0)->lane_copy) gpu_lane_copy;
extern __typeof__(*((struct ops *)0)->lane_event) gpu_lane_event;
extern __typeof__(*((struct ops *)0)->lane_run) gpu_lane_run;
extern __typeof__(*((struct ops *)0)->lane_join) gpu_lane_join;
extern __typeof__(*((struct ops *)0)->lane_wait) gpu_lane_wait;

/* Base-2 logarithm of a power of two. */
static inline uint32_t log2_of(int32_t power)
{
	uint32_t bits = 0;

	while (1 << bits < power)
		bits++;
	return bits;
}

/* Generating text (step/). The norm and SwiGLU for few rows have
 * the bits of those for many. */
enum { GPU_FEW_ROWS = 512 };
extern __typeof__(*((struct ops *)0)->rmsnorm) gpu_step_rmsnorm;
extern __typeof__(*((struct ops *)0)->swiglu) gpu_step_swiglu;
extern __typeof__(*((struct ops *)0)->adapter_mask) gpu_adapter_mask;
extern __typeof__(*((struct ops *)0)->adapter_scale) gpu_adapter_scale;
extern __typeof__(*((struct ops *)0)->paged_embed) gpu_paged_embed;
extern __typeof__(*((struct ops *)0)->paged_rope) gpu_paged_rope;
extern __typeof__(*((struct ops *)0)->sample) gpu_sample;
extern __typeof__(*((struct ops *)0)->sample_count) gpu_sample_count;
/* Pinned memory with its address on the device. */
struct gpu_pinned {
	void *host;
	gpu_ptr device; /* 0: none */
};
/* Owner: caller, gpu_host_free of m->host. */
enum status gpu_pinned_alloc(struct gpu_state *g, struct gpu_pinned *m, uint64_t bytes, struct error *err);
/* Copies to or from pinned memory on the stream; few bytes by a kernel, which takes less time. The first
 * kernel after it may not be launched early: kernels that are may read before they wait (step/copy.c). */
enum status gpu_few_to(struct gpu_state *g, gpu_ptr to, const struct gpu_pinned *from, uint64_t bytes,
		       struct error *err);
enum status gpu_few_from(struct gpu_state *g, const struct gpu_pinned *to, gpu_ptr from, uint64_t bytes,
			 struct error *err);
extern __typeof__(*((struct ops *)0)->fetch_begin) gpu_fetch_begin;
extern __typeof__(*((struct ops *)0)->fetch_wait) gpu_fetch_wait;
extern __typeof__(*((struct ops *)0)->replay) gpu_replay;
/* To be called after the stream's work has ended. */
void sample_turns_release(struct sample_turns **s);
void fetches_release(struct fetches **f);
void replays_release(struct replays **r);

/* Lists of a batch on the device (batch.c). */
void filling_release(struct filling **f);
void turns_release(struct turns **t);
uint64_t turns_pinned_bytes(int64_t rows);
void background_copy_release(struct background_copy **b); /* background_copy.c */
/* layer_graph.c; to be called after the stream's work has ended. */
void layer_graphs_release(struct layer_graphs **s);
uint64_t background_copy_pinned_bytes(void);
enum status gpu_layer_graph(struct backend *back, const struct layer_work *span, struct error *err);
enum status gpu_batch(struct backend *back, const struct batch *host, struct batch *out, struct error *err);

extern const struct ops gpu_ops;
#endif
