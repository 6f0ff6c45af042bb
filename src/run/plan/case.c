/* SPDX-License-Identifier: Apache-2.0 */
/* One case as data: its option block, its JSON form, and reading it back. */
#include "run/probe.h"
#include <ctype.h>
#include <errno.h>
#include "core/text/text.h"
#include "run/suite/target.h"

const char *const step_words[] = {
	[STEP_IN_ORDER] = "", [STEP_TOGETHER] = "together", [STEP_LOCKSTEP] = "lockstep"};
const char *const phases_words[] = {[PHASES_HEADLINE] = "headline", [PHASES_BURST] = "burst", NULL};

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Offset of the word `name` in the sentence; the sentence's length: not found. */
static size_t mention(const char *sentence, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = sentence; (at = strstr(at, name)); at++)
		if ((at == sentence || !is_of_word(at[-1])) && !is_of_word(at[length]))
			return (size_t)(at - sentence);
	return strlen(sentence);
}

/* Checks options that depend on each other. The error names the place of the option that its text mentions
 * first. */
static enum status check_together(const struct bench_case *c, const struct assignment *a, size_t count,
				  struct error *err)
{
	struct error own = {0};
	enum status st = c->probe->check ? c->probe->check(c->opts, &own) : STATUS_OK;
	size_t first = 0;

	if (!st)
		return STATUS_OK;
	for (size_t i = 1; i < count; i++)
		if (mention(own.text, a[i].name) < mention(own.text, a[first].name))
			first = i;
	return error_set_at(err, st, own.cause, own.file, own.line, "%s%s%s", count ? a[first].place : "",
			    count ? ": " : "", own.text);
}

enum status case_options(struct bench_case *c, const struct assignment *a, size_t count, struct error *err)
{
	const struct opt_table *t = &c->probe->opts;
	size_t size = t->size;
	char *texts;
	enum status st;

	for (size_t i = 0; i < count; i++)
		size += strlen(a[i].value) + 1;
	c->opts = calloc(1, size ? size : 1);
	if (!c->opts)
		return error_errno(err, ENOMEM, "%s: its options", c->probe->name);
	st = opt_defaults(t, c->opts, err);
	for (size_t i = 0; !st && c->engine && c->engine->presets && c->engine->presets[i][0]; i++)
		st = opt_set(t, c->opts, c->engine->presets[i][0], c->engine->presets[i][1], c->engine->name,
			     err);
	texts = (char *)c->opts + t->size;
	for (size_t i = 0; !st && i < count; i++) {
		size_t length = strlen(a[i].value) + 1;
		json_t *utf8 = json_string(a[i].value); /* a value that is not UTF-8 could not be journaled */

		if (!utf8)
			return error_set(err, STATUS_BAD_INPUT, "%s: %.40s: its value is not UTF-8",
					 a[i].place, a[i].name);
		json_decref(utf8);
		memcpy(texts, a[i].value, length);
		st = opt_set(t, c->opts, a[i].name, texts, a[i].place, err);
		texts += length;
	}
	return st ? st : check_together(c, a, count, err);
}

enum status case_key(struct bench_case *c, struct error *err)
{
	char key[4096];
	int used = c->engine ? snprintf(key, sizeof(key), "%s engine=%s", c->probe->name, c->engine->name)
			     : snprintf(key, sizeof(key), "%s", c->probe->name);
	enum status st = opt_canonical(&c->probe->opts, c->opts, key, sizeof(key), err);

	(void)used;
	if (st)
		return st;
	c->key = strdup(key);
	return c->key ? STATUS_OK : error_errno(err, ENOMEM, "%s", c->probe->name);
}

void case_release(struct bench_case *c)
{
	free(c->key);
	free(c->opts);
	json_decref(c->layout);
	*c = (struct bench_case){0};
}

