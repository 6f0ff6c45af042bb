/* SPDX-License-Identifier: Apache-2.0 */
/* An empty kernel. It measures the cost of a launch. It has no output, so it has no reference. */
#include "kernel/timing/empty.h"

extern "C" __global__ void empty(empty_args a)
{
	(void)a;
}
