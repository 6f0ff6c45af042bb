/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a foreign command under assay: starts it as a shell would, with some more environment variables,
 * passes signals on to it, and waits for its end. */
#ifndef PROFILE_PROGRAM_H
#define PROFILE_PROGRAM_H
#include <signal.h>
#include <stdbool.h>
#include "core/process/process.h"

struct program {
	struct process process;
	int signals;	    /* signalfd for the signals that are passed on; -1: none */
	int end;	    /* pidfd, readable once the process has ended; -1: none (before Linux 5.3) */
	sigset_t before;    /* our signal mask before program_start */
	bool terminal;	    /* the command is the terminal's foreground process group */
	bool end_requested; /* INT, TERM, HUP or QUIT was passed on */
	int wait_status;    /* valid once it has ended */
};

/* Starts the command with `env` added to our environment. From here on, INT, TERM, HUP, QUIT, USR1 and USR2
 * that assay receives are passed on to it. UNAVAILABLE: the command does not exist or cannot be executed. */
enum status program_start(struct program *t, const char *const *command, const char *const *env,
			  struct error *err);
/* Waits up to wait_ms for the end of the command, a signal to pass on, or input on the descriptor `also` (-1:
 * none). Returns true once the command has ended. */
bool program_wait(struct program *t, int also, int wait_ms);
void program_release(struct program *t); /* restores the terminal and our signal mask */
/* Looks for processes that still run and whose initial environment contains `mark` ("NAME=value"): processes
 * that the program left behind. Appends the first few of them to `out`, as "pid 12, python3; pid 13, sh".
 * Returns their number. */
struct text;
size_t program_left_behind(struct text *out, const char *mark);
/* The exit code as a shell reports it: the program's own, or 128 plus the number of the signal that ended it.
 */
int program_code(const struct program *t);
#endif
