/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU back end: BF16, or F32 for training, with statistics in F32, one stream, and one block of device
 * memory, which is the arena (docs/explanation/design/model_gpu.md). The `data` of matrices are device
 * addresses. Only ops->get waits for the device.
 */
#ifndef MODEL_GPU_BACKEND_H
#define MODEL_GPU_BACKEND_H
#include "gpu/device/gpu.h"
#include "gpu/matmul/matmul.h"
#include "model/backend/ops.h"
#include "model/shape/shape.h"

/* Implementation of attention for sequences of equal length. AUTO: cuDNN if it is available, supports the
 * shape and is not known to be wrong for it, else assay's kernels. CUDNN: cuDNN or an error. OWN: assay's
 * kernels. PLAIN: assay's kernels without tensor cores. Sequences of unequal length, which includes padded
 * micro-batches, always use assay's kernels. Those are bit-identical from run to run. */
enum gpu_attention { GPU_ATTENTION_AUTO, GPU_ATTENTION_CUDNN, GPU_ATTENTION_OWN, GPU_ATTENTION_PLAIN };
/* Type of activations and weights, and how GEMMs multiply. F32 and TF32 keep both in F32; TF32 lets tensor
 * cores round the factors of GEMMs. Attention is then PLAIN, and there is no generation. */
enum gpu_precision { GPU_PRECISION_BF16, GPU_PRECISION_F32, GPU_PRECISION_TF32 };

/* GEMMs with several adapters (ops->gemm_adapted). APART: by several operations. CHOSEN: by one kernel, if
 * gpu_backend_choose found that to be faster. FUSED: by one kernel where it can, for tests. */
enum gpu_adapters { GPU_ADAPTERS_APART, GPU_ADAPTERS_CHOSEN, GPU_ADAPTERS_FUSED };

struct gpu_backend_options {
	const char *pci;	      /* NULL: CUDA's first GPU */
	const char *cublaslt, *cudnn; /* paths of the libraries; NULL: searched for */
	enum gpu_attention attention;
	enum gpu_precision precision;
	/* Time cuBLASLt's candidates when a GEMM shape first occurs; results may then differ between runs. */
	bool tune;
	bool parts;	/* record an event per operation, so that gpu_backend_times returns parts */
	bool few_rows;	/* generation: GEMMs of few rows, and those with E4M3 weights, by assay's kernels */
	bool invariant; /* with few_rows: a row's GEMMs have the same bits whatever the number of rows */
	enum gpu_adapters adapters; /* with few_rows, and not invariant */
	bool fp8; /* training with GEMMs in FP8; only on devices whose cuBLASLt has block scales: sm_90 */
	bool deterministic; /* bit-identical from run to run; attention uses assay's kernels */
	bool graphs; /* launch the layers of small micro-batches as CUDA graphs, once their shape is known */
};

/* Opens driver, device, cuBLASLt and assay's kernels. The arena has no memory yet. Owner: caller,
 * gpu_backend_release, also after a failure. UNAVAILABLE: there is no driver, library or kernel. */
enum status gpu_backend_create(struct backend *back, const struct gpu_backend_options *options,
			       struct arena *arena, struct error *err);
/* Whether assay's kernels support forward and backward passes of such a model. Needs no device. UNSUPPORTED:
 * its head size or width. */
enum status gpu_backend_takes(const struct shape *s, struct error *err);
/* While held (true), nothing is timed, no graph is made, and a thread builds cuDNN's plans while assay's
 * kernels compute attention. This shortens the first step. Choices of earlier runs are still used. */
void gpu_backend_hold(struct backend *back, bool hold);
bool gpu_backend_holds(const struct backend *back);
/* Allocates the arena's memory. NO_RESOURCE with NO_MEMORY: the device has too little. */
enum status gpu_backend_take(struct backend *back, uint64_t bytes, struct error *err);
/* Whether other processes had more than about 2 GB of the device's memory when this back end began or took
 * its own. Then generation uses no GEMMs with clusters of eight blocks, which may crash. */
bool gpu_backend_is_shared(const struct backend *back);
/* Allocates and pins the memory of back->host, which the caller has set. NO_MEMORY: there is too little, or
 * the driver cannot pin it. 0 bytes: no effect. */
enum status gpu_backend_pin(struct backend *back, uint64_t bytes, struct error *err);
void gpu_backend_release(struct backend *back);
/* Enables padding: micro-batches have at most `most` rows, and those with sequences of unequal length are
 * padded with untrained rows to one of a few sizes, so that few GEMM shapes occur. Without this call batches
 * are not padded. */
