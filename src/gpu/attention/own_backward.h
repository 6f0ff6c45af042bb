/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of attention by our own kernels (kernel/attention/backward/args.h): which ways there are for a
 * problem, best first, and the launches. Like a library's plan it never times: the caller times candidates
 * and selects. The workspace is the caller's; enqueueing allocates nothing and waits for nothing.
 */
#ifndef GPU_ATTENTION_OWN_BACKWARD_H
#define GPU_ATTENTION_OWN_BACKWARD_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"
#include "gpu/sdpa/sdpa.h"

struct attention_own_backward;

/* Whether any way takes the problem on a device of that compute capability (90 for sm_90). UNSUPPORTED, with
 * what does not fit: types of 16 bits, head dimensions of 64 and 128, sm_80 or newer. */
enum status attention_own_backward_supports(const struct attention_problem *p, unsigned cc,
					    struct error *err);

/*
 * The candidates for the problem; 0, the one expected to be fastest, is selected. `same_bits`: those alone
 * that give the same bits on every run. The problem is copied; of its starts the last is read, here alone, so
 * that other lengths of as many sequences and tokens, none longer than q_len and kv_len, may be enqueued.
 * Owner: caller, attention_own_backward_destroy. UNSUPPORTED as above; UNAVAILABLE: built without kernels.
 */
enum status attention_own_backward_create(struct attention_own_backward **a, struct gpu_device *d,
					  const struct attention_problem *p, bool same_bits,
					  struct error *err);
void attention_own_backward_destroy(struct attention_own_backward **a);
/* Whether a few units of work last much longer than an equal share, as where one document is much longer than
 * the others. Candidate 0 is then made for that, and may be slower where work is even. */
bool attention_own_backward_uneven(const struct attention_own_backward *a);
unsigned attention_own_backward_count(const struct attention_own_backward *a);
/* "sm90_once_bf16_d128". Lent. */
const char *attention_own_backward_name(const struct attention_own_backward *a, unsigned candidate);
enum status attention_own_backward_select(struct attention_own_backward *a, unsigned candidate,
					  struct error *err);
/* Device memory that a candidate needs while it runs, at a multiple of 256 bytes. */
uint64_t attention_own_backward_workspace(const struct attention_own_backward *a, unsigned candidate);
/* Runs the selected candidate; may be captured. Reads Q, K, V, O, lse and dO; every tensor starts at a
 * multiple of 16 bytes. dQ, dK and dV are written, not added to; rows of no sequence are left alone. */
enum status attention_own_backward_enqueue(struct attention_own_backward *a,
					   const struct attention_operands *o, const struct sdpa_gradients *g,
					   gpu_ptr workspace, struct gpu_stream *stream, struct error *err);
#endif
