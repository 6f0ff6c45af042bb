/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells one model from another without reading all of it: SHA-256 over every tensor's name and size and
 * the numbers of FINGERPRINT_ROWS of its rows, the first, the last and those evenly between. Weights that
 * were trained on, quantised or made of another seed have another one; weights that differ in none of these
 * rows (a few ids' rows of an embedding alone) have the same.
 */
#ifndef MODEL_FILES_FINGERPRINT_H
#define MODEL_FILES_FINGERPRINT_H
#include "model/files/weights.h"

enum { FINGERPRINT_ROWS = 8, FINGERPRINT_SIZE = 65 };

enum fingerprint_of {
	FINGERPRINT_BYTES, /* as they are stored, their type and the configuration: what a run goes on with */
	FINGERPRINT_NUMBERS, /* rounded to BF16: the same for a copy in F32, or in a GGUF; what an adapter is
				of */
};
enum status weights_fingerprint(char hex[FINGERPRINT_SIZE], const struct weights *w, enum fingerprint_of of,
				struct error *err);
#endif
