/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a state of assay health, or a refusal. What is read can be written and read again, and says
 * the same. */
#include "fuzz.h"

#include "cmd/health/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct health_state s, again;
	struct text text = {0}, second = {0};
	struct error err = {0};
	enum status st;

	if (size > 65536)
		return 0;
	st = health_state_parse(&s, "input", (const char *)data, size, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_UNSUPPORTED);
	FUZZ_CHECK(st == err.status);
	if (st) {
		FUZZ_CHECK(!strncmp(err.text, "input:", 6) && !s.count && !s.baseline &&
			   s.gate.state == GATE_CLEAR);
		return 0;
	}
	FUZZ_CHECK(s.gate.state != GATE_DRAINED || (*s.gate.reason && s.gate.sightings));
	for (size_t i = 0; i < s.count; i++)
		for (size_t k = 0; k < s.baseline[i].count; k++)
			for (unsigned v = 0; v < s.baseline[i].figure[k].count; v++)
				FUZZ_CHECK(s.baseline[i].figure[k].value[v] > 0);
	FUZZ_CHECK(!health_state_text(&text, &s, &err));
	FUZZ_CHECK(!health_state_parse(&again, "again", text_str(&text), text.size, &err));
	FUZZ_CHECK(!health_state_text(&second, &again, &err));
	FUZZ_CHECK(text.size == second.size && !memcmp(text_str(&text), text_str(&second), text.size));
	text_release(&text);
	text_release(&second);
	health_state_release(&s);
	health_state_release(&again);
	return 0;
}
