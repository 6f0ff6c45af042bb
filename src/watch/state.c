/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "watch/state_parts.h"

static void set_text(struct watch_state *s, char **place, char *text)
{
	if (*place)
		s->bytes -= strlen(*place) + 1;
	free(*place);
	*place = text;
	if (text)
		s->bytes += strlen(text) + 1;
}

bool watch_set_text(struct watch_state *s, char **place, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return false;
	set_text(s, place, copy);
	return true;
}

void watch_forget_values(struct watch_state *s, struct watch_entity *e)
{
	for (unsigned i = 0; e->value && i < e->rows; i++) {
		struct watch_value *v = &e->value[i];

		v->present = false;
		v->before_ns = 0;
		set_text(s, &v->why, NULL);
	}
}

void watch_free_entity(struct watch_state *s, struct watch_entity *e)
{
	watch_forget_values(s, e);
	for (unsigned i = 0; e->value && i < e->rows; i++) {
		s->histories -= e->value[i].history != NULL;
		free(e->value[i].history);
	}
	if (e->value)
		s->bytes -= e->rows * sizeof(*e->value);
	free(e->value);
	for (unsigned i = 0; i < e->label_count; i++) {
		set_text(s, &e->label[i].name, NULL);
		set_text(s, &e->label[i].value, NULL);
	}
	set_text(s, &e->why, NULL);
	if (e->scope < METRIC_SCOPE_COUNT)
		s->of_scope[e->scope]--;
	*e = (struct watch_entity){.scope = METRIC_SCOPE_COUNT};
}

void watch_state_release(struct watch_state *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		watch_free_entity(s, &s->entity[i]);
	for (unsigned i = 0; i < s->source_count; i++)
		free(s->source[i].why);
	free(s->entity);
	free(s->row);
	free(s->metrics);
	*s = (struct watch_state){0};
}

void watch_state_keep(struct watch_state *s, enum catalogue row)
{
	s->kept[row] = true;
}

static struct watch_value *value_of(const struct watch_entity *e, enum catalogue row)
{
	if (!e->value || row < e->first || row - e->first >= e->rows)
		return NULL;
	return &e->value[row - e->first];
}

const struct watch_value *watch_get(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = value_of(e, row);

	return v && v->present ? v : NULL;
}

const char *watch_why(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = value_of(e, row);

	return v && v->why ? v->why : e->why;
}

static bool rate_of(double *out, const struct watch_value *v)
{
	if (!v->present || !v->before_ns || v->t_ns <= v->before_ns || v->value < v->before)
		return false;
	*out = (v->value - v->before) / (1e-9 * (double)(v->t_ns - v->before_ns));
	return isfinite(*out);
}

bool watch_rate(double *out, const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = watch_get(e, row);

	return v && catalogue_row(row)->type == METRIC_COUNTER && rate_of(out, v);
}

const struct watch_history *watch_history(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = value_of(e, row);

	return v ? v->history : NULL;
}

float watch_history_at(const struct watch_history *h, unsigned i)
{
	return h->value[(h->first + i) % WATCH_HISTORY];
}

static void push(struct watch_state *s, struct watch_value *v, enum metric_type type)
{
	double value = v->value;
	struct watch_history *h = v->history;

	if (!v->present || (type == METRIC_COUNTER && !rate_of(&value, v)))
		value = NAN;
	if (!h && s->histories < WATCH_HISTORIES_MAX) {
		h = v->history = calloc(1, sizeof(*h));
		s->histories += h != NULL;
	}
	if (!h)
		return;
	h->value[(h->first + h->count) % WATCH_HISTORY] = (float)value;
	if (h->count < WATCH_HISTORY)
		h->count++;
	else
		h->first = (h->first + 1) % WATCH_HISTORY;
}

/* The rows of this pace were read. */
static void end_rows(struct watch_state *s, struct watch_entity *e, enum metric_pace pace, uint64_t t_ns)
{
	for (unsigned i = 0; i < e->rows; i++) {
		const struct catalogue_row *row = catalogue_row(e->first + i);
		struct watch_value *v = &e->value[i];

		if (row->pace != pace)
			continue;
		if (v->present && v->t_ns <= e->heard_ns[pace] && t_ns > v->t_ns) {
			v->before = v->value; /* it was not sent: it has not changed */
			v->before_ns = v->t_ns;
			v->t_ns = t_ns;
		}
		if (s->kept[e->first + i] && t_ns > e->heard_ns[pace])
			push(s, v, row->type);
	}
	if (t_ns > e->heard_ns[pace])
		e->heard_ns[pace] = t_ns;
}

void watch_end_entity(struct watch_state *s, struct watch_entity *e, const struct watch_reading *r)
{
	end_rows(s, e, METRIC_FAST, r->t_ns);
	if (!r->slow)
		return;
	end_rows(s, e, METRIC_SLOW, r->t_ns);
	e->tells_rare |= r->rare_ns != 0;
	if (r->rare_ns)
		end_rows(s, e, METRIC_RARE, r->rare_ns);
	else if (!e->tells_rare)
		end_rows(s, e, METRIC_RARE, r->t_ns);
}

const char *watch_label(const struct watch_entity *e, const char *name)
{
	for (unsigned i = 0; i < e->label_count; i++)
		if (!strcmp(e->label[i].name, name))
			return e->label[i].value;
	return NULL;
}

static double age(const struct watch_state *s, uint64_t heard_ns, uint64_t local_ns)
{
	double a = s->now_ns > heard_ns ? 1e-9 * (double)(s->now_ns - heard_ns) : 0;

	if (!heard_ns)
		return -1;
	if (s->arrival_ns && local_ns > s->arrival_ns)
		a += 1e-9 * (double)(local_ns - s->arrival_ns);
	return a;
}

