/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a team by hand: frames said and awaited, keys of both sides. */
#ifndef TESTS_STRANGERS_BED_H
#define TESTS_STRANGERS_BED_H
#include "test.h"
#include <poll.h>
#include "team/transport/channel.h"
#include "team/transport/rendezvous.h"
#include "team_bed.h"

static inline int reach(uint16_t port)
{
	struct error err = {0};
	int fd;

	for (int i = 0; i < 400; i++) {
		if (!rendezvous_connect(&fd, "127.0.0.1", port, NULL, 1000, &err))
			return fd;
		error_clear(&err);
		usleep(25000);
	}
	fail_msg("nobody listens at %u", port);
	return -1;
}

static inline void say(struct channel *ch, enum wire_kind kind, const char *text)
{
	channel_send(ch, kind, text, strlen(text), NULL);
}

/* The next frame, waited for; a copy of its payload with a NUL. False: the connection ended or it is none. */
static inline bool next(struct channel *ch, enum wire_kind *kind, char payload[4096])
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};
	struct error err = {0};
	enum wire_state state;
	struct wire_frame f;
	bool any;

	while ((state = wire_take(&ch->in, &f, &err)) == WIRE_MORE) {
		poll(&p, 1, 1000);
		if (channel_read(ch, &any, &err))
			return false;
	}
	if (state != WIRE_FRAME || f.size > 4095)
		return false;
	*kind = f.kind;
	memcpy(payload, f.payload, f.size);
	payload[f.size] = '\0';
	return true;
}

static inline bool await(struct channel *ch, enum wire_kind kind, char payload[4096])
{
	enum wire_kind got;

	while (next(ch, &got, payload)) {
		if (got == kind)
			return true;
		if (got == WIRE_PING) /* as wire.h has it */
			channel_send(ch, WIRE_PONG, payload, strlen(payload), NULL);
	}
	return false;
}

static inline void keys(struct channel *ch, const char *mine, const char *theirs, const char *hello, const char *challenge)
{
	wire_key(&ch->key, "0123456789abcdef", mine, hello, strlen(hello), challenge, strlen(challenge));
	wire_key(&ch->in.key, "0123456789abcdef", theirs, hello, strlen(hello), challenge, strlen(challenge));
	ch->keyed = ch->in.keyed = true;
	ch->in.most = WIRE_FRAME_MAX;
}

static inline enum status go_on(struct actor *a)
{
	return control_line(a->control, 1, 1, NULL, LONG_MS, &a->err);
}
#endif
