/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that move one mix of memory traffic and do nothing else: read words are summed, written words are
 * constant, and no store waits for a load. They share no code with probe memory, whose ceiling they measure.
 */
#ifndef PROBE_PEAK_CPU_STREAMS_H
#define PROBE_PEAK_CPU_STREAMS_H
#include "probe/peak/peak.h"

#define PEAK_WORD_WRITTEN UINT64_C(0x5bd1e9955bd1e995)

/* Reads words [0, n) of a and b and returns their sum modulo 2^64; sets c to PEAK_WORD_WRITTEN. Arrays that
 * the mix does not have are not touched. n is a multiple of 32; every array is on a 32-byte boundary. */
typedef uint64_t peak_stream_loop(const uint64_t *a, const uint64_t *b, uint64_t *c, uint64_t n);

/* The loop of a unit for these CPU_ISA_* bits, with vectors of at most 256 bits
 * (docs/explanation/methods/cpu-probes.md, "Peak, streams"); *isa is the name of the instruction set. NULL:
 * the unit moves no streams, or the instruction set has no stores past the cache. */
peak_stream_loop *peak_stream_loop_for(uint32_t isa_bits, enum peak_unit unit, const char **isa);

/* Word i of a stream that is read; and the sum modulo 2^64 of words [first, last), by its closed form. */
uint64_t peak_word(uint64_t seed, unsigned stream, uint64_t i);
uint64_t peak_words_sum(uint64_t seed, unsigned stream, uint64_t first, uint64_t last);
#endif
