/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a hang: the flight records of all ranks, and who keeps the others waiting. */
#ifndef CMD_TRAIN_HANG_H
#define CMD_TRAIN_HANG_H
#include <jansson.h>
#include <stdbool.h>

struct training;

/* Adds the flight record of this rank, and what its host thread did when the hang was found, to `out`. */
void train_hang_record(const struct training *t, json_t *out);
/* Explains a time limit that ended by the records of all ranks, in t->end.text: who is behind, who asked for
 * another collective, or that nobody is behind. False: no rank recorded a collective, or the records say
 * nothing and the limit was not that of silence (`hung`). */
bool train_hang_explain(struct training *t, const json_t *all, bool hung);
/* The end of another rank, as it said it itself. `hung`: its training process was silent for too long. It may
 * have waited for another rank, which is said, too. */
void train_hang_other(char *out, size_t size, unsigned rank, const char *node, const char *text, bool hung);
#endif
