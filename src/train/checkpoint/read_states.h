/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a checkpoint's states, from the shards that hold them. */
#ifndef TRAIN_CHECKPOINT_READ_STATES_H
#define TRAIN_CHECKPOINT_READ_STATES_H
#include "model/decoder/split.h"
#include "train/checkpoint/checkpoint.h"

struct state_source {
	const struct checkpoint_found *f; /* lent */
	enum params_state which;
	enum dtype dtype;
};
/* Elements [begin, begin + count) of the state in a part of the checkpoint (0 if it has none). BAD_INPUT:
 * they are not there. */
enum status read_states_range(const struct state_source *s, size_t part, uint64_t begin, uint64_t count,
			      uint8_t *out, struct error *err);
/* Elements [first, first + count) of `want`, which is tensor number `index` of the manifest's "parameters" or
 * a part of it, row by row. What lies beyond the rows of `want` becomes 0. */
enum status read_states_tensor(const struct state_source *s, size_t index, const struct split_part *want,
			       size_t first, size_t count, uint8_t *out, struct error *err);
#endif
