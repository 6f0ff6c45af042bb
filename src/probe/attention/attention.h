/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `attention`: O = softmax(scale Q K^T) V over the pairs of query and key that mask, lengths and block
 * lists keep; each engine is one implementation. gpu/attention/problem.h defines the operation. Every input
 * element is a function of (seed, tensor, sequence, head, row, column), whatever the layout. So the host can
 * recompute any element alone.
 */
#ifndef PROBE_ATTENTION_ATTENTION_H
#define PROBE_ATTENTION_ATTENTION_H
#include "gpu/attention/problem.h"
#include "probe/attention/blocks.h"
#include "run/probe.h"

enum attention_pass { ATTENTION_FORWARD, ATTENTION_BACKWARD };
/* type of O for FP8 inputs: BF16 (wide) or FP8 (same) */
enum attention_out { ATTENTION_OUT_WIDE, ATTENTION_OUT_SAME };
enum attention_layout { ATTENTION_BHSD, ATTENTION_BSHD };
enum attention_lists {
	ATTENTION_LISTS_NONE,
	ATTENTION_LISTS_MASK,
	ATTENTION_LISTS_STRIDED,
	ATTENTION_LISTS_RANDOM,
	ATTENTION_LISTS_FILE
};
/* Data in Q, K and V. RANDOM: uniform, variance 1. LARGE: Q is 32 times larger, so that logits reach some
 * hundreds and one key gets nearly all the weight. The others are for verification and not options:
 * docs/explanation/methods/attention.md, "Exact passes". */
enum attention_data {
	ATTENTION_DATA_RANDOM,
	ATTENTION_DATA_LARGE,
	ATTENTION_DATA_MEAN,
	ATTENTION_DATA_SELECT,
	ATTENTION_DATA_KEYLESS /* for backward: K is 0 */
};

enum attention_search { ATTENTION_SEARCH_FIRST, ATTENTION_SEARCH_TOP, ATTENTION_SEARCH_EXHAUSTIVE };

struct attention_opts {
	uint32_t pass, type, out, batch, heads, kv_heads, seq, kv_seq, head_dim, mask, left, right, layout;
	uint32_t pattern, block_q, block_k, search, data, threads;
	double density;
	uint64_t seed;
	const char *file, *lengths;
};

/* The problem that the options describe, with its lengths and lists. */
struct attention_case {
	struct attention_problem problem;
	struct attention_blocks *blocks; /* NULL: dense */
	uint32_t *starts;		 /* (batch + 1), or NULL */
	bool backward;	/* computes dQ, dK and dV from O, log-sum-exp and dO; dense, 16 bits */
	double build_s; /* seconds to make the lists, if there was a clock */
};
/* Makes the case without the lists of a pattern, for callers that need only sizes. BAD_INPUT: options that do
 * not fit together. Owner: caller, attention_case_release. */
enum status attention_case_describe(struct attention_case *c, const struct attention_opts *o,
				    struct error *err);
/* Makes the case with its lists. If `b` is not NULL, its clock times the lists and its stop flag interrupts
 * them. BAD_INPUT also if the lists keep no pair of query and key, because then an iteration has no work. */
enum status attention_case_make(struct attention_case *c, const struct attention_opts *o,
				const struct bench *b, struct error *err);
void attention_case_release(struct attention_case *c);
double attention_case_flop(const struct attention_case *c);
/* Bytes that must move at least once: Q, the keys and values in at least one kept pair, O and the
 * log-sum-exp. Backward reads all of these and dO, and writes dQ, dK and dV. */
double attention_case_read_bytes(const struct attention_case *c);
double attention_case_write_bytes(const struct attention_case *c);
/* Bytes of one set: each tensor that the pass needs, once. */
double attention_set_bytes(const struct attention_case *c);

/* Tensors. Each is also a stream of the generator. */
enum attention_tensor {
	ATTENTION_Q,
	ATTENTION_K,
	ATTENTION_V,
	ATTENTION_O,
	ATTENTION_LSE,
	ATTENTION_D_O, /* the next four are for backward, with the layouts of O, Q, K and V */
	ATTENTION_D_Q,
	ATTENTION_D_K,
	ATTENTION_D_V,
	ATTENTION_TENSORS
};
/* Whether the pass needs the tensor, and whether it writes it. */
bool attention_has(const struct attention_case *c, enum attention_tensor t);
bool attention_writes(const struct attention_case *c, enum attention_tensor t);
const char *attention_tensor_name(enum attention_tensor t);
/* Layout of a tensor: heads, rows of a sequence, and index of the first element of a row. The log-sum-exp is
 * dense, with one element per row. */
