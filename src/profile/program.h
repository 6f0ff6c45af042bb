/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign command, started as a shell would start it but for its environment, and followed to its end. */
#ifndef PROFILE_PROGRAM_H
#define PROFILE_PROGRAM_H
#include <signal.h>
#include <stdbool.h>
#include "core/process/process.h"

struct program {
	struct process process;
	int signals;	  /* signalfd: what we were sent and pass on; -1: none */
	int end;	  /* pidfd: readable when it has ended; -1: none (before Linux 5.3) */
	sigset_t before;  /* our mask until then */
	bool terminal;	  /* the terminal is its, as a job in the foreground */
	bool told_to_end; /* INT, TERM, HUP or QUIT was passed on */
	int wait_status;  /* once it has ended */
};

/* Starts it with these variables more. From here on INT, TERM, HUP, QUIT, USR1 and USR2 that we get are its.
 * UNAVAILABLE: there is no such command, or it cannot be executed. */
enum status program_start(struct program *t, const char *const *command, const char *const *env,
			  struct error *err);
/* Waits up to wait_ms for its end, a signal for it, or input on `also` (-1: none). True: it has ended. */
bool program_wait(struct program *t, int also, int wait_ms);
void program_release(struct program *t); /* the terminal and our mask as they were */
/* Processes that still run and whose environment, as they began with it, holds `mark` ("NAME=value"): what
 * the program left behind. Adds "pid 12, python3; pid 13, sh", the first few of them; their number. */
struct text;
size_t program_left_behind(struct text *out, const char *mark);
/* What a shell would say: its code, or 128 and the signal's number. */
int program_code(const struct program *t);
#endif
