/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the sources become lines of the node, with the number of the source. An entity keeps its number as
 * long as it exists, also when its source is started again. */
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "watch/read/node.h"
#include "watch/reading_line.h"

enum { QUEUE_MAX = 65536, DIGITS = 15 };

/* A line that the state has taken, or has refused. */
static void queue(struct node *n, const char *line, size_t size, enum status st, const struct error *err)
{
	if (st) {
		fprintf(stderr, "left out: %s\n", err->text);
		return;
	}
	if (n->queue.full)
		return;
	if (n->queue.text.size + size > QUEUE_MAX && n->queue.text.size) {
		n->queue.full = true;
		return;
	}
	text_add_bytes(&n->queue.text, line, size);
	text_add(&n->queue.text, "\n");
}

void node_send(struct node *n, const char *line, size_t size)
{
	struct error err = {0};
	enum status st = watch_state_line(&n->state, line, size, &err);

	queue(n, line, size, st, &err);
}

/* A parsed line of a source, which the state takes without parsing it again. */
static bool send_object(struct node *n, const json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
	size_t size = text ? strlen(text) : 0;
	struct error err = {0};
	enum status st;

	if (!text)
		return false;
	if (size > WATCH_LINE_MAX)
		st = error_set(&err, STATUS_BAD_INPUT, "a line of a source has more than %d bytes",
			       WATCH_LINE_MAX);
	else
		st = watch_state_object(&n->state, line, &err);
	queue(n, text, size, st, &err);
	free(text);
	return true;
}

void node_sendf(struct node *n, const char *format, ...)
{
	struct text line = {0};
	va_list args;

	va_start(args, format);
	text_addv(&line, format, args);
	va_end(args);
	if (!line.failed)
		node_send(n, text_str(&line), line.size);
	text_release(&line);
}

void node_send_why(struct node *n, unsigned source, const char *why)
{
	struct text text = {0};

	if (why)
		out_add_string(&text, why);
	node_sendf(n, "{\"s\":%u,\"why\":%s}", source, why ? text_str(&text) : "null");
	text_release(&text);
}

static bool is_free(const struct watch_state *s, uint32_t id)
{
	return id >= s->count || (s->entity[id].scope == METRIC_SCOPE_COUNT && !s->entity[id].foreign);
}

/* All identity labels are the same. */
static bool is_same(const struct watch_entity *e, enum metric_scope scope, const json_t *labels)
{
	const char *name;
	json_t *value;

	if (e->scope != scope)
		return false;
	json_object_foreach((json_t *)labels, name, value)
	{
		const char *now = watch_label(e, name);

		if (metric_scope_has(scope, name, true) &&
		    (!now || !json_is_string(value) || strcmp(now, json_string_value(value))))
			return false;
	}
	return true;
}

static uint32_t number_for(const struct watch_state *s, unsigned source, enum metric_scope scope,
			   const json_t *labels)
{
	uint32_t id = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->entity[i].source == source && is_same(&s->entity[i], scope, labels))
			return i;
	while (!is_free(s, id))
		id++;
	return id;
}

/* The node's number for one of the source. */
static bool map_number(const struct child *c, uint32_t *id)
{
	if (*id >= WATCH_ENTITIES_MAX)
		return false;
	*id = c->map[*id];
	return *id < WATCH_ENTITIES_MAX;
}

static bool mapped(const struct child *c, const json_t *number, uint32_t *id)
{
	json_int_t value = json_integer_value(number);

	if (!json_is_integer(number) || value < 0 || value >= WATCH_ENTITIES_MAX)
		return false;
	*id = (uint32_t)value;
	return map_number(c, id);
}

/* {"LOCAL": [..]} with the node's numbers. NULL: an entity is not known. */
static json_t *remap(const struct child *c, const json_t *map)
{
	json_t *out = json_object(), *list;
	const char *key;

	json_object_foreach((json_t *)map, key, list)
	{
		json_t *number = json_integer(strtol(key, NULL, 10));
		char text[16];
		uint32_t id;
		bool known = mapped(c, number, &id);

		json_decref(number);
		if (!known) {
			json_decref(out);
			return NULL;
		}
		snprintf(text, sizeof(text), "%u", id);
		json_object_set(out, text, list);
	}
	return out;
}

static bool remap_in(const struct child *c, json_t *line, const char *name)
{
	const json_t *map = json_object_get(line, name);
	json_t *out;

	if (!map)
		return true;
	out = remap(c, map);
	return out && !json_object_set_new(line, name, out);
}

static bool remap_number(const struct child *c, json_t *line, const char *name)
{
	const json_t *number = json_object_get(line, name);
	uint32_t id;

	if (!json_is_integer(number))
		return true;
	return mapped(c, number, &id) && !json_object_set_new(line, name, json_integer(id));
}

