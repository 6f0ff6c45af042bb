/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a team: nodes and ranks. Rank 0 makes it, and all ranks have the same. */
#include "core/json/member.h"
#include "core/text/text.h"
#include "team/control/internal.h"

/* Facts that this rank sends about itself. */
json_t *shape_about(const struct control *c)
{
	const struct team_place *p = &c->o.place;
	json_t *about = c->o.about ? json_deep_copy(c->o.about) : json_object();

	if (about && (json_object_set_new(about, "node", json_string(p->node)) ||
		      json_object_set_new(about, "local_rank", json_integer(p->local_rank)) ||
		      json_object_set_new(about, "local_size", json_integer(p->local_size)))) {
		json_decref(about);
		return NULL;
	}
	return about;
}

static enum status room_for(struct team_shape *s, unsigned size, struct error *err)
{
	*s = (struct team_shape){.size = size};
	s->rank = calloc(size, sizeof(*s->rank));
	s->node = calloc(size, sizeof(*s->node));
	return s->rank && s->node ? STATUS_OK
				  : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						    "no memory for a team of %u ranks", size);
}

static unsigned find_node(const struct team_shape *s, const char *name, const char *boot)
{
	unsigned n = 0;

	while (n < s->nodes && (strcmp(s->node[n].name, name) || strcmp(s->node[n].boot, boot)))
		n++;
	return n;
}

/* False: not a list of at most CONTROL_GPUS short texts. */
static bool take_gpus(struct team_rank *r, const json_t *list)
{
	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) > CONTROL_GPUS)
		return false;
	for (unsigned i = 0; i < json_array_size(list); i++) {
		const char *pci = json_string_value(json_array_get(list, i));

		if (!pci || strlen(pci) >= CONTROL_PCI)
			return false;
		text_copy(r->pci[i], CONTROL_PCI, pci);
		r->gpu_count = i + 1;
	}
	return true;
}

/* If another node has this name already, appends the node's lowest rank to it. */
static void show_as(struct team_shape *s, unsigned n, const char *shown)
{
	text_copy(s->node[n].shown, sizeof(s->node[n].shown), shown);
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(s->node[i].shown, s->node[n].shown)) {
			snprintf(s->node[n].shown, sizeof(s->node[n].shown), "%.50s-rank-%u", shown,
				 s->node[n].leader);
			return;
		}
}

enum { NODE_GPUS_MOST = 64 };
#define NETWORK_MOST 1e15

/* Facts of the node's network ports, from its lowest rank. They may be absent. */
static bool take_network(struct team_node *d, const json_t *said)
{
	const json_t *network = json_object_get(said, "network");

	if (!network)
		return true;
	d->network = json_number_value(json_object_get(network, "rate"));
	return d->network >= 0 && d->network <= NETWORK_MOST &&
	       json_member_count(&d->gpus, network, "gpus", NODE_GPUS_MOST);
}

static enum status add_rank(struct control *c, unsigned rank, const json_t *said, struct error *err)
{
	struct team_shape *s = &c->shape;
	char name[64], boot[48] = "", shown[64] = "";
	unsigned n;

	if (!join_text(name, sizeof(name), said, "node") ||
	    !take_gpus(&s->rank[rank], json_object_get(said, "gpus")) ||
	    (json_object_get(said, "boot") && !join_text(boot, sizeof(boot), said, "boot")) ||
	    (json_object_get(said, "shown") && !join_text(shown, sizeof(shown), said, "shown")))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
				       "rank %u sent invalid facts about its node and GPUs", rank);
	n = find_node(s, name, boot);
	if (n == s->nodes) {
		text_copy(s->node[n].name, sizeof(s->node[n].name), name);
		text_copy(s->node[n].boot, sizeof(s->node[n].boot), boot);
		text_copy(s->node[n].host, sizeof(s->node[n].host), c->peer[rank].host);
		s->node[n].leader = rank;
		show_as(s, n, *shown ? shown : name);
		if (!take_network(&s->node[n], said))
			return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
					       "rank %u sent invalid facts about its node's network", rank);
		s->nodes++;
	}
	s->rank[rank].node = n;
	s->rank[rank].local_rank = s->node[n].ranks++;
	return STATUS_OK;
}

enum status shape_make(struct control *c, json_t *const *said, struct error *err)
{
	enum status st = room_for(&c->shape, c->size, err);

	for (unsigned r = 0; r < c->size && !st; r++)
		st = add_rank(c, r, said[r], err);
	return st ? st : shape_own_gpus(&c->shape, said, err);
}

static json_t *clock_json(const struct team_clock *k)
{
	return json_pack("[I,I,I]", (json_int_t)k->offset_ns, (json_int_t)k->error_ns, (json_int_t)k->at_ns);
}

