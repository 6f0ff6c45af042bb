/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block names the source and its signals once a second and stores each time as the difference to the
 * previous one. One line for each signal and flush would spend two thirds of its bytes on names.
 */
#include "journal/telemetry/telemetry_block.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void telemetry_block_add(struct telemetry_block *b, const char *source, const char *signal,
			 enum signal_kind kind, uint64_t t_ns, double value)
{
	struct series *s;

	if (series_find(&s, &b->series, &b->count, source, signal, kind, NULL))
		return;
	b->readings += !series_add(s, t_ns, value, NULL);
}

static uint64_t first_of(const struct telemetry_block *b, const char *source)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < b->count; i++)
		if (b->series[i].count && !strcmp(b->series[i].source, source) &&
		    b->series[i].t_ns[0] < first)
			first = b->series[i].t_ns[0];
	return first;
}

static json_t *number(double value)
{
	return value == rint(value) && fabs(value) < 9e15 ? json_integer((json_int_t)value)
							  : json_real(value);
}

static json_t *readings_json(const struct series *s, uint64_t from_ns)
{
	json_t *after = json_array(), *v = json_array();

	for (size_t i = 0; i < s->count; i++) {
		json_array_append_new(after, json_integer((json_int_t)(s->t_ns[i] - from_ns)));
		json_array_append_new(v, number(s->value[i]));
		from_ns = s->t_ns[i];
	}
	return json_pack("{s:s, s:o, s:o}", "kind", signal_kind_name(s->kind), "after", after, "v", v);
}

json_t *telemetry_block_take(struct telemetry_block *b)
{
	const char *source = NULL;
	json_t *signals;
	uint64_t from_ns;

	for (size_t i = 0; i < b->count && !source; i++)
		source = b->series[i].count ? b->series[i].source : NULL;
	if (!source)
		return NULL;
	signals = json_object();
	from_ns = first_of(b, source);
	for (size_t i = 0; i < b->count; i++) {
		struct series *s = &b->series[i];

		if (!s->count || strcmp(s->source, source))
			continue;
		json_object_set_new(signals, s->signal, readings_json(s, from_ns));
		b->readings -= s->count;
		s->count = 0;
	}
	return json_pack("{s:s, s:I, s:o}", "source", source, "from", (json_int_t)from_ns, "signals",
			 signals);
}

void telemetry_block_release(struct telemetry_block *b)
{
	for (size_t i = 0; i < b->count; i++)
		series_release(&b->series[i]);
	free(b->series);
	*b = (struct telemetry_block){0};
}

enum signal_kind telemetry_block_kind(const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "kind"));
	enum signal_kind kind = SIGNAL_GAUGE;

	signal_kind_from_name(text ? text : "", &kind);
	return kind;
}

/* null: the reading is absent. A reading out of order is lost and shows as a gap. */
static void add_reading(struct series *s, json_int_t t_ns, const json_t *value, uint64_t shift_ns)
{
	if (json_is_number(value))
		series_add(s, (uint64_t)t_ns + shift_ns, json_number_value(value), NULL);
}

/* Stops at an invalid time, because later times are relative to it. */
static void add_after(struct series *s, json_int_t t_ns, const json_t *signal, uint64_t shift_ns)
{
	const json_t *after = json_object_get(signal, "after"), *v = json_object_get(signal, "v");

	for (size_t i = 0; i < json_array_size(after) && i < json_array_size(v); i++) {
		const json_t *more = json_array_get(after, i);

		if (!json_is_integer(more) || json_integer_value(more) < 0 ||
		    json_integer_value(more) > INT64_MAX - t_ns)
			return;
		t_ns += json_integer_value(more);
		add_reading(s, t_ns, json_array_get(v, i), shift_ns);
	}
}

static void add_at(struct series *s, const json_t *body, uint64_t shift_ns)
{
	const json_t *at = json_object_get(body, "at"), *v = json_object_get(body, "v");

	for (size_t i = 0; i < json_array_size(at) && i < json_array_size(v); i++) {
		const json_t *time = json_array_get(at, i);

		if (json_is_integer(time) && json_integer_value(time) >= 0)
			add_reading(s, json_integer_value(time), json_array_get(v, i), shift_ns);
	}
}

/* Ignores an invalid name and a name over the limit: neither may set the caller's error. */
static enum status find_series(struct series **s, struct series **series, size_t *count, const char *source,
			       const char *signal, enum signal_kind kind, struct error *err)
{
	enum status st = series_find(s, series, count, source, signal, kind, NULL);

	return st == STATUS_NO_RESOURCE ? error_errno(err, ENOMEM, "%s %s: a series", source, signal)
					: STATUS_OK;
}

static enum status read_block(const json_t *body, struct series **series, size_t *count, uint64_t shift_ns,
			      struct error *err)
{
	const char *source = json_string_value(json_object_get(body, "source")), *name;
	const json_t *from = json_object_get(body, "from");
	json_t *signal;
	struct series *s;

	if (!json_is_integer(from) || json_integer_value(from) < 0)
		return STATUS_OK;
	json_object_foreach(json_object_get(body, "signals"), name, signal)
	{
		enum status st =
			find_series(&s, series, count, source, name, telemetry_block_kind(signal), err);

		if (st)
			return st;
		if (s)
			add_after(s, json_integer_value(from), signal, shift_ns);
	}
	return STATUS_OK;
}

enum status telemetry_block_read(const json_t *body, struct series **series, size_t *count, uint64_t shift_ns,
				 struct error *err)
{
	struct series *s;
	enum status st;

	if (json_object_get(body, "signals"))
		return read_block(body, series, count, shift_ns, err);
	st = find_series(&s, series, count, json_string_value(json_object_get(body, "source")),
			 json_string_value(json_object_get(body, "signal")), telemetry_block_kind(body), err);
	if (s)
		add_at(s, body, shift_ns);
	return st;
}