void gpu_backend_fill(struct backend *back, int64_t most);

/* Writes rows first .. first + rows - 1 of a matrix to `out`, packed. */
struct made_rows {
	enum status (*make)(void *arg, int64_t first, int64_t rows, void *out, struct error *err);
	void *arg;
	enum dtype dtype; /* of the rows; BF16 may be put to E4M3, and is then quantized on the device */
};
/* Like ops->put, but the rows are made directly in pinned memory. UNSUPPORTED: a row is too long for that, or
 * rows cannot be quantized because the back end has no own GEMMs (few_rows); otherwise the error of `make`.
 */
enum status gpu_backend_put_made(struct backend *back, struct mat to, const struct made_rows *made,
				 struct error *err);
/* To be called when all work of a micro-batch is enqueued: copies the lists of the next one on a separate
 * stream. ops->batch of that batch then uses them; another batch is copied as usual. *b is lent until then.
 */
enum status gpu_backend_prefetch(struct backend *back, const struct batch *b, struct error *err);
/* mark records a point in the stream's work. The fetch then copies packed numbers as they are at that point,
 * on a separate stream, and waits for them. One thread at a time may fetch, while the device continues with
 * work that does not change the numbers. */
enum status gpu_backend_mark(struct backend *back, struct error *err);
enum status gpu_backend_get_marked(struct backend *back, struct mat from, void *to, struct error *err);
/* Pinned host memory of a back end for micro-batches of `rows` rows. */
uint64_t gpu_backend_pinned_bytes(int64_t rows);

struct gpu_device *gpu_backend_device(const struct backend *back);
/* Whether prompts read a copy of their pages of a KV cache on this GPU (paged_limits.copies). */
bool gpu_backend_copies_pages(const struct backend *back);
struct gpu_stream *gpu_backend_stream(const struct backend *back);
/* A row [1, n] of F32 to BF16, or back, on any stream of the device and outside the phases. */
enum status gpu_backend_convert(struct backend *back, struct mat from, struct mat to,
				struct gpu_stream *stream, struct error *err);
/* "cuBLASLt 13.1.1", "cuDNN 9.19.0" or "own". Lent. */
const char *gpu_backend_gemm(const struct backend *back);
const char *gpu_backend_attention(const struct backend *back);
enum gpu_precision gpu_backend_precision(const struct backend *back);
/* Number of passes over layers that were launched as a CUDA graph. */
uint64_t gpu_backend_graph_launches(const struct backend *back);
/* The error that prevented CUDA graphs although they were asked for; NULL: none. Lent. */
const char *gpu_backend_graphs_refused(const struct backend *back);
/* The error that prevented the graph of a step (ops->replay) the last time; NULL: none. Lent. */
const char *gpu_backend_replay_refused(const struct backend *back);
/* Division of the stream's time: by the caller's phases, and by kinds of operations, which reports explain
 * (report/training/step_parts.c). name, word */
/* clang-format off */
#define GPU_PHASES(X) X(FORWARD, "forward") X(BACKWARD, "backward") X(OPTIMISER, "optimiser") X(WAIT, "wait")
#define GPU_PARTS(X)                                                           \
	X(PRODUCTS, "products") X(THIN, "thin_products") /* GEMMs with a side below 512 */ \
	X(ATTENTION, "attention") X(ATTENTION_BWD, "attention_backward")        \
	X(ELEMENTS, "elements") /* norms, RoPE, SwiGLU, dropout */              \
	X(LOSS, "loss") /* and embedding, and rows of the head */               \
	X(OPTIMISER, "optimiser") X(COPIES, "copies")
/* clang-format on */
#define X(name, ...) GPU_PHASE_##name,
enum gpu_phase { GPU_PHASES(X) GPU_PHASE_COUNT, GPU_PHASE_NONE = -1 };
#undef X
#define X(name, ...) GPU_PART_##name,
enum gpu_part { GPU_PARTS(X) GPU_PART_COUNT };
#undef X
struct gpu_part_work { /* Work as executed, including recomputation; bytes: each operand counted once. */
	double flop, bytes;
};
const char *gpu_backend_part_name(enum gpu_part part);
/* Work enqueued from now on belongs to this phase; NONE ends the last one. */
enum status gpu_backend_phase(struct backend *back, enum gpu_phase phase, struct error *err);
/* Between these two calls the stream waits for other streams. This time belongs to phase WAIT, and then the
 * phase before it goes on. Without a phase they have no effect. Not within a capture. */
