/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that carries frames: a non-blocking descriptor, the received bytes, and the bytes still to
 * send. */
#ifndef TEAM_TRANSPORT_CHANNEL_H
#define TEAM_TRANSPORT_CHANNEL_H
#include "team/transport/frame.h"

struct channel { /* valid when zeroed, with fd -1 */
	int fd;
	struct wire_in in;
	bool keyed; /* sent frames have a MAC */
	struct wire_key key;
	uint32_t sequence;
	unsigned char *out;
	size_t out_size, out_room;
};

/* Takes ownership of a connected socket. */
void channel_open(struct channel *ch, int fd);
/* Queues a frame and sends as much as the socket takes at once. UNAVAILABLE: the other end is gone, or has
 * several megabytes still to read. */
enum status channel_send(struct channel *ch, enum wire_kind kind, const void *payload, size_t size,
			 struct error *err);
enum status channel_flush(struct channel *ch, struct error *err);
/* Reads one chunk; *any: there was data. Then call wire_take(&ch->in). UNAVAILABLE: the connection was closed
 * or reset. */
enum status channel_read(struct channel *ch, bool *any, struct error *err);
void channel_close(struct channel *ch);
#endif
