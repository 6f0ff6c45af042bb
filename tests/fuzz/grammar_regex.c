/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of grammars: raw, and within a JSON string. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_member("{\"type\":\"regex\",\"pattern\":\"", "\"}", data, size);
	fuzz_member(
		"{\"type\":\"json_schema\",\"schema\":{\"type\":\"string\",\"maxLength\":9,\"pattern\":\"",
		"\"}}", data, size);
	return 0;
}
