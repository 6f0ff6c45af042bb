/* SPDX-License-Identifier: Apache-2.0 */
/* Names of PEFT's files and of the matrices in them; the adapter's configuration. */
#ifndef MODEL_FILES_PEFT_NAMES_H
#define MODEL_FILES_PEFT_NAMES_H
#include "model/files/peft/peft.h"

#define PEFT_CONFIG "adapter_config.json"
#define PEFT_WEIGHTS "adapter_model.safetensors"
#define PEFT_BASE_SUM                                                                                        \
	"base_model_sha256" /* key in the metadata of adapter_model.safetensors; PEFT and vLLM ignore it */
#define PEFT_BASE_STORAGE "base_model_storage" /* likewise: struct storage as a word */
enum { PEFT_NAME_SIZE = NAME_SIZE + 64 };

/* The weight that a matrix of an adapter belongs to. */
struct peft_place {
	struct named base; /* the weight of the base model */
	enum peft_part part;
	unsigned target_bit, save_bit; /* one of them is set */
};

/* Writes the name of base.hf's matrix `part`, such as
 * "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight". */
void peft_name(char out[PEFT_NAME_SIZE], const struct peft_place *at);
/* The inverse. False: not a PEFT name, or not of a weight of this model. */
bool peft_place_of(struct peft_place *at, const struct shape *s, const char *name);
/* The bit of the target that a weight of a layer belongs to, or 0. */
unsigned peft_target_of(const char *hf);
/* Number of matrices for a configuration: layer by layer A and B, then whole modules. peft_names_at: the
 * i-th. */
size_t peft_names_count(const struct shape *s, const struct peft_config *c);
void peft_names_at(struct peft_place *at, const struct shape *s, const struct peft_config *c, size_t index);

/* targets: the bits listed in target_modules, or 0 if that is a pattern. rank and alpha are those of modules
 * without a pattern. UNSUPPORTED: a setting that would change the result is not supported. */
enum status peft_config_parse(struct peft_config *c, const json_t *config, const char *path,
			      struct error *err);
/* The configuration as PEFT writes it. Owner: caller; NULL: no memory. */
json_t *peft_config_json(const struct peft_config *c);
#endif