enum status gpu_backend_wait_begin(struct backend *back, struct error *err);
enum status gpu_backend_wait_end(struct backend *back, struct error *err);
/* Starts timing. Earlier work belongs to no phase. */
void gpu_backend_times_begin(struct backend *back);
/* Seconds since gpu_backend_times_begin, and the work of the parts. Waits for the end of the last phase.
 * Parts are 0 unless options.parts is set. */
enum status gpu_backend_times(struct backend *back, double phase_s[GPU_PHASE_COUNT],
			      double part_s[GPU_PART_COUNT], struct gpu_part_work work[GPU_PART_COUNT],
			      struct error *err);
/* cuBLASLt's algorithm for the i-th GEMM shape; false: there are no more. `product` names everything that
 * the choice depends on. */
struct gpu_choice {
	char product[160], algorithm[96];
	/* Time with it, and with the library's first candidate; 0: not timed. */
	double seconds, first_seconds;
	uint64_t words[MATMUL_ALGORITHM_WORDS];
	bool recalled; /* not chosen by this process */
	bool alike;    /* taken without timing from a GEMM with a similar number of rows */
	bool cached;   /* chosen by another run */
};
bool gpu_backend_choice(const struct backend *back, size_t i, struct gpu_choice *out);
/* Implementation of the backward pass after cuDNN's forward pass, for `docs` sequences of equal length. (0,
 * 0): assay's candidate for all other batches. */
struct gpu_attention_choice {
	int64_t docs, length;
	bool by_own;	    /* true: assay's kernels; false: cuDNN */
	char candidate[64]; /* assay's candidate; "": none was timed */
	bool recalled;	    /* not chosen by this process */
	bool cached;	    /* chosen by another run */
};
bool gpu_backend_attention_choice(const struct backend *back, size_t i, struct gpu_attention_choice *out);
/* Sets choices made by the same libraries on a device of the same name. They are used without timing when
 * their shape occurs; of several that match, the first. If one does not run, its shape is timed again. Both
 * lists are copied. */
enum status gpu_backend_recall(struct backend *back, const struct gpu_choice *products, size_t count,
			       const struct gpu_attention_choice *attention, size_t attentions,
			       struct error *err);
/* For generation, before requests run. While watched, the operands of each GEMM are noted as it runs, and no
 * graph of a step is made. The end of watching forgets them. gpu_backend_choose times the ways in which the
 * noted GEMMs can run, each with all operands of the same form in turn, so that weights come from memory as
 * in a step, and overwrites their results. From then on GEMMs of a form run in the fastest way; those with
 * another number of rows use the choice of the nearest larger one that has less than twice as many. Not for
 * deterministic back ends. It ends early, with OK, after `seconds`; what is left keeps the first way. */
enum status gpu_backend_watch(struct backend *back, bool watch, struct error *err);
enum status gpu_backend_choose(struct backend *back, double seconds, struct error *err);
/* After gpu_backend_choose, while watched: chooses again for the GEMMs of steps with this number of rows,
 * among the ways that took little more time than the fastest one. `run` enqueues such a step, or its first
 * layers. The way with which it takes the least time is used, if it is 1 % less than with the fastest one.
 * GEMMs that the step has once keep their way. Ends early, with OK, after `seconds` and the step that is then
 * timed. gpu_backend_has_ways: whether there is something to choose. */
typedef enum status gpu_step_run(void *arg, struct error *err);
enum status gpu_backend_refine(struct backend *back, int64_t rows, double seconds, gpu_step_run *run,
			       void *arg, struct error *err);
bool gpu_backend_has_ways(const struct backend *back, int64_t rows);
/* For measuring what a deterministic back end costs, before requests run. Between the two calls its work runs
 * as in an ordinary back end, where no way has been chosen yet. The end forgets what was chosen in between.
 * So later results have the same bits as if nothing had been measured. No graph of a step may be made in
 * between (gpu_backend_watch). `kept` is for these two functions alone. */
struct gpu_ordinary {
	bool invariant, deterministic;
	size_t plans;
	void *choices;
};
void gpu_backend_ordinary_begin(struct backend *back, struct gpu_ordinary *kept);
void gpu_backend_ordinary_end(struct backend *back, const struct gpu_ordinary *kept);
/* Seconds spent so far on timing candidates and on building cuDNN's plans or waiting for them. Work enqueued
 * before a timing is not included. A step in which this grows is not a steady step. */
double gpu_backend_tuning_s(const struct backend *back);
/* FLOP/s of a large GEMM of the back end's type, timed in free memory of the arena, which is unchanged
 * afterwards. 0 with OK: the free memory is too small for a meaningful GEMM. */
enum status gpu_backend_gemm_rate(struct backend *back, double *rate, struct error *err);
#endif
