/* SPDX-License-Identifier: Apache-2.0 */
#include "team/transport/frame.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>

static const unsigned char magic[4] = {'A', 'S', 'T', 'M'};

static void put_u32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get_u32(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The MAC of header and payload, which are contiguous. */
static void frame_mac(unsigned char mac[WIRE_MAC], const struct wire_key *key, const unsigned char *frame,
		      size_t size)
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, sizeof(key->bytes), key->bytes);
	hmac_sha256_update(&hmac, size, frame);
	hmac_sha256_digest(&hmac, WIRE_MAC, mac);
}

static uint32_t payload_most(const struct wire_in *in)
{
	return in->most ? in->most : WIRE_STRANGER_MAX;
}

static void drop_taken(struct wire_in *in)
{
	if (!in->taken)
		return;
	in->size -= in->taken;
	memmove(in->data, in->data + in->taken, in->size);
	in->taken = 0;
}

enum status wire_put(struct wire_in *in, const void *bytes, size_t size, struct error *err)
{
	size_t most = (size_t)WIRE_HEADER + payload_most(in) + WIRE_MAC + (in->most ? WIRE_CHUNK : 0);
	unsigned char *data;
	size_t room;

	drop_taken(in);
	if (size > most - in->size)
		return error_set(err, STATUS_BAD_INPUT, "more than %zu bytes without a complete frame", most);
	if (in->size + size > in->room) {
		room = in->room ? in->room : 256;
		while (room < in->size + size)
			room *= 2;
		data = realloc(in->data, room);
		if (!data)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "%zu bytes for a frame", room);
		in->data = data;
		in->room = room;
	}
	if (size)
		memcpy(in->data + in->size, bytes, size);
	in->size += size;
	return STATUS_OK;
}

/* False: the header is invalid, *err says why. */
static bool sound_header(const struct wire_in *in, struct error *err)
{
	const unsigned char *h = in->data;

	if (memcmp(h, magic, sizeof(magic)))
		error_set(err, STATUS_BAD_INPUT, "the data does not come from a process of a team");
	else if (h[4] != WIRE_VERSION)
		error_set_cause(
			err, STATUS_BAD_INPUT, CAUSE_VERSION_MISMATCH,
			"protocol version %u; this program uses version %d: start the same assay on all ranks",
			h[4], WIRE_VERSION);
	else if (h[5] >= WIRE_KIND_COUNT || h[6] || h[7])
		error_set(err, STATUS_BAD_INPUT, "a frame of unknown kind (%u)", h[5]);
	else if (get_u32(h + 8) > payload_most(in))
		error_set(err, STATUS_BAD_INPUT, "a frame of %u bytes; the limit is %u", get_u32(h + 8),
			  payload_most(in));
	else if (get_u32(h + 12) != in->next)
		error_set(err, STATUS_BAD_INPUT, "frame number %u; number %u was expected", get_u32(h + 12),
			  in->next);
	else
		return true;
	return false;
}

enum wire_state wire_take(struct wire_in *in, struct wire_frame *out, struct error *err)
{
	unsigned char mac[WIRE_MAC];
	size_t body, whole;

	drop_taken(in);
	if (in->size < WIRE_HEADER)
		return WIRE_MORE;
	if (!sound_header(in, err))
		return WIRE_BROKEN;
	body = (size_t)WIRE_HEADER + get_u32(in->data + 8);
	whole = body + (in->keyed ? WIRE_MAC : 0);
	if (in->size < whole)
		return WIRE_MORE;
	if (in->keyed) {
		frame_mac(mac, &in->key, in->data, body);
		if (!memeql_sec(mac, in->data + body, WIRE_MAC)) {
			error_set_cause(err, STATUS_BAD_INPUT, CAUSE_TEAM_REFUSED,
					"a frame was made with another secret");
			return WIRE_BROKEN;
		}
	}
	*out = (struct wire_frame){.kind = (enum wire_kind)in->data[5],
				   .payload = in->data + WIRE_HEADER,
				   .size = (uint32_t)(body - WIRE_HEADER)};
	in->taken = whole;
	in->next++;
	return WIRE_FRAME;
}

void wire_release(struct wire_in *in)
{
	free(in->data);
	*in = (struct wire_in){0};
}

size_t wire_build(unsigned char *out, enum wire_kind kind, const void *payload, uint32_t size,
		  uint32_t sequence, const struct wire_key *key)
{
	size_t whole = (size_t)WIRE_HEADER + size;

	memcpy(out, magic, sizeof(magic));
	out[4] = WIRE_VERSION;
	out[5] = (unsigned char)kind;
	out[6] = out[7] = 0;
	put_u32(out + 8, size);
	put_u32(out + 12, sequence);
	if (size)
		memcpy(out + WIRE_HEADER, payload, size);
	if (!key)
		return whole;
	frame_mac(out + whole, key, out, whole);
	return whole + WIRE_MAC;
}

/* Each part is preceded by its length, so that different splits of the same bytes give different keys. */
static void add_part(struct hmac_sha256_ctx *hmac, const void *part, size_t size)
{
	unsigned char length[4];

	put_u32(length, (uint32_t)size);
	hmac_sha256_update(hmac, sizeof(length), length);
	hmac_sha256_update(hmac, size, part);
}

void wire_key(struct wire_key *key, const char *secret, const char *sender, const void *hello,
	      size_t hello_size, const void *challenge, size_t challenge_size)
{
	static const char name[] = "assay team";
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, strlen(secret), (const uint8_t *)secret);
	add_part(&hmac, name, sizeof(name) - 1);
	add_part(&hmac, sender, strlen(sender));
	add_part(&hmac, hello, hello_size);
	add_part(&hmac, challenge, challenge_size);
	hmac_sha256_digest(&hmac, sizeof(key->bytes), key->bytes);
}
