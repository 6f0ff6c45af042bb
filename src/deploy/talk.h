/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a host: ssh, the answer on its stdout, and its own messages on stderr. */
#ifndef DEPLOY_TALK_H
#define DEPLOY_TALK_H
#include <poll.h>
#include "core/process/process.h"
#include "deploy/answer.h"
#include "launch/ssh_command.h"

/* Why ssh itself failed, from its messages. */
enum talk_refusal { TALK_NOT_REFUSED, TALK_KEY_CHANGED, TALK_KEY_UNKNOWN, TALK_DENIED };

struct talk {
	struct answer answer;
	struct process process;
	int input;  /* the descriptor given to ssh as its stdin, to see how far it was read; -1: none */
	int errors; /* read end of ssh's stderr; -1: closed */
	bool active;
	uint64_t heard_ns; /* monotonic time of the last byte of the answer or of stdin; stderr is no progress
			    */
	off_t read_to;	   /* of input */
	char last[400];	   /* the last line on stderr */
	char part[400];
	size_t part_size;
	enum talk_refusal refusal;
	struct error wrong; /* the answer was refused; ssh was ended */
};

/* Starts ssh. `input`: becomes its stdin and belongs to the talk; -1: /dev/null. The caller has set
 * answer.take. */
enum status talk_start(struct talk *t, const struct ssh_command *c, int input, struct error *err);
/* The descriptors to poll: 0 to 2 entries. */
unsigned talk_poll(const struct talk *t, struct pollfd set[2]);
/* Reads what is there, for some milliseconds; never blocks. True once ssh has ended and all was read. */
bool talk_read(struct talk *t);
/* Ends ssh and closes everything. Accepts a talk that is not active. */
void talk_end(struct talk *t);
/* A whole answer, to its last line, and no failure of ssh. */
bool talk_is_whole(const struct talk *t);
/* Why it is not: the wrong answer, ssh's last line, or how ssh ended. */
void talk_why(const struct talk *t, char *out, size_t size);
#endif
