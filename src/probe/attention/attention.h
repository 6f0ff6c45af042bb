/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `attention`: O = softmax(scale Q K^T) V over the pairs that mask, lengths and block lists keep, one
 * way to do it an engine. What an attention is stands in gpu/attention/problem.h. Every input element is a
 * function of (seed, tensor, sequence, head, row, column), whatever the layout, so the host recomputes any of
 * them alone.
 */
#ifndef PROBE_ATTENTION_ATTENTION_H
#define PROBE_ATTENTION_ATTENTION_H
#include "gpu/attention/problem.h"
#include "probe/attention/blocks.h"
#include "run/probe.h"

enum attention_pass { ATTENTION_FORWARD, ATTENTION_BACKWARD };
enum attention_out { ATTENTION_OUT_WIDE, ATTENTION_OUT_SAME }; /* FP8: BF16, or FP8 too */
enum attention_layout { ATTENTION_BHSD, ATTENTION_BSHD };
enum attention_lists {
	ATTENTION_LISTS_NONE,
	ATTENTION_LISTS_MASK,
	ATTENTION_LISTS_STRIDED,
	ATTENTION_LISTS_RANDOM,
	ATTENTION_LISTS_FILE
};
/* What is in Q, K and V. RANDOM: uniform, variance 1. LARGE: Q 32 times that, so that logits reach some
 * hundreds and one key takes nearly all. The others are verification's, no options: METHODS "Attention". */
enum attention_data {
	ATTENTION_DATA_RANDOM,
	ATTENTION_DATA_LARGE,
	ATTENTION_DATA_MEAN,
	ATTENTION_DATA_SELECT,
	ATTENTION_DATA_KEYLESS /* backward's: K is 0 */
};

enum attention_search { ATTENTION_SEARCH_FIRST, ATTENTION_SEARCH_TOP, ATTENTION_SEARCH_EXHAUSTIVE };

struct attention_opts {
	uint32_t pass, type, out, batch, heads, kv_heads, seq, kv_seq, head_dim, mask, left, right, layout;
	uint32_t pattern, block_q, block_k, search, data, threads;
	double density;
	uint64_t seed;
	const char *file, *lengths;
};

/* What the options mean: the problem with its lengths and lists. */
struct attention_case {
	struct attention_problem problem;
	struct attention_blocks *blocks; /* NULL: dense */
	uint32_t *starts;		 /* (batch + 1), or NULL */
	bool backward;			 /* dQ, dK and dV of O, log-sum-exp and dO; dense, 16 bits */
	double build_s;			 /* what making the lists took, where a clock was given */
};
/* Without lists of a pattern: what asks for no more than sizes is spared making them. Owner: caller,
 * attention_case_release. BAD_INPUT: what does not fit. */
enum status attention_case_describe(struct attention_case *c, const struct attention_opts *o,
				    struct error *err);
/* With them: timed by b's clock and ended by its stop, if `b` is not NULL. BAD_INPUT also: lists that keep no
 * pair of query and key, since nothing could be told of an iteration without work. */
enum status attention_case_make(struct attention_case *c, const struct attention_opts *o,
				const struct bench *b, struct error *err);
void attention_case_release(struct attention_case *c);
double attention_case_flop(const struct attention_case *c);
/* Bytes that must move once: Q, the keys and values that anybody attends to, O and the log-sum-exp. Backward
 * reads all of these and dO, and writes dQ, dK and dV. */
double attention_case_read_bytes(const struct attention_case *c);
double attention_case_write_bytes(const struct attention_case *c);
/* One of each tensor that the pass needs. */
double attention_set_bytes(const struct attention_case *c);

/* Tensors, which are streams of the generator too. */
enum attention_tensor {
	ATTENTION_Q,
	ATTENTION_K,
	ATTENTION_V,
	ATTENTION_O,
	ATTENTION_LSE,
	ATTENTION_D_O, /* backward's, laid out as O, Q, K and V */
	ATTENTION_D_Q,
	ATTENTION_D_K,
	ATTENTION_D_V,
	ATTENTION_TENSORS
};
/* Does the pass need, and does it write, this tensor? */
bool attention_has(const struct attention_case *c, enum attention_tensor t);
bool attention_writes(const struct attention_case *c, enum attention_tensor t);
const char *attention_tensor_name(enum attention_tensor t);
/* How a tensor lies: heads, rows of a sequence, and where a row begins. The log-sum-exp is dense, one element
 * a row. */
