/* SPDX-License-Identifier: Apache-2.0 */
#include "run/suite/suite.h"
#include <errno.h>
#include "core/file/embedded.h"
#include "core/input/opt.h"
#include "core/input/tree.h"
#include "core/text/text.h"

enum { NAME_MAX_BYTES = 64 };

static enum status no_memory(const struct suite *s, struct error *err)
{
	return error_errno(err, ENOMEM, "%s", s->place);
}

void suite_place(const struct suite *s, int line, char *out, size_t size)
{
	if (line > 0)
		snprintf(out, size, "%s:%d", s->place, line);
	else
		snprintf(out, size, "%s", s->place);
}

static enum status words_add(const struct suite *s, struct words *w, const char *text, struct error *err)
{
	if (!(w->count & (w->count - 1))) { /* at powers of two the array is full */
		char **grown = realloc(w->word, (w->count ? 2 * w->count : 1) * sizeof(*grown));

		if (!grown)
			return no_memory(s, err);
		w->word = grown;
	}
	w->word[w->count] = strdup(text);
	return w->word[w->count++] ? STATUS_OK : no_memory(s, err);
}

static void words_release(struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->word[i]);
	free(w->word);
	*w = (struct words){0};
}

static void case_clear(struct suite_case *c)
{
	for (size_t i = 0; i < c->option_count; i++) {
		free(c->option[i].name);
		words_release(&c->option[i].values);
	}
	free(c->option);
	free(c->probe);
	free(c->group);
	words_release(&c->engines);
	words_release(&c->targets);
}

void suite_free(struct suite *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		for (size_t k = 0; k < s->steps[i].count; k++)
			case_clear(&s->steps[i].cases[k]);
		free(s->steps[i].cases);
	}
	free(s->steps);
	free(s->name);
	free(s->description);
	free(s->place);
	free(s);
}

const char *suite_name(const struct suite *s)
{
	return s->name;
}

/* Reads a word or a list of words. `what` is the name in the message. */
static enum status read_words(const struct suite *s, struct words *w, const struct tree *node,
			      const char *what, struct error *err)
{
	enum status st = STATUS_OK;

	if (node->kind == TREE_SCALAR)
		return words_add(s, w, node->text, err);
	if (node->kind != TREE_LIST || !node->count)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected a value or a list of values",
				 s->place, node->line, what);
	if (node->count > SUITE_VALUES_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: %zu values in one list; the limit is %d",
				 s->place, node->line, what, node->count, SUITE_VALUES_MAX);
	for (size_t i = 0; !st && i < node->count; i++) {
		if (node->items[i]->kind != TREE_SCALAR)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: %s: expected a value, found a list inside a list", s->place,
					 node->items[i]->line, what);
		st = words_add(s, w, node->items[i]->text, err);
	}
	return st;
}

/* *twice: a text that occurs more than once; NULL: none. Sorts the pointers. */
static void find_twice(const char **text, size_t count, const char **twice)
{
	*twice = NULL;
	qsort(text, count, sizeof(*text), text_compare);
	for (size_t i = 1; i < count && !*twice; i++)
		if (!strcmp(text[i - 1], text[i]))
			*twice = text[i];
}

/* A value given twice would plan the same case twice. */
static enum status values_once(const struct suite *s, const struct suite_option *o, struct error *err)
{
	const char **sorted, *twice;
	char place[300];

	if (o->values.count < 2)
		return STATUS_OK;
	sorted = malloc(o->values.count * sizeof(*sorted));
	if (!sorted)
		return no_memory(s, err);
	memcpy(sorted, o->values.word, o->values.count * sizeof(*sorted));
	find_twice(sorted, o->values.count, &twice);
	free(sorted);
	if (!twice)
		return STATUS_OK;
	suite_place(s, o->line, place, sizeof(place));
	return error_set(err, STATUS_BAD_INPUT, "%s: %s: the value %.60s is given twice", place, o->name,
			 twice);
}

static enum status read_options(const struct suite *s, struct suite_case *c, const struct tree *map,
				struct error *err)
{
	if (map->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: options: expected a map of options", s->place,
				 map->line);
	c->option = calloc(map->count ? map->count : 1, sizeof(*c->option));
	if (!c->option)
		return no_memory(s, err);
	for (size_t i = 0; i < map->count; i++) {
		struct suite_option *o = &c->option[c->option_count++];
		enum status st;

		o->name = strdup(map->keys[i]);
		o->line = map->items[i]->line;
		if (!o->name)
			return no_memory(s, err);
		st = read_words(s, &o->values, map->items[i], map->keys[i], err);
		if (!st)
			st = values_once(s, o, err);
		if (st)
			return st;
	}
	return STATUS_OK;
}

