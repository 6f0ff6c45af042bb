/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the sampling kernels' reference, on host addresses: what a test needs to judge a choice. */
#ifndef TESTS_GPU_REF_STEP_SAMPLE_H
#define TESTS_GPU_REF_STEP_SAMPLE_H
#include "kernel/step/sample.h"
#include <stdbool.h>

struct ref_candidate {
	double value, share; /* share: exp((value - largest) / temperature) */
	int32_t id;
};
/* The allowed ids of a row, the most likely first, equals by id; their number. c has room for the vocabulary.
 * raw: all ids, without penalties and bias. *finite: no logit is NaN or infinite. */
int64_t ref_sample_order(const struct step_sample_args *a, int64_t row, bool raw, struct ref_candidate *c,
			 bool *finite);
/* Sets the shares; how many of the first top_k, top_p and min_p keep. If they keep all, puts them in the order of
 * ids. temperature > 0. */
int64_t ref_sample_keep(const struct step_sample_row *r, struct ref_candidate *c, int64_t count);
/* The choice among the first `kept`. *distance: of the point from the nearer border of the choice's share, as a part
 * of all. */
int64_t ref_sample_point(const struct step_sample_row *r, const struct ref_candidate *c, int64_t kept,
			 double *distance);
#endif
