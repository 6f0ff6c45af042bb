/* SPDX-License-Identifier: Apache-2.0 */
/* From a source to a compiled grammar. */
#include "engine/grammar/automaton/gbnf.h"
#include "engine/grammar/automaton/marks.h"
#include "engine/grammar/automaton/regex.h"
#include "engine/grammar/compiled.h"
#include "engine/grammar/schema/tools.h"

enum { DEPTH_MOST = 4096, CACHE_LEAST = 1 << 20 };

static struct grammar_limits with_defaults(const struct grammar_limits *limits)
{
	struct grammar_limits l = limits ? *limits : (struct grammar_limits){0};

	l.source_bytes = l.source_bytes ? l.source_bytes : 1 << 20;
	l.nodes = l.nodes ? l.nodes : 200000;
	l.steps = l.steps ? l.steps : 4000000;
	l.depth = l.depth ? l.depth : 128;
	l.depth = l.depth < DEPTH_MOST ? l.depth : DEPTH_MOST;
	l.mask_steps = l.mask_steps ? l.mask_steps : 4000000;
	l.cache_bytes = l.cache_bytes ? l.cache_bytes : 64 << 20;
	l.cache_bytes = l.cache_bytes > CACHE_LEAST ? l.cache_bytes : CACHE_LEAST;
	return l;
}

static const char *text_member(struct builder *b, const json_t *source, const char *key, size_t *size)
{
	const json_t *value = json_object_get(source, key);

	if (!json_is_string(value)) {
		builder_fail(b, STATUS_BAD_INPUT, "\"%s\" is missing or not a text", key);
		return NULL;
	}
	*size = json_string_length(value);
	return json_string_value(value);
}

static void build_json_object(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), json_space(b));

	(void)source;
	build_expr(b, expr_add(b, e, json_any_object(b)), from, to);
}

static void build_json_schema(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	struct expr *e = expr_add(b, expr_group(b, EXPR_SEQUENCE), json_space(b));
	const json_t *schema = json_object_get(source, "schema");
	size_t old;

	b->strict = json_is_true(json_object_get(source, "strict"));
	if (!schema) {
		builder_fail(b, STATUS_BAD_INPUT, "\"schema\" is missing");
		return;
	}
	old = builder_path(b, "schema");
	expr_add(b, e, schema_parse(b, schema));
	builder_path_end(b, old);
	if (!b->status)
		build_expr(b, e, from, to);
}

static void build_regex(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	size_t size;
	const char *pattern = text_member(b, source, "pattern", &size);

	if (pattern)
		build_expr(b, regex_parse(b, pattern, size, ENCODE_RAW, true, NULL), from, to);
}

static void build_choices(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	const json_t *choices = json_object_get(source, "choices"), *choice;
	size_t count = json_array_size(choices), i;
	struct bytes *texts = builder_alloc(b, (count + 1) * sizeof(*texts));

	if (!count)
		builder_fail(b, STATUS_BAD_INPUT, "\"choices\" is not a list of at least one text");
	json_array_foreach(choices, i, choice)
	{
		if (!json_is_string(choice))
			builder_fail(b, STATUS_BAD_INPUT, "choices[%zu]: not a text", i);
		if (b->status || !texts)
			return;
		texts[i] = (struct bytes){json_string_value(choice), json_string_length(choice)};
	}
	if (!b->status)
		build_choice(b, from, texts, count, to);
}

static void build_gbnf(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	size_t size;
	const char *text = text_member(b, source, "grammar", &size);
	uint32_t root = text ? gbnf_parse(b, text, size) : 0;

	if (root)
		build_call(b, from, root, 1, 1, to);
}