uint32_t attention_tensor_heads(const struct attention_problem *p, enum attention_tensor t);
uint32_t attention_tensor_rows(const struct attention_problem *p, enum attention_tensor t, uint32_t b);
uint64_t attention_tensor_at(const struct attention_problem *p, enum attention_tensor t, uint32_t b,
			     uint32_t h, uint32_t row);
uint64_t attention_tensor_bytes(const struct attention_problem *p, enum attention_tensor t);
enum attention_type attention_tensor_type(const struct attention_problem *p, enum attention_tensor t);

/* What verification asks of an engine. Every call waits until the device is done. */
struct attention_access {
	/* Puts these bytes (attention_tensor_bytes) into Q, K, V or dO of every set. */
	enum status (*write)(void *state, enum attention_tensor t, const void *data, struct error *err);
	/* Overwrites what the pass writes, of every set, by NaN. */
	enum status (*poison)(void *state, struct error *err);
	/* One attention on this set, as enqueue does it. */
	enum status (*run)(void *state, unsigned set, struct error *err);
	/* What the pass writes, of a set. */
	enum status (*read)(void *state, unsigned set, enum attention_tensor t, void *data,
			    struct error *err);
	/* Backward: O and log-sum-exp of every set, of what was written. */
	enum status (*forward)(void *state, struct error *err);
};

enum { ATTENTION_SAMPLED_HEADS = 8, ATTENTION_SAMPLED_ROWS = 8 }; /* of each of these heads */

/* A row by the reference: what is right, and what an engine of the type may err. */
struct attention_sample {
	uint32_t b, h, row;
	double lse, lse_allowed;
	double o[ATTENTION_HEAD_DIM_MAX], allowed[ATTENTION_HEAD_DIM_MAX];
};

/* Backward's reference of one key head, by all its query heads (probe/attention/verify/gradient_check.c). */
struct attention_gradients;

struct attention_errors { /* of the rows sampled, against double precision */
	uint64_t count;
	double squares, most, lse_most;
};

/* First member of every engine's state: what verify uses. */
struct attention {
	struct attention_case c;
	enum attention_data data;
	uint64_t seed;
	const struct attention_access *access;
	unsigned sets;	  /* Q, K, V, O rotated by enqueue: set i % sets; all hold the same inputs */
	uint32_t written; /* bit a set (OPERAND_SETS_MAX): enqueue wrote its O since the last poison; enqueue
			   * sets it
			   */
	struct cpu_pool *pool; /* an engine's own, or verify's for as long as it runs */
	bool ready;	       /* the first verify was done */
	bool exact_done;       /* the exact passes went well */
	uint64_t hash;	       /* of the O and log-sum-exp that verification accepted */
	bool samples_known;
	struct attention_sample *sample; /* (SAMPLED_HEADS * SAMPLED_ROWS) */
	unsigned sample_count;
	struct attention_gradients *gradients; /* backward: instead of samples */
	struct attention_errors errors;
};

/* Fills the common part: problem and lists. On failure attention_end is called all the same. */
enum status attention_begin(struct attention *a, const struct bench *b, const struct attention_opts *o,
			    const struct attention_access *access, struct error *err);
void attention_end(struct attention *a); /* fine on a zeroed one */
/* What every engine tells of a case into `out`. */
void attention_tell(const struct attention *a, struct result *out);

/* -- data (data.c) -- */

/* One row of Q, K or V, head_dim elements, as the type holds them. */
void attention_row_values(const struct attention *a, enum attention_data data, enum attention_tensor t,
			  uint32_t b, uint32_t h, uint32_t row, float *out);
/* SELECT: the key that query `row` finds, among those kept (count of spans > 0). */
uint32_t attention_selected(const struct attention *a, const struct attention_keys *span, uint32_t spans,
			    uint32_t b, uint32_t row);
