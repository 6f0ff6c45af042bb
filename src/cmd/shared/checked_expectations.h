/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes' words may be, for expectations that were given: judging knows no probe. */
#ifndef CMD_VOCABULARY_H
#define CMD_VOCABULARY_H
#include "judge/judge.h"

expect_values vocabulary_has;
/* expectations_load, and what a user gave asks for nothing that no case has. Owner: caller. */
enum status vocabulary_load(struct expectations **e, const char *from, struct error *err);
#endif
