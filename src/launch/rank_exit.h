/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rank ended, coded as one number that fits into an exit code. The largest code of all ranks is the
 * team's. Rank 0 of a team that has joined decides for all, unless it passed. Otherwise 64 ranks above 1, 1
 * above 2, 2 above 75 (saved, to be continued), and 75 above 0.
 *
 *   0                    passed
 *   100, 101, 102, 103   assay's exit codes 75, 2, 1, 64
 *   110, 111, 112, 113   the same, from rank 0 of a team that has joined
 *
 * Ranks exit with these codes if the program that starts them sets ASSAY_TELL.
 */
#ifndef LAUNCH_RANK_EXIT_H
#define LAUNCH_RANK_EXIT_H
#include <stdbool.h>

#define RANK_EXIT_VARIABLE "ASSAY_TELL"

/* Codes one of assay's exit codes. A code from the table stays; any other number becomes inconclusive.
 * `leads`: from rank 0 of a team that has joined. */
int rank_exit_of(int code, bool leads);
/* Codes the exit code of a process that was waited for: one from the table above, or one of assay's own.
 * False: it is neither, and *told is the code of "inconclusive". */
bool rank_exit_by(int *told, int exit_code);
/* The exit code of assay that `told` stands for. */
int rank_exit_code(int told);
/* Whether ASSAY_TELL is set. Removes it, so that child processes do not inherit it. */
bool rank_exit_asked(void);
#endif