static json_t *options_json(const struct bench_case *c)
{
	const struct opt_table *t = &c->probe->opts;
	json_t *options = json_object();

	for (size_t i = 0; i < t->count; i++) {
		char text[4096];
		const char *value;

		if (t->rows[i].many)
			continue;
		if (t->rows[i].kind == OPT_KIND_TEXT) {
			memcpy(&value, (const char *)c->opts + t->rows[i].offset, sizeof(value));
			if (!value)
				continue; /* the option has no value */
		}
		opt_value_text(&t->rows[i], c->opts, text, sizeof(text));
		json_object_set_new(options, t->rows[i].name, field_string(text));
	}
	return options;
}

static json_t *work_json(const struct work *w)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:s}", "flop", w->flop, "read_bytes", w->read_bytes,
			 "write_bytes", w->write_bytes, "link_bytes", w->link_bytes, "messages", w->messages,
			 "limit", w->limit ? w->limit : "");
}

static json_t *skip_json(const struct bench_case *c)
{
	return c->skip ? json_pack("{s:s, s:s, s:o}", "status", status_name(c->skip), "cause",
				   cause_name(c->skip_cause), "reason", field_string(c->skip_reason))
		       : json_null();
}

static json_t *gpus_json(const struct target *t, const struct machine *m)
{
	json_t *gpus = json_array();

	for (unsigned i = 0; i < t->gpu_count; i++)
		json_array_append_new(gpus, json_string(machine_gpu(m, t->gpu[i])->pci));
	return gpus;
}

json_t *case_json(const struct bench_case *c, const struct machine *m)
{
	bool timed = c->probe->kind == PROBE_TIMED;
	json_t *j = json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:s, s:o}", "case", (int)c->id, "key", c->key,
			      "probe", c->probe->name, "engine", c->engine ? c->engine->name : "", "options",
			      options_json(c), "kind", timed ? "timed" : "reading", "target", c->target_text,
			      "gpus", gpus_json(&c->target, m));

	if (!j)
		return NULL;
	if (timed) {
		json_object_set_new(j, "phases", json_string(phases_words[c->phases]));
		json_object_set_new(j, "work", work_json(&c->work));
		if (c->need.known)
			json_object_set_new(j, "need",
					    json_pack("{s:f, s:f}", "device_bytes", c->need.device_bytes,
						      "host_bytes", c->need.host_bytes));
		if (c->seconds > 0)
			json_object_set_new(j, "seconds", json_real(c->seconds));
		if (c->seconds_capped > 0)
			json_object_set_new(j, "seconds_capped", json_real(c->seconds_capped));
		if (c->search_s > 0)
			json_object_set_new(j, "search_s", json_real(c->search_s));
	}
	json_object_set_new(j, "require", json_string(require_words[c->require]));
	if (c->require_said)
		json_object_set_new(j, "require_said", json_true());
	json_object_set_new(j, "limit_ms", json_integer(c->limit_ms));
	json_object_set_new(j, "group", field_string(c->group));
	if (c->target.ranks > 1)
		json_object_set_new(j, "ranks", json_integer(c->target.ranks));
	if (c->team)
		json_object_set_new(j, "team", json_integer(c->team));
	if (c->layout)
		json_object_set(j, "layout", c->layout);
	if (c->order)
		json_object_set_new(j, step_words[c->order], json_true());
	if (c->round)
		json_object_set_new(j, "round", json_integer(c->round));
	if (*c->setting)
		json_object_set_new(j, "setting", field_string(c->setting));
	if (*c->beside)
		json_object_set_new(j, "beside", field_string(c->beside));
	json_object_set_new(j, "skip", skip_json(c));
	return j;
}

