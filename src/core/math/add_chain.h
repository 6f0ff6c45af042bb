/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a CPU core's clock: each add of a dependent chain takes exactly one cycle on every core. */
#ifndef CORE_MATH_ADD_CHAIN_H
#define CORE_MATH_ADD_CHAIN_H
#include <stdint.h>

/* Computes x + adds * y modulo 2^64 with that many dependent adds. `adds` is a multiple of 16. */
uint64_t add_chain(uint64_t x, uint64_t y, unsigned adds);
#endif
