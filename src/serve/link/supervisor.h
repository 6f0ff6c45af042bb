/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between supervisor and front end over a socket of type SOCK_SEQPACKET. The supervisor reports a
 * new engine with its socket, or the end of an engine with its cause. The front end reports its port, an
 * engine that it gave up, and that it still runs.
 */
#ifndef SERVE_LINK_SUPERVISOR_H
#define SERVE_LINK_SUPERVISOR_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

enum supervisor_kind {
	SUPERVISOR_ENGINE =
		1, /* to the front end: an engine was started; `fd` is the front end's end of its socket */
	SUPERVISOR_ENDED, /* to the front end: it has ended; `cause` says how */
	SUPERVISOR_HANGS, /* to the supervisor: it does not answer; end it and start another */
	SUPERVISOR_READY, /* to the supervisor: the front end listens on `port` */
	SUPERVISOR_ALIVE, /* to the supervisor, once a second: the front end's loop runs */
	SUPERVISOR_DONE,  /* to the supervisor: the loop has ended, and the process ends soon */
};

struct supervisor_message {
	enum supervisor_kind kind;
	uint32_t epoch;
	uint32_t port;
	int fd; /* ENGINE: the receiver owns it; else -1 */
	char cause[320];
};

/* UNAVAILABLE: the other process is gone. Never waits: NO_RESOURCE if the socket is full. The sender keeps
 * `fd`. */
enum status supervisor_send(int socket, const struct supervisor_message *m, struct error *err);
/* *got is false if there is no message. UNAVAILABLE: the other process is gone. */
enum status supervisor_receive(int socket, struct supervisor_message *m, bool *got, struct error *err);
#endif
