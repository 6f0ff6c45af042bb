/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only door to a device: one table of operations, three back ends: cpu, gpu, and plan, which touches
 * nothing and counts. Operations neither allocate (what they need beside their operands comes from
 * back->arena and is given back) nor synchronise nor communicate; each adds its work to back->cost.
 *
 * Matrices are row-major. T = rows of the packed micro-batch. Activations are of back->dtype, statistics and
 * losses of back->stat; parameters, their gradient and moments are F32 (F64 where the back end is compiled
 * in double for tests). An optional matrix that is absent has rows = 0.
 */
#ifndef MODEL_BACKEND_OPS_H
#define MODEL_BACKEND_OPS_H
#include "model/tensor/arena.h"
#include "model/batch.h"

struct op_cost {
	double flop;  /* of products and attention alone, as METHODS counts them */
	double again; /* of flop: what was there before, made again: by recomputation, and P by attention's
		       * backward pass */
	double bytes; /* each operand once */
	double gemm_flop;
	double gemm_s; /* in products, attention's among them: wall time of the calling thread; 0 planned */
};

enum backend_kind { BACKEND_CPU, BACKEND_GPU }; /* a CPU's matrices are the host's memory */

struct ops;
struct backend {
	const struct ops *ops;
	void *device; /* the back end's own */
	struct arena *arena;
	struct op_cost cost; /* since the caller cleared it */
	enum dtype dtype, stat;
	enum backend_kind kind; /* what works, or is planned for */
	int threads;		/* of a cpu: workspace depends on it, so a plan has it too */
	struct mat
		lists[2]; /* of a gpu: micro-batches' lists, in turns; rows 0: each batch has its own place */
};

/* d = alpha op(a) op(b) + beta c + bias (a row; F32, on a GPU BF16). c may be d. op(a) is [d.rows, k]. */
struct gemm {
	struct mat a, b, c, d, bias;
	bool trans_a, trans_b;
	float alpha, beta;
};
struct random_fill {
	uint64_t seed, first;
	uint32_t stream;
	float centre, width;
};
/* A part of the flat vector, and where products read it. */
struct live_part {
	size_t begin;
	struct mat to;
};
struct attention {
	int heads, kv_heads, head_dim;
	float scale;
};
/* Element (row, col) of x is kept where the generator's number at (seed, site, row_begin + row, col) says so:
 * the same when recomputed or dealt to other ranks. p in [0, 1). */
struct dropout {
	uint64_t seed, row_begin;
	uint32_t site;
	float p;
};
/* g is scaled down first, to the norm max_norm (0: never), by *squares, the sum of the whole gradient's
 * squares; where that is not finite nothing is changed. correction = 1 - beta^step; decay is decoupled
 * (AdamW). */
struct adamw {
	float lr, beta1, beta2, eps, decay, correction1, correction2;
	double max_norm;
	const double *squares; /* device memory */
};
enum reduction { REDUCE_SUM, REDUCE_SUM_SQUARES };
/* Work on a batch, of whose lists it reads where they lie, their lengths and doc_start alone. */
struct layer_work {
	enum status (*run)(void *arg, struct error *err);
	void *arg;
	const struct batch *batch;
	struct mat first; /* another operand, whose address and size tell the like and the small */
};

