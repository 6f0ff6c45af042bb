/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a run in results.json: their states, and the facts in which they differ. */
#include "report/data/json_build.h"

static void put_clock(struct json_build *b, json_t *object, const char *key, const struct record_clock *c)
{
	json_t *clock;

	if (!c->known)
		return;
	clock = json_object();
	json_put(b, clock, "offset_ns", json_integer((json_int_t)c->offset_ns));
	json_put(b, clock, "error_ns", json_integer((json_int_t)c->error_ns));
	json_put(b, object, key, clock);
}

static json_t *node_json(struct json_build *b, const struct record_node *n)
{
	json_t *object = json_object();

	json_put(b, object, "name", json_shown(b, n->name));
	json_put(b, object, "state", json_string(record_node_state_word(n->state)));
	json_put(b, object, "ranks", json_integer(n->ranks));
	json_put(b, object, "leader", json_integer(n->leader));
	json_put_text(b, object, "why", n->why);
	put_clock(b, object, "clock_joined", &n->joined);
	put_clock(b, object, "clock_parted", &n->parted);
	if (n->machine)
		json_put(b, object, "gpus",
			 json_integer((json_int_t)json_array_size(json_object_get(n->machine, "gpus"))));
	return object;
}

static json_t *difference_json(struct json_build *b, const struct judge_difference *d)
{
	json_t *object = json_object(), *others = json_array();

	json_put(b, object, "fact", json_text(d->fact));
	json_put(b, object, "most", json_shown(b, d->majority));
	json_put(b, object, "nodes", json_integer(d->alike));
	for (size_t i = 0; i < d->other_count; i++) {
		json_t *one = json_object();

		json_put(b, one, "node", json_shown(b, b->v->in->record->node[d->other[i].node].name));
		json_put(b, one, "value", json_shown(b, d->other[i].value));
		json_push(b, others, one);
	}
	json_put(b, object, "others", others);
	if (d->hurts) {
		json_put(b, object, "hurts", json_string(d->hurts));
		json_put(b, object, "source", json_string(d->source));
	}
	return object;
}

json_t *json_nodes(struct json_build *b)
{
	const struct judgements *j = b->v->in->judged;
	json_t *nodes = json_array(), *differences = json_array(), *object = json_object();

	for (size_t i = 0; i < b->v->in->record->node_count; i++)
		json_push(b, nodes, node_json(b, &b->v->in->record->node[i]));
	for (size_t i = 0; i < j->difference_count; i++)
		json_push(b, differences, difference_json(b, &j->difference[i]));
	json_put(b, object, "nodes", nodes);
	json_put(b, object, "differences", differences);
	return object;
}
