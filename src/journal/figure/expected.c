/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/figure/expected.h"
#include <string.h>
#include "journal/figure/network_bound.h"

struct expected expected_of(const struct expected_known *known)
{
	if (known->band > 0)
		return (struct expected){known->band, EXPECTED_BAND};
	if (known->share > 0 && known->share >= known->group)
		return (struct expected){known->share, EXPECTED_SHARE};
	if (known->group > 0)
		return (struct expected){known->group, EXPECTED_GROUP};
	return (struct expected){0};
}

/* The bound with a port rate of 1 per node, so that only the layouts are compared. */
static double for_unit_ports(struct network_bound *b, const char *op)
{
	for (size_t i = 0; i < b->kinds; i++)
		b->kind[i].network = 1;
	return network_bound_of(b, op, NETWORK_BOUND_RING);
}

static bool as_many_ranks_each(const struct network_bound *a, const struct network_bound *b)
{
	for (size_t i = 0; i < a->kinds; i++)
		if (a->kind[i].ranks != b->kind[0].ranks)
			return false;
	return true;
}

double expected_by_group(const struct expected_case *whole, const struct expected_case *group)
{
	static const char prefix[] = "collective.";
	const char *op = whole->limit + sizeof(prefix) - 1;
	struct network_bound all, part;
	double of_all, of_part;

	if (strncmp(whole->limit, prefix, sizeof(prefix) - 1) || strcmp(whole->key, group->key) ||
	    !(group->rate > 0) || !network_bound_read(&all, whole->layout) ||
	    !network_bound_read(&part, group->layout) || part.nodes >= all.nodes ||
	    !as_many_ranks_each(&all, &part) || !as_many_ranks_each(&part, &all))
		return 0;
	of_all = for_unit_ports(&all, op);
	of_part = for_unit_ports(&part, op);
	return of_part > 0 ? EXPECTED_OF_GROUP * group->rate * of_all / of_part : 0;
}