uint32_t attention_tensor_heads(const struct attention_problem *p, enum attention_tensor t);
uint32_t attention_tensor_rows(const struct attention_problem *p, enum attention_tensor t, uint32_t b);
uint64_t attention_tensor_at(const struct attention_problem *p, enum attention_tensor t, uint32_t b,
			     uint32_t h, uint32_t row);
uint64_t attention_tensor_bytes(const struct attention_problem *p, enum attention_tensor t);
enum attention_type attention_tensor_type(const struct attention_problem *p, enum attention_tensor t);

/* Functions that verification needs from an engine. Each waits until the device is done. */
struct attention_access {
	/* Copies the bytes (attention_tensor_bytes) to Q, K, V or dO of every set. */
	enum status (*write)(void *state, enum attention_tensor t, const void *data, struct error *err);
	/* Overwrites the outputs of the pass in every set with NaN. */
	enum status (*poison)(void *state, struct error *err);
	/* Runs one iteration on this set, as enqueue does. */
	enum status (*run)(void *state, unsigned set, struct error *err);
	/* Copies an output tensor of a set to data. */
	enum status (*read)(void *state, unsigned set, enum attention_tensor t, void *data,
			    struct error *err);
	/* Backward: computes O and log-sum-exp of every set from its inputs. */
	enum status (*forward)(void *state, struct error *err);
};

enum { ATTENTION_SAMPLED_HEADS = 8, ATTENTION_SAMPLED_ROWS = 8 }; /* sampled heads; sampled rows per head */

/* Reference of one row: correct values, and the error allowed for an engine of the type. */
struct attention_sample {
	uint32_t b, h, row;
	double lse, lse_allowed;
	double o[ATTENTION_HEAD_DIM_MAX], allowed[ATTENTION_HEAD_DIM_MAX];
};

/* Backward: reference of whole key heads, with all their query heads (gradient_check.c). */
struct attention_gradients;

struct attention_errors { /* errors of the sampled rows compared with double precision */
	uint64_t count;
	double squares, most, lse_most;
};

/* First member of every engine's state; verify uses it. */
struct attention {
	struct attention_case c;
	enum attention_data data;
	uint64_t seed;
	const struct attention_access *access;
	/* sets of Q, K, V and O over which enqueue rotates: set i % sets; all have the same inputs */
	unsigned sets;
	/* one bit per set (OPERAND_SETS_MAX): enqueue sets it when it writes the set's O; poisoning clears
	 * it */
	uint32_t written;
	struct cpu_pool *pool; /* the engine's own, or one that verify creates while it runs */
	bool ready;	       /* verify has run once */
	bool exact_done;       /* the exact passes succeeded */
	uint64_t hash;	       /* of the O and log-sum-exp that verification accepted */
	bool samples_known;
	struct attention_sample *sample; /* (SAMPLED_HEADS * SAMPLED_ROWS) */
	unsigned sample_count;
	struct attention_gradients *gradients; /* backward: used instead of samples */
	struct attention_errors errors;
};

/* Initialises the common part: problem and lists. Call attention_end also after a failure. */
enum status attention_begin(struct attention *a, const struct bench *b, const struct attention_opts *o,
			    const struct attention_access *access, struct error *err);
void attention_end(struct attention *a); /* accepts a zeroed struct */
/* Sets the fields that are the same for all engines. */
void attention_report(const struct attention *a, struct result *out);

/* -- data (data.c) -- */

/* One row of Q, K or V: head_dim elements, rounded to the type. */
void attention_row_values(const struct attention *a, enum attention_data data, enum attention_tensor t,
			  uint32_t b, uint32_t h, uint32_t row, float *out);
/* SELECT: the key that query `row` selects among the kept keys (the sum of the spans must be > 0). */
uint32_t attention_selected(const struct attention *a, const struct attention_keys *span, uint32_t spans,
			    uint32_t b, uint32_t row);
