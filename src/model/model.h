/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder model of a family in model/shape/shape.h, with its trained parameters. Order of calls:
 * model_create (table of trained parameters), model_place (memory, or its plan), model_load, model_loaded,
 * then model_init_adapter, or peft_load and model_refresh; then passes over batches.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H
#include "model/decoder/layer.h"
#include "model/decoder/split.h"
#include "model/params.h"
#include "model/storage/divided.h"
#include "model/storage/lent.h"
#include "model/storage/slots.h"
#include "model/files/weights.h"

struct model_shards {
	unsigned rank, ranks, stage; /* stage: 1 to 3, as in DeepSpeed */
	bool whole_gradient;	     /* in every stage, because packs are added along a tree */
};

struct model_split { /* tensor parallel */
	unsigned rank, ranks;
};

struct model_options {
	const struct peft_config *lora; /* NULL: no adapter; rank 0 with only `save` is allowed */
	bool full;			/* train every parameter; not together with lora */
	bool separate;			/* never fuse the GEMMs of adapters and their linear layers */
	bool inference;			/* allocate neither gradient nor moments */
	int64_t positions;		/* length of the longest sequence */
	struct params_format states;	/* of what is trained */
	bool offload_states;		/* to back->host; for training */
	/* For inference: matrices that this file has in quantized blocks (Q8_0, Q4_0, Q4_1) stay quantized,
	 * and if the back end is invariant, matrices in BF16 and F16 keep their type. NULL: all weights
	 * become numbers of the back end's type. It must outlive model_place. */
	const struct weights *blocks;
	/* For inference: lora is made of this number of adapters, each of rank lora->rank / owners. 0 and 1:
	 * one adapter. */
	int32_t owners;
	/* For training: which layers' linear layers compute in FP8 (docs/explanation/design/fp8.md). NULL:
	 * none. [shape.layers], lent until model_create returns. */
	const bool *fp8;
	/* Training on several ranks: what they divide (ZeRO). ranks 0 or 1: nothing. Lent until model_create
	 * returns. */
	struct model_shards shards;
	/* Tensor parallel: the rank's place. ranks 0 or 1: the whole model. */
	struct model_split split;
	/* How matrices of the layers are stored. E4M3_ROWS: for inference on a GPU with few_rows. BNB4: for
	 * training with an adapter. */
	struct storage storage;
};

struct model {
	struct shape shape; /* what this rank computes: with tensor parallel a part of whole->shape */
	struct split split; /* the caller sets its comm */
	/* Tensor parallel: the same model undivided, without memory: names, sizes and places of tensors.
	 * Owned. NULL: this is the whole model (model_whole). */
	struct model *whole;
	struct mat shared_grad;	 /* tensor parallel: room for gradients of tensors that several ranks hold */
	struct peft_config lora; /* rank 0: no adapter */
	bool full, inference, separate, fp8, offload_states;
	struct model_shards shards;
	struct storage storage;
	struct mat
		overflows; /* FP8 only: I32 [1, layers * LAYER_OVERFLOWS], linear->overflows of all layers */
	/* Adapters and linear layers are in fused form (model/decoder/linear.h); decided by model_place. */
	bool extended;
	int64_t positions;
	int32_t owners; /* adapters in `lora`; at least 1 */
	const struct weights *blocks;
	struct weight embed, norm, head; /* head.w is embed.w if it is tied and not trained separately */
	struct layer *layer;		 /* [shape.layers] */
	struct mat cos_sin;
	struct params params;
	struct slots slots;
	struct divided divided; /* the caller sets its comm */
	/* In fused form: the copy of every trained tensor, owned. Those of the layers begin at live_layers,
	 * the same number for each. */
	struct live_part *live;
	int live_count, live_layers, live_per_layer;
};

/* Makes the table of trained parameters. Owner: caller, model_release. BAD_INPUT: lora together with full,
 * or a rank below 1 with targets. */
enum status model_create(struct model **m, const struct shape *shape, const struct model_options *options,
			 struct error *err);
void model_release(struct model *m);
/* The model with all its tensors and their names. */
static inline struct model *model_whole(struct model *m)
{
	return m->whole ? m->whole : m;
}
/* After model_place: names and places of the undivided model's trained tensors, with states of their types
 * and full length, which have no memory. The table is lent. */
struct params model_whole_params(const struct model *m);
/* Counts of one layer: inputs and gradients of each of its linear layers. The name of the one with index i of
 * model.overflows, such as "layer 3, gradients of down". */
enum { LAYER_OVERFLOWS = 8 };
void model_overflow_name(char out[64], int64_t i);
/* Allocates everything that outlives a pass: weights, tables, the flat vector. */
enum status model_place(struct model *m, struct backend *back, struct error *err);