double watch_age(const struct watch_state *s, const struct watch_entity *e, uint64_t local_ns)
{
	return age(s, e->heard_ns[METRIC_FAST], local_ns);
}

double watch_source_age(const struct watch_state *s, unsigned source, uint64_t local_ns)
{
	return source < s->source_count ? age(s, s->source[source].heard_ns, local_ns) : -1;
}

double watch_wall(const struct watch_state *s)
{
	return s->wall + 1e-9 * ((double)s->now_ns - (double)s->wall_ns);
}

/* Appends a clean text as JSON. */
static void add_string(struct text *out, const char *s)
{
	text_add(out, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_addf(out, "\\%c", *s);
		else
			text_add_bytes(out, s, 1);
	}
	text_add(out, "\"");
}

static void write_header(const struct watch_state *s, struct text *out)
{
	text_addf(out, "{\"watch\":%d,\"node\":", WATCH_VERSION);
	add_string(out, s->node);
	text_add(out, ",\"boot\":");
	add_string(out, s->boot);
	text_addf(out, ",\"t\":%llu,\"wall\":%.3f,\"wall_t\":%llu,\"interval\":%.9g,\"sources\":[",
		  (unsigned long long)s->now_ns, s->wall, (unsigned long long)s->wall_ns, s->interval);
	for (unsigned i = 0; i < s->source_count; i++) {
		text_add(out, i ? "," : "");
		add_string(out, s->source[i].name);
	}
	text_addf(out, "],\"metrics\":%s}\n", s->metrics);
}

static void write_entity(const struct watch_entity *e, struct text *out)
{
	text_addf(out, "{\"e\":%u,\"s\":%u,\"scope\":", e->id, e->source);
	add_string(out, e->foreign ? "?" : metric_scope_row(e->scope)->name);
	if (e->of != e->id)
		text_addf(out, ",\"of\":%u", e->of);
	text_add(out, ",\"labels\":{");
	for (unsigned i = 0; i < e->label_count; i++) {
		text_add(out, i ? "," : "");
		add_string(out, e->label[i].name);
		text_add(out, ":");
		add_string(out, e->label[i].value);
	}
	text_add(out, "}}\n");
	if (!e->why)
		return;
	text_addf(out, "{\"s\":%u,\"e\":%u,\"why\":", e->source, e->id);
	add_string(out, e->why);
	text_add(out, "}\n");
}

/* Whether a row is in the line of the SLOW rows, which has the RARE ones too, or in that of the FAST rows. */
static bool is_in(enum catalogue row, enum metric_pace pace)
{
	return (catalogue_row(row)->pace == METRIC_FAST) == (pace == METRIC_FAST);
}

/* pace: SLOW or FAST. */
static void write_values(const struct watch_state *s, const struct watch_entity *e, struct text *out,
			 enum metric_pace pace)
{
	enum catalogue first = e->first;
	unsigned rows = e->rows;
	bool any = false;

	if (!e->heard_ns[pace])
		return;
	text_addf(out, "{\"t\":%llu,\"s\":%u,\"v\":{\"%u\":[", (unsigned long long)e->heard_ns[pace],
		  e->source, e->id);
	for (unsigned i = 0; i < rows; i++) {
		if (!is_in(first + i, pace) || !e->value[i].present)
			continue;
		text_addf(out, "%s%u,%.17g", any ? "," : "", s->position[first + i], e->value[i].value);
		any = true;
	}
	text_addf(out, "]},\"x\":{\"%u\":[", e->id);
	any = false;
	for (unsigned i = 0; i < rows; i++) {
		if (!is_in(first + i, pace) || e->value[i].present || !e->value[i].why)
			continue;
		text_addf(out, "%s%u,", any ? "," : "", s->position[first + i]);
		add_string(out, e->value[i].why);
		any = true;
	}
	text_addf(out, "]},\"end\":%u,\"alone\":true%s", e->id, pace == METRIC_SLOW ? ",\"slow\":true" : "");
	if (pace == METRIC_SLOW && e->tells_rare && e->heard_ns[METRIC_RARE])
		text_addf(out, ",\"rare\":%llu", (unsigned long long)e->heard_ns[METRIC_RARE]);
	text_add(out, "}\n");
}

static void write_entities(const struct watch_state *s, struct text *out, bool parts)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct watch_entity *e = &s->entity[i];

		if ((e->scope < METRIC_SCOPE_COUNT || e->foreign) && (e->of != e->id) == parts)
			write_entity(e, out);
	}
}

void watch_state_write(const struct watch_state *s, struct text *out)
{
	if (!*s->node)
		return;
	write_header(s, out);
	write_entities(s, out, false); /* a part follows the entity to which it belongs */
	write_entities(s, out, true);
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->entity[i].scope == METRIC_SCOPE_COUNT)
			continue;
		write_values(s, &s->entity[i], out, METRIC_SLOW);
		write_values(s, &s->entity[i], out, METRIC_FAST);
	}
	for (unsigned i = 0; i < s->source_count; i++) {
		if (s->source[i].heard_ns)
			text_addf(out, "{\"t\":%llu,\"s\":%u,\"done\":true}\n",
				  (unsigned long long)s->source[i].heard_ns, i);
		if (s->source[i].why) {
			text_addf(out, "{\"s\":%u,\"why\":", i);
			add_string(out, s->source[i].why);
			text_add(out, "}\n");
		}
	}
	text_addf(out, "{\"t\":%llu,\"whole\":true}\n", (unsigned long long)s->now_ns);
}
