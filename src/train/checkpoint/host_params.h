/* SPDX-License-Identifier: Apache-2.0 */
/* The trained parameters in host memory, for writing files: the CPU back end's own memory, states that are in
 * host memory anyway, or copies. */
#ifndef TRAIN_CHECKPOINT_HOST_PARAMS_H
#define TRAIN_CHECKPOINT_HOST_PARAMS_H
#include "model/backend/ops.h"
#include "model/params.h"
#include "train/checkpoint/shard.h"

/* What one of several ranks writes to a checkpoint. */
struct host_part {
	size_t begin, end; /* its range of the flat vector */
	bool first;	   /* rank 0, which exports the result, and reads a checkpoint for all ranks */
	bool adapter;	   /* an adapter is trained, which rank 0 adds to each checkpoint */
	bool tensors;	   /* of parts of tensors, so no rank has complete states */
};

struct host_params {
	/* Complete states, to export and to resume: the CPU's own, or the copies of a GPU's. On a GPU without
	 * memory on ranks other than the first. The table is lent. */
	struct params params;
	/* The source of a checkpoint. `taken` is complete where `more` needs it (checkpoint.h), and
	 * otherwise without memory. */
	struct params taken;
	struct shard shard;
	bool copies;	/* taken and shard are copies, which host_params_take fills */
	bool lent;	/* the optimizer changes some of them in place: no copies, or offloaded states */
	bool takes_all; /* it copies complete states, not only the shard */
	void *memory;	/* owned memory of the copies; NULL: none */
	/* Ranks divide the states (ZeRO) or the tensors, and each writes its shard. The complete states have
	 * no memory, except an adapter's master weights on rank 0. */
	bool divided;
	/* Ranks divide the states, and rank 0 writes them. It has copies of complete ones, which
	 * train/run/divided.c fills. The functions below that copy have no effect. */
	bool collected;
};

/* Bytes of the copies, which offloaded states do not have. `part` NULL: one rank, which has copies only of a
 * GPU's parameters. */
uint64_t host_params_bytes(const struct params *p, bool gpu, const struct host_part *part);
/* Allocates the copies. Owner: caller, host_params_release. */
enum status host_params_create(struct host_params *m, const struct params *p, const struct backend *back,
			       const struct host_part *part, struct error *err);
/* With tensor parallel: `whole` has the places of the undivided model's states. Rank 0 (`first`) has copies
 * of them, which train/run/split_states.c fills. Owner: caller, host_params_release. */
enum status host_params_create_whole(struct host_params *m, const struct params *whole, bool first,
				     struct error *err);
/* Bytes of these copies. */
uint64_t host_params_whole_bytes(const struct params *whole);
void host_params_release(struct host_params *m);
/* Copies all states from a GPU, after all enqueued work. */
enum status host_params_get(struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err);
/* Copies for a checkpoint while the device continues: mark records a point in the device's work, and another
 * thread then takes the parameters as they were at that point. A CPU's may change only when it has taken
 * them. No effect without copies. */
enum status host_params_mark(const struct host_params *m, struct backend *back, struct error *err);
enum status host_params_take(struct host_params *m, const struct params *p, struct backend *back,
			     struct error *err);
/* Copies all states to a GPU, including the copy of offloaded weights that GEMMs read. */
enum status host_params_put(const struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err);
/* Copies a shard in host memory to the rank's states, as host_params_put does with all. */
enum status host_params_put_shard(const struct shard *s, const struct params *p, struct backend *back,
				  struct error *err);
/* That copy alone. No effect without offloaded weights. */
enum status host_params_put_live(const struct params *p, struct backend *back, struct error *err);
#endif
