/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that move one mix of traffic through memory and do nothing else: what reads is summed, what writes is
 * a constant, and no store waits for a load. None of probe memory's code, which they are the ceiling of.
 */
#ifndef PROBE_PEAK_CPU_STREAMS_H
#define PROBE_PEAK_CPU_STREAMS_H
#include "probe/peak/peak.h"

#define PEAK_WORD_WRITTEN UINT64_C(0x5bd1e9955bd1e995)

/* Sum, modulo 2^64, of words [0, n) of a and b; c = PEAK_WORD_WRITTEN. What the mix does not have is not
 * touched. n is a multiple of 32; every array on a 32-byte boundary. */
typedef uint64_t peak_stream_loop(const uint64_t *a, const uint64_t *b, uint64_t *c, uint64_t n);

/* The loop of a unit for these CPU_ISA_* bits, 256 bits wide at most (METHODS "Peak, streams"), and its ISA
 * in words. NULL: no unit of streams, or stores past the cache on an ISA that has none. */
peak_stream_loop *peak_stream_loop_for(uint32_t isa_bits, enum peak_unit unit, const char **isa);

/* Word i of a stream that is read, and the sum of words [first, last), modulo 2^64, by its closed form. */
uint64_t peak_word(uint64_t seed, unsigned stream, uint64_t i);
uint64_t peak_words_sum(uint64_t seed, unsigned stream, uint64_t first, uint64_t last);
#endif
