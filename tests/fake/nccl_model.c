/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a collective takes: base + step * hops + bytes * factor / rate, by algorithm and protocol, in the
 * order of what 4 and 8 GPUs behind NVSwitch show. As in NCCL the fastest by the model is taken, so the
 * switch points are where the lines cross.
 */
#include "nccl_fake.h"
#include <math.h>
#include <string.h>
#include <strings.h>

struct way {
	const char *algorithm, *protocol, *short_name; /* protocol as NCCL_PROTO has it */
	double base_ns, step_ns;
	double share; /* of the simple ring's rate */
	unsigned warps;
	bool reduces; /* an all-reduce alone has it */
};

static const struct way ways[] = {
	{"RING", "LL", "LL", 5500, 450, 0.14, 16, false},
	{"RING", "LL128", "LL128", 7500, 800, 0.62, 20, false},
	{"RING", "SIMPLE", "Simple", 14000, 1900, 1, 17, false},
	{"TREE", "LL", "LL", 5700, 700, 0.11, 16, true},
	{"TREE", "LL128", "LL128", 7600, 1100, 0.55, 20, true},
	{"TREE", "SIMPLE", "Simple", 13000, 2100, 0.88, 17, true},
	{"NVLS", "SIMPLE", "Simple", 17000, 0, 1.31, 17, true},
};

/* Bytes over the busiest link for a byte of size: METHODS, "Collectives". */
static double factor(enum fake_kind kind, unsigned ranks)
{
	double n = ranks;

	if (kind == FAKE_ALL_REDUCE)
		return 2 * (n - 1) / n;
	return kind == FAKE_ALL_GATHER || kind == FAKE_REDUCE_SCATTER || kind == FAKE_ALL_TO_ALL ? (n - 1) / n
												 : 1;
}

static double steps(const struct way *w, enum fake_kind kind, unsigned ranks)
{
	if (!strcmp(w->algorithm, "TREE"))
		return 2 * log2(ranks);
	return kind == FAKE_ALL_REDUCE ? 2.0 * (ranks - 1) : kind == FAKE_POINT ? 1 : ranks - 1;
}

static double takes(const struct way *w, const struct fake_ask *a)
{
	double rate = fake_nccl_number("rate", 364) * w->share;
	unsigned channels = a->channels_max ? a->channels_max : 24;

	if (channels < 24)
		rate *= 0.8 + 0.2 * channels / 24;
	else if (channels > 24)
		rate *= 1.006;
	return w->base_ns - (a->captured ? 1000 : 0) + w->step_ns * steps(w, a->kind, a->ranks) +
	       a->bytes * factor(a->kind, a->ranks) / rate;
}

static bool asked(const char *wish, const char *name)
{
	return !wish || !strcasecmp(wish, name);
}

bool fake_nccl_choose(const struct fake_ask *a, struct fake_choice *out)
{
	bool nvls = fake_nccl_number("nvls", 0) != 0;

	*out = (struct fake_choice){0};
	if (a->windows && !a->algorithm && !a->protocol && a->kind != FAKE_POINT &&
	    a->kind != FAKE_ALL_TO_ALL) {
		out->ns =
			3400 + a->bytes * factor(a->kind, a->ranks) / (0.81 * fake_nccl_number("rate", 364));
		return true;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const struct way *w = &ways[i];
		double ns = takes(w, a);

		if ((w->reduces && a->kind != FAKE_ALL_REDUCE) || (!strcmp(w->algorithm, "NVLS") && !nvls))
			continue;
		if (!asked(a->algorithm, w->algorithm) || !asked(a->protocol, w->short_name))
			continue;
		if (!out->algorithm || ns < out->ns)
			*out = (struct fake_choice){w->algorithm, w->protocol,
						    a->channels_max ? a->channels_max : 24, w->warps, ns};
	}
	return out->algorithm;
}