/* True if SELECT can distinguish all keys. A key's code consists of head_dim signs. */
bool attention_can_select(const struct attention_problem *p);
/* SELECT: logit of the selected key. */
double attention_select_logit(const struct attention_problem *p);
/* Fills Q, K and V of every set. */
enum status attention_fill(struct attention *a, enum attention_data data, struct error *err);

/* -- checking -- */

/* The probe's verify (verify/verify.c). It checks the output of the timed iterations and then, once, the
 * exact passes and the sampled rows. */
enum status attention_verify(void *state, struct wrong *wrong, struct error *err);
/* (verify/exact.c) Checks every element of O and log-sum-exp of set 0, for data MEAN or SELECT. */
enum status attention_check_exact(struct attention *a, enum attention_data data, struct wrong *wrong,
				  struct error *err);
/* (verify/reference.c) Computes the sampled rows in double precision, once. */
enum status attention_reference(struct attention *a, struct error *err);
/* Compares the sampled rows of this O and log-sum-exp with the reference; adds to a->errors. */
void attention_check_samples(struct attention *a, const void *o, const float *lse, struct wrong *wrong);
/* Counts a wrong element (d is 0 for the log-sum-exp); records values and place of the first one. */
void attention_note(const struct attention_problem *p, struct wrong *w, enum attention_tensor t, uint32_t b,
		    uint32_t h, uint32_t row, uint32_t d, double expected, double found);
/* Runs `work` with `arg` on all threads of the pool, then adds each thread's counts, part[thread], to *wrong
 * in the order of the threads. Threads have ascending shares, so the first place is the first of all.
 * NO_RESOURCE if room[thread] is false: the thread did not have enough memory. */
enum status attention_check_threads(struct cpu_pool *pool, void (*work)(void *arg, unsigned thread),
				    void *arg, const struct wrong *part, const bool *room,
				    struct wrong *wrong, struct error *err);
/* (verify/gradient_exact.c) Checks every element of dQ and dV (data MEAN) or dK (KEYLESS) of set 0. */
enum status attention_check_gradients(struct attention *a, enum attention_data data, struct wrong *wrong,
				      struct error *err);
/* (verify/gradient_check.c) Computes whole key heads in double precision, once. */
enum status attention_gradient_reference(struct attention *a, struct error *err);
void attention_gradient_reference_free(struct attention_gradients *g);
/* Compares these heads of gradients (indexed by tensor) with the reference; adds to a->errors. */
void attention_check_gradient_heads(struct attention *a, void *const *found, struct wrong *wrong);
/* Largest allowed difference between two correct results, for elements of this gradient. */
double attention_gradient_apart(const struct attention *a, enum attention_tensor t);

/* The probe's own fields. Engines set the fields that apply to them. */
#define ATTENTION_FIELDS(X)                                                                                      \
	X(library, "", TEXT, 0, "library that computed the attention: version and file")                         \
	X(kernel, "", TEXT, 0, "name of the kernel or plan, with its version")                                   \
	X(rotated_sets, "", U64, 0, "number of sets of Q, K, V and O over which iterations rotate")              \
	X(workspace_bytes, "B", U64, 0, "size of the library's workspace")                                       \
	X(pairs_kept, "", F64, 0, "kept pairs of query and key, all heads")                                      \
	X(pairs_share, "", F64, 0, "share of the pairs within mask and lengths that the block lists keep")       \
	X(blocks_listed, "", U64, 0, "number of listed blocks, full and partial, in all rows")                   \
	X(blocks_density, "", F64, 0, "listed blocks divided by all blocks")                                     \
	X(blocks_build_s, "s", F64, -1, "time to make the block lists; not part of an iteration")                \
	X(error_rms, "", F64, -1,                                                                                \
	  "root mean square error of sampled rows of O, or of gradients of sampled heads, compared with double " \
	  "precision")                                                                                           \
	X(error_max, "", F64, -1, "largest error of these elements")                                             \
	X(error_lse_max, "", F64, -1, "largest error of the log-sum-exp of these rows")
#define X(name, ...) ATTENTION_FIELD_##name,
enum attention_field { ATTENTION_FIELDS(X) ATTENTION_FIELD_COUNT };
#undef X
extern const struct field attention_fields[];

extern const struct engine attention_cpu_engine, attention_cudnn_engine, attention_own_engine,
	attention_sparse_engine;
#endif