struct ops {
	const char *name;
	/* Rows of packed host memory to the device, and back. put may be called by any thread; `from` is free
	 * when it returns, and what is enqueued after it sees the numbers. get waits for what was enqueued
	 * before it: the only operation that does. */
	enum status (*put)(struct backend *, struct mat to, const void *from, struct error *);
	enum status (*get)(struct backend *, struct mat from, void *to, struct error *);
	/* The batch with its lists where operations read them: placed in the arena as scratch where the
	 * device is not the host. doc_start stays the host's. */
	enum status (*batch)(struct backend *, const struct batch *host, struct batch *out, struct error *);
	/* span->run, or what it enqueued the last time that it was the same, again. NULL: it is run. */
	enum status (*span)(struct backend *, const struct layer_work *, struct error *);
	/* Elements first, first + 1, .. of a stream of core/math/random.h: centre + width * number. */
	enum status (*random)(struct backend *, struct mat to, const struct random_fill *, struct error *);
	enum status (*zero)(struct backend *, struct mat x, struct error *);
	enum status (*gemm)(struct backend *, const struct gemm *, struct error *);
	/* x[t] = table[token[t]]; backward adds rows of dx to dtable. */
	enum status (*embed)(struct backend *, const struct batch *, struct mat table, struct mat x,
			     struct error *);
	enum status (*embed_bwd)(struct backend *, const struct batch *, struct mat dx, struct mat dtable,
				 struct error *);
	/* y = x / rms(x) * w, rounded to the activations' type before w (as transformers does); rstd [T, 1].
	 */
	enum status (*rmsnorm)(struct backend *, struct mat x, struct mat w, float eps, struct mat y,
			       struct mat rstd, struct error *);
	/* dx_add += gradient; dw += where it is there. */
	enum status (*rmsnorm_bwd)(struct backend *, struct mat dy, struct mat x, struct mat w,
				   struct mat rstd, struct mat dx_add, struct mat dw, struct error *);
	/* In place on x [T, heads * d]: RMSNorm of each head where w [1, d] is there (the input goes to
	 * `raw`, 1/rms to rstd [T, heads]), then rotation by cos_sin [positions, d] (d/2 cosines, d/2 sines),
	 * half against half. */
	enum status (*head_norm_rope)(struct backend *, struct mat x, int heads, struct mat w, float eps,
				      const int32_t *position, struct mat cos_sin, struct mat raw,
				      struct mat rstd, struct error *);
	enum status (*head_norm_rope_bwd)(struct backend *, struct mat dx, int heads, struct mat w,
					  const int32_t *position, struct mat cos_sin, struct mat raw,
					  struct mat rstd, struct mat dw, struct error *);
	/* Causal within each document. qkv [T, (heads + 2 kv_heads) d]; o [T, heads d]; lse natural log, of
	 * the statistics' type, read by attention_bwd of the same back end alone: [T, heads], or, by a GPU's
	 * fast kernels, [documents][heads][the longest], for which there are ATTENTION_LSE_ROOM T rows. */
	enum status (*attention)(struct backend *, const struct attention *, const struct batch *,
				 struct mat qkv, struct mat o, struct mat lse, struct error *);
	enum status (*attention_bwd)(struct backend *, const struct attention *, const struct batch *,
				     struct mat qkv, struct mat o, struct mat lse, struct mat d_o,
				     struct mat dqkv, struct error *);
	/* q [n, heads d]: rows begin .. begin + n - 1 of one document, whose keys and values up to the last
	 * of them are rows of kv [.., 2 kv_heads d]. */
	enum status (*attention_cached)(struct backend *, const struct attention *, struct mat q,
					struct mat kv, int64_t begin, struct mat o, struct error *);
	/* h = silu(gate) * up of gate_up [T, 2 ffn]; backward turns gate_up into its gradient and, where
	 * `again`, dh into h: forward's, bit for bit. */
	enum status (*swiglu)(struct backend *, struct mat gate_up, struct mat h, struct error *);
	enum status (*swiglu_bwd)(struct backend *, struct mat dh, struct mat gate_up, bool again,
				  struct error *);
	/* loss[i] = -log softmax(logits[i])[target[row[i]]]; logits become the gradient times grad_scale;
	 * with grad_scale 0 they are left as they are. */
	enum status (*cross_entropy)(struct backend *, struct mat logits, const int32_t *target,
				     const int32_t *row, float grad_scale, struct mat loss, struct error *);
	/* to[i] = from[row[i]]; with scatter_add to[row[i]] += from[i] (no row twice). */
	enum status (*rows_copy)(struct backend *, struct mat from, struct mat to, const int32_t *row,
				 bool scatter_add, struct error *);
	/* y = or += mask(x) / (1 - p). */
	enum status (*dropout)(struct backend *, struct mat x, const struct dropout *, struct mat y, bool add,
			       struct error *);
	/* y += x (types may differ); to = from rounded to its type. */
	enum status (*convert)(struct backend *, struct mat from, struct mat to, struct error *);
	/* Each part's copy of master, rounded; in ascending order, the same list at each call. A CPU, which
	 * reads master itself, has none. */
	enum status (*refresh)(struct backend *, struct mat master, const struct live_part *part, int count,
			       struct error *err);
	enum status (*column_sum)(struct backend *, struct mat x, struct mat sum_add,
				  struct error *); /* bias gradient */
	/* *sum += over all elements, in double and in an order that no thread count changes; device memory.
	 */
	enum status (*reduce)(struct backend *, struct mat x, enum reduction, double *sum, struct error *);
	/* One step on rows of the flat vector. */
	enum status (*adamw)(struct backend *, struct mat g, struct mat m, struct mat v, struct mat master,
			     const struct adamw *, struct error *);
};
#endif