/* Can SELECT tell keys apart? Its codes are of head_dim signs. */
bool attention_can_select(const struct attention_problem *p);
/* SELECT: the logit of the key found. */
double attention_select_logit(const struct attention_problem *p);
/* Fills Q, K and V of every set. */
enum status attention_fill(struct attention *a, enum attention_data data, struct error *err);

/* -- checking -- */

/* The probe's verify (probe/attention/verify/verify.c): what timing left, then, once, the exact passes and
 * sampled rows. */
enum status attention_verify(void *state, struct wrong *wrong, struct error *err);
/* (probe/attention/verify/exact.c) Every element of O and log-sum-exp as set 0 holds them, of data MEAN or
 * SELECT. */
enum status attention_check_exact(struct attention *a, enum attention_data data, struct wrong *wrong,
				  struct error *err);
/* (probe/attention/verify/reference.c) The sampled rows in double precision; computed once. */
enum status attention_reference(struct attention *a, struct error *err);
/* Sampled rows of this O and log-sum-exp against it; adds to a->errors. */
void attention_check_samples(struct attention *a, const void *o, const float *lse, struct wrong *wrong);
/* Counts a wrong element (of the log-sum-exp d is 0); the first is kept with its place. */
void attention_note(const struct attention_problem *p, struct wrong *w, enum attention_tensor t, uint32_t b,
		    uint32_t h, uint32_t row, uint32_t d, double expected, double found);
/* What a thread counted; threads have rising shares, so the first that found something has the first place.
 */
void attention_wrong_add(struct wrong *to, const struct wrong *from);
/* (probe/attention/verify/gradient_exact.c) Every element of dQ and dV (data MEAN), or dK (KEYLESS), as set 0
 * holds them. */
enum status attention_check_gradients(struct attention *a, enum attention_data data, struct wrong *wrong,
				      struct error *err);
/* (probe/attention/verify/gradient_check.c) Whole key heads in double precision; computed once. */
enum status attention_gradient_reference(struct attention *a, struct error *err);
void attention_gradient_reference_free(struct attention_gradients *g);
/* These heads of gradients (indexed by tensor) against it; adds to a->errors. */
void attention_check_gradient_heads(struct attention *a, void *const *found, struct wrong *wrong);
/* How far two right results may be apart, elements of this gradient. */
double attention_gradient_apart(const struct attention *a, enum attention_tensor t);

/* The probe's own fields. Engines fill what they know. */
#define ATTENTION_FIELDS(X)                                                                                  \
	X(library, "", TEXT, 0, "library that attended: version and file")                                   \
	X(kernel, "", TEXT, 0, "kernel or plan, as the engine calls it, with its version")                   \
	X(rotated_sets, "", U64, 0, "sets of Q, K, V and O that the iterations rotate over")                 \
	X(workspace_bytes, "B", U64, 0, "workspace the library was given")                                   \
	X(pairs_kept, "", F64, 0, "pairs of query and key kept, all heads")                                  \
	X(pairs_share, "", F64, 0, "of those that mask and lengths alone would keep")                        \
	X(blocks_listed, "", U64, 0, "blocks listed, full and partial, of all rows of lists")                \
	X(blocks_density, "", F64, 0, "blocks listed over all that there are")                               \
	X(blocks_build_s, "s", F64, -1, "time that making the block lists took; no part of an iteration")    \
	X(error_rms, "", F64, -1,                                                                            \
	  "root mean square error of O's sampled rows, or of sampled heads' gradients, against double "      \
	  "precision")                                                                                       \
	X(error_max, "", F64, -1, "largest error of the same")                                               \
	X(error_lse_max, "", F64, -1, "largest error of their log-sum-exp")
#define X(name, ...) ATTENTION_FIELD_##name,
enum attention_field { ATTENTION_FIELDS(X) ATTENTION_FIELD_COUNT };
#undef X
extern const struct field attention_fields[];

extern const struct engine attention_cpu_engine, attention_cudnn_engine, attention_own_engine,
	attention_sparse_engine;
#endif