static struct team_clock clock_take(const json_t *j)
{
	return (struct team_clock){.offset_ns = json_integer_value(json_array_get(j, 0)),
				   .error_ns = (uint64_t)json_integer_value(json_array_get(j, 1)),
				   .at_ns = (uint64_t)json_integer_value(json_array_get(j, 2))};
}

json_t *shape_json(const struct team_shape *s)
{
	json_t *nodes = json_array(), *ranks = json_array();

	for (unsigned n = 0; n < s->nodes; n++) {
		const struct team_node *d = &s->node[n];

		json_array_append_new(
			nodes, json_pack("{s:s,s:s,s:s,s:s,s:i,s:{s:f,s:i},s:o,s:o}", "name", d->name, "boot",
					 d->boot, "host", d->host, "shown", d->shown, "leader",
					 (int)d->leader, "network", "rate", d->network, "gpus", (int)d->gpus,
					 "joined", clock_json(&d->joined), "parted", clock_json(&d->parted)));
	}
	for (unsigned r = 0; r < s->size; r++) {
		json_t *gpus = json_array();

		for (unsigned i = 0; i < s->rank[r].gpu_count; i++)
			json_array_append_new(gpus, json_string(s->rank[r].pci[i]));
		json_array_append_new(ranks,
				      json_pack("{s:i,s:o}", "node", (int)s->rank[r].node, "gpus", gpus));
	}
	return json_pack("{s:o,s:o}", "nodes", nodes, "ranks", ranks);
}

static bool take_node(struct team_node *d, const json_t *j, unsigned size)
{
	d->joined = clock_take(json_object_get(j, "joined"));
	return join_text(d->name, sizeof(d->name), j, "name") &&
	       join_text(d->boot, sizeof(d->boot), j, "boot") &&
	       join_text(d->host, sizeof(d->host), j, "host") &&
	       join_text(d->shown, sizeof(d->shown), j, "shown") && take_network(d, j) &&
	       json_member_count(&d->leader, j, "leader", (json_int_t)size - 1);
}

enum status shape_take(struct team_shape *s, unsigned size, const json_t *j, struct error *err)
{
	const json_t *nodes = json_object_get(j, "nodes"), *ranks = json_object_get(j, "ranks");
	enum status st = room_for(s, size, err);
	bool sound =
		json_array_size(nodes) && json_array_size(nodes) <= size && json_array_size(ranks) == size;

	if (st)
		return st;
	for (; sound && s->nodes < json_array_size(nodes); s->nodes++)
		sound = take_node(&s->node[s->nodes], json_array_get(nodes, s->nodes), size);
	for (unsigned r = 0; sound && r < size; r++) {
		const json_t *rank = json_array_get(ranks, r);

		sound = json_member_count(&s->rank[r].node, rank, "node", (json_int_t)s->nodes - 1) &&
			take_gpus(&s->rank[r], json_object_get(rank, "gpus"));
		if (sound)
			s->rank[r].local_rank = s->node[s->rank[r].node].ranks++;
	}
	if (sound)
		return STATUS_OK;
	shape_release(s);
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_REFUSED,
			       "rank 0 sent an invalid list of nodes and ranks");
}

void shape_clocks_take(struct team_shape *s, const json_t *j)
{
	for (unsigned n = 0; n < s->nodes; n++)
		s->node[n].parted =
			clock_take(json_object_get(json_array_get(json_object_get(j, "nodes"), n), "parted"));
}

static json_t *ranks_of(const struct team_shape *s, unsigned node)
{
	json_t *ranks = json_array();

	for (unsigned r = 0; r < s->size; r++)
		if (s->rank[r].node == node)
			json_array_append_new(ranks, json_integer(r));
	return ranks;
}

json_t *control_team_json(const struct team_shape *s, unsigned rank, bool parted)
{
	json_t *nodes;

	if (!s || !s->rank || rank >= s->size)
		return NULL;
	nodes = json_array();
	for (unsigned n = 0; n < s->nodes; n++) {
		const struct team_node *d = &s->node[n];
		const struct team_clock *k = parted ? &d->parted : &d->joined;

		json_array_append_new(nodes, json_pack("{s:s,s:o,s:I,s:I,s:I}", "name", d->shown, "ranks",
						       ranks_of(s, n), "offset_ns", (json_int_t)k->offset_ns,
						       "error_ns", (json_int_t)k->error_ns, "at",
						       (json_int_t)k->at_ns));
	}
	return json_pack("{s:i,s:i,s:i,s:o}", "rank", (int)rank, "size", (int)s->size, "node",
			 (int)s->rank[rank].node, "nodes", nodes);
}

void shape_release(struct team_shape *s)
{
	free(s->rank);
	free(s->node);
	*s = (struct team_shape){0};
}
