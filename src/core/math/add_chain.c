/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/add_chain.h"

/*
 * Register to register: newer cores rename adds of a constant away, which would read as a clock of several
 * GHz more. Sixteen a branch: a neighbour on the core halves taken branches, not adds. tests/peak_code.sh
 * counts them.
 */
__attribute__((noinline)) uint64_t add_chain(uint64_t x, uint64_t y, unsigned adds)
{
	__asm__ volatile("" : "+r"(y)); /* or the compiler would know the sum */
#define ADD                                                                                                  \
	x += y;                                                                                              \
	__asm__ volatile("" : "+r"(x));
	for (unsigned i = 0; i < adds / 16; i++) {
		ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
	}
#undef ADD
	return x;
}
