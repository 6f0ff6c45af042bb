/* SPDX-License-Identifier: Apache-2.0 */
/* What an adapter makes of rows of a weight, computed in host memory: W + s B A, and with DoRA
 * m (W + s B A) / |W + s B A| with the norm of each row. */
#ifndef MODEL_FILES_PEFT_DELTA_H
#define MODEL_FILES_PEFT_DELTA_H
#include "model/files/peft/peft.h"

/* A module's matrices as floats. */
struct peft_delta {
	int64_t rank, rows, cols; /* rank 0: the adapter does not change this weight */
	float *a;		  /* [rank, cols] */
	float *b;		  /* [rows, rank], multiplied by the scale */
	float *magnitude;	  /* [rows]; NULL: not DoRA */
};
/* Reads the module of the weight `base`. Owner: caller, peft_delta_release. BAD_INPUT: NaN or infinity. */
enum status peft_delta_read(struct peft_delta *d, const struct peft *p, const char *base, struct error *err);
void peft_delta_release(struct peft_delta *d); /* no effect on zeros */
/* Changes `count` rows of W [.., cols] from `row` on. With a ratio [count], it gets m / |W + s B A| of each
 * row (1 without DoRA). Several threads may call it. */
void peft_delta_apply(const struct peft_delta *d, int64_t row, int64_t count, float *w, float *ratio);
#endif
