/* SPDX-License-Identifier: Apache-2.0 */
/* One line of the stream. A line is checked as a whole before it changes anything: `take` runs twice, first
 * with apply false. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/utf8.h"
#include "watch/line_text.h"
#include "watch/reading_line.h"
#include "watch/state_parts.h"

enum status watch_no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the state of a node");
}

bool watch_time_of(const json_t *j, uint64_t *t_ns)
{
	if (!json_is_integer(j) || json_integer_value(j) <= 0)
		return false;
	*t_ns = (uint64_t)json_integer_value(j);
	return true;
}

/* An id of the stream: 0 to WATCH_ENTITIES_MAX - 1. */
static bool id_of(const json_t *j, uint32_t *id)
{
	json_int_t value = json_integer_value(j);

	if (!json_is_integer(j) || value < 0 || value >= WATCH_ENTITIES_MAX)
		return false;
	*id = (uint32_t)value;
	return true;
}

static bool key_id(const char *key, uint32_t *id)
{
	char *end;
	unsigned long value = strtoul(key, &end, 10);

	if (*end || end == key || strlen(key) > 5 || value >= WATCH_ENTITIES_MAX ||
	    strspn(key, "0123456789") != strlen(key))
		return false;
	*id = (uint32_t)value;
	return true;
}

static struct watch_entity *known(struct watch_state *s, uint32_t id)
{
	struct watch_entity *e = id < s->count ? &s->entity[id] : NULL;

	return e && (e->scope < METRIC_SCOPE_COUNT || e->foreign) ? e : NULL;
}

static bool make_room(struct watch_state *s, uint32_t id)
{
	uint32_t room = s->room ? s->room : 64;
	struct watch_entity *entity;

	while (room <= id)
		room *= 2;
	if (room > s->room) {
		entity = realloc(s->entity, room * sizeof(*entity));
		if (!entity)
			return false;
		for (uint32_t i = s->room; i < room; i++)
			entity[i] = (struct watch_entity){.scope = METRIC_SCOPE_COUNT};
		s->bytes += (room - s->room) * sizeof(*entity);
		s->entity = entity;
		s->room = room;
	}
	if (id >= s->count)
		s->count = id + 1;
	return true;
}

static enum status check_labels(const struct watch_state *s, const json_t *labels, enum metric_scope scope,
				const struct watch_entity *e, struct error *err)
{
	const char *name;
	json_t *value;

	(void)s;
	if (labels && !json_is_object(labels))
		return WRONG(err, "the labels of an entity are not an object");
	json_object_foreach((json_t *)labels, name, value)
	{
		const char *now = e ? watch_label(e, name) : NULL;
		char cleaned[WATCH_TEXT_MAX];

		if (!line_text_is_name(name) || (!json_is_string(value) && !json_is_null(value)))
			return WRONG(err, "a label of an entity has no valid name or value");
		if (!now || scope == METRIC_SCOPE_COUNT || !metric_scope_has(scope, name, true))
			continue;
		if (json_is_string(value))
			line_text_clean(cleaned, json_string_value(value));
		if (json_is_null(value) || strcmp(cleaned, now))
			return WRONG(err, "the label %.60s of entity %u cannot change", name, e->id);
	}
	return STATUS_OK;
}

static void remove_label(struct watch_state *s, struct watch_entity *e, unsigned i)
{
	watch_set_text(s, &e->label[i].name, NULL);
	watch_set_text(s, &e->label[i].value, NULL);
	e->label[i] = e->label[--e->label_count];
	e->label[e->label_count] = (struct watch_label){0};
}

static bool set_label(struct watch_state *s, struct watch_entity *e, const char *name, const json_t *value)
{
	char cleaned[WATCH_TEXT_MAX];
	unsigned i = 0;

	while (i < e->label_count && strcmp(e->label[i].name, name))
		i++;
	if (json_is_null(value)) {
		if (i < e->label_count)
			remove_label(s, e, i);
		return true;
	}
	line_text_clean(cleaned, json_string_value(value));
	if (i == WATCH_LABELS_MAX)
		return true; /* a newer assay has more labels than this one */
	if (i == e->label_count) {
		if (!watch_set_text(s, &e->label[i].name, name))
			return false;
		e->label_count++;
	}
	return watch_set_text(s, &e->label[i].value, cleaned);
}

static enum status check_entity(struct watch_state *s, const json_t *j, struct error *err)
{
	const char *name = json_string_value(json_object_get(j, "scope"));
	const json_t *source = json_object_get(j, "s"), *of = json_object_get(j, "of");
	enum metric_scope scope = name ? metric_scope_find(name) : METRIC_SCOPE_COUNT;
	struct watch_entity *e;
	uint32_t id, parent;

