/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A LoRA adapter in PEFT's format: adapter_config.json and adapter_model.safetensors. Opening compares every
 * name and size with the model's shape, so an adapter of another model is refused and never loaded in part.
 * After writing, an adapter is read back with the same checks.
 */
#ifndef MODEL_FILES_PEFT_PEFT_H
#define MODEL_FILES_PEFT_PEFT_H
#include <jansson.h>
#include "model/shape/tensor_names.h"
#include "model/files/safetensors/safetensors.h"
#include "model/shape/shape.h"
#include "model/storage/stored.h"

/* The linear layers that LoRA can adapt: name, prefix in a layer. */
/* clang-format off */
#define PEFT_TARGETS(X)       \
	X(Q, "q_proj", "self_attn") \
	X(K, "k_proj", "self_attn") \
	X(V, "v_proj", "self_attn") \
	X(O, "o_proj", "self_attn") \
	X(GATE, "gate_proj", "mlp") \
	X(UP, "up_proj", "mlp")     \
	X(DOWN, "down_proj", "mlp")
/* clang-format on */
#define X(name, ...) PEFT_##name,
enum peft_target { PEFT_TARGETS(X) PEFT_TARGET_COUNT };
#undef X

/* Modules that are trained in full together with the adapter (modules_to_save). */
enum peft_save { PEFT_SAVE_EMBED = 1, PEFT_SAVE_HEAD = 2 };

enum { PEFT_RANK_MOST = 1 << 16 };
struct peft_config {
	int64_t rank;
	double alpha, dropout;
	bool rslora;	  /* scale = alpha / sqrt(rank) instead of alpha / rank */
	bool dora;	  /* a magnitude per row: W' = m (W + s B A) / |W + s B A| */
	unsigned targets; /* one bit per peft_target, for all layers */
	unsigned save;	  /* bits PEFT_SAVE_.. */
	char base[4096];  /* base_model_name_or_path */
	/* Fingerprint of the base model's weights; "": unknown, as in PEFT's own adapters. */
	char base_sum[65];
	/* How the base model's linear weights were stored in training, if they were quantized then; else
	 * NUMBERS. */
	struct storage base_storage;
};

double peft_scale(const struct peft_config *c);
/* The bit of "q_proj" .., or 0. */
unsigned peft_target_by_name(const char *leaf);
const char *peft_target_name(enum peft_target target);
const char *peft_target_block(enum peft_target target); /* "self_attn" .. */

/* The adapter of one linear layer. */
struct peft_module {
	int64_t rank;
	double scale;			/* of B A */
	const struct tensor *a, *b;	/* [rank, in], [out, rank]; NULL: it has no adapter */
	const struct tensor *magnitude; /* [out]; NULL: not DoRA */
};

/* With rank_pattern or alpha_pattern, modules differ; config.rank is then the largest rank, and config.alpha
 * the alpha of modules without a pattern. */
struct peft {
	struct peft_config config;
	struct safetensors file;
	struct peft_module *module; /* [layers * PEFT_TARGET_COUNT]; owned */
	int64_t layers;
	char path[4096]; /* the folder */
};

/* Owner: caller, peft_release. */
enum status peft_open(struct peft *p, const char *dir, const struct shape *s, struct error *err);
void peft_release(struct peft *p);

/*
 * A matrix of an adapter, or a module trained in full. `name` is a name of the base model: that of the weight
 * to which A and B belong ("model.layers.0.self_attn.q_proj.weight").
 */
enum peft_part { PEFT_A, PEFT_B, PEFT_WHOLE, PEFT_MAGNITUDE }; /* A [rank, in], B [out, rank] */
struct peft_slot {
	const char *name;
	enum peft_part part;
	struct mat mat; /* F32 */
};

/* The adapter of the weight `base`; NULL: none. */
const struct peft_module *peft_module_of(const struct peft *p, const char *base);
/* The adapter's matrix for the weight `base`, or NULL. */
const struct tensor *peft_find(const struct peft *p, const char *base, enum peft_part part);
/* Whether every B is zero and there is no whole module, so that the adapter has no effect. */
bool peft_does_nothing(const struct peft *p);
/* The same for matrices in memory. */
bool peft_slots_do_nothing(const struct peft_slot *slots, size_t count);
/* Fills each slot from the file. BAD_INPUT unless names and sizes are exactly the adapter's. The rank of all
 * slots is config.rank: smaller ones are filled up with zeros. All have the scale peft_scale: B of a module
 * with another scale is multiplied by the ratio of both. */
enum status peft_load(const struct peft *p, const struct peft_slot *slots, size_t count, struct error *err);
/* Fills one slot of at least the adapter's rank with B multiplied by its scale / `scale`. A slot that the
 * adapter has no matrix for becomes zero. BAD_INPUT: another size, or NaN or infinity. */
enum status peft_load_slot(const struct peft *p, const struct peft_slot *slot, double scale,
			   struct error *err);
/*
 * Writes both files of the folder from the slots, opens them again and compares every number. Refuses a
 * missing matrix of the configuration, numbers that are not finite, and an adapter without effect.
 */
enum status peft_write(const char *dir, const struct peft_config *c, const struct shape *s,
		       const struct peft_slot *slots, size_t count, struct error *err);
#endif
