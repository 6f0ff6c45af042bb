/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fingerprint identifies a model without reading all of it: SHA-256 over the name and size of every tensor,
 * and the numbers in FINGERPRINT_ROWS of its rows: the first, the last, and evenly spaced ones. Weights after
 * training, after quantization or from another seed have another fingerprint. Weights that differ only in
 * other rows (for example, in a few rows of the embedding) have the same one.
 */
#ifndef MODEL_FILES_FINGERPRINT_H
#define MODEL_FILES_FINGERPRINT_H
#include "model/files/weights.h"

enum { FINGERPRINT_ROWS = 8, FINGERPRINT_SIZE = 65 };

enum fingerprint_of {
	/* Stored bytes, types and the configuration; a run is resumed only with the same. */
	FINGERPRINT_BYTES,
	/* Numbers rounded to BF16, so a copy in F32 or in a GGUF has the same; identifies an adapter's base
	 * model. */
	FINGERPRINT_NUMBERS,
};
enum status weights_fingerprint(char hex[FINGERPRINT_SIZE], const struct weights *w, enum fingerprint_of of,
				struct error *err);
#endif
