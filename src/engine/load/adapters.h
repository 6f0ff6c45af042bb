/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LoRA adapters of a loaded model. One adapter is merged into the weights at load, or it is a part of
 * every linear layer. Several are one adapter of `count` times their rank, and each row of a step uses one of
 * them or none (model/decoder/linear.h).
 */
#ifndef ENGINE_LOAD_ADAPTERS_H
#define ENGINE_LOAD_ADAPTERS_H
#include "core/log.h"
#include "model/files/peft/peft.h"
#include "model/files/weights.h"

struct model;
/* Each row computes u = x A' of all adapters, so their number is small. */
enum { ADAPTERS_MOST = 16 };

struct adapters {
	struct peft *peft; /* [count] owned */
	int32_t count;
	bool merge;		   /* of one adapter: it is added to the weights */
	struct peft_config config; /* what the model is created with */
};

struct adapters_options {
	const char *const *dir; /* PEFT folders, at most ADAPTERS_MOST; the first NULL ends them */
	bool merge;		/* one adapter is added to the weights where that is possible */
	bool any_base;
	const struct log *log;
};
/* Opens the files and compares them with the model. BAD_INPUT: an adapter of another model. UNSUPPORTED:
 * several adapters, of which one has modules_to_save. Owner: caller, adapters_release, also after a failure.
 */
enum status adapters_open(struct adapters *a, const struct adapters_options *o, const struct weights *w,
			  struct error *err);
void adapters_release(struct adapters *a);
/* Decides for a kind of device whether an adapter is merged, and sets a->config. Quantized blocks stay as
 * they are on a CPU, so nothing is merged into them. */
void adapters_plan(struct adapters *a, const struct adapters_options *o, const struct weights *w, bool gpu);
/* The configuration for model_create, or NULL: the model has no adapter. */
const struct peft_config *adapters_config(const struct adapters *a);
/* Fills the model's parameters after its weights are loaded, and merges. UNSUPPORTED: weights of this type
 * cannot be merged with DoRA. */
enum status adapters_load(const struct adapters *a, struct model *m, struct backend *back,
			  const struct weights *w, struct error *err);
#endif
