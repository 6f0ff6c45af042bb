/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a node as JSON: what a program reads of `top --once --json`. */
#include <jansson.h>
#include <math.h>
#include "cmd/top/top.h"
#include "watch/screen/lists.h"

/* NAME or NAME{LABEL="VALUE"}, as in Prometheus' text. */
static void add_number(json_t *map, enum catalogue row, double value)
{
	struct text name = {0};

	catalogue_add_full(&name, row);
	if (isfinite(value))
		json_object_set_new(map, text_str(&name), json_real(value));
	text_release(&name);
}

/* Why a value is absent, where a reason of its own is known. */
static void add_reason(json_t *map, const struct watch_entity *e, enum catalogue row)
{
	struct text name = {0};
	const char *why = watch_why(e, row);

	catalogue_add_full(&name, row);
	if (why && why != e->why)
		json_object_set_new(map, text_str(&name), json_string(why));
	text_release(&name);
}

static json_t *entity_json(const struct screen_node *n, const struct watch_entity *e)
{
	json_t *labels = json_object(), *values = json_object(), *rates = json_object(),
	       *absent = json_object();
	json_t *out = json_pack("{s:s,s:o,s:o}", "scope", metric_scope_row(e->scope)->name, "labels", labels,
				"values", values);
	double age = screen_age(n, e);

	for (unsigned i = 0; i < e->label_count; i++)
		json_object_set_new(labels, e->label[i].name, json_string(e->label[i].value));
	for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++) {
		const struct watch_value *v = catalogue_row(c)->scope == e->scope ? watch_get(e, c) : NULL;
		double rate;

		if (!v && catalogue_row(c)->scope == e->scope)
			add_reason(absent, e, c);
		if (!v)
			continue;
		add_number(values, c, v->value);
		if (catalogue_row(c)->type == METRIC_COUNTER && watch_rate(&rate, e, c))
			add_number(rates, c, rate);
	}
	if (json_object_size(rates))
		json_object_set(out, "rates_per_second", rates);
	json_decref(rates);
	if (json_object_size(absent))
		json_object_set(out, "absent", absent);
	json_decref(absent);
	if (e->why)
		json_object_set_new(out, "why", json_string(e->why));
	if (age >= 0)
		json_object_set_new(out, "age_seconds", json_real(round(1000 * age) / 1000));
	return out;
}

json_t *top_json(const struct screen_node *n)
{
	const struct watch_state *s = n->state;
	json_t *entities = json_array(), *sources = json_array();
	json_t *out = json_pack("{s:s,s:f,s:o,s:o}", "node", *n->name ? n->name : s->node, "interval",
				s->interval, "sources", sources, "entities", entities);

	if (s->wall > 0)
		json_object_set_new(out, "wall", json_real(watch_wall(s)));
	if (*s->boot)
		json_object_set_new(out, "boot", json_string(s->boot));
	if (n->why)
		json_object_set_new(out, "why", json_string(n->why));
	for (unsigned i = 0; i < s->source_count; i++) {
		json_t *source = json_pack("{s:s}", "source", s->source[i].name);

		if (watch_source_age(s, i, n->local_ns) >= 0)
			json_object_set_new(
				source, "age_seconds",
				json_real(round(1000 * watch_source_age(s, i, n->local_ns)) / 1000));
		if (s->source[i].why)
			json_object_set_new(source, "why", json_string(s->source[i].why));
		json_array_append_new(sources, source);
	}
	for (size_t i = 0; i < s->count; i++)
		if (s->entity[i].scope < METRIC_SCOPE_COUNT && !s->entity[i].foreign)
			json_array_append_new(entities, entity_json(n, &s->entity[i]));
	return out;
}
