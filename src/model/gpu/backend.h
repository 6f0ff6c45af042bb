/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU as back end: BF16 with statistics in F32, one stream, one block of device memory that is the arena
 * (docs/explanation/design/model_gpu.md). Matrices' `data` are device addresses. Nothing but ops->get waits
 * for the device.
 */
#ifndef MODEL_GPU_BACKEND_H
#define MODEL_GPU_BACKEND_H
#include "gpu/device/gpu.h"
#include "gpu/matmul/matmul.h"
#include "model/backend/ops.h"
#include "model/shape/shape.h"

/* Which attention, of documents of one length: by cuDNN where it is there, takes them and is trusted with
 * them, else by our kernels; by cuDNN or an error; by our kernels. Documents of several lengths, and a
 * filled-up micro-batch is of some, are our kernels' always; those are bit-equal from run to run. */
enum gpu_attention { GPU_ATTENTION_AUTO, GPU_ATTENTION_CUDNN, GPU_ATTENTION_OWN };

struct gpu_backend_options {
	const char *pci;	      /* NULL: CUDA's first */
	const char *cublaslt, *cudnn; /* their paths; NULL: searched */
	enum gpu_attention attention;
	bool tune;  /* cuBLASLt's candidates are timed where a product is met first: bits may differ from run
		       to run */
	bool parts; /* gpu_backend_times is asked for parts: an event an operation */
	bool deterministic; /* the same bits from run to run: attention by our kernels */
	bool graphs; /* layers of small micro-batches are enqueued as a whole where the same were before */
};

/* Opens driver, device, cuBLASLt and our kernels; the arena has no memory yet. Owner: caller,
 * gpu_backend_release, which accepts what failed half way. UNAVAILABLE: no driver, no library, no kernels. */
enum status gpu_backend_create(struct backend *back, const struct gpu_backend_options *options,
			       struct arena *arena, struct error *err);
/* Whether our kernels take such a model's passes, forward and backward, with no device at hand. UNSUPPORTED:
 * its heads, or its width. */
enum status gpu_backend_takes(const struct shape *s, struct error *err);
/* Until it is let go (false) nothing is chosen by time, no graph is made, and cuDNN's plans are built by a
 * thread of their own while our kernels do what they are for: what follows now should be soon done. What a
 * run before chose is taken all the same. */
void gpu_backend_hold(struct backend *back, bool hold);
bool gpu_backend_holds(const struct backend *back);
/* Takes the arena's memory. NO_RESOURCE with NO_MEMORY: the device has not so much. */
enum status gpu_backend_take(struct backend *back, uint64_t bytes, struct error *err);
void gpu_backend_release(struct backend *back);
/* Micro-batches have at most `most` rows: those of documents of unequal length are filled up with untrained
 * ones to one of a few lengths, so that plans of products are few. Without it they are taken as they are. */
void gpu_backend_fill(struct backend *back, int64_t most);

/* Rows first .. first + rows - 1 of a matrix, packed, as the device keeps them, at `out`. */
struct made_rows {
	enum status (*make)(void *arg, int64_t first, int64_t rows, void *out, struct error *err);
	void *arg;
};
/* As ops->put, of rows that are made where the copy takes them from. UNSUPPORTED: a row is too long for it;
 * else what `make` says. */
enum status gpu_backend_put_made(struct backend *back, struct mat to, const struct made_rows *made,
				 struct error *err);
/* While the device works on a micro-batch, all of which is enqueued: the next one's lists are copied, on a
 * stream of their own. ops->batch of the same takes them; another one is copied in its own turn. *b is lent
 * until then. */
enum status gpu_backend_prefetch(struct backend *back, const struct batch *b, struct error *err);
/* Packed numbers as they are behind all that was enqueued until the mark, on a stream of their own: by any
 * one thread at a time, while the device goes on with what does not change them. Waits for them. */
enum status gpu_backend_mark(struct backend *back, struct error *err);
enum status gpu_backend_get_marked(struct backend *back, struct mat from, void *to, struct error *err);
/* Pinned memory of the host that a back end takes whose micro-batches have so many rows. */
uint64_t gpu_backend_pinned_bytes(int64_t rows);

