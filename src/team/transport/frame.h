/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between the processes of a team. All integers are little-endian.
 *
 *   0  magic "ASTM"        4  u8 version (1)   5  u8 kind   6  u16 zero
 *   8  u32 payload bytes  12  u32 sequence: 0, 1, 2 .. in this direction
 *  16  payload: JSON text, or raw bytes (SHARE, DATA)
 *   +  16 bytes: HMAC-SHA256(key of this direction, header, payload), truncated; from PROOF on. Earlier
 * frames have none.
 *
 * docs/explanation/design/team.md describes the handshake and the payload of each kind.
 */
#ifndef TEAM_TRANSPORT_FRAME_H
#define TEAM_TRANSPORT_FRAME_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum {
	WIRE_VERSION = 1,
	WIRE_HEADER = 16,
	WIRE_MAC = 16,
	WIRE_STRANGER_MAX = 512,  /* bytes of a payload until its sender has proved its membership */
	WIRE_FRAME_MAX = 1 << 21, /* bytes of a payload, enough for the facts of 4096 ranks */
	WIRE_CHUNK = 1 << 16,	  /* bytes read at once */
};

/* clang-format off */
#define WIRE_KINDS(X) \
	X(HELLO) X(CHALLENGE) X(PROOF) X(WELCOME) X(REFUSE) \
	X(SHAPE) X(LINE) X(BEGIN) X(END) X(PART) X(GO) X(FELL) X(LATE) X(STOP) X(BYE) \
	X(PING) X(PONG) X(SHARE) X(GATHER) \
	X(COLLECT) X(FILE) X(DATA) X(SENT) X(TAKEN) \
	X(MEET) X(MET) X(COMMAND) X(ANSWER) X(LEFT)
/* clang-format on */
#define X(name) WIRE_##name,
enum wire_kind { WIRE_KINDS(X) WIRE_KIND_COUNT };
#undef X

struct wire_key {
	unsigned char bytes[32];
};

/* Received bytes of one direction; valid when zeroed and after wire_release. */
struct wire_in {
	unsigned char *data;
	size_t size, room;
	size_t taken;  /* bytes at the front that the last frame uses */
	uint32_t next; /* sequence */
	uint32_t most; /* bytes of a payload; 0: WIRE_STRANGER_MAX */
	bool keyed;
	struct wire_key key;
};

struct wire_frame { /* borrowed from wire_in until the next call */
	enum wire_kind kind;
	const unsigned char *payload;
	uint32_t size;
};
enum wire_state { WIRE_MORE, WIRE_FRAME, WIRE_BROKEN };

/* Appends `size` bytes, at most WIRE_CHUNK. BAD_INPUT: more bytes than one frame may have. NO_RESOURCE: no
 * memory. Take all complete frames before you append more. */
enum status wire_put(struct wire_in *in, const void *bytes, size_t size, struct error *err);
/* Takes the next complete frame. BROKEN: *err says whether the magic, version, kind, size, sequence or MAC is
 * wrong; it stays so. */
enum wire_state wire_take(struct wire_in *in, struct wire_frame *out, struct error *err);
void wire_release(struct wire_in *in);
/* Writes one frame to `out` (room WIRE_HEADER + size + WIRE_MAC); returns its length. key NULL: no MAC,
 * before PROOF. */
size_t wire_build(unsigned char *out, enum wire_kind kind, const void *payload, uint32_t size,
		  uint32_t sequence, const struct wire_key *key);
/* Derives the key of one direction: HMAC-SHA256(secret, "assay team" | sender | payload of HELLO | payload of
 * CHALLENGE). So the frames before PROOF cannot be changed on their way, and no frame can be replayed or
 * reflected. */
void wire_key(struct wire_key *key, const char *secret, const char *sender, const void *hello,
	      size_t hello_size, const void *challenge, size_t challenge_size);
#endif