	if (!id_of(json_object_get(j, "e"), &id))
		return WRONG(err, "an entity's number is not below %d", WATCH_ENTITIES_MAX);
	e = known(s, id);
	if (e && name && e->scope != scope)
		return WRONG(err, "entity %u cannot become another thing before it is gone", id);
	if (!e && (!name || !json_is_integer(source)))
		return WRONG(err, "entity %u lacks scope or source", id);
	if (json_is_integer(source) &&
	    (json_integer_value(source) < 0 || json_integer_value(source) >= s->source_count))
		return WRONG(err, "entity %u has a source that the header does not name", id);
	if (of &&
	    (!id_of(of, &parent) || parent == id || !known(s, parent) || s->entity[parent].of != parent))
		return WRONG(err, "entity %u belongs to an entity that does not exist or is a part itself",
			     id);
	if (of && e && e->of != parent)
		return WRONG(err, "entity %u cannot belong to another entity before it is gone", id);
	if (!e && scope < METRIC_SCOPE_COUNT && s->of_scope[scope] >= metric_scope_row(scope)->most)
		return WRONG(err, "more than %u entities of scope %s", metric_scope_row(scope)->most, name);
	return check_labels(s, json_object_get(j, "labels"), e ? e->scope : scope, e, err);
}

static enum status take_entity(struct watch_state *s, const json_t *j, struct error *err)
{
	const char *scope = json_string_value(json_object_get(j, "scope")), *name;
	const json_t *source = json_object_get(j, "s");
	struct watch_entity *e;
	json_t *value;
	uint32_t id = 0;

	id_of(json_object_get(j, "e"), &id);
	if (!make_room(s, id))
		return watch_no_memory(err);
	e = &s->entity[id];
	if (!known(s, id)) {
		enum metric_scope found = metric_scope_find(scope);
		unsigned rows = found < METRIC_SCOPE_COUNT ? catalogue_scope_rows(found) : 0;

		*e = (struct watch_entity){.id = id, .of = id, .scope = found, .rows = rows};
		e->first = rows ? catalogue_first(found) : CATALOGUE_COUNT;
		e->foreign = found == METRIC_SCOPE_COUNT;
		e->value = rows ? calloc(rows, sizeof(*e->value)) : NULL;
		if (rows && !e->value) {
			e->scope = METRIC_SCOPE_COUNT;
			return watch_no_memory(err);
		}
		s->bytes += rows * sizeof(*e->value);
		if (found < METRIC_SCOPE_COUNT)
			s->of_scope[found]++;
	}
	e->doubtful = false;
	if (json_is_integer(source))
		e->source = (unsigned)json_integer_value(source);
	if (json_object_get(j, "of"))
		id_of(json_object_get(j, "of"), &e->of);
	json_object_foreach(json_object_get(j, "labels"), name,
			    value) if (!set_label(s, e, name, value)) return watch_no_memory(err);
	return STATUS_OK;
}

/* {"why": text or null, "s"?, "e"?}. */
static enum status check_why(struct watch_state *s, const json_t *j, struct error *err)
{
	const json_t *why = json_object_get(j, "why"), *e = json_object_get(j, "e"),
		     *source = json_object_get(j, "s");
	uint32_t id;

	if (!json_is_string(why) && !json_is_null(why))
		return WRONG(err, "a reason is no text");
	if (e && (!id_of(e, &id) || !known(s, id)))
		return WRONG(err, "a reason is for an entity that does not exist");
	if (!e && (!json_is_integer(source) || json_integer_value(source) < 0 ||
		   json_integer_value(source) >= s->source_count))
		return WRONG(err, "a reason is for a source that the header does not name");
	return STATUS_OK;
}

static enum status take_why(struct watch_state *s, const json_t *j, struct error *err)
{
	const char *why = json_string_value(json_object_get(j, "why"));
	char cleaned[WATCH_TEXT_MAX];
	uint32_t id;
	char **place;

	if (why)
		line_text_clean(cleaned, why);
	if (id_of(json_object_get(j, "e"), &id)) {
		place = &s->entity[id].why;
		if (why)
			watch_forget_values(s, &s->entity[id]);
	} else {
		place = &s->source[json_integer_value(json_object_get(j, "s"))].why;
	}
	return watch_set_text(s, place, why ? cleaned : NULL) ? STATUS_OK : watch_no_memory(err);
}

