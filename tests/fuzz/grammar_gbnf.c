/* SPDX-License-Identifier: Apache-2.0 */
/* Grammars in GBNF. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_member("{\"type\":\"grammar\",\"grammar\":\"", "\"}", data, size);
	return 0;
}