static bool declare(struct node *n, unsigned source, json_t *line)
{
	struct child *c = &n->source[source];
	json_int_t local = json_integer_value(json_object_get(line, "e"));
	const char *scope = json_string_value(json_object_get(line, "scope"));
	uint32_t id;

	if (local < 0 || local >= WATCH_ENTITIES_MAX || !remap_number(c, line, "of"))
		return false;
	id = number_for(&n->state, source, metric_scope_find(scope), json_object_get(line, "labels"));
	if (id >= WATCH_ENTITIES_MAX)
		return false;
	c->map[local] = id;
	json_object_set_new(line, "e", json_integer(id));
	return true;
}

/* What the node itself does with a line. */
static void heed(struct node *n, const json_t *line, uint32_t gone_of)
{
	const char *scope = json_string_value(json_object_get(line, "scope"));
	const char *pid = json_string_value(json_object_get(json_object_get(line, "labels"), "pid"));

	if (scope && pid && metric_scope_find(scope) == METRIC_SCOPE_PROCESS)
		names_ask(n, (unsigned)strtoul(pid, NULL, 10));
	if (gone_of != OUT_NONE)
		names_set_gpu(n, gone_of);
}

static bool take_json(struct node *n, unsigned source, const char *text, size_t size)
{
	struct child *c = &n->source[source];
	json_t *line = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	uint32_t gone_of = OUT_NONE, id;
	bool good = json_is_object(line);

	if (good && c->told) { /* the reason holds until the new reader answers */
		node_sendf(n, "{\"s\":%u,\"begin\":true}", source);
		c->told = false;
	}
	if (good && json_object_get(line, "gone")) {
		if (mapped(c, json_object_get(line, "gone"), &id) && id < n->state.count)
			gone_of = n->state.entity[id].of;
		good = remap_number(c, line, "gone");
	} else if (good && json_object_get(line, "scope")) {
		good = declare(n, source, line);
	} else if (good) {
		good = remap_number(c, line, "e") && remap_number(c, line, "end") && remap_in(c, line, "v") &&
		       remap_in(c, line, "x");
	}
	if (good && json_object_get(line, "s"))
		json_object_set_new(line, "s", json_integer((json_int_t)source));
	if (good &&
	    (json_is_true(json_object_get(line, "done")) || json_is_true(json_object_get(line, "end"))))
		c->failures = 0;
	if (good && send_object(n, line))
		heed(n, line, gone_of);
	json_decref(line);
	return good;
}

/* Appends the reading with the node's numbers, as `reading` has them, and with the values as they were
 * written. */
static void add_reading(struct text *out, const struct reading_line *reading)
{
	text_addf(out, "{\"t\":%llu,\"s\":%u", (unsigned long long)reading->t_ns, reading->source);
	for (unsigned i = 0; i < reading->lists; i++) {
		text_addf(out, "%s\"%u\":", i ? "," : ",\"v\":{", reading->list[i].entity);
		text_add_bytes(out, reading->list[i].text, reading->list[i].size);
	}
	text_add(out, reading->lists ? "}" : "");
	if (reading->ends_all)
		text_add(out, ",\"end\":true");
	else if (reading->ends)
		text_addf(out, ",\"end\":%u", reading->end);
	text_add(out, reading->alone ? ",\"alone\":true" : "");
	text_add(out, reading->slow ? ",\"slow\":true" : "");
	if (reading->rare_ns)
		text_addf(out, ",\"rare\":%llu", (unsigned long long)reading->rare_ns);
	text_add(out, reading->done ? ",\"done\":true}" : "}");
}

/* Two entities of a source may be one of the node: live runs of the same name in two folders. Their values
 * are joined as JSON. */
static bool map_reading(const struct child *c, struct reading_line *reading, unsigned source)
{
	struct reading_list *list = reading->list;
	bool all = true;

	reading->source = source;
	for (unsigned i = 0; i < reading->lists; i++)
		all = all && map_number(c, &list[i].entity) && (!i || list[i].entity > list[i - 1].entity);
	return all && (!reading->ends || reading->ends_all || map_number(c, &reading->end));
}

/* Takes a reading without a JSON tree. False: the line is something else, or wrong. */
static bool take_reading(struct node *n, unsigned source, const char *line, size_t size)
{
	struct child *c = &n->source[source];
	struct reading_line reading;
	struct text text = {0};
	struct error err = {0};

	if (c->told || !reading_line_parse(&reading, line, size) || !map_reading(c, &reading, source) ||
	    !watch_state_reading(&n->state, &reading))
		return false;
	if (reading.done || reading.ends_all)
		c->failures = 0;
	add_reading(&text, &reading);
	if (!text.failed)
		queue(n, text_str(&text), text.size, STATUS_OK, &err);
	text_release(&text);
	return true;
}

bool node_take(struct node *n, unsigned source, const char *text, size_t size)
{
	if (take_reading(n, source, text, size))
		return true;
	return take_json(n, source, text, size);
}

void node_declare_gpu(struct node *n, const char *pci, unsigned number)
{
	uint32_t id = 0;

	while (!is_free(&n->state, id))
		id++;
	node_sendf(n,
		   "{\"e\":%u,\"s\":%d,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"%s\",\"gpu\":\"%u\"}}",
		   id, WATCH_SOURCE_gpu, pci, number);
}
