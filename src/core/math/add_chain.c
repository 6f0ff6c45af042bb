/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/add_chain.h"

/* Adds register to register: newer cores eliminate an add of a constant at rename, so the clock would read
 * several GHz too high. A loop iteration has sixteen adds, because a hyper-thread neighbour can halve the
 * rate of taken branches but not of adds. tests/peak_code.sh counts the adds. */
__attribute__((noinline)) uint64_t add_chain(uint64_t x, uint64_t y, unsigned adds)
{
	__asm__ volatile("" : "+r"(y)); /* keeps the compiler from computing the sum itself */
#define ADD                                                                                                  \
	x += y;                                                                                              \
	__asm__ volatile("" : "+r"(x));
	for (unsigned i = 0; i < adds / 16; i++) {
		ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
	}
#undef ADD
	return x;
}
