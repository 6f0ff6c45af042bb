/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of attention by our own kernels (kernel/attention/backward/args.h). This module lists the
 * candidates for a problem, best first, and launches the selected one. It never times: the caller times
 * candidates and selects. The caller owns the workspace. Enqueueing neither allocates nor waits.
 */
#ifndef GPU_ATTENTION_OWN_BACKWARD_H
#define GPU_ATTENTION_OWN_BACKWARD_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"
#include "gpu/sdpa/sdpa.h"

struct attention_own_backward;

/* Whether any candidate supports the problem on a device with this compute capability (90 for sm_90). The
 * kernels need 16-bit types, head dimension 64 or 128, and sm_80 or newer. UNSUPPORTED: err names the
 * unsupported property. */
enum status attention_own_backward_supports(const struct attention_problem *p, unsigned cc,
					    struct error *err);

/*
 * Lists the candidates for the problem and selects candidate 0, the one expected to be fastest. `same_bits`:
 * only candidates that give the same bits on every run. The problem is copied. Of its starts only the last is
 * read, and only here. So other lengths may be enqueued later if there are as many sequences and tokens, and
 * none is longer than q_len and kv_len. Owner: caller, attention_own_backward_destroy. UNSUPPORTED as above;
 * UNAVAILABLE: built without kernels.
 */
enum status attention_own_backward_create(struct attention_own_backward **a, struct gpu_device *d,
					  const struct attention_problem *p, bool same_bits,
					  struct error *err);
void attention_own_backward_destroy(struct attention_own_backward **a);
/* Whether a few units of work take much longer than an equal share, for example because one document is much
 * longer than the others. Candidate 0 is then made for that case, and may be slower if work is even. */
bool attention_own_backward_uneven(const struct attention_own_backward *a);
unsigned attention_own_backward_count(const struct attention_own_backward *a);
/* For example "sm90_once_bf16_d128". Lent. */
const char *attention_own_backward_name(const struct attention_own_backward *a, unsigned candidate);
enum status attention_own_backward_select(struct attention_own_backward *a, unsigned candidate,
					  struct error *err);
/* Bytes of device memory that a candidate needs while it runs, aligned to 256 bytes. */
uint64_t attention_own_backward_workspace(const struct attention_own_backward *a, unsigned candidate);
/* Runs the selected candidate; may be captured. Reads Q, K, V, O, lse and dO. Every tensor must start at a
 * multiple of 16 bytes. dQ, dK and dV are written, not added to. Rows that belong to no sequence are not
 * touched. */
enum status attention_own_backward_enqueue(struct attention_own_backward *a,
					   const struct attention_operands *o, const struct sdpa_gradients *g,
					   gpu_ptr workspace, struct gpu_stream *stream, struct error *err);
#endif
