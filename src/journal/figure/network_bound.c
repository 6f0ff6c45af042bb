/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/figure/network_bound.h"
#include <math.h>
#include <string.h>

enum { MOST = 1 << 20 };

static bool count(unsigned *out, const json_t *j, const char *name, json_int_t least)
{
	const json_t *value = json_object_get(j, name);

	*out = json_is_integer(value) ? (unsigned)json_integer_value(value) : 0;
	return json_is_integer(value) && json_integer_value(value) >= least &&
	       json_integer_value(value) <= MOST;
}

static bool read_kind(struct network_bound_kind *k, const json_t *j)
{
	k->network = json_number_value(json_object_get(j, "network"));
	return count(&k->nodes, j, "nodes", 1) && count(&k->ranks, j, "ranks", 1) &&
	       count(&k->gpus, j, "gpus", 0) && count(&k->next, j, "next", 0) && isfinite(k->network) &&
	       k->network >= 0;
}

bool network_bound_read(struct network_bound *out, const json_t *layout)
{
	const json_t *list = json_object_get(layout, "nodes"), *j;
	size_t i;

	*out = (struct network_bound){0};
	if (json_array_size(list) > NETWORK_BOUND_KINDS)
		return false;
	json_array_foreach((json_t *)list, i, j)
	{
		struct network_bound_kind *k = &out->kind[out->kinds++];

		if (!read_kind(k, j))
			return false;
		out->nodes += k->nodes;
		out->ranks += k->nodes * k->ranks;
	}
	return out->nodes > 1;
}

double network_bound_rate(const struct network_bound *b)
{
	double least = INFINITY;

	for (size_t i = 0; i < b->kinds; i++)
		least = fmin(least, b->kind[i].network);
	return isfinite(least) ? least : 0;
}

/* Kinds of operations, by the share of the data that crosses a node's ports. n: all ranks; k: ranks on the
 * node. */
enum moves { REDUCES_TO_ALL, DIVIDED, EACH_TO_EACH, WHOLE, TO_NEXT };

static const struct {
	const char *op;
	enum moves moves;
} ops[] = {
	{"allreduce", REDUCES_TO_ALL}, {"allgather", DIVIDED}, {"reducescatter", DIVIDED},
	{"alltoall", EACH_TO_EACH},    {"broadcast", WHOLE},   {"reduce", WHOLE},
	{"sendrecv", TO_NEXT},
};

/* Ratio of the bus bandwidth to the rate of one node's ports. */
static double per_port(const struct network_bound_kind *k, double n, enum moves moves,
		       enum network_bound_way way)
{
	switch (moves) {
	case REDUCES_TO_ALL:
		return way == NETWORK_BOUND_RING ? 1 : 2 * (n - 1) / n;
	case DIVIDED:
		return way == NETWORK_BOUND_RING ? 1 : (n - 1) / (n - k->ranks);
	case EACH_TO_EACH:
		return (n - 1) / (k->ranks * (n - k->ranks));
	case TO_NEXT:
		return k->next ? 1.0 / k->next : INFINITY;
	case WHOLE:
		break;
	}
	return 1;
}

/* Bound of the operation, with the port rate of kind i multiplied by share[i]. */
static double bound(const struct network_bound *b, const char *op, enum network_bound_way way,
		    const double *share)
{
	double n = b->ranks, least = INFINITY, all = 0;
	size_t o = 0;

	while (o < sizeof(ops) / sizeof(ops[0]) && strcmp(ops[o].op, op))
		o++;
	if (o == sizeof(ops) / sizeof(ops[0]) || !(network_bound_rate(b) > 0))
		return 0;
	for (size_t i = 0; i < b->kinds; i++) {
		double rate = b->kind[i].network * share[i];

		least = fmin(least, rate * per_port(&b->kind[i], n, ops[o].moves, way));
		all += rate * b->kind[i].nodes;
	}
	/* Without reduction in the network, all m nodes together send 2 (m - 1) S bytes. */
	if (ops[o].moves == REDUCES_TO_ALL && way == NETWORK_BOUND_LEAST)
		least = fmin(least, all * (n - 1) / n / (b->nodes - 1));
	return isfinite(least) ? least : 0;
}

double network_bound_of(const struct network_bound *b, const char *op, enum network_bound_way way)
{
	double share[NETWORK_BOUND_KINDS];

	for (size_t i = 0; i < b->kinds; i++)
		share[i] = 1;
	return bound(b, op, way, share);
}

double network_bound_usual(const struct network_bound *b, const char *op)
{
	double share[NETWORK_BOUND_KINDS];

	for (size_t i = 0; i < b->kinds; i++) {
		const struct network_bound_kind *k = &b->kind[i];

		if (!k->gpus)
			return 0;
		share[i] = k->ranks < k->gpus ? (double)k->ranks / k->gpus : 1;
	}
	return bound(b, op, NETWORK_BOUND_RING, share);
}
