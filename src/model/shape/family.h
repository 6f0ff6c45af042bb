/* SPDX-License-Identifier: Apache-2.0 */
/* Families of models by their names in config.json and GGUF. */
#ifndef MODEL_SHAPE_FAMILY_H
#define MODEL_SHAPE_FAMILY_H
#include "model/shape/shape.h"

const char *family_type(enum family family); /* "qwen2" */
bool family_of_type(enum family *out, const char *type);
/* The families as listed in messages. */
#define FAMILY_WORDS "llama, qwen2 and qwen3"
#endif
