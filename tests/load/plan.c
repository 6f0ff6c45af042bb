/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include "load/plan.h"

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15) /* 2^64 divided by the golden ratio */

/* splitmix64's finalizer */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

static uint64_t draw(uint64_t seed, uint64_t key, uint64_t i)
{
	return mix(mix(seed + GOLDEN) ^ mix(key + 2 * GOLDEN) ^ mix(i * GOLDEN + 3));
}

/* in (0, 1) */
static double unit(uint64_t x)
{
	return ((double)(x >> 11) + 0.5) * 0x1p-53;
}

/* Of N numbers in a row, a share s lies below s up to about one: the shares of faults are nearly exact. */
static double spread(uint64_t seed, uint64_t number)
{
	return unit(mix(seed) + (number + 1) * GOLDEN);
}

uint64_t stub_hash(const void *bytes, size_t size)
{
	const unsigned char *s = bytes;
	uint64_t h = UINT64_C(0xCBF29CE484222325);

	for (size_t i = 0; i < size; i++)
		h = (h ^ s[i]) * UINT64_C(0x100000001B3);
	return mix(h);
}

static bool applies(enum stub_fault f, bool stream, bool usage)
{
	switch (f) {
	case STUB_FAULT_WRONG_USAGE:
	case STUB_FAULT_NO_USAGE:
	case STUB_FAULT_CACHED:
		return usage;
	case STUB_FAULT_DUPLICATE:
	case STUB_FAULT_MULTI:
	case STUB_FAULT_SPLIT:
	case STUB_FAULT_NO_DONE:
	case STUB_FAULT_ERROR_EVENT:
	case STUB_FAULT_BAD_CHUNK:
	case STUB_FAULT_CONTENT_LENGTH:
		return stream;
	default:
		return true;
	}
}

static enum stub_fault choose(const struct stub_options *o, uint64_t key)
{
	double u = spread(o->seed, key / o->burst), sum = 0;

	if (key < o->loading)
		return STUB_FAULT_UNAVAILABLE;

	for (int i = 1; i < STUB_FAULT_COUNT; i++) {
		if (i == STUB_FAULT_REFUSE)
			continue;
		sum += o->share[i];
		if (u < sum)
			return (enum stub_fault)i;
	}
	return STUB_FAULT_NONE;
}

struct stub_plan stub_plan_make(const struct stub_options *o, uint64_t key, uint32_t tokens, bool stream,
				bool usage)
{
	struct stub_plan p = {.fault = choose(o, key), .tokens = tokens};

	if (!applies(p.fault, stream, usage))
		p.fault = STUB_FAULT_NONE;
	p.value = o->value[p.fault];
	if (tokens > 1)
		p.at = 1 + (uint32_t)(draw(o->seed, key, UINT64_MAX) % (tokens - 1));
	return p;
}

static double factor(const struct stub_options *o, uint64_t key, uint32_t i)
{
	double u = unit(draw(o->seed, key, 2 * (uint64_t)i)), normal;

	switch (o->jitter) {
	case STUB_JITTER_NONE:
		break;
	case STUB_JITTER_UNIFORM:
		return 1 + o->jitter_size * (2 * u - 1);
	case STUB_JITTER_LOGNORMAL: /* Box and Muller */
		normal = sqrt(-2 * log(u)) *
			 cos(2 * 3.14159265358979323846 * unit(draw(o->seed, key, 2 * (uint64_t)i + 1)));
		return exp(o->jitter_size * normal - o->jitter_size * o->jitter_size / 2);
	}
	return 1;
}

uint64_t stub_plan_gap_ns(const struct stub_options *o, const struct stub_plan *p, uint64_t key, uint32_t i)
{
	double gap = (double)(i ? o->itl_ns : o->ttft_ns);

	if (o->jitter)
		gap *= factor(o, key, i);
	if (p->fault == STUB_FAULT_STALL && i == p->at)
		gap += p->value * 1e9;
	return (uint64_t)gap;
}

bool stub_plan_refuses(const struct stub_options *o, uint64_t connection)
{
	return spread(o->seed, connection / o->burst) < o->share[STUB_FAULT_REFUSE];
}
