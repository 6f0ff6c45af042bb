/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface to a device: one table of operations with three back ends: cpu, gpu, and plan, which computes
 * nothing and counts cost and memory. Operations do not allocate: workspace comes from back->arena and is
 * returned to it. They do not synchronize or communicate. Each adds its work to back->cost.
 *
 * Matrices are row-major. T = rows of the packed micro-batch. Activations have the type back->dtype,
 * statistics and losses back->stat; parameters, their gradient and moments are F32 (F64 if the back end is
 * compiled in double, for tests) or in a format of adamw_part. An absent optional matrix has rows = 0.
 */
#ifndef MODEL_BACKEND_OPS_H
#define MODEL_BACKEND_OPS_H
#include "model/storage/stored.h"
#include "model/tensor/arena.h"
#include "model/backend/paged.h"
#include "model/batch.h"

struct op_cost {
	double flop; /* of GEMMs and attention only (docs/explanation/methods/model-step.md) */
	/* Part of flop that repeats earlier work: recomputation, and P in attention's backward pass. */
	double again;
	double bytes; /* each operand counted once */
	double gemm_flop;
	double gemm_s; /* wall time of the calling thread in GEMMs, including attention's; 0 when planned */
	double in_bytes, out_bytes; /* copied by lanes: to the device, and to host memory */
};

enum backend_kind { BACKEND_CPU, BACKEND_GPU }; /* matrices of a CPU back end are in host memory */

enum { FETCHES = 4, LOSS_PART = 3 };

struct ops;
struct backend {
	const struct ops *ops;
	void *device; /* private data of the back end */
	struct arena *arena;
	/* Host memory that the device copies from and to by itself: pinned. Lent; NULL: none. Its matrices
	 * are operands of lane_copy alone. */
	struct arena *host;
	struct op_cost cost; /* sum since the caller last cleared it */
	enum dtype dtype, stat;
	enum backend_kind kind; /* the device that computes, or that the plan is for */
	int threads;		/* CPU only; the plan needs it too, because workspace depends on it */
	/* CPU only: GEMMs x w' give each row of x the same bits for every number of rows. Set by inference.
	 */
	bool invariant;
	struct mat
		/* GPU only: two sets of lists, used alternately; rows 0: each batch allocates its own. */
		lists[2];
};

/* d = alpha op(a) op(b) + beta c + bias. bias is one row (F32, on a GPU BF16). c may be d. op(a) is [d.rows,
 * k]. */
struct gemm {
	struct mat a, b, c, d, bias;
	bool trans_a, trans_b;
	float alpha, beta;
	/* Operands that are not E4M3 are quantized to E4M3 first, with a scale per 128 elements along k. With
	 * b in E4M3 with scales of blocks, a is always quantized. */
	bool fp8;
	/* c is much smaller than the product, and all of it must count on average. So partial sums are not
	 * rounded to d's type (docs/explanation/design/training.md, "Rounding"). c must not be d. */
	bool whole_sums;
	/* Counts the scales of these operands that are not finite, because a number is not (I32, device
	 * memory). NULL: not counted. */
	int32_t *overflows;
};
/*
 * y = x W' + bias + residual + u B' with u = x A' of several adapters. Or h is SwiGLU of these sums. A and B
 * have up to three parts, such as q, k and v. A part has `width` rows of A, width columns of u, and B's rows
 * for its own rows of W. In each part column c of u belongs to adapter c / rank. u becomes 0 where that is
 * not the row's adapter.
 */
