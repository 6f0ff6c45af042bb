/* SPDX-License-Identifier: Apache-2.0 */
/* Hash that tells whether two outputs have the same bits. */
#ifndef PROBE_SHARED_HASH_H
#define PROBE_SHARED_HASH_H
#include <stdint.h>

/* The hash after one more 64-bit word. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}
#endif
