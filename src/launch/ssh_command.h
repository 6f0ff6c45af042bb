/* SPDX-License-Identifier: Apache-2.0 */
/* The ssh command for a host: only keys and the agent, only known host keys, no questions. */
#ifndef LAUNCH_SSH_COMMAND_H
#define LAUNCH_SSH_COMMAND_H
#include "launch/command_words.h"

struct ssh_command {
	const char *config; /* file for ssh -F; NULL: the user's own */
	bool accept_new; /* save the key of a host that is not known yet; a changed key is always refused */
	bool compress;
	const char *host, *remote; /* what the host's shell executes */
};
/* Appends all words. Check w->failed afterwards. */
void ssh_command_words(struct command_words *w, const struct ssh_command *c);
#endif
