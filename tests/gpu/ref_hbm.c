/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/memory/pattern_test.cu. */
#include "kernel/memory/pattern_test.h"
#include "ref.h"
#include <stddef.h>

uint64_t ref_hbm_pattern(uint32_t pattern, uint64_t address, uint64_t seed)
{
	uint64_t x = address + seed;

	if (pattern == HBM_ADDRESS)
		return address;
	if (pattern == HBM_INVERSE)
		return ~address;
	if (pattern == HBM_MOVING)
		return (uint64_t)1 << (address / 8 + seed) % 64;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

static void write_pattern(const char *entry, struct ref_grid grid, const void *args)
{
	const struct hbm_args *a = args;
	uint64_t *words = (uint64_t *)(uintptr_t)a->words;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++)
		words[i] = ref_hbm_pattern(a->pattern, (uintptr_t)&words[i], a->seed);
}

static void check_pattern(const char *entry, struct ref_grid grid, const void *args)
{
	const struct hbm_args *a = args;
	const uint64_t *words = (const uint64_t *)(uintptr_t)a->words;
	struct hbm_record *r = (struct hbm_record *)(uintptr_t)a->record;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		uint64_t address = (uintptr_t)&words[i],
			 expected = ref_hbm_pattern(a->pattern, address, a->seed);

		r->checked++;
		if (words[i] == expected)
			continue;
		if (r->count < HBM_KEPT)
			r->kept[r->count] = (struct hbm_wrong){address, expected, words[i]};
		r->count++;
		r->bits |= words[i] ^ expected;
		if (address < r->first)
			r->first = address;
	}
}

const struct ref_row ref_hbm[] = {
	{"hbm_write", write_pattern, sizeof(struct hbm_args), offsetof(struct hbm_args, words)},
	{"hbm_check", check_pattern, sizeof(struct hbm_args), REF_NO_OUT},
	{NULL, NULL, 0, 0},
};
