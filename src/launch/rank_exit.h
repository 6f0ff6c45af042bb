/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rank ended, as one number that fits an exit code: of several the largest is the team's. Rank 0 of a
 * team that met speaks for all, unless it says that all is well; else 64 is before 1, 1 before 2, 2 before 0.
 *
 *   0                    passed
 *   101, 102, 103        2, 1, 64
 *   111, 112, 113        the same, of rank 0 of a team that met
 *
 * Ranks end so where ASSAY_TELL asks for it, which who starts them sets.
 */
#ifndef LAUNCH_RANK_EXIT_H
#define LAUNCH_RANK_EXIT_H
#include <stdbool.h>

#define RANK_EXIT_VARIABLE "ASSAY_TELL"

/* Of one of assay's exit codes. What is told already stays; any other number is told as inconclusive. */
int rank_exit_of(int code, bool leads);
/* What waited for a process has: told, or an exit code of assay's own. False: neither, *told is that of
 * "inconclusive". */
bool rank_exit_by(int *told, int exit_code);
/* The exit code that it stands for. */
int rank_exit_code(int told);
/* This process was asked to end so. Its children are not: the variable is taken away. */
bool rank_exit_asked(void);
#endif
