/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of an E4M3 cache on a GPU: those of a page are [2 kv_heads, page size]. So a tile's keys of one head
 * have their scales in 64 bytes that follow each other, and no sector of memory is read for a quarter or an
 * eighth of it.
 */
#ifndef KERNEL_PAGED_SCALE_H
#define KERNEL_PAGED_SCALE_H
#include "kernel/args.h"

#ifdef __CUDACC__
#define SCALE_BOTH __host__ __device__
#else
#define SCALE_BOTH
#endif

/* Place of the scale of a page's position and a head: those of keys, then those of values. ld: floats per
 * position. */
static SCALE_BOTH inline uint64_t paged_scale_of(uint64_t page, uint32_t within, uint32_t head, uint64_t ld,
						 uint32_t page_bits)
{
	return ((page * ld + head) << page_bits) + within;
}

/* The same of a row of the cache. */
static SCALE_BOTH inline uint64_t paged_scale_at(uint64_t row, uint32_t head, uint64_t ld, uint32_t page_bits)
{
	return paged_scale_of(row >> page_bits, (uint32_t)row & ((1u << page_bits) - 1), head, ld, page_bits);
}
#endif