struct adapted_gemm {
	/* Of x, W, the bias and the residual (c, with beta 1). d is y, or with SwiGLU room for gate and up.
	 */
	struct gemm base;
	struct mat h;		/* SwiGLU's result; rows 0: none */
	struct mat a, b;	/* [parts * width, in], [rows of all parts, width] */
	struct mat u;		/* [T, parts * width]: room */
	const int32_t *adapter; /* [T]; -1: none */
	int64_t width, rank;
	int parts;
	struct {
		int64_t begin, count; /* its rows of W */
	} part[3];
	/* The same by other operations. `layer` is their argument. */
	enum status (*apart)(struct backend *, const struct adapted_gemm *, struct error *);
	const void *layer;
};
struct random_fill {
	uint64_t seed, first;
	uint32_t stream;
	float centre, width;
};
/* A part of the flat vector, and the copy of it that GEMMs read. */
struct live_part {
	size_t begin;
	struct mat to;
};
/* A range of a list of such parts. */
struct live_range {
	const struct live_part *all; /* in ascending order; the same list in each call */
	int total, first, count;     /* length of the list; the range */
};
/* The weights of a layer that are written to a slot, and the adapters to copy there. */
struct slot_fill {
	int slot;
	const struct slot_part *part;
	int parts;
	struct mat master;
	struct live_range live; /* count 0: none */
};
/*
 * A lane copies between memory of the device and back->host, beside the main stream, through slots of device
 * memory. It has a stream for each direction. The work that reads and writes its slots is the main stream's
 * (INPUTS) or is on a stream of the lane itself (STATES), which lane_run fills.
 * lane_copy in: after the slot's last copy out and its last FREE. lane_copy out: after the work so far.
 * lane_event READY: later work finds what was copied in last. STORED: later work may overwrite the slot, and
 * later copies of this slot may read what was copied out. FREE: the work so far was the last to use the slot.
 * lane_run: after the main stream's work so far. lane_join: the main stream waits for the lane's work so far.
 * lane_wait: the caller waits, for work and copies.
 * Every copy is awaited before its memory has another use (docs/explanation/design/storage.md, "Offload").
 * No call may be within a capture.
 */
enum lane { LANE_INPUTS, LANE_STATES, LANES };
enum { LANE_SLOTS = 2 };
struct lane_copy {
	struct mat device, host; /* packed, of one size; rows 0: nothing is copied */
};
struct lane_copies {
	enum lane lane;
	int slot;
	bool out; /* to host memory */
	const struct lane_copy *copy;
	int count;
};
enum lane_event { LANE_READY, LANE_STORED, LANE_FREE };
struct attention {
	int heads, kv_heads, head_dim;
	float scale;
};
/* Dropout with probability p in [0, 1). The random number at (seed, site, row_begin + row, col) decides
 * whether element (row, col_begin + col) is kept. So the mask is the same when recomputed, and for any
 * division of rows and columns among ranks. col_begin is a multiple of 4. */
struct dropout {
	uint64_t seed, row_begin;
	int64_t col_begin;
	uint32_t site;
	float p;
};
/* AdamW, computed in F32. The gradient g is first scaled down to norm max_norm (0: no clipping). *squares is
 * the sum of the whole gradient's squares; if it is not finite, nothing is changed. correction = 1 -
 * beta^step; the weight decay is decoupled. */
struct adamw {
	float lr, beta1, beta2, eps, decay, correction1, correction2;
	double max_norm;
	const double *squares; /* device memory */
	uint64_t seed;	       /* of stochastic rounding */
	uint32_t step;
};
/*
 * The operands of AdamW: a part of the flat vector, in one of several formats. BF16 moments are rounded
 * stochastically. 8-bit moments are bitsandbytes' block-wise data type. Each ADAMW_BLOCK elements from the
 * part's begin on have a scale, which is the largest magnitude among them. Each element is a number of a map
 * times that scale, and its code is the number's index (kernel/train/dynamic_map.h). The map of m is signed,
 * that of v unsigned.
 */
enum { ADAMW_BLOCK = 256 };
struct adamw_part {
	struct mat g;		     /* F32 or BF16 */
	struct mat m, v;	     /* both F32, BF16, or U8: codes */
	struct mat m_scale, v_scale; /* F32 [1, blocks]; codes only */
	struct mat w;		     /* F32; or BF16, which without `rest` is rounded stochastically */
	struct mat rest;	     /* I16: with w, the halves of an F32 number (params_join); or absent */
	/* Element of the flat vector at which the part begins: the place of its random numbers. */
	uint64_t first;
};
/* Random bits for rounding element i of the flat vector in step s: half `which` (0: lower, 1: upper) of word
 * i % 4 of philox(counter = {i / 4 low, i / 4 high, s, use}, key = seed). Moments: m takes the lower half, v
 * the upper one. The weight takes the lower half. */
enum { ADAMW_ROUND_MOMENTS = 1, ADAMW_ROUND_WEIGHT = 2 };
enum reduction { REDUCE_SUM, REDUCE_SUM_SQUARES };
/* Work of a step that a device may capture once and replay. Equal keys mean: the same operations with
 * operands at the same addresses, the same numbers of rows and outputs; only the contents of device memory
 * differ. */
