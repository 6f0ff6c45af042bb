/* SPDX-License-Identifier: Apache-2.0 */
/* Exports what was trained, in formats of other programs: a PEFT adapter, or a complete Hugging Face folder.
 */
#ifndef TRAIN_CHECKPOINT_EXPORT_H
#define TRAIN_CHECKPOINT_EXPORT_H
#include "model/model.h"
#include "train/checkpoint/checkpoint.h"

/* Writes the adapter from these master parameters to a new folder, reads it back and compares. An adapter
 * without effect (peft_slots_do_nothing) is refused, or, with `or_none`, not written. */
enum status export_adapter(const char *dir, const struct model *m, const struct mat *master, bool or_none,
			   struct error *err);
/* Writes every tensor of a fully fine-tuned model from `host` (host memory), and copies the other files of
 * the base model. saved: the weights are read from this checkpoint, and `host` needs no memory; NULL: from
 * `host`. */
enum status export_model(const char *dir, const struct model *m, const struct params *host,
			 const struct checkpoint_found *saved, const struct weights *from, struct error *err);
#endif
