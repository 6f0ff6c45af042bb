/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the GPU engines of probe attention share: sets of tensors on the device, and all functions that
 * verification needs. */
#ifndef PROBE_ATTENTION_DEVICE_H
#define PROBE_ATTENTION_DEVICE_H
#include "gpu/device/gpu.h"
#include "gpu/sdpa/sdpa.h"
#include "probe/attention/attention.h"
#include "probe/shared/operand_sets.h"

struct attention_device { /* first member of each engine's state */
	struct attention common;
	struct gpu_device *device;
	struct gpu_stream *stream;
	gpu_ptr tensor[OPERAND_SETS_MAX][ATTENTION_TENSORS];
	/* starts: (batch + 1), for queries and keys; one: the float 1, because FP8 is not scaled */
	gpu_ptr starts, one;
	gpu_ptr order; /* order of the units of work, if sequences have different lengths */
	uint32_t order_count;
	/* Enqueues one forward pass; each engine has its own. */
	enum status (*attend)(struct attention_device *s, const struct attention_operands *o,
			      struct error *err);
	/* Enqueues one backward pass; NULL: the engine does not support it. */
	enum status (*differentiate)(struct attention_device *s, const struct attention_operands *o,
				     const struct sdpa_gradients *g, struct error *err);
};

/* Makes problem and lists, before anything is opened. Call attention_device_end also after a failure. */
enum status
attention_device_begin(struct attention_device *s, const struct bench *b, const struct attention_opts *o,
		       enum status (*attend)(struct attention_device *s, const struct attention_operands *o,
					     struct error *err),
		       struct error *err);
/* Allocates and fills the sets. An engine allocates its own memory before this call, because the sets take
 * what is left. */
enum status attention_device_fill(struct attention_device *s, struct error *err);
void attention_device_end(struct attention_device *s);
/* enqueue of the GPU engines. */
enum status attention_device_enqueue(void *state, uint64_t i, struct error *err);
/* UNSUPPORTED with the message "attention: WHY". */
enum status attention_device_refuse(struct error *err, const char *why);
/* For supports: rejects options that no GPU engine has. */
enum status attention_device_check_options(const struct attention_opts *o, struct error *err);
#endif
