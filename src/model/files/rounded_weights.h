/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a weight after it was quantized: those that a QLoRA adapter was trained with. */
#ifndef MODEL_FILES_ROUNDED_WEIGHTS_H
#define MODEL_FILES_ROUNDED_WEIGHTS_H
#include "model/files/weights.h"
#include "model/storage/stored.h"

struct rounded_weights {
	struct stored stored; /* one tensor */
	void *memory;
};
/* Reads and quantizes a tensor. Owner: caller, rounded_weights_release, also after a failure. */
enum status rounded_weights_read(struct rounded_weights *r, const struct weights *w, const struct named *n,
				 const struct storage *storage, struct error *err);
/* Rows of it as floats. */
void rounded_weights_rows(const struct rounded_weights *r, int64_t row, int64_t rows, float *out);
void rounded_weights_release(struct rounded_weights *r);
#endif
