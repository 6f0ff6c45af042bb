/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/state.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/json/member.h"
#include "core/json/read.h"

#define VALUE_MOST 1e30

static void baseline_release(struct baseline *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->figure[i].key);
	free(b->figure);
}

void health_state_release(struct health_state *s)
{
	for (size_t i = 0; i < s->count; i++)
		baseline_release(&s->baseline[i]);
	free(s->baseline);
	*s = (struct health_state){0};
}

struct baseline *health_state_baseline(struct health_state *s, const char *gpu, const char *driver,
				       double power_limit_w)
{
	struct baseline *grown;

	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->baseline[i].gpu, gpu) && !strcmp(s->baseline[i].driver, driver) &&
		    fabs(s->baseline[i].power_limit_w - power_limit_w) < 0.5)
			return &s->baseline[i];
	if (s->count == STATE_BASELINES) {
		baseline_release(&s->baseline[0]);
		memmove(s->baseline, s->baseline + 1, --s->count * sizeof(*s->baseline));
	}
	grown = realloc(s->baseline, (s->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	s->baseline = grown;
	grown += s->count++;
	*grown = (struct baseline){.power_limit_w = power_limit_w};
	text_copy(grown->gpu, sizeof(grown->gpu), gpu);
	text_copy(grown->driver, sizeof(grown->driver), driver);
	return grown;
}

struct baseline_figure *baseline_figure(struct baseline *b, const char *key, const char *unit)
{
	struct baseline_figure *grown;
	char *copy;

	for (size_t i = 0; i < b->count; i++)
		if (!strcmp(b->figure[i].key, key) && !strcmp(b->figure[i].unit, unit))
			return &b->figure[i];
	if (b->count == STATE_FIGURES || strlen(key) >= STATE_KEY || !(copy = strdup(key)))
		return NULL;
	grown = realloc(b->figure, (b->count + 1) * sizeof(*grown));
	if (!grown) {
		free(copy);
		return NULL;
	}
	b->figure = grown;
	grown += b->count++;
	*grown = (struct baseline_figure){.key = copy};
	text_copy(grown->unit, sizeof(grown->unit), unit);
	return grown;
}

/* A text of at most size - 1 bytes without control characters. */
static bool take_text(char *out, size_t size, const json_t *map, const char *key)
{
	const json_t *v = json_object_get(map, key);

	if (!json_is_string(v) || json_string_length(v) >= size ||
	    strlen(json_string_value(v)) != json_string_length(v))
		return false;
	text_copy(out, size, json_string_value(v));
	for (const char *c = out; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

/* False if the members contradict each other, or one of them is wrong. */
static bool take_gate(struct gate *g, const json_t *map)
{
	char state[16], cause[32];
	int i = 0;

	if (!map) /* a file without a gate: nothing is suspected */
		return true;
	if (!take_text(state, sizeof(state), map, "state"))
		return false;
	while (i < GATE_STATES && strcmp(state, gate_state_words[i]))
		i++;
	if (i == GATE_STATES)
		return false;
	g->state = (enum gate_state)i;
	if (g->state == GATE_CLEAR)
		return true;
	if (!take_text(g->part, sizeof(g->part), map, "part") || !*g->part ||
	    !take_text(cause, sizeof(cause), map, "cause") || !cause_from_name(cause, &g->cause) ||
	    !health_is_hardware(g->cause) ||
	    !json_member_count(&g->sightings, map, "sightings", GATE_COUNT_MAX) ||
	    !json_member_count(&g->passes, map, "passes", GATE_COUNT_MAX) ||
	    !take_text(g->reason, sizeof(g->reason), map, "reason"))
		return false;
	return g->sightings && (g->state == GATE_DRAINED ? *g->reason != '\0' : !g->passes && !*g->reason);
}

static bool take_figure(struct baseline *b, const char *key, const json_t *map)
{
	const json_t *values = json_object_get(map, "values"), *v;
	struct baseline_figure *f;
	char unit[16];
	size_t i;

	if (!take_text(unit, sizeof(unit), map, "unit") || !json_is_array(values) ||
	    json_array_size(values) > STATE_VALUES || !*key)
		return false;
	f = baseline_figure(b, key, unit);
	if (!f)
		return false;
	json_array_foreach((json_t *)values, i, v)
	{
		double value = json_number_value(v);

		if (!json_is_number(v) || !(value > 0) || !(value < VALUE_MOST))
			return false;
		f->value[f->count++] = value;
	}
	return true;
}

static bool take_baseline(struct health_state *s, const json_t *map)
{
	const json_t *figures = json_object_get(map, "figures"), *v;
	const json_t *watts = json_object_get(map, "power_limit_w");
	char gpu[STATE_NAME], driver[STATE_NAME];
	struct baseline *b;
	size_t before = s->count;
	const char *key;

	if (!take_text(gpu, sizeof(gpu), map, "gpu") || !*gpu ||
	    !take_text(driver, sizeof(driver), map, "driver") || !json_is_number(watts) ||
	    !(json_number_value(watts) >= 0) || !(json_number_value(watts) < 1e6) || !json_is_object(figures))
		return false;
	b = health_state_baseline(s, gpu, driver, json_number_value(watts));
	if (!b || s->count == before) /* out of memory, or the key occurs twice */
		return false;
	json_object_foreach((json_t *)figures, key, v) if (!take_figure(b, key, v)) return false;
	return true;
}

static bool take_baselines(struct health_state *s, const json_t *list)
{
	const json_t *v;
	size_t i;

	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) > STATE_BASELINES)
		return false;
	json_array_foreach((json_t *)list, i, v) if (!take_baseline(s, v)) return false;
	return true;
}

static enum status take_all(struct health_state *s, const char *place, const json_t *file, struct error *err)
{
	const json_t *format = json_object_get(file, "format");

	if (!json_is_integer(format) || json_integer_value(format) < 1)
		return error_set(err, STATUS_BAD_INPUT, "%s: it is not a state file of assay health", place);
	if (json_integer_value(format) > STATE_FORMAT)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"%s: its format is %lld, but this program knows formats up to %d: use a newer assay, or another --state",
			place, (long long)json_integer_value(format), STATE_FORMAT);
	if (!take_gate(&s->gate, json_object_get(file, "gate")))
		return error_set(err, STATUS_BAD_INPUT, "%s: \"gate\" is damaged", place);
	if (!take_baselines(s, json_object_get(file, "baselines")))
		return error_set(err, STATUS_BAD_INPUT, "%s: \"baselines\" is damaged", place);
	return STATUS_OK;
}