static int word_index(const json_t *j, const char *name, const char *const *words)
{
	const char *text = json_string_value(json_object_get(j, name));

	for (int i = 0; text && words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	return 0;
}

static enum status options_from_json(struct bench_case *c, const json_t *options, struct error *err)
{
	struct assignment *a = calloc(json_object_size(options) + 1, sizeof(*a));
	enum status st = STATUS_OK;
	size_t count = 0;
	const char *name;
	json_t *value;

	if (!a)
		return error_errno(err, ENOMEM, "%s: its options", c->probe->name);
	json_object_foreach((json_t *)options, name, value)
	{
		if (!json_is_string(value)) {
			st = error_set(err, STATUS_BAD_INPUT,
				       "%s: option %.40s of a planned case is not a string", c->probe->name,
				       name);
			break;
		}
		a[count++] = (struct assignment){name, json_string_value(value), "plan"};
	}
	if (!st)
		st = case_options(c, a, count, err);
	free(a);
	return st;
}

static enum status read_names(struct bench_case *c, const json_t *json, const struct probe *const *registry,
			      struct error *err)
{
	const char *probe = json_string_value(json_object_get(json, "probe"));
	const char *engine = json_string_value(json_object_get(json, "engine"));

	if (!probe || !engine)
		return error_set(err, STATUS_BAD_INPUT, "a planned case has no probe or engine");
	c->probe = probe_by_name(registry, probe);
	if (!c->probe)
		return error_set(err, STATUS_BAD_INPUT, "a planned case has the unknown probe \"%.40s\"",
				 probe);
	if (!*engine && c->probe->kind == PROBE_READING)
		return STATUS_OK;
	c->engine = engine_by_name(c->probe, engine);
	if (!c->engine)
		return error_set(err, STATUS_BAD_INPUT,
				 "a planned case of %s has the unknown engine \"%.40s\"", probe, engine);
	return STATUS_OK;
}

enum status case_from_json(struct bench_case *c, const json_t *json, const struct machine *m,
			   const struct probe *const *registry, struct error *err)
{
	const json_t *id = json_object_get(json, "case"), *limit = json_object_get(json, "limit_ms");
	const char *target = json_string_value(json_object_get(json, "target"));
	const char *group = json_string_value(json_object_get(json, "group"));
	enum status st;

	*c = (struct bench_case){0};
	if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX ||
	    !target)
		return error_set(err, STATUS_BAD_INPUT, "a planned case has no number or no target");
	c->id = (unsigned)json_integer_value(id);
	st = read_names(c, json, registry, err);
	if (!st)
		st = target_parse(&c->target, target, json_object_get(json, "gpus"), m, err);
	if (!st)
		st = options_from_json(c, json_object_get(json, "options"), err);
	if (!st)
		st = case_key(c, err);
	if (st) {
		case_release(c);
		return st;
	}
	text_copy(c->target_text, sizeof(c->target_text), target);
	text_copy(c->group, sizeof(c->group), group ? group : "");
	c->phases = (enum phases)word_index(json, "phases", phases_words);
	c->require = require_from_word(json_string_value(json_object_get(json, "require")));
	c->require_said = json_is_true(json_object_get(json, "require_said"));
	c->seconds = json_number_value(json_object_get(json, "seconds"));
	c->seconds_capped = json_number_value(json_object_get(json, "seconds_capped"));
	c->search_s = json_number_value(json_object_get(json, "search_s"));
	if (json_integer_value(json_object_get(json, "ranks")) > 1)
		c->target.ranks = (unsigned)json_integer_value(json_object_get(json, "ranks"));
	c->team = (unsigned)json_integer_value(json_object_get(json, "team"));
	c->layout = json_incref(json_object_get(json, "layout"));
	for (unsigned o = STEP_TOGETHER; o < STEP_ORDERS; o++)
		if (json_is_true(json_object_get(json, step_words[o])))
			c->order = (enum step_order)o;
	c->round = (unsigned)json_integer_value(json_object_get(json, "round"));
	c->limit_ms = json_is_integer(limit) ? (uint32_t)json_integer_value(limit) : 0;
	return STATUS_OK;
}

const struct probe *probe_by_name(const struct probe *const *registry, const char *name)
{
	for (; *registry; registry++)
		if (!strcmp((*registry)->name, name))
			return *registry;
	return NULL;
}

const struct engine *engine_by_name(const struct probe *p, const char *name)
{
	for (const struct engine *const *e = p->engines; e && *e; e++)
		if (!strcmp((*e)->name, name))
			return *e;
	return NULL;
}

const char *case_place(const struct bench_case *c)
{
	if (c->target.kind == TARGET_PAIR)
		return "pairs";
	if (c->engine && c->engine->once)
		return "once";
	return c->target.kind == TARGET_NODE ? "node" : c->target_text;
}
