/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of several nodes: matches the nodes of two runs and gives their names and facts. */
#include "judge/compare/compare.h"
#include "judge/case/context.h"

size_t compare_nodes(const struct record *r)
{
	return r->node_count ? r->node_count : 1;
}

const char *compare_node_name(const struct record *r, size_t node)
{
	return r->node_count ? r->node[node].name : "";
}

const json_t *compare_node_facts(const struct record *r, size_t node)
{
	struct record one;

	if (node >= compare_nodes(r))
		return NULL;
	record_slice(&one, r, (unsigned)node);
	return context_facts(&one);
}

/* Finds the node of that name; COMPARE_NO_NODE: none. */
static size_t named(const struct record *r, const char *name)
{
	for (size_t i = 0; i < compare_nodes(r); i++)
		if (!strcmp(compare_node_name(r, i), name))
			return i;
	return COMPARE_NO_NODE;
}

/* Counts the nodes before this one whose name the other run does not have. */
static size_t strangers_before(const struct record *r, size_t node, const struct record *other)
{
	size_t count = 0;

	for (size_t i = 0; i < node; i++)
		count += named(other, compare_node_name(r, i)) == COMPARE_NO_NODE;
	return count;
}

size_t compare_node_of(const struct record *r, size_t node, const struct record *other)
{
	size_t same = named(other, compare_node_name(r, node)), place;

	if (same != COMPARE_NO_NODE)
		return same;
	place = strangers_before(r, node, other);
	for (size_t i = 0; i < compare_nodes(other); i++)
		if (named(r, compare_node_name(other, i)) == COMPARE_NO_NODE && !place--)
			return i;
	return COMPARE_NO_NODE;
}
