/* SPDX-License-Identifier: Apache-2.0 */
/* The clock's own gauge: dependent integer adds take one cycle each on every core. */
#ifndef CORE_MATH_ADD_CHAIN_H
#define CORE_MATH_ADD_CHAIN_H
#include <stdint.h>

/* x + adds * y, modulo 2^64, by that many adds of which each waits for the one before. adds: a multiple of
 * 16. */
uint64_t add_chain(uint64_t x, uint64_t y, unsigned adds);
#endif
