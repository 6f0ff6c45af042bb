/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an adapter against its base model's weights. */
#ifndef MODEL_FILES_PEFT_BASE_H
#define MODEL_FILES_PEFT_BASE_H
#include "core/log.h"
#include "model/files/peft/peft.h"
#include "model/files/weights.h"

/*
 * BAD_INPUT: the adapter has a fingerprint, and it differs from that of these weights; with `any` this is
 * only a warning. Adapters written by PEFT have no fingerprint: peft_open compares sizes, and another name of
 * the base model causes a warning.
 */
enum status peft_check_base(const struct peft *p, const struct weights *w, bool any, const struct log *log,
			    struct error *err);
#endif
