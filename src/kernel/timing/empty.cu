/* SPDX-License-Identifier: Apache-2.0 */
/* Does nothing: what a launch costs by itself. No reference: there is no output. */
#include "kernel/timing/empty.h"

extern "C" __global__ void empty(empty_args a)
{
	(void)a;
}