/* Begin: a source starts anew. Its values are absent until it gives new ones. */
static void take_begin(struct watch_state *s, unsigned source)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct watch_entity *e = known(s, i);

		if (!e || e->source != source)
			continue;
		watch_forget_values(s, e);
		e->doubtful = true;
	}
	watch_set_text(s, &s->source[source].why, NULL);
}

/* Removes an entity with all that belong to it. */
static void remove_entity(struct watch_state *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (i != id && known(s, i) && s->entity[i].of == id)
			watch_free_entity(s, &s->entity[i]);
	watch_free_entity(s, &s->entity[id]);
}

static void remove_doubtful(struct watch_state *s, int source)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct watch_entity *e = known(s, i);

		if (e && e->doubtful && (source < 0 || e->source == (unsigned)source))
			remove_entity(s, i);
	}
}

/* The row at a position of the stream; CATALOGUE_COUNT: not known here. */
static enum status row_at(const struct watch_state *s, const json_t *position, enum catalogue *row,
			  struct error *err)
{
	json_int_t at = json_integer_value(position);

	if (!json_is_integer(position) || at < 0 || (uint64_t)at >= s->row_count)
		return WRONG(err, "a value is for a metric that the header does not name");
	*row = s->row[at];
	return STATUS_OK;
}

static void set_value(struct watch_state *s, struct watch_value *v, bool absent, double value, uint64_t t_ns)
{
	if (v->why)
		watch_set_text(s, &v->why, NULL);
	if (absent) {
		v->present = false;
		v->before_ns = 0;
		return;
	}
	if (v->present && t_ns > v->t_ns) {
		v->before = v->value;
		v->before_ns = v->t_ns;
	} else if (!v->present) {
		v->before_ns = 0;
	}
	v->value = value + 0.0; /* -0.0 becomes 0.0 */
	v->t_ns = t_ns;
	v->present = true;
}

/* When a row was read. */
static uint64_t time_of(const struct watch_reading *r, enum catalogue row)
{
	return catalogue_row(row)->pace == METRIC_RARE && r->rare_ns ? r->rare_ns : r->t_ns;
}

static enum status take_list(struct watch_state *s, struct watch_entity *e, const json_t *list,
			     const struct watch_reading *r, bool reasons, bool apply, struct error *err)
{
	if (!json_is_array(list) || json_array_size(list) % 2)
		return WRONG(err, "the values of entity %u are not pairs", e->id);
	for (size_t i = 0; i < json_array_size(list); i += 2) {
		const json_t *value = json_array_get(list, i + 1);
		enum catalogue row = CATALOGUE_COUNT;
		enum status st = row_at(s, json_array_get(list, i), &row, err);
		struct watch_value *v;
		char cleaned[WATCH_TEXT_MAX];

		if (st)
			return st;
		if (reasons ? !json_is_string(value)
			    : !json_is_null(value) &&
				      (!json_is_number(value) || !isfinite(json_number_value(value))))
			return WRONG(err, "a value of entity %u is neither a number nor null", e->id);
		if (row == CATALOGUE_COUNT || e->foreign)
			continue;
		if (catalogue_row(row)->scope != e->scope)
			return WRONG(err, "entity %u has no metric %s", e->id, catalogue_row(row)->name);
		if (!apply)
			continue;
		v = &e->value[row - e->first];
		if (!reasons) {
			set_value(s, v, json_is_null(value), json_number_value(value), time_of(r, row));
			continue;
		}
		v->present = false;
		v->before_ns = 0;
		line_text_clean(cleaned, json_string_value(value));
		if (!watch_set_text(s, &v->why, cleaned))
			return watch_no_memory(err);
	}
	return STATUS_OK;
}

static bool goes_back(const struct watch_entity *e, const struct watch_reading *r)
{
	return r->t_ns < e->heard_ns[r->slow ? METRIC_SLOW : METRIC_FAST] ||
	       (r->rare_ns && r->rare_ns < e->heard_ns[METRIC_RARE]);
}

/* {"3": [position, value, ..], ..} under "v" or "x". */
static enum status take_map(struct watch_state *s, const json_t *j, const char *name,
			    const struct watch_reading *r, bool apply, struct error *err)
{
	json_t *map = json_object_get(j, name), *list;
	enum status st = STATUS_OK;
	const char *key;

	if (map && !json_is_object(map))
		return WRONG(err, "\"%s\" is not an object", name);
	json_object_foreach(map, key, list)
	{
		struct watch_entity *e;
		uint32_t id;

		if (!key_id(key, &id) || !(e = known(s, id)))
			return WRONG(err, "a value is for entity %.20s, which does not exist", key);
		if (e->source != r->source)
			return WRONG(err, "entity %u belongs to another source", id);
		if (goes_back(e, r))
			return WRONG(err, "the time of entity %u goes back", id);
		st = take_list(s, e, list, r, *name == 'x', apply, err);
		if (st)
			return st;
	}
	return STATUS_OK;
}

