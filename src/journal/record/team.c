/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the nodes of a team and their clocks from rank 0's journal. Formulas:
 * docs/explanation/methods/nodes.md, "Clocks of several nodes". */
#include "journal/record/merge.h"

#include <errno.h>
#include <math.h>
#include "core/text/text.h"

enum { TEAM_MOST = 4096 };
/* Larger offsets, more than a century, are invalid. */
static const int64_t offset_most = INT64_C(4000000000000000000);

static bool number(const json_t *j, const char *name, unsigned most, unsigned *out)
{
	const json_t *v = json_object_get(j, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > (json_int_t)most)
		return false;
	*out = (unsigned)json_integer_value(v);
	return true;
}

static struct record_clock clock_of(const json_t *node)
{
	const json_t *offset = json_object_get(node, "offset_ns"), *error = json_object_get(node, "error_ns");
	const json_t *at = json_object_get(node, "at");
	json_int_t value = json_integer_value(offset);

	if (!json_is_integer(offset) || !json_is_integer(error) || !json_is_integer(at) ||
	    value > offset_most || value < -offset_most || json_integer_value(error) < 0 ||
	    json_integer_value(at) < 0 || json_integer_value(at) > offset_most)
		return (struct record_clock){0};
	return (struct record_clock){.known = true,
				     .offset_ns = value,
				     .error_ns = (uint64_t)json_integer_value(error),
				     .at_ns = (uint64_t)json_integer_value(at)};
}

uint64_t record_clock_zero(const struct record_node *n, uint64_t t_ns)
{
	const struct record_clock *a = &n->joined, *b = &n->parted;
	double from, to, drift = 0;
	int64_t less;

	if (!a->known)
		return t_ns;
	from = (double)a->at_ns + (double)a->offset_ns;
	to = (double)b->at_ns + (double)b->offset_ns;
	if (b->known && to > from)
		drift = fmin(fmax(((double)t_ns - from) / (to - from), 0), 1) *
			(double)(b->offset_ns - a->offset_ns);
	less = a->offset_ns + llrint(drift); /* added as an integer, because a double cannot hold a long
						uptime in nanoseconds */
	return less > 0 && (uint64_t)less > t_ns ? 0 : t_ns - (uint64_t)less;
}

/* Reads the node's ranks; each rank must belong to one node only. */
static bool take_ranks(struct record_node *n, unsigned index, const json_t *list, unsigned *node_of,
		       unsigned size)
{
	json_t *v;
	size_t i;

	if (!json_array_size(list))
		return false;
	n->leader = size;
	json_array_foreach((json_t *)list, i, v)
	{
		json_int_t rank = json_integer_value(v);

		if (!json_is_integer(v) || rank < 0 || rank >= size || node_of[rank] != size)
			return false;
		node_of[rank] = index;
		n->ranks++;
		if ((unsigned)rank < n->leader)
			n->leader = (unsigned)rank;
		if ((unsigned)rank > n->last)
			n->last = (unsigned)rank;
	}
	return true;
}

/* Reads the node's name, which must be unique. */
static bool take_name(struct record *r, size_t index, const json_t *j)
{
	struct record_node *n = &r->node[index];
	const char *name = json_string_value(json_object_get(j, "name"));

	if (!name || !*name || strlen(name) >= sizeof(n->name))
		return false;
	text_copy(n->name, sizeof(n->name), name);
	for (size_t i = 0; i < index; i++)
		if (!strcmp(r->node[i].name, name))
			return false;
	return true;
}

static bool take_nodes(struct record *r, const json_t *nodes, unsigned *node_of, unsigned size)
{
	const json_t *parted = json_object_get(json_object_get(r->close, "team"), "nodes");
	unsigned known = 0;

	for (unsigned i = 0; i < json_array_size(nodes); i++) {
		const json_t *j = json_array_get(nodes, i);
		struct record_node *n = &r->node[i];

		r->node_count = i + 1;
		if (!take_name(r, i, j) || !take_ranks(n, i, json_object_get(j, "ranks"), node_of, size))
			return false;
		known += n->ranks;
		n->joined = clock_of(j);
		n->parted = clock_of(json_array_get(parted, i));
	}
	return known == size && node_of[0] == 0;
}

enum status record_team(struct record *r, unsigned **node_of, unsigned *size, struct error *err)
{
	const json_t *team = json_object_get(r->open, "team"), *nodes = json_object_get(team, "nodes");
	size_t count = json_array_size(nodes);
	unsigned rank = 0;

	*node_of = NULL;
	if (!number(team, "rank", TEAM_MOST, &rank) || rank || !number(team, "size", TEAM_MOST, size) ||
	    *size < 2 || !count || count > *size) {
		*size = 0;
		return STATUS_OK;
	}
	r->node = calloc(count, sizeof(*r->node));
	*node_of = malloc(*size * sizeof(**node_of));
	if (!r->node || !*node_of)
		return error_errno(err, ENOMEM, "%s: reading the record", r->dir);
	for (unsigned i = 0; i < *size; i++)
		(*node_of)[i] = *size;
	if (take_nodes(r, nodes, *node_of, *size))
		return STATUS_OK;
	free(r->node);
	free(*node_of);
	r->node = NULL;
	*node_of = NULL;
	r->node_count = *size = 0;
	return STATUS_OK;
}
