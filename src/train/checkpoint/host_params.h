/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained as files take it, in host memory: the device's own where that is the host, else a copy. */
#ifndef TRAIN_CHECKPOINT_HOST_PARAMS_H
#define TRAIN_CHECKPOINT_HOST_PARAMS_H
#include "model/backend/ops.h"
#include "model/params.h"

struct host_params {
	struct params params; /* table lent; master, m and v of the host, F32 */
	void *memory;	      /* the copies'; NULL: there are none */
};

/* Places the copies, where there are any. Owner: caller, host_params_release. */
enum status host_params_create(struct host_params *m, const struct params *p, const struct backend *back,
			       struct error *err);
void host_params_release(struct host_params *m);
/* From the device, after all that was enqueued. */
enum status host_params_get(struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err);
/* The same while the device goes on: as they are at the mark, brought by another thread. Nothing where there
 * are no copies. */
enum status host_params_mark(const struct host_params *m, struct backend *back, struct error *err);
enum status host_params_get_marked(struct host_params *m, const struct params *p, struct backend *back,
				   struct error *err);
/* To the device. */
enum status host_params_put(const struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err);
#endif
