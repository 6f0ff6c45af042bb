/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder of the families of model/shape/shape.h with what is trained of it. Life: model_create (the table
 * of what is trained), model_place (memory, or its plan), weights_load into the slots, model_loaded, then an
 * adapter of random numbers or by peft_load and model_refresh; then passes over batches.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H
#include "model/decoder/layer.h"
#include "model/params.h"
#include "model/files/weights.h"

struct model_options {
	const struct peft_config *lora; /* NULL: none; rank 0 with `save` alone is allowed */
	bool full;			/* every parameter is trained; not with lora */
	bool separate;			/* adapters' products beside their map's, where both could be one */
	bool inference;			/* neither gradient nor moments are placed */
	int64_t positions;		/* longest document */
	/* Inference: matrices of this file that it keeps in blocks (Q8_0, Q4_0, Q4_1) stay so; NULL: all are
	 * numbers. It outlives model_place. */
	const struct weights *blocks;
};

struct model {
	struct shape shape;
	struct peft_config lora; /* rank 0: none */
	bool full, inference, separate;
	bool extended; /* adapters and maps are blocks (model/decoder/linear.h): model_place decides */
	int64_t positions;
	const struct weights *blocks;
	struct weight embed, norm, head; /* head.w is embed.w where tied and not trained apart */
	struct layer *layer;		 /* [shape.layers] */
	struct mat cos_sin;
	struct params params;
	struct live_part *live; /* extended: every trained tensor's copy; owner */
	int live_count;
};

/* Owner: caller, model_release. BAD_INPUT: lora and full at once, a rank below 1 with targets. */
enum status model_create(struct model **m, const struct shape *shape, const struct model_options *options,
			 struct error *err);
void model_release(struct model *m);
/* Everything that stays: weights, tables, the flat vector. */
enum status model_place(struct model *m, struct backend *back, struct error *err);

/* The base model's tensors and where they go. Owner: caller, free(); names are lent by the model's `*names`
 * block, free() too. */
enum status model_weight_slots(const struct model *m, struct weights_slot **slots, struct named **names,
			       size_t *count, struct error *err);
/* The same for A, B and whole modules, of `flat` = master, grad or a moment of the params. */
enum status model_peft_slots(const struct model *m, const struct mat *flat, struct peft_slot **slots,
			     struct named **names, size_t *count, struct error *err);
/* After loading: RoPE's table, copies of modules that are trained apart from the tied embedding, live copies.
 */
enum status model_loaded(struct model *m, struct backend *back, struct error *err);
/* A uniform in +-1/sqrt(in) as PEFT has it, B zero. */
enum status model_init_adapter(struct model *m, struct backend *back, uint64_t seed, struct error *err);
/* After each change of the flat vector. */
enum status model_refresh(struct model *m, struct backend *back, struct error *err);
/* Adapters into the base weights, for generation. */
enum status model_merge(struct model *m, struct backend *back, struct error *err);

/* What a pass keeps, placed for its batch; given back by arena_reset. */
struct saved {
	enum recompute mode;
	struct layer_saved *layer; /* [layers] */
	struct mat out;		   /* of the last layer */
};
/* Owner of the list of layers: caller, saved_release. */
enum status saved_create(struct saved *saved, const struct model *m, enum recompute mode, struct error *err);
void saved_release(struct saved *saved);

/* Keys and values of one document in all layers. */
struct cache {
	struct mat *kv; /* [layers] */
	int64_t rows;	/* that it holds */
};

struct pass {
	struct model *model;
	struct backend *back;
	const struct batch *batch;
	struct saved *saved;
	uint64_t dropout_seed;
	bool dropout;	     /* as the adapter's configuration says; false in evaluation */
	struct cache *cache; /* NULL: none; else the batch continues its one document */
	int64_t head_chunk;  /* rows of logits at once; 0: 1024, on a GPU 4096 */
};
/* Places saved's matrices and runs all layers; a cache grows by the batch's rows. */
enum status model_forward(const struct pass *p, struct error *err);
/* After model_forward: *loss_sum += the sum over trained rows (device memory). */
enum status model_loss(const struct pass *p, double *loss_sum, struct error *err);
/* The same, and grad_scale times its gradient is added to params.grad. saved is used up. */
enum status model_backward(const struct pass *p, float grad_scale, double *loss_sum, struct error *err);
/* After model_forward: logits [count, vocab] of the rows given. */
enum status model_logits(const struct pass *p, const int32_t *row, int64_t count, struct mat logits,
			 struct error *err);
#endif
