/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained as files take it, in host memory: the device's own where that is the host, else a copy. */
#ifndef TRAIN_MIRROR_H
#define TRAIN_MIRROR_H
#include "model/backend/ops.h"
#include "model/params.h"

struct mirror {
	struct params params; /* table lent; master, m and v of the host, F32 */
	void *memory;	      /* the copies'; NULL: there are none */
};

/* Places the copies, where there are any. Owner: caller, mirror_release. */
enum status mirror_create(struct mirror *m, const struct params *p, const struct back *back,
			  struct error *err);
void mirror_release(struct mirror *m);
/* From the device, after all that was enqueued. */
enum status mirror_get(struct mirror *m, const struct params *p, struct back *back, struct error *err);
/* The same while the device goes on: as they are at the mark, brought by another thread. Nothing where there
 * are no copies. */
enum status mirror_mark(const struct mirror *m, struct back *back, struct error *err);
enum status mirror_get_marked(struct mirror *m, const struct params *p, struct back *back, struct error *err);
/* To the device. */
enum status mirror_put(const struct mirror *m, const struct params *p, struct back *back, struct error *err);
#endif
