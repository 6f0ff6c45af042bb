/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes' words may be, for expectations that were given: judging knows no probe. */
#ifndef CMD_SHARED_CHECKED_EXPECTATIONS_H
#define CMD_SHARED_CHECKED_EXPECTATIONS_H
#include "judge/judge.h"

expect_values checked_expectations_has;
/* expectations_load, and what a user gave asks for nothing that no case has. Owner: caller. */
enum status checked_expectations_load(struct expectations **e, const char *from, struct error *err);
#endif
