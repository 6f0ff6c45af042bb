/* SPDX-License-Identifier: Apache-2.0 */
/* One connection that carries frames: a descriptor that never blocks, what came, what has not gone yet. */
#ifndef TEAM_TRANSPORT_CHANNEL_H
#define TEAM_TRANSPORT_CHANNEL_H
#include "team/transport/frame.h"

struct channel { /* valid when zeroed but for fd, -1 */
	int fd;
	struct wire_in in;
	bool keyed; /* what we send */
	struct wire_key key;
	uint32_t sequence;
	unsigned char *out;
	size_t out_size, out_room;
};

/* Takes a connected socket over. */
void channel_open(struct channel *ch, int fd);
/* Lays a frame ready and sends what goes at once. UNAVAILABLE where the other end is gone, or has not read
 * several megabytes. */
enum status channel_send(struct channel *ch, enum wire_kind kind, const void *payload, size_t size,
			 struct error *err);
enum status channel_flush(struct channel *ch, struct error *err);
/* Takes in one chunk of what came; *any: there was something. UNAVAILABLE: closed, reset. Then
 * wire_take(&ch->in). */
enum status channel_read(struct channel *ch, bool *any, struct error *err);
void channel_close(struct channel *ch);
#endif
