/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/read/out.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/text/utf8.h"
#include "watch/state.h"

void out_init(struct watch_out *o, int fd)
{
	*o = (struct watch_out){.fd = fd};
}

void out_release(struct watch_out *o)
{
	for (uint32_t i = 0; i < o->count; i++)
		free(o->entity[i].value);
	free(o->entity);
	text_release(&o->text);
	*o = (struct watch_out){.fd = -1};
}

void out_add_string(struct text *t, const char *s)
{
	size_t size, left = WATCH_TEXT_MAX - 1;

	text_add(t, "\"");
	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		if (left < 3)
			break;
		left -= size < 3 ? size : 3;
		if (utf8_is_control(code))
			text_add(t, " ");
		else if (code == UTF8_REPLACEMENT)
			text_add(t, "\xef\xbf\xbd");
		else if (code == '"' || code == '\\')
			text_addf(t, "\\%c", (int)code);
		else
			text_add_bytes(t, s, size);
	}
	text_add(t, "\"");
}

static uint32_t free_place(struct watch_out *o)
{
	uint32_t id = 0, room = o->room ? 2 * o->room : 64;
	struct out_entity *more;

	while (id < o->count && o->entity[id].used)
		id++;
	if (id == o->room) {
		more = id < WATCH_ENTITIES_MAX ? realloc(o->entity, room * sizeof(*more)) : NULL;
		if (!more)
			return OUT_NONE;
		o->entity = more;
		o->room = room;
	}
	if (id == o->count)
		o->count++;
	return id;
}

uint32_t out_entity(struct watch_out *o, enum metric_scope scope, uint32_t of, ...)
{
	uint32_t id = free_place(o);
	const char *name, *value;
	bool any = false;
	va_list args;

	if (id == OUT_NONE)
		return id;
	o->entity[id] = (struct out_entity){.used = true,
					    .scope = scope,
					    .of = of,
					    .first = catalogue_first(scope),
					    .rows = catalogue_scope_rows(scope)};
	o->entity[id].value = calloc(o->entity[id].rows, sizeof(struct out_value));
	if (!o->entity[id].value) {
		o->entity[id].used = false;
		return OUT_NONE;
	}
	text_addf(&o->text, "{\"e\":%u,\"s\":0,\"scope\":\"%s\"", id, metric_scope_row(scope)->name);
	if (of != OUT_NONE)
		text_addf(&o->text, ",\"of\":%u", of);
	text_add(&o->text, ",\"labels\":{");
	va_start(args, of);
	while ((name = va_arg(args, const char *))) {
		value = va_arg(args, const char *);
		if (!value)
			continue;
		text_addf(&o->text, "%s\"%s\":", any ? "," : "", name);
		out_add_string(&o->text, value);
		any = true;
	}
	va_end(args);
	text_add(&o->text, "}}\n");
	return id;
}

static struct out_entity *at(struct watch_out *o, uint32_t e)
{
	return e < o->count && o->entity[e].used ? &o->entity[e] : NULL;
}

void out_label(struct watch_out *o, uint32_t e, const char *name, const char *value)
{
	if (!at(o, e))
		return;
	text_addf(&o->text, "{\"e\":%u,\"labels\":{\"%s\":", e, name);
	if (value)
		out_add_string(&o->text, value);
	else
		text_add(&o->text, "null");
	text_add(&o->text, "}}\n");
}

static void forget(struct watch_out *o, uint32_t e)
{
	free(o->entity[e].value);
	o->entity[e] = (struct out_entity){0};
}

void out_gone(struct watch_out *o, uint32_t e)
{
	if (!at(o, e))
		return;
	text_addf(&o->text, "{\"gone\":%u}\n", e);
	for (uint32_t i = 0; i < o->count; i++)
		if (o->entity[i].used && o->entity[i].of == e && i != e)
			forget(o, i);
	forget(o, e);
}

void out_why(struct watch_out *o, uint32_t e, const char *why)
{
	struct out_entity *entity = at(o, e);
	unsigned rows = entity ? entity->rows : 0;

	if (!entity || (!why && !entity->lost))
		return;
	text_addf(&o->text, "{\"s\":0,\"e\":%u,\"why\":", e);
	if (why)
		out_add_string(&o->text, why);
	else
		text_add(&o->text, "null");
	text_add(&o->text, "}\n");
	entity->lost = why != NULL;
	for (unsigned i = 0; why && i < rows; i++)
		entity->value[i] = (struct out_value){0};
}

static double rounded(double value, double resolution)
{
	if (!(resolution > 0))
		return value;
	if (resolution < 1) { /* an exact decimal: few digits in the stream */
		double steps = round(1 / resolution);

		return round(value * steps) / steps;
	}
	return round(value / resolution) * resolution;
}

static struct out_value *value_at(struct out_entity *entity, enum catalogue row)
{
	return &entity->value[row - entity->first];
}

static void change(struct out_entity *entity, struct out_value *v)
{
	v->pending = entity->pending = true;
}

