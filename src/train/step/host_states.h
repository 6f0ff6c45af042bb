/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizer states in host memory (offload: optimizer). They pass through the device bucket by bucket, on
 * LANE_STATES with two slots. While one bucket is stepped, the next one is copied in, and the one before is
 * copied out. Buckets are ranges of the flat vector. A bucket is stepped after the whole backward pass. If
 * its step needs only its own gradient, it is stepped after the backward pass of its layer.
 */
#ifndef TRAIN_STEP_HOST_STATES_H
#define TRAIN_STEP_HOST_STATES_H
#include "train/step/optimiser.h"

struct host_bucket {
	size_t begin, end; /* elements of the flat vector */
	int64_t layer;	   /* after whose backward pass it is stepped; -1: after the whole pass */
	/* its part of each state in host memory; count 0: none */
	struct params_range part[PARAMS_STATE_COUNT];
};
struct host_states {
	struct params *params; /* lent; NULL: the states are on the device */
	struct host_bucket *list;
	size_t count, copied_in, stepped; /* buckets, of this step */
	bool begun, by_layer;
	struct mat slot[LANE_SLOTS][PARAMS_STATE_COUNT];
};

/* Cuts the own range of the flat vector into buckets of at most `bytes` of F32 and allocates the slots.
 * by_layer: buckets of a layer are stepped after its backward pass. No effect if no state is offloaded.
 * Owner: caller, host_states_release. */
enum status host_states_create(struct host_states *h, struct params *p, struct arena *a, int64_t layers,
			       double bytes, bool by_layer, struct error *err);
void host_states_release(struct host_states *h);
/* Optional, before the first update of a step: begins to copy in. */
enum status host_states_begin(struct host_states *h, struct backend *back, struct error *err);
/* Steps what is complete after the backward pass of `layer`; layer -1: all that remains, and the main stream
 * waits for it. Live copies of weights are made too. */
enum status host_states_update(struct host_states *h, const struct optimiser *o, struct backend *back,
			       const struct adamw *a, int64_t layer, struct error *err);
#endif