/* What a reading ends: nothing, an entity with its parts or alone, or all entities of the source. */
struct reading_end {
	bool any, all, alone, done; /* done: a round of the source */
	uint32_t id;
};

static void end_entities(struct watch_state *s, const struct reading_end *end, const struct watch_reading *r)
{
	if (!end->any)
		return;
	for (uint32_t i = 0; i < s->count; i++) {
		struct watch_entity *e = known(s, i);

		if (e && e->source == r->source && !e->doubtful &&
		    (end->all || i == end->id || (e->of == end->id && !end->alone)))
			watch_end_entity(s, e, r);
	}
}

static void end_reading(struct watch_state *s, const struct reading_end *end, const struct watch_reading *r)
{
	end_entities(s, end, r);
	if (end->done || end->all) {
		if (r->t_ns > s->source[r->source].heard_ns)
			s->source[r->source].heard_ns = r->t_ns;
		remove_doubtful(s, (int)r->source);
		s->readings++;
	}
	if (r->t_ns > s->now_ns)
		s->now_ns = r->t_ns;
}

/* Whether each part of the line is right for this state. If not, the line is taken as JSON, which tells what
 * is wrong. */
static bool fits(struct watch_state *s, const struct reading_line *l, const struct watch_reading *r)
{
	if (!*s->node || s->bytes > WATCH_BYTES_MAX || r->source >= s->source_count ||
	    (l->ends && !l->ends_all && !known(s, l->end)))
		return false;
	for (unsigned i = 0; i < l->lists; i++) {
		const struct reading_list *list = &l->list[i];
		const struct watch_entity *e = known(s, list->entity);

		if (!e || e->source != r->source || goes_back(e, r))
			return false;
		for (unsigned k = list->first; k < list->first + list->count; k++) {
			enum catalogue row;

			if (l->value[k].position >= s->row_count)
				return false;
			row = s->row[l->value[k].position];
			if (row != CATALOGUE_COUNT && !e->foreign && catalogue_row(row)->scope != e->scope)
				return false;
		}
	}
	return true;
}

bool watch_state_reading(struct watch_state *s, const struct reading_line *l)
{
	const struct watch_reading r = {
		.t_ns = l->t_ns, .rare_ns = l->rare_ns, .source = l->source, .slow = l->slow};

	if (!fits(s, l, &r))
		return false;
	for (unsigned i = 0; i < l->lists; i++) {
		struct watch_entity *e = known(s, l->list[i].entity);

		for (unsigned k = l->list[i].first; k < l->list[i].first + l->list[i].count; k++) {
			const struct reading_value *v = &l->value[k];
			enum catalogue row = s->row[v->position];

			if (row != CATALOGUE_COUNT && !e->foreign)
				set_value(s, &e->value[row - e->first], v->absent, v->value,
					  time_of(&r, row));
		}
	}
	end_reading(s, &(struct reading_end){l->ends, l->ends_all, l->alone, l->done, l->end}, &r);
	return true;
}

static enum status read_times(const json_t *j, struct watch_reading *r, struct error *err)
{
	const json_t *rare = json_object_get(j, "rare");

	if (!watch_time_of(json_object_get(j, "t"), &r->t_ns))
		return WRONG(err, "a reading has no time");
	r->slow = json_is_true(json_object_get(j, "slow"));
	if (rare && (!r->slow || !watch_time_of(rare, &r->rare_ns) || r->rare_ns > r->t_ns))
		return WRONG(err, "the RARE rows of a reading have no possible time");
	return STATUS_OK;
}

/* {"t", "s", "v"?, "x"?, "end"?, "alone"?, "slow"?, "rare"?, "done"?}. */
static enum status take_reading(struct watch_state *s, const json_t *j, bool apply, struct error *err)
{
	const json_t *source = json_object_get(j, "s"), *end = json_object_get(j, "end");
	struct reading_end ending = {.all = json_is_true(end),
				     .alone = json_is_true(json_object_get(j, "alone")),
				     .done = json_is_true(json_object_get(j, "done"))};
	struct watch_reading r = {0};
	enum status st = read_times(j, &r, err);
	uint32_t id;

