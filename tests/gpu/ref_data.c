/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/test_data/numbers.cu, on core/math/random.c: the host's generator is the reference of the device's. */
#include "core/math/random.h"
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "ref.h"
#include <math.h>

int ref_integer(uint64_t seed, uint32_t stream, uint64_t i)
{
	return (int8_t)(random_u32(seed, stream, i / 4) >> i % 4 * 8);
}

static void fill(const char *entry, struct ref_grid grid, const void *args)
{
	const struct fill_args *a = args;
	void *out = (void *)(uintptr_t)a->out;

	(void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		if (entry[5] == 'i')
			((float *)out)[i] = (float)ref_integer(a->seed, a->stream, i);
		else if (entry[5] == 'u')
			((float *)out)[i] = a->scale * random_f32(a->seed, a->stream, i);
		else
			((uint32_t *)out)[i] = random_u32(a->seed, a->stream, i);
	}
}

static void note(struct compare_record *r, uint64_t index, int nan)
{
	r->count++;
	r->nan += nan ? 1 : 0;
	if (index < r->first)
		r->first = index;
}

static void check_linear(const char *entry, struct ref_grid grid, const void *args)
{
	const struct check_args *a = args;
	struct compare_record *r = (struct compare_record *)(uintptr_t)a->record;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		float found = ((const float *)(uintptr_t)a->out)[i];
		float expected = a->factor0 * (float)ref_integer(a->seed, a->stream0, i) +
				 a->factor1 * (float)ref_integer(a->seed, a->stream1, i) + a->constant;

		if (!(found == expected))
			note(r, i, !isfinite(found));
	}
}

static void sum_integers(const char *entry, struct ref_grid grid, const void *args)
{
	const struct sum_args *a = args;
	struct compare_record *r = (struct compare_record *)(uintptr_t)a->record;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++)
		r->sum += ref_integer(a->seed, a->stream0, i) *
			  (a->product ? ref_integer(a->seed, a->stream1, i) : 1);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u; /* splitmix64 */
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

uint64_t ref_hash(const uint32_t *words, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += mix(mix(i) ^ words[i]);
	return sum;
}

static void hash(const char *entry, struct ref_grid grid, const void *args)
{
	const struct hash_args *a = args;
	struct compare_record *r = (struct compare_record *)(uintptr_t)a->record;

	(void)entry, (void)grid;
	r->sum = (int64_t)((uint64_t)r->sum + ref_hash((const uint32_t *)(uintptr_t)a->words, a->count));
}

static void compare(const char *entry, struct ref_grid grid, const void *args)
{
	const struct hash_args *a = args;
	const uint32_t *words = (const uint32_t *)(uintptr_t)a->words,
		       *other = (const uint32_t *)(uintptr_t)a->other;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++)
		if (words[i] != other[i])
			note((struct compare_record *)(uintptr_t)a->record, i, 0);
}

static uint32_t murmur(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x85EBCA6Bu;
	x ^= x >> 13;
	x *= 0xC2B2AE35u;
	return x ^ x >> 16;
}

uint64_t ref_permutation(uint64_t i, uint64_t count, uint64_t seed)
{
	unsigned half = 1;
	uint64_t mask;

	while ((uint64_t)1 << 2 * half < count)
		half++;
	mask = ((uint64_t)1 << half) - 1;
	do {
		uint64_t left = i >> half, right = i & mask;

		for (uint32_t round = 0; round < 4; round++) {
			uint32_t key = (uint32_t)(seed >> 16 * (round % 2)) + round * 0x9E3779B9u;
			uint64_t next = left ^ (murmur((uint32_t)right ^ key) & mask);

			left = right;
			right = next;
		}
		i = left << half | right;
	} while (i >= count);
	return i;
}

static void permute(const char *entry, struct ref_grid grid, const void *args)
{
	const struct permute_args *a = args;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++)
		((uint32_t *)(uintptr_t)a->out)[i] = (uint32_t)ref_permutation(i, a->count, a->seed);
}

static void ring(const char *entry, struct ref_grid grid, const void *args)
{
	const struct ring_args *a = args;
	struct memory_node *nodes = (struct memory_node *)(uintptr_t)a->nodes;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		struct memory_node *node = &nodes[ref_permutation(i, a->count, a->seed)];

		node->next = (uintptr_t)&nodes[ref_permutation((i + 1) % a->count, a->count, a->seed)];
		node->place = i;
		if (i == 0)
			*(uint64_t *)(uintptr_t)a->cursor = (uintptr_t)node;
	}
}

const struct ref_row ref_data[] = {
	{"fill_", fill, sizeof(struct fill_args), offsetof(struct fill_args, out)},
	{"check_linear", check_linear, sizeof(struct check_args), REF_NO_OUT},
	{"sum_integers", sum_integers, sizeof(struct sum_args), REF_NO_OUT},
	{"hash", hash, sizeof(struct hash_args), REF_NO_OUT},
	{"compare", compare, sizeof(struct hash_args), REF_NO_OUT},
	{"permute", permute, sizeof(struct permute_args), offsetof(struct permute_args, out)},
	{"ring", ring, sizeof(struct ring_args), REF_NO_OUT},
	{NULL, NULL, 0, 0},
};
