/* SPDX-License-Identifier: Apache-2.0 */
/* Backward pass of the CPU engine: gradients in double precision, rounded to the type. */
#ifndef PROBE_ATTENTION_CPU_BACKWARD_H
#define PROBE_ATTENTION_CPU_BACKWARD_H
#include "probe/attention/verify/gradient.h"

/* State of the threads. NO_RESOURCE if there is not enough memory. Owner: caller,
 * attention_cpu_backward_free. */
struct attention_cpu_backward;
enum status attention_cpu_backward_create(struct attention_cpu_backward **w, const struct attention *a,
					  struct error *err);
void attention_cpu_backward_free(struct attention_cpu_backward **w);
/* Computes dQ, dK and dV of one set of tensors. */
void attention_cpu_backward_run(struct attention_cpu_backward *w, void *const tensor[ATTENTION_TENSORS]);
#endif