enum status health_state_parse(struct health_state *s, const char *place, const char *text, size_t size,
			       struct error *err)
{
	struct json_wrong wrong = {0};
	json_t *file = json_read(text, size, JSON_REJECT_DUPLICATES, &wrong);
	enum status st;

	*s = (struct health_state){0};
	if (!file)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d:%d: %s", place, wrong.line, wrong.column,
				 wrong.text);
	st = take_all(s, place, file, err);
	json_decref(file);
	if (st)
		health_state_release(s);
	return st;
}

static json_t *gate_json(const struct gate *g)
{
	if (g->state == GATE_CLEAR)
		return json_pack("{s:s}", "state", gate_state_words[g->state]);
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s}", "state", gate_state_words[g->state], "part",
			 g->part, "cause", cause_name(g->cause), "sightings", (int)g->sightings, "passes",
			 (int)g->passes, "reason", g->reason);
}

static json_t *baseline_json(const struct baseline *b)
{
	json_t *figures = json_object();

	for (size_t i = 0; i < b->count; i++) {
		const struct baseline_figure *f = &b->figure[i];
		json_t *values = json_array();

		for (unsigned k = 0; k < f->count; k++)
			json_array_append_new(values, json_real(f->value[k]));
		json_object_set_new(figures, f->key,
				    json_pack("{s:s, s:o}", "unit", f->unit, "values", values));
	}
	return json_pack("{s:s, s:s, s:f, s:o}", "gpu", b->gpu, "driver", b->driver, "power_limit_w",
			 b->power_limit_w, "figures", figures);
}

enum status health_state_text(struct text *out, const struct health_state *s, struct error *err)
{
	json_t *list = json_array(), *file;
	char *written;

	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(list, baseline_json(&s->baseline[i]));
	file = json_pack("{s:i, s:o, s:o}", "format", STATE_FORMAT, "gate", gate_json(&s->gate), "baselines",
			 list);
	written = file && json_array_size(list) == s->count
			  ? json_dumps(file, JSON_INDENT(1) | JSON_REAL_PRECISION(17))
			  : NULL;
	json_decref(file);
	if (written)
		text_addf(out, "%s\n", written);
	free(written);
	if (!written || out->failed)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the state");
	return STATUS_OK;
}

enum status health_state_read(struct health_state *s, const char *path, bool *damaged, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	enum status st;

	*s = (struct health_state){0};
	*damaged = false;
	if (access(path, F_OK) && errno == ENOENT)
		return STATUS_OK;
	st = file_read_private(&text, &size, path, STATE_BYTES_MAX, err);
	if (!st) {
		st = health_state_parse(s, path, text, size, err);
		*damaged = st == STATUS_BAD_INPUT;
	}
	free(text);
	return st;
}

enum status health_state_write(const struct health_state *s, const char *path, struct error *err)
{
	struct text t = {0};
	enum status st = health_state_text(&t, s, err);

	if (!st)
		st = file_write_private(path, text_str(&t), t.size, err);
	text_release(&t);
	return st;
}
