/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TEST_DATA_NUMBERS_H
#define KERNEL_TEST_DATA_NUMBERS_H
#include "kernel/args.h"

struct fill_args {
	DEVICE_PTR(void) out; /* (count) elements of the entry's type, 16-byte aligned */
	uint64_t count;
	uint64_t seed;
	uint32_t stream;
	float scale; /* fill_uniform: factor */
};
static_assert(sizeof(struct fill_args) == 32, "layout shared with nvcc");

/* Result of a comparison. Before the launch the host sets `first` to UINT64_MAX and everything else to 0. */
struct compare_record {
	uint64_t count; /* wrong elements */
	uint64_t nan;	/* those of them that are NaN or infinite */
	uint64_t first; /* smallest wrong index */
	int64_t sum;	/* sum_integers: the sum; hash: the hash */
};
static_assert(sizeof(struct compare_record) == 32, "layout shared with nvcc");

struct check_args { /* out[i] == factor0 * e(stream0, i) + factor1 * e(stream1, i) + constant? */
	DEVICE_PTR(const float) out;
	DEVICE_PTR(struct compare_record) record;
	uint64_t count;
	uint64_t seed;
	uint32_t stream0, stream1;
	float factor0, factor1, constant;
	uint32_t reserved;
};
static_assert(sizeof(struct check_args) == 56, "layout shared with nvcc");

struct sum_args { /* record->sum = sum of e(stream0, i), or of e(stream0, i) * e(stream1, i) */
	DEVICE_PTR(struct compare_record) record;
	uint64_t count;
	uint64_t seed;
	uint32_t stream0, stream1;
	uint32_t product, reserved;
};
static_assert(sizeof(struct sum_args) == 40, "layout shared with nvcc");

struct hash_args { /* hash of 32-bit words; compare: with `other` */
	DEVICE_PTR(const uint32_t) words;
	DEVICE_PTR(const uint32_t) other;
	DEVICE_PTR(struct compare_record) record;
	uint64_t count;
};
static_assert(sizeof(struct hash_args) == 32, "layout shared with nvcc");

struct permute_args { /* out[i] = element i of a permutation of 0 .. count - 1 */
	DEVICE_PTR(uint32_t) out;
	uint64_t count; /* at most 2^32 */
	uint64_t seed;
	uint64_t reserved;
};
static_assert(sizeof(struct permute_args) == 32, "layout shared with nvcc");

struct ring_args { /* links memory_node (count) into one ring in the order of the permutation */
	DEVICE_PTR(struct memory_node) nodes;
	DEVICE_PTR(DEVICE_PTR(struct memory_node)) cursor; /* set to the node at place 0 */
	uint64_t count;					   /* at most 2^32 */
	uint64_t seed;
};
static_assert(sizeof(struct ring_args) == 32, "layout shared with nvcc");
#endif
