/* SPDX-License-Identifier: Apache-2.0 */
/* A grammar's mask of allowed ids, and what else a request allows. */
#ifndef ENGINE_STEP_TOKEN_MASK_H
#define ENGINE_STEP_TOKEN_MASK_H
#include "engine/request.h"

bool token_mask_any(const uint32_t *mask, size_t words);
/* Takes out the ids that a bias of minus infinity forbids, and, if token number `index` (from 0) comes before
 * min_tokens, the stop ids. The stop ids stay if nothing else is left: the end of a grammar wins over
 * min_tokens. */
void token_mask_narrow(uint32_t *mask, size_t words, const struct running *r, int64_t index);
#endif