static enum status refuse_word(const struct suite *s, const struct tree *node, const char *key,
			       const char *const *words, struct error *err)
{
	char known[160] = "";
	size_t count = 0, used = 0;
	const char *near;

	for (; words[count]; count++)
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
						 count ? ", " : "", words[count]);
	if (node->kind != TREE_SCALAR)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected one of %s", s->place, node->line,
				 key, known);
	near = opt_nearest(node->text, words, count);
	return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: \"%.40s\" is not one of %s%s%s", s->place,
			 node->line, key, node->text, known, near ? "; did you mean " : "", near ? near : "");
}

/* Reads one of a few words. If the key is absent, *out stays unchanged. */
static enum status read_choice(const struct suite *s, const struct tree *map, const char *key,
			       const char *const *words, int *out, struct error *err)
{
	const struct tree *node = tree_get(map, key);

	if (!node)
		return STATUS_OK;
	for (size_t i = 0; words[i]; i++)
		if (node->kind == TREE_SCALAR && !strcmp(node->text, words[i])) {
			*out = (int)i;
			return STATUS_OK;
		}
	return refuse_word(s, node, key, words, err);
}

static enum status read_seconds(const struct suite *s, const struct tree *map, const char *key, double *out,
				struct error *err)
{
	const struct tree *node = tree_get(map, key);
	enum status st = tree_f64_unit(map, key, "s", out, err);

	if (!st && node && !(*out > 0 && *out <= 1e7))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected more than 0 and at most 1e7 s",
				 s->place, node->line, key);
	return st;
}

static enum status read_texts(const struct suite *s, struct suite_case *c, const struct tree *map,
			      struct error *err)
{
	const char *probe = tree_text(map, "probe", NULL), *group = tree_text(map, "group", NULL);
	const struct tree *given = tree_get(map, "probe");

	if (given && given->kind == TREE_NULL)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: probe: null without quotes is YAML's empty value; write \"null\"",
				 s->place, given->line);
	if (!probe)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: a case needs the key probe", s->place,
				 map->line);
	c->probe = strdup(probe);
	c->group = group ? strdup(group) : NULL;
	return c->probe && (!group || c->group) ? STATUS_OK : no_memory(s, err);
}

static enum status read_case(const struct suite *s, struct suite_case *c, const struct tree *map,
			     struct error *err)
{
	static const char *const keys[] = {"probe",	     "engine",	"target", "options",
					   "phases",	     "require", "limit",  "seconds",
					   "seconds_capped", "group",	NULL};
	const struct tree *engine, *target, *options;
	int phases = PHASES_HEADLINE, require = REQUIRE_JUDGED;
	enum status st;

	c->line = map->line;
	if (map->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: expected a case: a map with the key probe",
				 s->place, map->line);
	st = tree_check_keys(map, keys, err);
	if (!st)
		st = read_texts(s, c, map, err);
	engine = tree_get(map, "engine");
	target = tree_get(map, "target");
	options = tree_get(map, "options");
	c->engine_line = engine ? engine->line : map->line;
	c->target_line = target ? target->line : map->line;
	if (!st && engine)
		st = read_words(s, &c->engines, engine, "engine", err);
	if (!st && target)
		st = read_words(s, &c->targets, target, "target", err);
	if (!st && options)
		st = read_options(s, c, options, err);
	if (!st)
		st = read_choice(s, map, "phases", phases_words, &phases, err);
	if (!st)
		st = read_choice(s, map, "require", require_words, &require, err);
	if (!st)
		st = read_seconds(s, map, "seconds", &c->seconds, err);
	if (!st)
		st = read_seconds(s, map, "seconds_capped", &c->seconds_capped, err);
	if (!st)
		st = read_seconds(s, map, "limit", &c->limit_s, err);
	c->phases = (enum phases)phases;
	c->require = (enum require)require;
	c->require_said = c->require == REQUIRE_JUDGED && tree_get(map, "require");
	return st;
}

/* Reads an entry of `cases`: a case, or `together` or `lockstep` with a list of cases. */
static enum status read_step(const struct suite *s, struct suite_step *step, const struct tree *node,
			     struct error *err)
{
	const struct tree *list = NULL;
	enum status st = STATUS_OK;
	size_t count;

