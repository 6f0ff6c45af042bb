/* SPDX-License-Identifier: Apache-2.0 */
/* An adapter belongs to the weights that it was trained over. */
#ifndef MODEL_FILES_PEFT_BASE_H
#define MODEL_FILES_PEFT_BASE_H
#include "core/log.h"
#include "model/files/peft/peft.h"
#include "model/files/weights.h"

/*
 * BAD_INPUT: the adapter has a fingerprint, and it is not of these weights; `any`: that is warned of alone.
 * One of PEFT's own has none: sizes hold it (peft_open), and another name of its base is warned of.
 */
enum status peft_check_base(const struct peft *p, const struct weights *w, bool any, const struct log *log,
			    struct error *err);
#endif
