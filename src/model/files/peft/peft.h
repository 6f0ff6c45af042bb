/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A LoRA adapter as PEFT keeps it: adapter_config.json and adapter_model.safetensors. Reading holds every
 * name and size against the model's shape, so an adapter of another model is refused and none is ever loaded
 * in part; writing reads back what was written, by the same checks.
 */
#ifndef MODEL_FILES_PEFT_PEFT_H
#define MODEL_FILES_PEFT_PEFT_H
#include <jansson.h>
#include "model/shape/tensor_names.h"
#include "model/files/safetensors/safetensors.h"
#include "model/shape/shape.h"

/* name, what stands before it in a layer. What LoRA can be put on. */
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

/* Modules that are trained whole beside the adapter (modules_to_save). */
enum peft_save { PEFT_SAVE_EMBED = 1, PEFT_SAVE_HEAD = 2 };

struct peft_config {
	int64_t rank;
	double alpha, dropout;
	bool rslora;	   /* scale alpha / sqrt(rank), else alpha / rank */
	unsigned targets;  /* bit a peft_target: on every layer */
	unsigned save;	   /* PEFT_SAVE_ */
	char base[4096];   /* base_model_name_or_path */
	char base_sum[65]; /* fingerprint of its weights, kept beside the matrices; "": not known, as PEFT's
			    */
};

double peft_scale(const struct peft_config *c);
/* Bit of "q_proj" .., or 0. */
unsigned peft_target_by_name(const char *leaf);
const char *peft_target_name(enum peft_target target);

struct peft {
	struct peft_config config;
	struct safetensors file;
	char path[4096]; /* the folder */
};

/* Owner: caller, peft_release. */
enum status peft_open(struct peft *p, const char *dir, const struct shape *s, struct error *err);
void peft_release(struct peft *p);

/*
 * One matrix of an adapter, or one module that was trained whole. `name` is the base model's: that of the
 * weight beside which A and B stand ("model.layers.0.self_attn.q_proj.weight").
 */
enum peft_part { PEFT_A, PEFT_B, PEFT_WHOLE }; /* A [rank, in], B [out, rank] */
struct peft_slot {
	const char *name;
	enum peft_part part;
	struct mat mat; /* F32 */
};

/* The matrix beside the weight `base` of the model, or NULL. */
const struct tensor *peft_find(const struct peft *p, const char *base, enum peft_part part);
/* Every B is zeros alone and no module is there whole: base and adapter are the base. */
bool peft_does_nothing(const struct peft *p);
/* The same of what is not in a file yet. */
bool peft_slots_do_nothing(const struct peft_slot *slots, size_t count);
/* Each slot filled from the file; names and sizes must be the adapter's. */
enum status peft_load(const struct peft *p, const struct peft_slot *slots, size_t count, struct error *err);
/*
 * Writes the folder's two files from the slots, opens them again and compares every number. Refused: a matrix
 * of the configuration that no slot gives, numbers that are not finite, an adapter that does nothing.
 */
enum status peft_write(const char *dir, const struct peft_config *c, const struct shape *s,
		       const struct peft_slot *slots, size_t count, struct error *err);
#endif
