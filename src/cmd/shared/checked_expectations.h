/* SPDX-License-Identifier: Apache-2.0 */
/* Checks given expectations against the options and values of the probes, because the judge does not know
 * the probes. */
#ifndef CMD_SHARED_CHECKED_EXPECTATIONS_H
#define CMD_SHARED_CHECKED_EXPECTATIONS_H
#include "judge/judge.h"

expect_values checked_expectations_has;
/* Like expectations_load, but also checks that the expectations name only options and values that cases
 * can have. The caller owns *e. */
enum status checked_expectations_load(struct expectations **e, const char *from, struct error *err);
#endif
