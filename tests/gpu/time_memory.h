/* SPDX-License-Identifier: Apache-2.0 */
/* Streams to time: the sweep and the peers' server share them. */
#ifndef TESTS_GPU_TIME_MEMORY_H
#define TESTS_GPU_TIME_MEMORY_H
#include "cases.h"
#include "gpu/move.h"

struct streams {
	struct kit *kit;
	struct move move;
	struct move_arrays arrays;
};

/* Three streams of kit->bytes of uniform random floats. Owner: caller, streams_free, also after a failure. */
enum status streams_make(struct kit *k, struct streams *s, struct error *err);
void streams_free(struct kit *k, struct streams *s);
enum status streams_time(struct streams *s, enum move_op op, const struct move_shape *shape, unsigned calls,
			 double *ns, struct error *err);
enum status streams_time_driver(struct streams *s, bool set, unsigned calls, double *ns, struct error *err);
/* Pinned host memory and device memory of `bytes` with the link between them. */
struct transfer {
	struct kit *kit;
	struct gpu_kernel *kernel; /* NULL: the copy engine */
	void *host;
	gpu_ptr device, mapped;
	uint64_t bytes;
	unsigned per_sm, threads;
	bool to_device;
};
/* kit and bytes are set. Owner: caller, transfer_close, also after a failure. */
enum status transfer_open(struct transfer *t, struct error *err);
void transfer_close(struct transfer *t);
enum status transfer_time(struct transfer *t, unsigned calls, double *ns, struct error *err);
#endif
