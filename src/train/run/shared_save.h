/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that all ranks write, each its shard. All ranks call these functions at the same point of a
 * run. */
#ifndef TRAIN_RUN_SHARED_SAVE_H
#define TRAIN_RUN_SHARED_SAVE_H
#include "train/run/internal.h"

/* Finds out whether all ranks see the run directory (t->saving.shared). If one does not, rank 0 writes the
 * checkpoints alone, with a warning. One rank: does nothing. */
enum status run_saving_open(struct train *t, struct error *err);
/* Starts a checkpoint in the background. It first completes the one before. With `wait` it returns when the
 * checkpoint is on the disk. */
enum status run_save_shared(struct train *t, bool wait, struct error *err);
/* Whether this rank has written its shard, and the others do not know it yet. */
bool run_save_done(const struct train *t);
/* Once all ranks have written their shards (t->saving.done, or with `wait` after waiting for it): rank 0
 * makes them a checkpoint in the background, or with `wait` before this returns. An error of any rank is
 * returned on all, with its number. */
enum status run_save_join(struct train *t, bool wait, struct error *err);
#endif