	step->order = STEP_IN_ORDER;
	for (unsigned o = STEP_TOGETHER; !list && node->kind == TREE_MAP && o < STEP_ORDERS; o++) {
		const char *const keys[] = {step_words[o], NULL};

		list = tree_get(node, step_words[o]);
		step->order = list ? (enum step_order)o : STEP_IN_ORDER;
		st = list ? tree_check_keys(node, keys, err) : STATUS_OK;
	}
	count = list ? list->count : 1;
	if (st)
		return st;
	if (list && (list->kind != TREE_LIST || !count))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected a list of cases", s->place,
				 list->line, step_words[step->order]);
	step->cases = calloc(count, sizeof(*step->cases));
	if (!step->cases)
		return no_memory(s, err);
	step->count = count;
	for (size_t i = 0; !st && i < count; i++)
		st = read_case(s, &step->cases[i], list ? list->items[i] : node, err);
	return st;
}

/* The name becomes part of a directory's name. */
static enum status check_name(const struct suite *s, const struct tree *root, struct error *err)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t size = strlen(s->name);

	if (size && size <= NAME_MAX_BYTES && s->name[0] != '.' && strspn(s->name, plain) == size)
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s:%d: name: \"%.64s\" is not valid: use at most %d letters, digits, - _ and . (not first)",
		s->place, tree_get(root, "name")->line, s->name, NAME_MAX_BYTES);
}

static enum status read_suite(struct suite *s, const struct tree *root, struct error *err)
{
	static const char *const keys[] = {"name", "description", "within", "cases", NULL};
	const struct tree *cases;
	enum status st;

	if (root->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: expected a suite: a map with name and cases",
				 s->place, root->line);
	st = tree_check_keys(root, keys, err);
	if (st)
		return st;
	cases = tree_get(root, "cases");
	if (!tree_text(root, "name", NULL) || !cases || cases->kind != TREE_LIST || !cases->count)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s:%d: a suite needs the keys name and cases (a list)", s->place,
				 cases ? cases->line : root->line);
	s->name = strdup(tree_text(root, "name", ""));
	s->description = strdup(tree_text(root, "description", ""));
	s->steps = calloc(cases->count, sizeof(*s->steps));
	if (!s->name || !s->description || !s->steps)
		return no_memory(s, err);
	st = check_name(s, root, err);
	if (!st)
		st = read_seconds(s, root, "within", &s->within_s, err);
	if (st)
		return st;
	s->count = cases->count;
	for (size_t i = 0; !st && i < cases->count; i++)
		st = read_step(s, &s->steps[i], cases->items[i], err);
	return st;
}

static enum status suite_create(struct suite **s, const char *place, struct error *err)
{
	*s = calloc(1, sizeof(**s));
	if (*s)
		(*s)->place = strdup(place);
	if (*s && (*s)->place)
		return STATUS_OK;
	suite_free(*s);
	*s = NULL;
	return error_errno(err, ENOMEM, "%s", place);
}

/* Takes the tree. A suite that failed is freed. */
static enum status from_tree(struct suite **out, const char *place, struct tree *tree, struct error *err)
{
	struct suite *s = NULL;
	enum status st = suite_create(&s, place, err);

	if (!st)
		st = read_suite(s, tree, err);
	tree_free(tree);
	if (st) {
		suite_free(s);
		s = NULL;
	}
	*out = s;
	return st;
}

enum status suite_parse(struct suite **s, const char *place, const char *text, size_t size, struct error *err)
{
	struct tree *tree;
	enum status st = tree_parse(&tree, place, text, size, err);

	*s = NULL;
	return st ? st : from_tree(s, place, tree, err);
}

size_t suite_builtin_names(char names[][SUITE_NAME], size_t room)
{
	const struct embedded *e;
	size_t count = 0;

	for (size_t i = 0; (e = embedded_at(i)) && count < room; i++) {
		const char *dot = strrchr(e->name, '.');

		if (!strncmp(e->name, "suites/", 7) && dot && !strcmp(dot, ".yaml"))
			snprintf(names[count++], SUITE_NAME, "%.*s", (int)(dot - e->name - 7), e->name + 7);
	}
	return count;
}

static enum status unknown_suite(const char *name, struct error *err)
{
	char names[SUITES_BUILTIN][SUITE_NAME];
	const char *known[SUITES_BUILTIN], *near;
	size_t count = suite_builtin_names(names, SUITES_BUILTIN);

