/* SPDX-License-Identifier: Apache-2.0 */
/* Names of PEFT's files and of the matrices in them; its configuration. */
#ifndef MODEL_FILES_PEFT_NAMES_H
#define MODEL_FILES_PEFT_NAMES_H
#include "model/files/peft/peft.h"

#define PEFT_CONFIG "adapter_config.json"
#define PEFT_WEIGHTS "adapter_model.safetensors"
#define PEFT_BASE_SUM "base_model_sha256" /* in the metadata of these; PEFT and vLLM read past it */
enum { PEFT_NAME_SIZE = NAME_SIZE + 64 };

/* What a matrix of an adapter belongs to. */
struct peft_place {
	struct named base; /* the weight of the model */
	enum peft_part part;
	unsigned target_bit, save_bit; /* one of them */
};

/* "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": of base.hf and part. */
void peft_name(char out[PEFT_NAME_SIZE], const struct peft_place *at);
/* Back. False: no name of PEFT's, or of nothing that this model has. */
bool peft_place_of(struct peft_place *at, const struct shape *s, const char *name);
/* The matrices that a configuration asks for: layer by layer A and B, then whole modules. */
size_t peft_names_count(const struct shape *s, const struct peft_config *c);
void peft_names_at(struct peft_place *at, const struct shape *s, const struct peft_config *c, size_t index);

/* targets: those that target_modules lists; 0 where it is a pattern. UNSUPPORTED: what would change the
 * result and is not done. */
enum status peft_config_parse(struct peft_config *c, const json_t *config, const char *path,
			      struct error *err);
/* As PEFT writes it. Owner: caller; NULL without memory. */
json_t *peft_config_json(const struct peft_config *c);
#endif
