/* SPDX-License-Identifier: Apache-2.0 */
/* What was trained, in files that others read: PEFT's adapter, or a whole Hugging Face folder. */
#ifndef TRAIN_EXPORT_H
#define TRAIN_EXPORT_H
#include "model/model.h"

/* Some B is not zero everywhere, or a module is trained whole. */
bool export_has_effect(const struct params *p);
/* From these master parameters, into a folder that is made; read back and checked. */
enum status export_adapter(const char *dir, const struct model *m, const struct mat *master,
			   struct error *err);
/* Every tensor of a model that was trained whole, beside the files of the one it came from. */
enum status export_model(const char *dir, const struct model *m, const struct weights *from,
			 struct error *err);
#endif
