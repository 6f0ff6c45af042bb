/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/test_data/collective.cu on the host, from the formulas of kernel/test_data/collective.h. */
#include <math.h>
#include <string.h>
#include "core/math/random.h"
#include "kernel/test_data/collective.h"
#include "ref.h"

static const unsigned bytes_of[] = {8, 4, 2, 2, 1, 1, 1, 4};
static const int fraction_of[] = {52, 23, 10, 7, 3, 2, 0, 0};
static const uint64_t quiet_of[] = {~(1ull << 62), ~(1ull << 30), 0xbfff, 0xbfff, 0xbf, 0xbf, 0xff, ~0ull};

/* What both argument structs say of the inputs. */
struct law {
	uint64_t seed;
	uint32_t rule, ranks, slots, most, unit;
};

static uint32_t hash(const struct law *l, uint64_t i, uint32_t j)
{
	uint32_t x = random_u32(l->seed, COLLECTIVE_STREAM, 4 * i + 1) + j * 0x9e3779b9u;

	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	x ^= x >> 16;
	return x;
}

/* Rank's share of element i. */
static double share(const struct law *l, uint32_t rank, uint64_t i)
{
	uint32_t begin = random_u32(l->seed, COLLECTIVE_STREAM, 4 * i) % l->ranks, h;
	double v;

	if (l->rule == COLLECTIVE_SUM || l->rule == COLLECTIVE_AVG) {
		for (uint32_t j = 0; j < l->slots; j++) {
			if ((begin + j) % l->ranks != rank)
				continue;
			h = hash(l, i, j);
			v = (double)(1 + h / 2 % l->most) * l->unit;
			return h % 2 ? v : -v;
		}
		return 0;
	}
	h = hash(l, i, rank);
	if (rank != begin)
		return (double)(h % (2 * (l->most / 2) + 1)) - (double)(l->most / 2);
	v = (double)(l->most / 2 + 1 + h % (l->most / 2));
	return l->rule == COLLECTIVE_MAX ? v : -v;
}

static uint64_t moved(uint32_t type, uint64_t seed, uint32_t from, uint32_t to, uint64_t i)
{
	uint32_t stream = COLLECTIVE_MOVED + from * 1024 + to;
	uint64_t high = random_u32(seed, stream, 4 * i + 1), low = random_u32(seed, stream, 4 * i);

	return (bytes_of[type] == 8 ? high << 32 | low : low) & quiet_of[type];
}

static void fill(const char *entry, struct ref_grid grid, const void *args)
{
	const struct collective_fill_args *a = args;
	const struct law l = {a->seed, a->rule, a->ranks, a->slots, a->most, a->unit};

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		uint64_t bits;

		if (a->rule != COLLECTIVE_MOVE) {
			ref_operand_put(a->type, (void *)(uintptr_t)a->out, i,
					share(&l, a->rank, a->first + i));
			continue;
		}
		bits = moved(a->type, a->seed, a->rank, a->to, a->first + i);
		memcpy((char *)(uintptr_t)a->out + i * bytes_of[a->type], &bits, bytes_of[a->type]);
	}
}

/* By all ranks' shares: the slow and plain way. */
static double result(const struct law *l, uint64_t i)
{
	double v = share(l, 0, i);

	for (uint32_t r = 1; r < l->ranks; r++) {
		double x = share(l, r, i);

		if (l->rule == COLLECTIVE_MIN)
			v = x < v ? x : v;
		else if (l->rule == COLLECTIVE_MAX)
			v = x > v ? x : v;
		else
			v += x;
	}
	return l->rule == COLLECTIVE_AVG ? v / l->ranks : v;
}

static bool reduced_well(const struct collective_check_args *a, const struct law *l, uint64_t i, double found,
			 double *difference)
{
	double expected = result(l, a->first + i), room = 0;
	int exponent;

	if (a->ulp && expected != 0) {
		frexp(expected, &exponent);
		room = ldexp(a->ulp, exponent - 1 - fraction_of[a->type]);
	}
	*difference = found - expected;
	return fabs(*difference) <= room;
}

static void look(const struct collective_check_args *a, const struct law *l, uint64_t i, double difference)
{
	unsigned long long *suspect = (unsigned long long *)(uintptr_t)a->suspect;

	for (uint32_t r = 0; r < a->ranks; r++) {
		double x = share(l, r, a->first + i) / (a->rule == COLLECTIVE_AVG ? a->ranks : 1);

		suspect[r] += x != 0 && difference == -x;
		suspect[a->ranks + r] += x != 0 && difference == x;
	}
	suspect[2 * (size_t)a->ranks]++;
}

static void check(const char *entry, struct ref_grid grid, const void *args)
{
	const struct collective_check_args *a = args;
	const struct law l = {a->seed, a->rule, a->ranks, a->slots, a->most, a->unit};
	struct operand_found *found = (struct operand_found *)(uintptr_t)a->found;
	const char *data = (const char *)(uintptr_t)a->data;
	uint64_t threads = (uint64_t)grid.blocks * grid.threads;

	(void)entry;
	for (uint64_t t = 0; t < threads && t < a->count; t++) {
		unsigned wrong = 0;

		for (uint64_t i = t; i < a->count; i += threads) {
			double v = ref_operand_get(a->type, data, i), difference = 0;
			uint64_t bits = 0, expected;
			bool well;

			memcpy(&bits, data + i * bytes_of[a->type], bytes_of[a->type]);
			expected = moved(a->type, a->seed, a->from, a->to, a->first + i);
			well = a->rule == COLLECTIVE_MOVE ? bits == expected
							  : reduced_well(a, &l, i, v, &difference);
			if (well)
				continue;
			found->wrong++;
			found->nan += a->rule != COLLECTIVE_MOVE && isnan(v);
			found->first = i < found->first ? i : found->first;
			if (++wrong <= COLLECTIVE_LOOKED &&
			    (a->rule == COLLECTIVE_SUM || a->rule == COLLECTIVE_AVG))
				look(a, &l, i, difference);
		}
	}
}

/* Ends at once: what it keeps busy is another thing's time. */
static void busy(const char *entry, struct ref_grid grid, const void *args)
{
	const struct collective_busy_args *a = args;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->words && !*(const uint32_t *)(uintptr_t)a->stop; i++)
		((uint32_t *)(uintptr_t)a->memory)[i]++;
}

const struct ref_row ref_collective[] = {
	{"collective_fill", fill, sizeof(struct collective_fill_args),
	 offsetof(struct collective_fill_args, out)},
	{"collective_check", check, sizeof(struct collective_check_args), REF_NO_OUT},
	{"collective_busy", busy, sizeof(struct collective_busy_args), REF_NO_OUT},
	{NULL, NULL, 0, 0},
};