/* In mode auto a text without a call may have a grammar of its own. */
static void build_tool_calls(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	const json_t *answer = json_object_get(source, "answer");
	const char *mode = json_string_value(json_object_get(source, "mode"));
	const char *type = json_string_value(json_object_get(answer, "type"));
	const bool strict = b->strict, own = answer && mode && !strcmp(mode, "auto");
	size_t old;

	if (own) {
		old = builder_path(b, "answer");
		if (type && !strcmp(type, "json_schema"))
			build_json_schema(b, answer, from, to);
		else if (type && !strcmp(type, "json_object"))
			build_json_object(b, answer, from, to);
		else
			builder_fail(b, STATUS_BAD_INPUT, "\"type\" is not json_object or json_schema");
		builder_path_end(b, old);
		b->strict = strict;
	}
	if (!b->status && (!own || json_array_size(json_object_get(source, "tools"))))
		tools_build(b, source, own, from, to);
}

static void build_source(struct builder *b, const json_t *source, uint32_t from, uint32_t to)
{
	static const struct {
		const char *type;
		void (*build)(struct builder *, const json_t *, uint32_t, uint32_t);
	} kinds[] = {{"json_object", build_json_object},
		     {"json_schema", build_json_schema},
		     {"regex", build_regex},
		     {"choice", build_choices},
		     {"grammar", build_gbnf},
		     {"tool_calls", build_tool_calls}};
	const char *type = json_string_value(json_object_get(source, "type"));

	for (size_t i = 0; type && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(type, kinds[i].type)) {
			kinds[i].build(b, source, from, to);
			return;
		}
	}
	builder_fail(b, STATUS_BAD_INPUT,
		     "\"type\" is not json_object, json_schema, regex, choice, grammar or tool_calls");
}

/* At most four blanks and newlines. */
static void build_blanks(struct builder *b, uint32_t from, uint32_t to)
{
	build_expr(b, json_pattern(b, "[ \n]{0,4}"), from, to);
}

/* Whether blanks before the source's own text mean nothing. */
static bool ignores_blanks(const json_t *source)
{
	const char *type = json_string_value(json_object_get(source, "type"));

	return type && (!strncmp(type, "json_", 5) || !strcmp(type, "tool_calls"));
}

/* The opening mark, behind blanks, or the source's own text. So a text that begins with blanks may still
 * leave out what may come first. Returns the node behind the mark. */
static uint32_t build_opening(struct builder *b, const json_t *source, uint32_t from, uint32_t own)
{
	const char *mark = json_string_value(json_object_get(source, "opening"));
	uint32_t begin = build_node(b), behind = build_node(b);

	build_blanks(b, from, begin);
	build_empty(b, ignores_blanks(source) ? begin : from, own);
	build_text(b, begin, mark, strlen(mark), behind);
	return behind;
}

static bool check_marks(struct builder *b, const json_t *opening, const json_t *after)
{
	if (after && !json_is_string(after))
		builder_fail(b, STATUS_BAD_INPUT, "\"after\" is not a text");
	if (opening && !json_is_string(opening))
		builder_fail(b, STATUS_BAD_INPUT, "\"opening\" is not a text");
	if (opening && !after)
		builder_fail(b, STATUS_BAD_INPUT, "\"opening\" is given without \"after\"");
	return !b->status;
}

/* The text that comes or may come first. Returns the node where the source's own text begins. */
static uint32_t build_first(struct builder *b, const json_t *source, uint32_t from)
{
	const json_t *opening = json_object_get(source, "opening"), *after = json_object_get(source, "after");
	uint32_t inside = from, behind, own;

	if (!check_marks(b, opening, after) || !after)
		return from;
	behind = build_node(b);
	own = build_node(b);
	if (opening)
		inside = build_opening(b, source, from, own);
	build_until(b, inside, json_string_value(after), behind, 0);
	build_blanks(b, behind, own);
	return own;
}

static void read_whitespace(struct builder *b, const json_t *source)
{
	const json_t *value = json_object_get(source, "whitespace");
	const char *space = json_string_value(value);

	b->compact = space && !strcmp(space, "compact");
	if (value && !b->compact && (!space || strcmp(space, "flexible") != 0))
		builder_fail(b, STATUS_BAD_INPUT, "\"whitespace\" is not flexible or compact");
}

