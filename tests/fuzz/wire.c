/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes in any pieces: a frame within its limits, more wanted, or broken for good with a reason. The first byte says how
 * it is cut, and whether the sender is known. */
#include "fuzz.h"

#include "team/transport/frame.h"

static void take_all(struct wire_in *in, uint32_t most, bool *broken)
{
	struct error err = {0};
	enum wire_state state;
	struct wire_frame f;
	uint32_t next = in->next;

	while ((state = wire_take(in, &f, &err)) == WIRE_FRAME) {
		FUZZ_CHECK(!*broken && f.kind < WIRE_KIND_COUNT && f.size <= most && in->next == ++next);
		for (uint32_t i = 0; i < f.size; i++) /* all of it is ours to read */
			FUZZ_CHECK(f.payload[i] <= 255);
	}
	FUZZ_CHECK((state == WIRE_BROKEN) == (err.status != STATUS_OK));
	FUZZ_CHECK(!*broken || state == WIRE_BROKEN);
	*broken = state == WIRE_BROKEN;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_in in = {0};
	size_t at = 1, step;
	bool broken = false;
	uint32_t most;

	if (!size)
		return 0;
	step = (data[0] & 63u) + 1u;
	if (data[0] & 64)
		in.most = WIRE_FRAME_MAX;
	in.keyed = data[0] & 128;
	most = in.most ? WIRE_FRAME_MAX : WIRE_STRANGER_MAX;
	for (; at < size; at += step) {
		struct error err = {0};

		if (wire_put(&in, data + at, size - at < step ? size - at : step, &err)) {
			FUZZ_CHECK(err.status == STATUS_BAD_INPUT);
			break;
		}
		take_all(&in, most, &broken);
		FUZZ_CHECK(in.size <= (size_t)most + WIRE_HEADER + WIRE_MAC + WIRE_CHUNK);
	}
	wire_release(&in);
	return 0;
}
