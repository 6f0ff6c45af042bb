/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the body of each kind of frame: a message within the limits, or a refusal. The first byte is the kind. */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "engine/frame/frame.h"

static struct frame_link *link_open(void)
{
	struct frame_link *link = NULL;
	struct error err = {0};
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		abort();
	close(fds[1]);
	FUZZ_CHECK(!frame_link_create(&link, fds[0], 1, 0, &err));
	return link;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frame_link *link;
	struct frame_message m;
	struct error err = {0};
	enum frame_kind kind;
	enum status st;
	char *body;

	if (!size || size > 1 << 20)
		return 0;
	if (!link)
		link = link_open();
	kind = (enum frame_kind)(FRAME_REQUEST + data[0] % FRAME_HEARTBEAT);
	body = fuzz_text(data + 1, size - 1);
	st = frame_decode(link, kind, body, size - 1, &m, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(!st || *err.text);
	if (!st && kind == FRAME_REQUEST) {
		FUZZ_CHECK(m.request.prompt_count >= 1 && m.request.stops <= ENGINE_STOPS_MOST);
		FUZZ_CHECK(m.request.biases <= ENGINE_BIAS_MOST);
		FUZZ_CHECK(!m.request.grammar_size || m.request.grammar);
	} else if (!st && kind == FRAME_STEP) {
		for (size_t i = 0; i < m.step.count; i++) {
			FUZZ_CHECK(m.step.events[i].kind <= ENGINE_EVENT_END);
			FUZZ_CHECK(m.step.events[i].kind != ENGINE_EVENT_TOKEN || m.step.events[i].tops <= ENGINE_TOP_MOST);
		}
	}
	free(body);
	return 0;
}
