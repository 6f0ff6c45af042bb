/* SPDX-License-Identifier: Apache-2.0 */
/* JSON schemas and other sources of grammars. */
#include "grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_source((const char *)data, size);
	return 0;
}
