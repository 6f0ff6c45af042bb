/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joules per prefilled and per generated token, by least squares over stages of a load with different ratios
 * of input to output. Formulas: docs/explanation/power.md.
 */
#ifndef PRICE_SPLIT_H
#define PRICE_SPLIT_H
#include <stdbool.h>
#include <stddef.h>

/* Fewer stages cannot show that the model fits. */
enum { SPLIT_STAGES_LEAST = 3 };
/* Above it the ratios of the stages are too alike to tell input from output. */
#define SPLIT_CONDITION_MOST 10.0

struct split_stage {
	double input, output; /* tokens that were prefilled and generated */
	double joules;
};

struct split {
	bool known;
	double input_j, output_j;	      /* per token */
	double input_error_j, output_error_j; /* standard errors */
	double condition; /* of the design matrix with columns of length 1; 0: not known */
	char why[160];	  /* the reason, if the split is not known */
};

void split_fit(struct split *out, const struct split_stage *stage, size_t count);
#endif
