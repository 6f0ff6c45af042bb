/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention by our own kernels (kernel/attention/forward/args.h,
 * docs/explanation/design/attention_kernels.md). This module lists the kernels that support a problem, best
 * first, and launches the selected one. problem.h defines the computation. The module never times: the caller
 * times candidates and selects. It needs no workspace, and enqueueing allocates nothing.
 */
#ifndef GPU_ATTENTION_OWN_FORWARD_H
#define GPU_ATTENTION_OWN_FORWARD_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"

struct attention_own;

/* Whether any kernel supports the problem on a device with this compute capability (90 for sm_90).
 * UNSUPPORTED: err names the unsupported property. */
enum status attention_own_supports(const struct attention_problem *p, unsigned cc, struct error *err);

/* Lists the candidates for the problem and selects candidate 0, the one expected to be fastest. The problem
 * is copied, and its starts are read only here. Owner: caller, attention_own_destroy. UNSUPPORTED as above;
 * UNAVAILABLE: built without kernels. */
enum status attention_own_create(struct attention_own **a, struct gpu_device *d,
				 const struct attention_problem *p, struct error *err);
void attention_own_destroy(struct attention_own **a);
unsigned attention_own_count(const struct attention_own *a);
/* For example "sm90_fp16_d64, resident" or "flash_bf16_d128". Lent. */
const char *attention_own_name(const struct attention_own *a, unsigned candidate);
enum status attention_own_select(struct attention_own *a, unsigned candidate, struct error *err);
/* Runs the selected candidate; may be captured. Q, K, V and O must start at multiples of 16 bytes. */
enum status attention_own_enqueue(struct attention_own *a, const struct attention_operands *o,
				  struct gpu_stream *stream, struct error *err);
#endif