/* Where the base model's numbers come from. */
struct model_source {
	const struct weights *weights; /* NULL: none, with `random` */
	bool random;		       /* random numbers instead of the files' */
	uint64_t seed;
};
/* Loads the base model. Layers that are stored in another form are loaded into a slot one after the other,
 * and quantized there. */
enum status model_load(struct model *m, struct backend *back, const struct model_source *source,
		       struct error *err);
/* The base model's resident tensors and their destinations. Owner: caller, free() for *slots and for *names,
 * which holds the slots' names; also after a failure. */
enum status model_weight_slots(const struct model *m, struct weights_slot **slots, struct named **names,
			       size_t *count, struct error *err);
/* The same for A, B and whole modules in `flat`: master, grad or a moment of params. */
enum status model_peft_slots(const struct model *m, const struct mat *flat, struct peft_slot **slots,
			     struct named **names, size_t *count, struct error *err);
/* To be called after loading: fills RoPE's table, copies modules that are trained separately from the tied
 * embedding, and makes live copies. */
enum status model_loaded(struct model *m, struct backend *back, struct error *err);
/* Initializes A uniformly in +-1/sqrt(in), as in PEFT, and B with zeros. */
enum status model_init_adapter(struct model *m, struct backend *back, uint64_t seed, struct error *err);
/* The lowest layer that the backward pass reaches; the number of layers if only the head is trained. */
int64_t model_lowest_trained(const struct model *m);
/* The copies of a layer's adapters in fused form. */
struct live_range model_live_of_layer(const struct model *m, int64_t layer);
/* To be called after each change of the flat vector: updates the live copies. */
enum status model_refresh(struct model *m, struct backend *back, struct error *err);
/* Merges the adapters into the base weights, for generation. */
enum status model_merge(struct model *m, struct backend *back, struct error *err);

/* On a GPU: copies in E4M3 of a layer's matrices that GEMMs in FP8 read. The rows have one place, shared by
 * all, because each is read before the next one is written. The columns of all layers share one place each.
 */
struct layer_fp8 {
	struct mat n1, n2, h, gate_up; /* gate_up: of its gradient */
	struct mat h_columns, gate_up_columns;
};
/* Matrices that a forward pass saves for backward. They are allocated for the batch, in back->arena unless
 * the gradient lends its memory, and released by arena_reset. */
struct saved {
	enum recompute mode;
	/* With FULL: the inputs of layers are in host memory (model/decoder/inputs.h). Set by the caller. */
	bool offload;
	struct layer_saved *layer; /* [layers] */
	struct mat *host;	   /* [layers]: the inputs in host memory, with offload */
	struct layer_fp8 *fp8;	   /* [layers] */
	struct mat out;		   /* output of the last layer */
	struct lent lent;
	struct mat dx; /* unless the pass is forward_only: gradient of `out`, then of each input */
	/* The arena before the matrices that all layers share, before those of them that belong to the MLP,
	 * and after all. The head uses the memory of the former, and attention's backward pass that of the
	 * latter. */
	struct arena_mark shared, mlp, end;
	/* The arena before h, if h is the last shared matrix; else `end`. The GEMM of gate and up uses h's
	 * memory. */
	struct arena_mark to_gate_up;
	int64_t mlp_rows; /* rows that the MLP processes at once (struct layer_run) */
};
/* Allocates the list of layers. Owner: caller, saved_release. */
enum status saved_create(struct saved *saved, const struct model *m, enum recompute mode, struct error *err);
void saved_release(struct saved *saved);

struct pass {
	struct model *model;
	struct backend *back;
	const struct batch *batch;
	struct saved *saved;
	uint64_t dropout_seed;
	bool dropout;	    /* with the adapter's dropout rate; false in evaluation */
	bool forward_only;  /* no model_backward follows */
	int64_t head_chunk; /* rows of logits per chunk; 0: 1024, on a GPU 2048 */
	int64_t mlp_tile;   /* with FULL: most rows that the MLP processes at once; 0: all, on a GPU 4096 */
	/* Called after the backward pass of each layer has been enqueued; NULL: not. */
	enum status (*layer_done)(void *arg, int64_t layer, struct error *err);
	void *layer_done_arg;
};
/* Allocates the saved matrices and runs all layers. */
enum status model_forward(const struct pass *p, struct error *err);
/* After model_forward: adds the loss of all rows with a target to *loss_sum (device memory). */
enum status model_loss(const struct pass *p, double *loss_sum, struct error *err);
/* The same, and adds grad_scale times its gradient to params.grad. Overwrites the saved matrices. */
enum status model_backward(const struct pass *p, float grad_scale, double *loss_sum, struct error *err);
/* After model_forward: computes the logits [count, vocab] of the given rows. */
enum status model_logits(const struct pass *p, const int32_t *row, int64_t count, struct mat logits,
			 struct error *err);
#endif
