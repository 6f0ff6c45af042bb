/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU engines of probe attention share: sets of tensors on the device, and all that verification
 * asks. */
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
	gpu_ptr starts, one; /* (batch + 1) of queries and keys alike; a float: FP8 is not scaled */
	gpu_ptr order;	     /* of work over sequences of different length */
	uint32_t order_count;
	/* Enqueues one attention: the engine's own. */
	enum status (*attend)(struct attention_device *s, const struct attention_operands *o,
			      struct error *err);
	/* Enqueues its gradients; NULL: an engine that refuses them. */
	enum status (*differentiate)(struct attention_device *s, const struct attention_operands *o,
				     const struct sdpa_gradients *g, struct error *err);
};

/* Problem and lists, before anything is opened. On failure attention_device_end is called all the same. */
enum status
attention_device_begin(struct attention_device *s, const struct bench *b, const struct attention_opts *o,
		       enum status (*attend)(struct attention_device *s, const struct attention_operands *o,
					     struct error *err),
		       struct error *err);
/* Memory and data; what the engine allocates for itself it allocates before. */
enum status attention_device_fill(struct attention_device *s, struct error *err);
void attention_device_end(struct attention_device *s);
/* The engines' enqueue. */
enum status attention_device_enqueue(void *state, uint64_t i, struct error *err);
/* UNSUPPORTED: "attention: WHY". */
enum status attention_device_refuse(struct error *err, const char *why);
/* For supports: what no GPU engine heeds. */
enum status attention_device_heeds(const struct attention_opts *o, struct error *err);
#endif