struct replay {
	uint64_t key; /* 0: never captured */
	enum status (*run)(void *arg, struct error *err);
	void *arg;
};
/* Work on one layer. It depends only on the batch's lists at their present addresses, their lengths,
 * doc_start, and operands. */
struct layer_work {
	enum status (*run)(void *arg, struct error *err);
	void *arg;
	const struct batch *batch;
	/* One more operand; its address and size identify equal work, and its size tells small work. */
	struct mat first;
	uint64_t state; /* anything else that the work depends on */
};

struct ops {
	const char *name;
	/* Copy rows between packed host memory and the device. put may be called by any thread; `from` may
	 * be reused when it returns, and work enqueued later sees the numbers. get waits for all work
	 * enqueued before it. No other operation waits. */
	enum status (*put)(struct backend *, struct mat to, const void *from, struct error *);
	enum status (*get)(struct backend *, struct mat from, void *to, struct error *);
	/* Copies the batch's lists to memory that operations can read: on a GPU, scratch in the arena.
	 * doc_start stays in host memory. */
	enum status (*batch)(struct backend *, const struct batch *host, struct batch *out, struct error *);
	/* Runs the work, or launches the graph of an earlier run of equal work. NULL: the caller runs it. */
	enum status (*span)(struct backend *, const struct layer_work *, struct error *);
	/* Elements first, first + 1, .. of a random stream (core/math/random.h): centre + width * number. */
	enum status (*random)(struct backend *, struct mat to, const struct random_fill *, struct error *);
	enum status (*zero)(struct backend *, struct mat x, struct error *);
	/* Rearranges weights in place, after loading, for this device's GEMMs and embedding, if that helps.
	 * NULL: nothing is rearranged. */
	enum status (*pack)(struct backend *, struct mat *w, struct error *);
	enum status (*gemm)(struct backend *, const struct gemm *, struct error *);
	/* Quantizes weights (of the activations' type, or F32) to E4M3 with a scale per 128 x 128 elements.
	 * `transposed` gets the transposed bytes and scales, unless it is absent. Numbers that are not
	 * finite are counted as by gemm. */
	enum status (*quantize_e4m3)(struct backend *, struct mat from, struct mat to, struct mat transposed,
				     int32_t *overflows, struct error *);
	/* Writes x->e4m3 and x->e4m3_columns, reading x once. GPU only. */
	enum status (*quantize_both)(struct backend *, struct mat x, struct error *);
	/* x[t] = table[token[t]]. Backward adds rows of dx to dtable. */
	enum status (*embed)(struct backend *, const struct batch *, struct mat table, struct mat x,
			     struct error *);
	enum status (*embed_bwd)(struct backend *, const struct batch *, struct mat dx, struct mat dtable,
				 struct error *);
	/* y = x / rms(x) * w. x / rms(x) is rounded to the activations' type first, as in transformers. rstd
	 * [T, 1]. */
	enum status (*rmsnorm)(struct backend *, struct mat x, struct mat w, float eps, struct mat y,
			       struct mat rstd, struct error *);
	/* dx_add += gradient; dw += its gradient, if dw is present. */
	enum status (*rmsnorm_bwd)(struct backend *, struct mat dy, struct mat x, struct mat w,
				   struct mat rstd, struct mat dx_add, struct mat dw, struct error *);
	/* In place on x [T, heads * d]: RMSNorm of each head if w [1, d] is present (the input is copied to
	 * `raw`, 1/rms to rstd [T, heads]), then rotation by cos_sin [positions, d] (d/2 cosines, d/2
	 * sines), first half with second half. */
	enum status (*head_norm_rope)(struct backend *, struct mat x, int heads, struct mat w, float eps,
				      const int32_t *position, struct mat cos_sin, struct mat raw,
				      struct mat rstd, struct error *);
	enum status (*head_norm_rope_bwd)(struct backend *, struct mat dx, int heads, struct mat w,
					  const int32_t *position, struct mat cos_sin, struct mat raw,
					  struct mat rstd, struct mat dw, struct error *);
	/* Causal attention within each sequence. qkv [T, (heads + 2 kv_heads) d]; o [T, heads d]. lse:
	 * natural logarithm, of the statistics' type; only attention_bwd of the same back end reads it. Its
	 * layout is [T, heads], or, for fast GPU kernels, [sequences][heads][longest], which has room in
	 * ATTENTION_LSE_ROOM T rows. */
	enum status (*attention)(struct backend *, const struct attention *, const struct batch *,
				 struct mat qkv, struct mat o, struct mat lse, struct error *);
	enum status (*attention_bwd)(struct backend *, const struct attention *, const struct batch *,
				     struct mat qkv, struct mat o, struct mat lse, struct mat d_o,
				     struct mat dqkv, struct error *);
	/* The following operations generate text for many sequences (model/backend/paged.h). None waits,
	 * except fetch_wait. */
	/* Copies the lists to the room; a GPU uses the same addresses in each step. The host's lists may be
	 * reused when it returns; a CPU keeps pointers to them. */
	enum status (*paged_put)(struct backend *, const struct paged_rows *host, const struct paged_room *,
				 struct paged_rows *out, struct error *);
	/* x[t] = table[id of row t]. */
	enum status (*paged_embed)(struct backend *, const struct paged_rows *, struct mat table,
				   struct mat last, struct mat x, struct error *);
	/* On qkv [rows, (heads + 2 kv_heads) d]: RMSNorm of each head of q and k if the weights are present,
	 * rotation of q (in place) and k, and k and v to the cache. */
	enum status (*paged_rope)(struct backend *, const struct paged_rows *, const struct attention *,
				  struct mat qkv, struct mat q_norm, struct mat k_norm, float eps,
				  struct mat cos_sin, const struct paged_layer *cache, struct error *);
	/* Causal attention of each row to the pages of its sequence, positions 0 .. its own. q: the first
	 * heads d columns of qkv; o [rows, heads d]. Never multiplies with what a page holds beyond `keys`.
	 */
	enum status (*paged_attention)(struct backend *, const struct paged_rows *, const struct attention *,
				       struct mat qkv, const struct paged_layer *cache, struct mat o,
				       struct error *);
	/* u = x A' of several adapters (model/decoder/linear.h): column c belongs to adapter c % period /
	 * rank. Sets the columns to 0 that do not belong to the row's adapter. adapter [rows]; -1: none. */
	enum status (*adapter_mask)(struct backend *, struct mat u, const int32_t *adapter, int64_t period,
				    int64_t rank, struct error *);
	/* Runs g->apart, or one kernel in its place. NULL: the caller runs g->apart. */
	enum status (*gemm_adapted)(struct backend *, const struct adapted_gemm *g, struct error *);
	/* y = ratio * y + bias + residual. A row has the ratios of its adapter in ratio [adapters, cols],
	 * which is F32. Rows without an adapter have 1. With adapter NULL, all rows use adapter 0. bias and
	 * residual may be absent. */
	enum status (*adapter_scale)(struct backend *, struct mat y, const int32_t *adapter, struct mat ratio,
				     struct mat bias, struct mat residual, struct error *);
	/* Samples an id per row, writes results and `last`, and updates the counts. */
	enum status (*sample)(struct backend *, const struct sample *, struct error *);
	/* Sets a row of the counts. */
	enum status (*sample_count)(struct backend *, struct mat counts, const struct sample_history *,
				    struct error *);
	/* Starts copying a matrix to host memory, as it is after the work enqueued so far. turn: 0 .. FETCHES
	 * - 1; each turn holds one copy. fetch_wait waits for it and gives the packed rows, lent until the
	 * turn's next fetch_begin. */
	enum status (*fetch_begin)(struct backend *, struct mat from, int turn, struct error *);
	enum status (*fetch_wait)(struct backend *, int turn, const void **out, struct error *);
	/* Runs the work, or launches the graph of an earlier run with this key. */
	enum status (*replay)(struct backend *, const struct replay *, struct error *);
	/* h = silu(gate) * up of the GEMM's result [T, 2 ffn], gate first. Its d is room for that result,
	 * which may stay unwritten. */
	enum status (*gemm_swiglu)(struct backend *, const struct gemm *, struct mat h, struct error *);
	/* h = silu(gate) * up of gate_up [T, 2 ffn]. Backward turns gate_up into its gradient and, with
	 * `again`, dh into h, bit-identical to forward's. */
	enum status (*swiglu)(struct backend *, struct mat gate_up, struct mat h, struct error *);
	enum status (*swiglu_bwd)(struct backend *, struct mat dh, struct mat gate_up, bool again,
				  struct error *);
	/* loss[i] = -log softmax(logits[i])[target[row[i]]]. The logits become their gradient times
	 * grad_scale; with grad_scale 0 they stay unchanged. */
	enum status (*cross_entropy)(struct backend *, struct mat logits, const int32_t *target,
				     const int32_t *row, float grad_scale, struct mat loss, struct error *);
	/* The four operations of a part of the vocabulary, ids `first` and following, as many as the table
	 * has rows or the logits columns. Rows of other ids become 0, or have no gradient. */
	enum status (*embed_part)(struct backend *, const struct batch *, struct mat table, int64_t first,
				  struct mat x, struct error *);
	enum status (*embed_part_bwd)(struct backend *, const struct batch *, struct mat dx, int64_t first,
				      struct mat dtable, struct error *);
	/* part [rows, LOSS_PART]: of each row of logits the maximum, the sum of exp(logit - maximum), and the
	 * target's logit, or 0 if another part has it. */
	enum status (*loss_part)(struct backend *, struct mat logits, const int32_t *target,
				 const int32_t *row, int64_t first, struct mat part, struct error *);
	/* The same as cross_entropy with the parts of all ranks, one after the other [ranks * rows,
	 * LOSS_PART]. */
	enum status (*loss_join)(struct backend *, struct mat logits, const int32_t *target,
				 const int32_t *row, int64_t first, struct mat parts, float grad_scale,
				 struct mat loss, struct error *);
	/* to[i] = from[row[i]]; with scatter_add: to[row[i]] += from[i] (no row may occur twice). */
	enum status (*rows_copy)(struct backend *, struct mat from, struct mat to, const int32_t *row,
				 bool scatter_add, struct error *);
	/* y = or += mask(x) / (1 - p). */
	enum status (*dropout)(struct backend *, struct mat x, const struct dropout *, struct mat y, bool add,
			       struct error *);
	/* y += x (types may differ); to = from, rounded to its type. */
	enum status (*convert)(struct backend *, struct mat from, struct mat to, struct error *);
	/* Rounds master into the copy of each part of the range. A CPU reads master itself and has no copies.
	 */
	enum status (*refresh)(struct backend *, struct mat master, const struct live_range *,
			       struct error *err);
	/* Slots (model/storage/slots.h). quantize writes the stored form of a tensor of numbers.
	 * slot_fill writes a layer to a slot, on a stream of its own, after the slot's last slot_free. Work
	 * enqueued after slot_ready finds the layer there. slot_free: no work enqueued later reads what is in
	 * the slot. */
	enum status (*quantize)(struct backend *, struct mat from, const struct stored *to, struct error *);
	enum status (*slot_fill)(struct backend *, const struct slot_fill *, struct error *);
	enum status (*slot_ready)(struct backend *, int slot, struct error *);
	enum status (*slot_free)(struct backend *, int slot, struct error *);
	/* See enum lane. lane_run: `run` enqueues adamw and convert alone. */
	enum status (*lane_copy)(struct backend *, const struct lane_copies *, struct error *);
	enum status (*lane_event)(struct backend *, enum lane, int slot, enum lane_event, struct error *);
	enum status (*lane_run)(struct backend *, enum lane, enum status (*run)(void *arg, struct error *),
				void *arg, struct error *);
	enum status (*lane_join)(struct backend *, enum lane, struct error *);
	enum status (*lane_wait)(struct backend *, enum lane, struct error *);
	enum status (*column_sum)(struct backend *, struct mat x, struct mat sum_add,
				  struct error *); /* gradient of a bias */
	/* sum += over all elements, in double. The order does not depend on the number of threads. `sum` is
	 * device memory. */
	enum status (*reduce)(struct backend *, struct mat x, enum reduction, double *sum, struct error *);
	/* One optimizer step on a part of the flat vector. */
	enum status (*adamw)(struct backend *, const struct adamw_part *, const struct adamw *,
			     struct error *);
};
#endif
