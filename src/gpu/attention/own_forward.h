/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention by our own kernels (kernel/attention/forward/args.h,
 * docs/explanation/design/attention_kernels.md): which of them take a problem, best first, and the launch.
 * What is computed is problem.h's. Like a library's plan it never times: the caller times candidates and
 * selects. It needs no workspace, and enqueueing allocates nothing.
 */
#ifndef GPU_ATTENTION_OWN_FORWARD_H
#define GPU_ATTENTION_OWN_FORWARD_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"

struct attention_own;

/* Whether any kernel takes the problem on a device of that compute capability (90 for sm_90). UNSUPPORTED,
 * with what does not fit. */
enum status attention_own_supports(const struct attention_problem *p, unsigned cc, struct error *err);

/* The candidates for the problem; 0, the one expected to be fastest, is selected. The problem is copied; its
 * starts are read here alone. Owner: caller, attention_own_destroy. UNSUPPORTED as above; UNAVAILABLE: built
 * without kernels. */
enum status attention_own_create(struct attention_own **a, struct gpu_device *d,
				 const struct attention_problem *p, struct error *err);
void attention_own_destroy(struct attention_own **a);
unsigned attention_own_count(const struct attention_own *a);
/* "sm90_fp16_d64, resident", "flash_bf16_d128". Lent. */
const char *attention_own_name(const struct attention_own *a, unsigned candidate);
enum status attention_own_select(struct attention_own *a, unsigned candidate, struct error *err);
/* Runs the selected candidate; may be captured. Q, K, V and O start at multiples of 16 bytes. */
enum status attention_own_enqueue(struct attention_own *a, const struct attention_operands *o,
				  struct gpu_stream *stream, struct error *err);
#endif