/* The whole text: what may come before, then the source's own text. */
static uint32_t build_root(struct builder *b, const json_t *source)
{
	uint32_t root = build_rule(b), end = build_node(b), from = b->status ? 0 : rule_start(b, root);

	read_whitespace(b, source);
	from = build_first(b, source, from);
	if (!b->status)
		build_source(b, source, from, end);
	build_end(b, end);
	return root;
}

static json_t *read_source(struct builder *b, const char *source, size_t size)
{
	json_error_t problem;
	json_t *root;

	if (size > b->limits.source_bytes) {
		builder_fail(b, STATUS_NO_RESOURCE,
			     "a grammar of %zu bytes is too long (limit: source_bytes, %zu)", size,
			     b->limits.source_bytes);
		return NULL;
	}
	root = json_loadb(source, size, JSON_REJECT_DUPLICATES, &problem);
	if (!root)
		builder_fail(b, STATUS_BAD_INPUT, "a grammar is not valid JSON: line %d, column %d: %s",
			     problem.line, problem.column, problem.text);
	else if (!json_is_object(root))
		builder_fail(b, STATUS_BAD_INPUT, "a grammar is not a JSON object");
	return root;
}

static enum status make_grammar(struct grammar **out, struct builder *b, struct automaton *a,
				const struct grammar_vocab *vocab, struct error *err)
{
	struct grammar *g = calloc(1, sizeof(*g));
	enum status st;

	if (!g) {
		automaton_release(a);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "out of memory for the grammar");
	}
	g->automaton = *a;
	st = states_init(&g->states, &g->automaton, b->limits.cache_bytes, b->limits.mask_steps, err);
	if (st) {
		automaton_release(&g->automaton);
		free(g);
		return st;
	}
	pthread_mutex_init(&g->lock, NULL);
	g->references = 1;
	g->vocab = vocab;
	g->warning_count = b->warning_count;
	memcpy(g->warnings, b->warnings, sizeof(g->warnings));
	memset(b->warnings, 0, sizeof(b->warnings));
	*out = g;
	return STATUS_OK;
}

enum status grammar_compile(struct grammar **out, const struct grammar_vocab *vocab, const char *source,
			    size_t size, const struct grammar_limits *limits, struct error *err)
{
	struct builder b = {.limits = with_defaults(limits), .err = err};
	struct automaton a = {0};
	json_t *root = read_source(&b, source, size);
	uint32_t rule = b.status ? 0 : build_root(&b, root);
	enum status st = builder_finish(&b, rule, &a);

	*out = NULL;
	json_decref(root);
	if (!st)
		st = make_grammar(out, &b, &a, vocab, err);
	builder_release(&b);
	return st;
}

struct grammar *grammar_retain(struct grammar *g)
{
	pthread_mutex_lock(&g->lock);
	g->references++;
	pthread_mutex_unlock(&g->lock);
	return g;
}

void grammar_release(struct grammar **g)
{
	struct grammar *gone = *g;
	bool last;

	*g = NULL;
	if (!gone)
		return;
	pthread_mutex_lock(&gone->lock);
	last = !--gone->references;
	pthread_mutex_unlock(&gone->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&gone->lock);
	states_release(&gone->states);
	automaton_release(&gone->automaton);
	for (size_t i = 0; i < GRAMMAR_WARNINGS_MOST; i++)
		free(gone->warnings[i]);
	free(gone);
}

size_t grammar_warnings(const struct grammar *g)
{
	return g->warning_count;
}

const char *grammar_warning(const struct grammar *g, size_t i)
{
	return i < g->warning_count && i < GRAMMAR_WARNINGS_MOST ? g->warnings[i] : "";
}

size_t grammar_bytes(struct grammar *g)
{
	const struct automaton *a = &g->automaton;
	size_t bytes = sizeof(*g) + a->node_count * sizeof(*a->nodes) + a->edge_count * sizeof(*a->edges) +
		       a->rule_count * sizeof(*a->starts);

	pthread_mutex_lock(&g->lock);
	bytes += g->states.bytes;
	pthread_mutex_unlock(&g->lock);
	return bytes;
}
