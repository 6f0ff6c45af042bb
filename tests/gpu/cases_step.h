/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a step that generates text: cases and timings. */
#ifndef TESTS_GPU_CASES_STEP_H
#define TESTS_GPU_CASES_STEP_H
#include "cases_train.h"

/* Times one launch of a chain of equal launches in a graph, each begun early, as in a captured step. */
enum status step_time_chain(struct kit *k, enum status (*launch)(void *arg, struct error *err), void *arg,
			    double *ns, struct error *err);
enum status step_time(struct kit *k, struct error *err);
enum status sample_time(struct kit *k, struct error *err);
#endif
