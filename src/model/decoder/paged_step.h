/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of text generation for many sequences: rows of any of them, prefill and decode together, go
 * through all layers over a paged KV cache, and ids are sampled from the rows that need logits.
 *
 * A step has two parts, so that the host can compute grammar masks while the first part runs. Steps are
 * enqueued in order. Up to FETCHES - 1 steps may be enqueued before the results of the first are fetched.
 */
#ifndef MODEL_DECODER_PAGED_STEP_H
#define MODEL_DECODER_PAGED_STEP_H
#include "model/backend/ops.h"

struct model;
struct paged_step_options {
	struct paged_limits most;
	int64_t places;	    /* sequences that `last` and the counts have room for; at least most.sequences */
	bool cache_e4m3;    /* KV cache in E4M3 with a scale per position and head */
	bool counts;	    /* penalties are possible */
	bool replays;	    /* capture steps as graphs (GPU) */
	bool deterministic; /* the kernel of steps with one row, whose sums have another order, is not used */
};

struct paged_step;
/* Allocates the memory of a step in back->arena, which may be a plan; then paged_step_pages the KV cache.
 * Owner: caller, paged_step_release. */
enum status paged_step_create(struct paged_step **s, struct model *m, struct backend *back,
			      const struct paged_step_options *options, struct error *err);
void paged_step_release(struct paged_step **s);
/* Bytes of one page in all layers. */
uint64_t paged_step_page_bytes(const struct model *m, const struct backend *back,
			       const struct paged_step_options *options);
/* Allocates `pages` pages, page 0 included. */
enum status paged_step_pages(struct paged_step *s, int64_t pages, struct error *err);

/* While no step is enqueued: whether steps with one row use the persistent kernel (model/gpu/decode.h). They
 * use it from the beginning if the model has one. False: it has none. */
bool paged_step_persistent(struct paged_step *s, bool use);

/* While no step is enqueued: steps run only the first `layers` layers, or all. For timing: the logits are not
 * those of the model. The persistent kernel runs all layers. */
void paged_step_layers(struct paged_step *s, int64_t layers);

/* Enqueues the forward pass of the rows. Lists are in host memory and may be reused on return. */
enum status paged_step_forward(struct paged_step *s, const struct paged_rows *rows, struct error *err);
/* The same in pieces, without a graph and without the persistent kernel: begin, then advance until no layer
 * is left. The logits follow the last layer. Between them nothing else may be enqueued, except copies of
 * results. Lists must stay until then, or until paged_step_stop. *left: layers that are not enqueued yet. */
enum status paged_step_begin(struct paged_step *s, const struct paged_rows *rows, struct error *err);
enum status paged_step_advance(struct paged_step *s, int64_t layers, int64_t *left, struct error *err);
/* Gives up a pass between two pieces, and waits until the device has done those that are enqueued. The pass
 * has no logits. Keys and values of its rows are undefined. While results of another step are awaited, it
 * must not be called. */
enum status paged_step_stop(struct paged_step *s, struct error *err);
/* Enqueues sampling: lists->row has an entry for each output of the last forward pass. *turn identifies the
 * results. */
enum status paged_step_sample(struct paged_step *s, const struct sample_lists *lists, int *turn,
			      struct error *err);
/* Waits for the results of a turn: one per output. Lent until the turn occurs again. */
enum status paged_step_results(struct paged_step *s, int turn, const struct sample_result **results,
			       struct error *err);
/* Sets the tokens that the penalties of a place count. To be called before the place's first output. */
enum status paged_step_history(struct paged_step *s, const struct sample_history *history, struct error *err);
/* The logits [outputs, vocab] of the last forward pass, lent; for tests. In the activations' type, or F32 if
 * the step was one row of model/gpu/decode.h. */
struct mat paged_step_logits(const struct paged_step *s);
#endif
