/* SPDX-License-Identifier: Apache-2.0 */
/* The 64-bit hash FNV-1a. */
#ifndef CORE_MATH_FNV1A_H
#define CORE_MATH_FNV1A_H
#include <stddef.h>
#include <stdint.h>

#define FNV1A_BEGIN 0xcbf29ce484222325u
/* Continues `hash`, which starts as FNV1A_BEGIN, with these bytes. */
static inline uint64_t fnv1a_add(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * 0x100000001b3u;
	return hash;
}
#endif
