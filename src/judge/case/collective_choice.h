/* SPDX-License-Identifier: Apache-2.0 */
/* What only a run tells of a collective, and what its links are: words by which bands select. */
#ifndef JUDGE_CASE_COLLECTIVE_CHOICE_H
#define JUDGE_CASE_COLLECTIVE_CHOICE_H
#include "judge/case/context.h"

/* "algorithm", "protocol", "nvls": as told, else as supposed, else as asked (nvls: NULL). */
const char *choice_word(const struct subject *s, const char *word, char *buffer, size_t size);
/*
 * "nvlinks": those of the GPU that has the fewest, or between a pair, up or not: one that is down makes no
 * other machine of it. "nvlink_gen", "pcie_gen": the oldest. NULL: not known.
 */
const char *choice_link_word(const struct subject *s, const char *word, char *buffer, size_t size);
/*
 * The band of `slot` under every choice that NCCL may make where the case tells none (ahead of a run), or of
 * those of one `nvls` ("0", "1"; NULL: any): of those that fit the one that begins lowest (of times: ends
 * highest), which no good figure under a choice that has a band is worse than. NULL: none fits.
 */
const struct band_row *choice_band(const struct subject *s, enum band_slot slot, const char *nvls);
/* Ahead of a run: judgement.ahead, and its least. */
void choice_ahead(struct judgement *out, const struct subject *s);
/* A collective of GPUs whose algorithm NCCL did not tell. */
bool choice_untold(const struct subject *s);
#endif
