/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are the JSON object of a 4-bit matrix, or a refusal that names file and tensor. The target writes
 * an accepted object and reads it again. */
#include "fuzz.h"

#include <math.h>
#include "model/files/bnb4/bnb4_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = fuzz_text(data, size); /* a block of its own: a read past its end is seen */
	struct bnb4_state s, back;
	struct text text = {0}, other = {0};
	struct error err = {0};
	const enum status st = bnb4_state_parse(&s, copy, size, "input", "w", &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT || st == STATUS_UNSUPPORTED);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input: w", 8));
	if (!st) {
		FUZZ_CHECK(s.rows > 0 && s.cols > 0 && isfinite(s.offset) && s.type < BNB4_TYPE_COUNT);
		bnb4_state_text(&text, &s);
		FUZZ_CHECK(!bnb4_state_parse(&back, text.data, text.size, "again", "w", &err));
		FUZZ_CHECK(back.rows == s.rows && back.cols == s.cols && back.type == s.type);
		FUZZ_CHECK(back.nested == s.nested && back.dtype == s.dtype && back.offset == s.offset);
		s.offset = fabsf(s.offset) /
			   2; /* the length does not depend on an offset that is not negative */
		bnb4_state_text(&other, &s);
		FUZZ_CHECK(other.size + (signbit(back.offset) ? 1 : 0) == text.size);
	}
	text_release(&text);
	text_release(&other);
	free(copy);
	return 0;
}