	if (st)
		return st;
	if (!json_is_integer(source) || json_integer_value(source) < 0 ||
	    json_integer_value(source) >= s->source_count)
		return WRONG(err, "a reading has a source that the header does not name");
	if (end && !json_is_true(end) && (!id_of(end, &id) || !known(s, id)))
		return WRONG(err, "a reading ends for an entity that does not exist");
	r.source = (unsigned)json_integer_value(source);
	st = take_map(s, j, "v", &r, apply, err);
	if (!st)
		st = take_map(s, j, "x", &r, apply, err);
	if (st || !apply)
		return st;
	ending.any = ending.all || id_of(end, &ending.id);
	end_reading(s, &ending, &r);
	return STATUS_OK;
}

/* {"t", "wall"?, "whole"?}: the node is there. whole: the copy of the state ends here. */
static enum status take_heartbeat(struct watch_state *s, const json_t *j, bool apply, struct error *err)
{
	const json_t *wall = json_object_get(j, "wall");
	uint64_t t_ns;

	if (!watch_time_of(json_object_get(j, "t"), &t_ns) || (wall && !json_is_number(wall)))
		return WRONG(err, "a heartbeat has no time");
	if (!apply)
		return STATUS_OK;
	if (t_ns > s->now_ns)
		s->now_ns = t_ns;
	if (wall) {
		s->wall = json_number_value(wall);
		s->wall_ns = t_ns;
	}
	if (json_is_true(json_object_get(j, "whole")))
		remove_doubtful(s, -1);
	return STATUS_OK;
}

static enum status take_gone(struct watch_state *s, const json_t *j, bool apply, struct error *err)
{
	const json_t *gone = json_object_get(j, "gone");
	uint32_t id;

	if (!id_of(gone, &id))
		return WRONG(err, "\"gone\" names no entity");
	if (apply && known(s, id))
		remove_entity(s, id);
	return STATUS_OK;
}

static enum status take(struct watch_state *s, const json_t *j, bool apply, struct error *err)
{
	const json_t *source = json_object_get(j, "s");

	if (json_object_get(j, "watch"))
		return apply ? watch_take_header(s, j, err) : watch_check_header(j, err);
	if (!*s->node)
		return WRONG(err, "the stream begins without a header");
	if (json_object_get(j, "gone"))
		return take_gone(s, j, apply, err);
	if (json_object_get(j, "why"))
		return apply ? take_why(s, j, err) : check_why(s, j, err);
	if (json_object_get(j, "begin")) {
		if (!json_is_integer(source) || json_integer_value(source) < 0 ||
		    json_integer_value(source) >= s->source_count)
			return WRONG(err, "a source begins that the header does not name");
		if (apply)
			take_begin(s, (unsigned)json_integer_value(source));
		return STATUS_OK;
	}
	if (json_object_get(j, "e"))
		return apply ? take_entity(s, j, err) : check_entity(s, j, err);
	if (source)
		return take_reading(s, j, apply, err);
	if (json_object_get(j, "t"))
		return take_heartbeat(s, j, apply, err);
	return STATUS_OK; /* a newer assay has other lines too */
}

/* Invalid UTF-8 becomes U+FFFD. */
static json_t *parse(const char *line, size_t size, json_error_t *why)
{
	json_t *j = json_loadb(line, size, JSON_REJECT_DUPLICATES, why);
	struct text copy = {0}, cleaned = {0};

	if (j || json_error_code(why) != json_error_invalid_utf8 || memchr(line, '\0', size))
		return j;
	text_add_bytes(&copy, line, size);
	utf8_add_clean(&cleaned, text_str(&copy), UTF8_KEEP_NOTHING);
	j = json_loadb(text_str(&cleaned), cleaned.size, JSON_REJECT_DUPLICATES, why);
	text_release(&copy);
	text_release(&cleaned);
	return j;
}

enum status watch_state_object(struct watch_state *s, const json_t *line, struct error *err)
{
	enum status st = take(s, line, false, err);

	if (!st)
		st = take(s, line, true, err);
	if (!st && s->bytes > WATCH_BYTES_MAX)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "the node sends more than %d MB of state", WATCH_BYTES_MAX >> 20);
	return st;
}

enum status watch_state_line(struct watch_state *s, const char *line, size_t size, struct error *err)
{
	struct reading_line reading;
	json_error_t why;
	json_t *j;
	enum status st;

	if (size > WATCH_LINE_MAX)
		return WRONG(err, "a line of the stream has more than %d bytes", WATCH_LINE_MAX);
	if (reading_line_parse(&reading, line, size) && watch_state_reading(s, &reading))
		return STATUS_OK;
	j = parse(line, size, &why);
	if (json_is_object(j))
		st = watch_state_object(s, j, err);
	else
		st = WRONG(err, "a line of the stream is not a JSON object");
	json_decref(j);
	return st;
}