struct gpu_device *gpu_backend_device(const struct backend *back);
struct gpu_stream *gpu_backend_stream(const struct backend *back);
/* "cuBLASLt 13.1.1", "cuDNN 9.19.0" or "own": lent. */
const char *gpu_backend_gemm(const struct backend *back);
const char *gpu_backend_attention(const struct backend *back);
/* Why layers of small micro-batches are not enqueued as graphs though they were to be: how their capture
 * failed; NULL: it did not. Lent. */
const char *gpu_backend_graphs_refused(const struct backend *back);
/* What the stream's time goes into: the caller's phases, and kinds of operations, which reports explain
 * (report/training/step_parts.c). name, word */
/* clang-format off */
#define GPU_PHASES(X) X(FORWARD, "forward") X(BACKWARD, "backward") X(OPTIMISER, "optimiser")
#define GPU_PARTS(X)                                                           \
	X(PRODUCTS, "products") X(THIN, "thin_products") /* a side below 512 */ \
	X(ATTENTION, "attention") X(ATTENTION_BWD, "attention_backward")        \
	X(ELEMENTS, "elements") /* norms, RoPE, SwiGLU, dropout */              \
	X(LOSS, "loss") /* with embedding and rows of the head */               \
	X(OPTIMISER, "optimiser") X(COPIES, "copies")
/* clang-format on */
#define X(name, ...) GPU_PHASE_##name,
enum gpu_phase { GPU_PHASES(X) GPU_PHASE_COUNT, GPU_PHASE_NONE = -1 };
#undef X
#define X(name, ...) GPU_PART_##name,
enum gpu_part { GPU_PARTS(X) GPU_PART_COUNT };
#undef X
struct gpu_part_work { /* as it was done, what was made again among it; bytes: each operand once */
	double flop, bytes;
};
const char *gpu_backend_part_name(enum gpu_part part);
/* What follows is of this phase; NONE ends the last one. */
enum status gpu_backend_phase(struct backend *back, enum gpu_phase phase, struct error *err);
/* From here on: what was before is no phase's. */
void gpu_backend_times_begin(struct backend *back);
/* Seconds since they were begun, and the work of parts; waits for the end of the last phase. Parts are 0
 * where not asked for. */
enum status gpu_backend_times(struct backend *back, double phase_s[GPU_PHASE_COUNT],
			      double part_s[GPU_PART_COUNT], struct gpu_part_work work[GPU_PART_COUNT],
			      struct error *err);
/* Which of cuBLASLt's candidates the i-th product that was met takes; false: there are no more. `product`
 * says all that it is chosen by. */
struct gpu_choice {
	char product[160], algorithm[96];
	double seconds, first_seconds; /* by it, by the library's first; 0: not timed */
	uint64_t words[MATMUL_ALGORITHM_WORDS];
	bool recalled; /* it was not chosen here */
	bool alike;    /* it is that of a product of nearly as many rows, and was not timed */
	bool cached;   /* it was not chosen here, nor by this run before: by another one */
};
bool gpu_backend_choice(const struct backend *back, size_t i, struct gpu_choice *out);
/* The way of the backward pass behind cuDNN's forward one, of `docs` documents of one length; 0, 0: of all
 * others our candidate. */
struct gpu_attention_choice {
	int64_t docs, length;
	bool by_own;	    /* else by cuDNN */
	char candidate[64]; /* ours; "": none was timed */
	bool recalled;	    /* it was not chosen here */
	bool cached;	    /* nor by this run before: by another one */
};
bool gpu_backend_attention_choice(const struct backend *back, size_t i, struct gpu_attention_choice *out);
/* What was chosen by the same libraries on a device of the same name is taken without being timed, where it
 * is met: the first of those that fit. What does not run after all is chosen anew. Both lists are copied. */
enum status gpu_backend_recall(struct backend *back, const struct gpu_choice *products, size_t count,
			       const struct gpu_attention_choice *attention, size_t attentions,
			       struct error *err);
/* Seconds so far in which candidates were timed, or cuDNN's plans were made or waited for; what the device
 * was busy with before a timing is not among them. A step in which they grow is not like later ones. */
double gpu_backend_tuning_s(const struct backend *back);
/* FLOP/s of a large product in BF16 here, timed on memory of the arena that is free now, which is as if it
 * had not been used; 0, with OK: there is no room for one that says anything. */
enum status gpu_backend_gemm_rate(struct backend *back, double *rate, struct error *err);
#endif
