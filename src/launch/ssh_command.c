/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/ssh_command.h"

void ssh_command_words(struct command_words *w, const struct ssh_command *c)
{
	command_words_add(w, "ssh");
	if (c->config) {
		command_words_add(w, "-F");
		command_words_add(w, c->config);
	}
	command_words_add(w, "-oBatchMode=yes");
	command_words_add(w, "-oPreferredAuthentications=publickey");
	command_words_add(w, "-oPasswordAuthentication=no");
	command_words_add(w, c->accept_new ? "-oStrictHostKeyChecking=accept-new"
					   : "-oStrictHostKeyChecking=yes");
	command_words_add(w, "-oConnectTimeout=10");
	command_words_add(w, "-oServerAliveInterval=5");
	if (c->compress)
		command_words_add(w, "-oCompression=yes");
	command_words_add(w, "-Tax");
	command_words_add(w, "--");
	command_words_add(w, c->host);
	command_words_add(w, c->remote);
}
