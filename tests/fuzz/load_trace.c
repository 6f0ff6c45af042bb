/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a trace or a refusal that names the file; the requests of a trace are in order and within
 * their limits. */
#include "fuzz.h"

#include "load/plan/plan.h"
#include "load/plan/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct trace_limits limits = {.until_ns = UINT64_MAX, .rows_most = 100};
	char *text = fuzz_text(data, size);
	struct error err = {0};
	uint64_t before = 0;
	struct trace t;
	enum status st = trace_scan(&t, "input", text, size, &limits, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(!st || !strncmp(err.text, "input:", 6));
	FUZZ_CHECK(st || (t.count && t.count <= 100));
	for (size_t i = 0; !st && i < t.count; i++) {
		const struct trace_row *r = &t.row[i];

		FUZZ_CHECK(r->at_ns >= before);
		FUZZ_CHECK(r->prompt_tokens && r->prompt_tokens <= LOAD_TOKENS_MOST);
		FUZZ_CHECK(r->output_tokens && r->output_tokens <= LOAD_TOKENS_MOST);
		FUZZ_CHECK(r->block + r->block_count <= t.block_count);
		FUZZ_CHECK(!r->block_count ||
			   (r->prompt_tokens + LOAD_BLOCK_TOKENS - 1) / LOAD_BLOCK_TOKENS == r->block_count);
		before = r->at_ns;
	}
	trace_release(&t);
	free(text);
	return 0;
}