void out_set(struct watch_out *o, uint32_t e, enum catalogue row, double value)
{
	struct out_entity *entity = at(o, e);
	struct out_value *v;

	if (!entity || !isfinite(value))
		return;
	v = value_at(entity, row);
	v->touched = true;
	value = rounded(value, catalogue_row(row)->resolution);
	if (!v->present || v->value < value || v->value > value)
		change(entity, v);
	v->value = value;
	v->present = true;
	v->why = NULL;
}

void out_absent(struct watch_out *o, uint32_t e, enum catalogue row, const char *why)
{
	struct out_entity *entity = at(o, e);
	struct out_value *v = entity ? value_at(entity, row) : NULL;

	if (!v)
		return;
	v->touched = true;
	if (v->present || v->why != why)
		change(entity, v);
	v->present = false;
	v->why = why;
}

/* Values that were not read in this reading are absent now. pace: the slowest rows that were read. */
static void close_values(struct out_entity *entity, enum metric_pace pace)
{
	enum catalogue first = entity->first;
	unsigned rows = entity->rows;

	for (unsigned i = 0; i < rows; i++) {
		struct out_value *v = &entity->value[i];

		if (catalogue_row(first + i)->pace > pace)
			continue;
		if (v->present && !v->touched) {
			v->present = false;
			change(entity, v);
		}
		v->touched = false;
	}
}

/* Appends the values (or reasons) of an entity that wait, as "ID":[..]. */
static void add_pending(struct watch_out *o, uint32_t e, bool reasons, bool *any)
{
	struct out_entity *entity = &o->entity[e];
	enum catalogue first = entity->first;
	unsigned rows = entity->rows;
	bool begun = false;

	for (unsigned i = 0; i < rows; i++) {
		const struct out_value *v = &entity->value[i];

		if (!v->pending || (v->why != NULL) != reasons)
			continue;
		if (!begun)
			text_addf(&o->text, "%s\"%u\":[", *any ? "," : "", e);
		text_addf(&o->text, "%s%u,", begun ? "," : "", (unsigned)first + i);
		if (reasons)
			out_add_string(&o->text, v->why);
		else if (v->present)
			text_addf(&o->text, "%.15g", v->value);
		else
			text_add(&o->text, "null");
		begun = *any = true;
	}
	if (begun)
		text_add(&o->text, "]");
}

static bool is_part(const struct watch_out *o, uint32_t i, uint32_t e)
{
	return o->entity[i].used && (e == OUT_NONE || i == e || o->entity[i].of == e);
}

static void add_map(struct watch_out *o, uint32_t e, const char *name, bool reasons)
{
	size_t before = o->text.size;
	bool any = false;

	text_addf(&o->text, ",\"%s\":{", name);
	for (uint32_t i = 0; i < o->count; i++)
		if (is_part(o, i, e) && o->entity[i].pending)
			add_pending(o, i, reasons, &any);
	text_add(&o->text, "}");
	if (!any && !o->text.failed) {
		o->text.size = before;
		o->text.data[before] = '\0';
	}
}

static void end_reading(struct watch_out *o, uint32_t e, uint64_t t_ns, enum metric_pace pace)
{
	for (uint32_t i = 0; i < o->count; i++)
		if (is_part(o, i, e))
			close_values(&o->entity[i], pace);
	text_addf(&o->text, "{\"t\":%llu,\"s\":0", (unsigned long long)t_ns);
	add_map(o, e, "v", false);
	add_map(o, e, "x", true);
	for (uint32_t i = 0; i < o->count; i++) {
		if (!is_part(o, i, e) || !o->entity[i].pending)
			continue;
		for (unsigned k = 0; k < o->entity[i].rows; k++)
			o->entity[i].value[k].pending = false;
		o->entity[i].pending = false;
	}
	if (e == OUT_NONE)
		text_add(&o->text, ",\"end\":true");
	else
		text_addf(&o->text, ",\"end\":%u", e);
	if (pace >= METRIC_SLOW)
		text_add(&o->text, ",\"slow\":true");
	if (pace == METRIC_RARE)
		text_addf(&o->text, ",\"rare\":%llu", (unsigned long long)t_ns);
	text_add(&o->text, "}\n");
}

void out_end(struct watch_out *o, uint32_t e, uint64_t t_ns, bool slow)
{
	end_reading(o, e, t_ns, slow ? METRIC_SLOW : METRIC_FAST);
}

void out_end_rare(struct watch_out *o, uint32_t e, uint64_t t_ns)
{
	end_reading(o, e, t_ns, METRIC_RARE);
}

void out_done(struct watch_out *o, uint64_t t_ns)
{
	text_addf(&o->text, "{\"t\":%llu,\"s\":0,\"done\":true}\n", (unsigned long long)t_ns);
}

bool out_flush(struct watch_out *o)
{
	size_t done = 0;

	while (done < o->text.size) {
		ssize_t n = write(o->fd, o->text.data + done, o->text.size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		done += (size_t)n;
	}
	text_release(&o->text);
	return true;
}
