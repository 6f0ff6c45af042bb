/* SPDX-License-Identifier: Apache-2.0 */
/* The trained parameters in host memory, for writing files: the CPU back end's own memory, a copy of the
 * GPU's, or what rank 0 collects if ranks divide the states. */
#ifndef TRAIN_CHECKPOINT_HOST_PARAMS_H
#define TRAIN_CHECKPOINT_HOST_PARAMS_H
#include "model/backend/ops.h"
#include "model/params.h"

struct host_params {
	struct params params; /* the table is lent; what a checkpoint holds is in host memory */
	void *memory;	      /* owned memory of the copies; NULL: no copies */
	/* Ranks divide the states. Rank 0 has copies of complete ones, which train/run/divided.c fills. The
	 * functions below that copy have no effect. */
	bool divided;
};

/* Bytes of the copies. */
uint64_t host_params_bytes(const struct params *p, bool gpu);
/* Allocates the copies, if the device is a GPU or if ranks divide the states. Owner: caller,
 * host_params_release. */
enum status host_params_create(struct host_params *m, const struct params *p, const struct backend *back,
			       struct error *err);
void host_params_release(struct host_params *m);
/* Copies from the device, after all enqueued work. */
enum status host_params_get(struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err);
/* The same while the device continues: mark records a point in the device's work, and another thread then
 * copies the parameters as they were at that point. No effect without copies. */
enum status host_params_mark(const struct host_params *m, struct backend *back, struct error *err);
enum status host_params_get_marked(struct host_params *m, const struct params *p, struct backend *back,
				   struct error *err);
/* Copies to the device. */
enum status host_params_put(const struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err);
#endif
