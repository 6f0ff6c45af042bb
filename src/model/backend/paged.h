/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of the operations that generate text for many sequences at once: rows of a step, the KV cache in
 * pages, and what sampling needs. docs/explanation/design/engine.md describes the design.
 *
 * A page holds `page_tokens` positions of one sequence, in every layer. Page p is rows p * page_tokens and
 * following of each layer's matrix. Page 0 belongs to nobody: padding rows write there.
 */
#ifndef MODEL_BACKEND_PAGED_H
#define MODEL_BACKEND_PAGED_H
#include <stdint.h>
#include "model/tensor/tensor.h"

/* Rows of one step: rows of one sequence follow each other in the order of their positions, sequence after
 * sequence. Rows begin[sequences] .. rows - 1 are padding, whose results nobody reads. Every list is in the
 * memory that the operations read (ops->paged_put). */
struct paged_rows {
	const int32_t *token;	 /* [rows] a token id; below 0: the id that `last` has at place -1 - token */
	const int32_t *position; /* [rows]; 0 for padding */
	const int32_t
		*slot; /* [rows] row of the KV cache that gets this row's key and value; 0 for padding */
	const int32_t *begin;  /* [sequences + 1] */
	const int32_t *keys;   /* [sequences] position of the sequence's last row of this step, plus 1 */
	const int32_t *page;   /* [sequences, page_ld] page numbers in the order of positions; after paged_put
				* on   a GPU only the first sequence's */
	const int32_t *output; /* [outputs] rows that need logits; padding entries are 0 */
	const int32_t
		*adapter; /* [rows] number of the row's adapter; -1: none. NULL: the model has not several
			   */
	bool adapted;	  /* rows may use adapters; false: all of `adapter` are -1 */
	int64_t rows, sequences, outputs; /* a device launches its work for these numbers */
	int64_t page_ld;
	int64_t keys_most; /* largest of keys */
	int32_t page_tokens;
	const struct paged_room *room;
	void *lists; /* the back end's own lists (set by ops->paged_put), or NULL */
};

/* The largest step. */
struct paged_limits {
	int64_t rows, outputs, sequences;
	int64_t pages; /* of one sequence */
	int64_t vocab;
	int32_t page_tokens;
	bool copies; /* GPU only: prompts read the cache through a contiguous copy in BF16 */
};
/* Memory that the operations below use in every step, at fixed addresses (workspace_paged). */
struct paged_room {
	struct paged_limits limits;
	int32_t heads, kv_heads, head_dim; /* of attention */
	struct mat lists;		   /* GPU only: the lists of paged_put */
	struct mat sampling;		   /* workspace of sample; on a GPU also its lists */
	struct mat partial;		   /* workspace of paged_attention */
	struct mat copy; /* only if limits.copies: a copy of pages in BF16 (kernel/paged/copy.h) */
};

/* The KV cache of one layer. kv [pages * page_tokens, 2 kv_heads head_dim]: keys of all heads, then values.
 * In BF16 on a GPU, F32 on a CPU; or E4M3 with a scale per row and head: value = element * scale. A GPU has
 * the scales of a page in another order (kernel/paged/scale.h). */
struct paged_layer {
	struct mat kv;
	struct mat scale; /* F32 [pages * page_tokens, 2 kv_heads]; rows 0: kv is not E4M3 */
};

enum { SAMPLE_TOPS = 20 };

/* What to do with one row of logits. The order of work: penalties, bias, mask, temperature, top_k, top_p,
 * min_p. Log probabilities come from the logits before all of these. */
struct sample_row {
	float temperature; /* 0: the largest logit; of equals, the lowest id */
	float top_p, min_p, repetition, presence, frequency;
	int32_t top_k;	 /* 0: all */
	int32_t given;	 /* >= 0: do not sample; the result is this id with its log probability */
	int32_t place;	 /* place of the sequence; `last` gets the result's id there. -1: of none */
	int32_t counted; /* nonzero: the penalties read row `place` of `counts`, and it counts the result's id
			  */
	int32_t mask;	 /* row of `masks`; -1: all ids are allowed */
	int32_t bias_begin, biases;
	int32_t logprobs; /* number of alternatives, 0 .. SAMPLE_TOPS; -1: no log probability */
	uint32_t stream;  /* number of the choice; a random stream of its own */
	uint32_t index;	  /* number of the token in its text, from 0 */
	uint64_t seed;
};

struct sample_bias {
	int32_t id;
	float add;
};

/* Lists of a call, in host memory; the back end copies them. */
struct sample_lists {
	const struct sample_row *row; /* [rows] */
	const struct sample_bias *bias;
	const uint32_t *mask; /* [masks, mask_words] bit i of word i / 32: id i is allowed */
	int64_t rows, biases, masks, mask_words;
	bool plain; /* no row has counts, bias, mask, top_k, min_p, given or logprobs: a faster kernel may run
		     */
	bool greedy; /* every row has temperature 0 */
};

enum sample_status {
	SAMPLE_OK,
	SAMPLE_NOT_FINITE, /* a logit is NaN or infinite; the id is 0, and is not counted */
	SAMPLE_EMPTY,	   /* the mask and a bias of minus infinity allow no id; likewise */
};

/* One row of the results. */
struct sample_result {
	int32_t id, status;
	float logprob;
	int32_t tops;
	int32_t top_id[SAMPLE_TOPS]; /* most likely first; of equals, the lowest id */
	float top_logprob[SAMPLE_TOPS];
};
enum { SAMPLE_RESULT_WORDS = sizeof(struct sample_result) / sizeof(int32_t) };

struct sample {
	const struct paged_room *room;
	struct mat logits; /* [rows or more, vocab or more] */
	struct sample_lists lists;
	int64_t vocab;	   /* ids below this are allowed */
	struct mat counts; /* U16 [places, vocab]: SAMPLE_IN_PROMPT, and the times that the text has the id */
	struct mat last;   /* I32 [1, places] the last sampled id of each place */
	struct mat results; /* I32 [rows, SAMPLE_RESULT_WORDS] struct sample_result */
};
enum { SAMPLE_IN_PROMPT = 0x8000, SAMPLE_COUNT_MOST = 0x7fff };

/* The tokens that row `place` of the counts starts with. */
struct sample_history {
	int32_t place;
	const int32_t *id;     /* host memory */
	int64_t prompt, count; /* the first `prompt` of `count` ids belong to the prompt */
};
#endif