	for (size_t i = 0; i < count; i++)
		known[i] = names[i];
	near = opt_nearest(name, known, count);
	return error_set(err, STATUS_BAD_INPUT,
			 "there is no suite \"%.64s\"%s%s; assay list suites shows the suites, a file "
			 "needs a / or .yaml in its name",
			 name, near ? "; did you mean " : "", near ? near : "");
}

enum status suite_read(struct suite **s, const char *name, struct error *err)
{
	const char *dot = strrchr(name, '.');
	const struct embedded *builtin;
	struct tree *tree;
	char path[256];
	enum status st;

	*s = NULL;
	if (strchr(name, '/') ||
	    (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml") || !strcmp(dot, ".json")))) {
		st = tree_read(&tree, name, err);
		return st ? st : from_tree(s, name, tree, err);
	}
	snprintf(path, sizeof(path), "suites/%.200s.yaml", name);
	builtin = embedded_find(path);
	if (!builtin)
		return unknown_suite(name, err);
	return suite_parse(s, path, (const char *)builtin->data, builtin->size, err);
}

/* Reads "name=a,b": an option with its values. */
static enum status read_assignment(const struct suite *s, struct suite_case *c, const char *text,
				   struct error *err)
{
	struct suite_option *o = &c->option[c->option_count];
	const char *equals = strchr(text, '=');
	enum status st = STATUS_OK;
	char *values, *at, *comma;

	if (!equals || equals == text)
		return error_set(err, STATUS_BAD_INPUT, "%s: \"%.64s\" is not an option; write name=value",
				 s->place, text);
	o->name = strndup(text, (size_t)(equals - text));
	values = strdup(equals + 1);
	c->option_count++;
	if (!o->name || !values)
		st = no_memory(s, err);
	for (at = values; !st && at; at = comma) {
		comma = strchr(at, ',');
		if (comma)
			*comma++ = '\0';
		st = words_add(s, &o->values, at, err);
	}
	if (!st && o->values.count > SUITE_VALUES_MAX)
		st = error_set(err, STATUS_BAD_INPUT, "%s: %s: %zu values in one list; the limit is %d",
			       s->place, o->name, o->values.count, SUITE_VALUES_MAX);
	free(values);
	return st;
}

/* A second assignment to the same option is an error, as it is for options of a command. */
static enum status check_once(const struct suite *s, const struct suite_case *c, struct error *err)
{
	const char **names = malloc((c->option_count + 1) * sizeof(*names)), *twice;

	if (!names)
		return no_memory(s, err);
	for (size_t i = 0; i < c->option_count; i++)
		names[i] = c->option[i].name;
	find_twice(names, c->option_count, &twice);
	free(names);
	if (twice)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s is given twice; write several values as %s=value,value", s->place,
				 twice, twice);
	for (size_t i = 0; i < c->option_count; i++) {
		enum status st = values_once(s, &c->option[i], err);

		if (st)
			return st;
	}
	return STATUS_OK;
}

static enum status fill_one(struct suite *s, const char *probe, const char *engine, const char *target,
			    const char *const *options, size_t count, struct error *err)
{
	struct suite_case *c;
	enum status st = STATUS_OK;

	s->name = strdup("probe");
	s->description = strdup("one probe");
	s->steps = calloc(1, sizeof(*s->steps));
	if (!s->name || !s->description || !s->steps)
		return no_memory(s, err);
	s->count = 1;
	s->steps->cases = c = calloc(1, sizeof(*c));
	if (!c)
		return no_memory(s, err);
	s->steps->count = 1;
	c->require = REQUIRE_KNOWN;
	c->probe = strdup(probe);
	c->option = calloc(count + 1, sizeof(*c->option));
	if (!c->probe || !c->option)
		return no_memory(s, err);
	if (engine)
		st = words_add(s, &c->engines, engine, err);
	if (!st && target)
		st = words_add(s, &c->targets, target, err);
	for (size_t i = 0; !st && i < count; i++)
		st = read_assignment(s, c, options[i], err);
	return st ? st : check_once(s, c, err);
}

enum status suite_of_probe(struct suite **out, const char *probe, const char *engine, const char *target,
			   const char *const *options, size_t count, struct error *err)
{
	struct suite *s = NULL;
	enum status st = suite_create(&s, "command line", err);

	if (!st)
		st = fill_one(s, probe, engine, target, options, count, err);
	if (st) {
		suite_free(s);
		s = NULL;
	}
	*out = s;
	return st;
}
