/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of GPUs and ranks: as an option gives them, or as a machine has them. */
#ifndef CMD_SHARED_COUNTS_H
#define CMD_SHARED_COUNTS_H
#include "cmd/command.h"

/* Reads the whole number that an option holds. BAD_INPUT names the option. */
enum status counts_number(unsigned *out, const char *option, const char *text, unsigned most,
			  struct error *err);
/* Counts the GPUs that this process may use, and the usable CPUs, of this machine or of a recording (NULL:
 * this machine). No vendor library is opened. */
enum status counts_of_machine(unsigned *gpus, unsigned *cpus, const char *recording,
			      const struct command_context *c, struct error *err);
#endif
