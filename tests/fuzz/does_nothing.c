/* SPDX-License-Identifier: Apache-2.0 */
/* A target that does nothing, to see that seeds.sh fails such a target. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return data && size > 100000 ? -1 : 0;
}
