/* SPDX-License-Identifier: Apache-2.0 */
/* What was trained, in files that others read: PEFT's adapter, or a whole Hugging Face folder. */
#ifndef TRAIN_CHECKPOINT_EXPORT_H
#define TRAIN_CHECKPOINT_EXPORT_H
#include "model/model.h"

/* From these master parameters, into a folder that is made; read back and checked. One that does nothing
 * (peft_slots_do_nothing) is refused, or with `or_none` left out. */
enum status export_adapter(const char *dir, const struct model *m, const struct mat *master, bool or_none,
			   struct error *err);
/* Every tensor of a model that was trained whole, as `host` has it in host memory, beside the files of the
 * one it came from. */
enum status export_model(const char *dir, const struct model *m, const struct params *host,
			 const struct weights *from, struct error *err);
#endif
