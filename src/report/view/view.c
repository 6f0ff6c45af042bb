/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/view.h"
#include <ctype.h>
#include "report/view/build.h"

unsigned view_badness(enum verdict verdict)
{
	return (unsigned)(VERDICT_WEIGHT_MOST - verdict_weight(verdict));
}

const struct machine *view_machine(const struct view *v, const struct record_case *c)
{
	return v->in->nodes ? v->in->nodes[c->node] : v->in->machine;
}

void view_node_name(char *out, size_t size, const struct view *v, unsigned node)
{
	const struct record *r = v->in->record;

	pseudonym_map_copy(&v->names, out, size, node < r->node_count ? r->node[node].name : "");
}

static void gpu_name(char *out, size_t size, const struct machine *m, unsigned index, const struct gpu **gpu)
{
	*gpu = m ? machine_gpu(m, index) : NULL;
	if (*gpu)
		snprintf(out, size, "GPU %u · %s · %s", index,
			 (*gpu)->name[0] ? (*gpu)->name : "name unreadable", (*gpu)->pci);
	else
		snprintf(out, size, "GPU %u", index);
}

void view_target_name(char *out, size_t size, const struct view *v, const struct record_case *c,
		      const struct gpu **gpu)
{
	/* The GPU of a lost rank is not known. */
	const struct machine *m =
		c->cause == CAUSE_TEAM_LOST && !json_object_get(c->plan, "gpus") ? NULL : view_machine(v, c);
	const struct cpu *cpu = m ? machine_cpu(m) : NULL;
	const char *target = c->target, *node;
	unsigned index;
	char rest;

	*gpu = NULL;
	if (strcmp(c->where, target)) { /* one of several nodes: the node's name comes first */
		pseudonym_map_copy(&v->names, out, size, c->where);
		out[strlen(out) > strlen(target) ? strlen(out) - strlen(target) - 1 : 0] = '\0';
		text_copy(out + strlen(out), size - strlen(out), " · ");
		size -= strlen(out);
		out += strlen(out);
	}
	if (sscanf(target, "gpu%u%c", &index, &rest) == 1) {
		gpu_name(out, size, m, index, gpu);
	} else if (!strncmp(target, "cpu", 3)) {
		node = strstr(target, "node");
		snprintf(out, size, "CPU%s%s%s%s", cpu && cpu->model[0] ? " · " : "", cpu ? cpu->model : "",
			 node ? " · NUMA node " : "", node ? node + 4 : "");
	} else {
		text_copy(out, size, target[0] ? target : "machine");
	}
}

static int find_group(const struct view *v, const struct record_case *c)
{
	for (size_t i = 0; i < v->group_count; i++)
		if (!strcmp(v->groups[i].lead->where, c->where))
			return (int)i;
	return -1;
}

static void add_group(struct view *v, const struct record_case *lead)
{
	struct view_group *g = &v->groups[v->group_count++];

	g->lead = lead;
	pseudonym_map_copy(&v->names, g->target, sizeof(g->target), lead->where);
	view_target_name(g->name, sizeof(g->name), v, lead, &g->gpu);
}

static int by_key(const void *a, const void *b)
{
	const struct view_row *const *x = a, *const *y = b;

	return strcmp((*x)->c->key, (*y)->c->key);
}

/* Counts the cases of the group that were not requested. A case that another rank of the node measures does
 * not count, and a case of several ranks counts once. */
static enum status count_aside(const struct view *v, struct view_group *g, struct error *err)
{
	const struct view_row **row = calloc(g->count + 1, sizeof(const struct view_row *));

	if (!row)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for %zu rows", g->count);
	for (size_t i = 0; i < g->count; i++)
		row[i] = &v->rows[g->first + i];
	qsort(row, g->count, sizeof(const struct view_row *), by_key);
	for (size_t i = 0, end; i < g->count; i = end) {
		bool aside = true;
		size_t of_a_rank = 0;

		for (end = i; end < g->count && !strcmp(row[end]->c->key, row[i]->c->key); end++) {
			aside = aside && row[end]->aside;
			of_a_rank += row[end]->c->rank == row[i]->c->rank;
		}
		g->aside += aside ? of_a_rank : 0;
	}
	free(row);
	return STATUS_OK;
}

/* Builds the rows, sorted by target. Targets are in the order of their first case, cases in the order of the
 * plan. */
static enum status build_rows(struct view *v, struct error *err)
{
	const struct record *r = v->in->record;
	size_t at = 0;

	for (size_t i = 0; i < r->case_count; i++)
		if (find_group(v, &r->cases[i]) < 0)
			add_group(v, &r->cases[i]);
	for (size_t g = 0; g < v->group_count; g++) {
		struct view_group *group = &v->groups[g];
		enum status st;

		group->first = at;
		group->worst = VERDICT_SKIP;
		for (size_t i = 0; i < r->case_count; i++) {
			const struct judgement *j = &v->in->judged->of_case[i];

			if (strcmp(r->cases[i].where, group->lead->where))
				continue;
			v->row_count = at + 1;
			st = view_row_build(&v->rows[at++], v, &r->cases[i], j, err);
			if (st)
				return st;
			group->count++;
			v->verdicts[j->verdict]++;
			if (v->rows[at - 1].aside) {
				v->aside_count++;
				continue;
			}
			if (j->superseded) {
				if (record_tries(&r->cases[i]))
					v->kernels_count++;
				else if (record_is_isolation(&r->cases[i]))
					v->search_count++;
				else
					v->round_count++;
				continue;
			}
			v->asked_count++;
			group->asked++;
			group->verdicts[j->verdict]++;
			v->asked_verdicts[j->verdict]++;
			if (view_badness(j->verdict) < view_badness(group->worst) &&
			    (j->verdict != VERDICT_UNKNOWN || record_asks_judgement(&r->cases[i])))
				group->worst = j->verdict; /* the suite does not ask to judge the others */
		}
		st = count_aside(v, group, err);
		if (st)
			return st;
	}
	return STATUS_OK;
}

/* The length of the common start of `text` and `key`. The judge may have cut the key in its text. */
static size_t along(const char *text, const char *key)
{
	size_t n = 0;

	while (key[n] && text[n] == key[n])
		n++;
	return n;
}

/* Replaces the keys of cases in the judge's headline with their titles. */
static enum status build_headline(struct view *v, struct error *err)
{
	enum { KEY_LEAST = 24 };
	const char *s = v->in->judged->headline;
	struct text plain = {0}, shown = {0};

	while (*s) {
		const struct view_row *row = NULL;
		size_t size = 0;

		for (size_t i = 0; i < v->row_count; i++) {
			size_t n = along(s, v->rows[i].c->key);

			if (n > size && (n >= KEY_LEAST ||
					 (n && !v->rows[i].c->key[n] && strchr(v->rows[i].c->key, ' ')))) {
				row = &v->rows[i];
				size = n;
			}
		}
		text_add_bytes(&plain, row ? row->title : s, row ? strlen(row->title) : 1);
		s += row ? size : 1;
	}
	pseudonym_map_add(&v->names, &shown, text_str(&plain));
	text_release(&plain);
	v->headline = shown.failed ? NULL : shown.data ? shown.data : strdup("");
	return v->headline ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory for the headline");
}

enum status view_build(struct view *v, const struct report_input *in, struct error *err)
{
	size_t cases = in->record->case_count, room = cases ? cases : 1;
	enum status st;

	*v = (struct view){.in = in};
	if (in->judged->count != cases)
		return error_set(err, STATUS_BUG, "%zu judgements for %zu cases", in->judged->count, cases);
	pseudonym_map_init(&v->names, in->record, in->machine, in->real_names);
	for (size_t i = 0; i < in->called_count; i++)
		pseudonym_map_set(&v->names, in->called[i].shown, in->called[i].name);
	for (size_t i = 0; in->nodes && i < in->record->node_count; i++)
		pseudonym_map_learn(&v->names, in->nodes[i]);
	v->rows = calloc(room, sizeof(*v->rows));
	v->groups = calloc(room, sizeof(*v->groups));
	v->todos = calloc(room, sizeof(*v->todos));
	v->parts = calloc(room, sizeof(*v->parts));
	if (!v->rows || !v->groups || !v->todos || !v->parts) {
		st = error_set(err, STATUS_NO_RESOURCE, "no memory for a report of %zu cases", cases);
		goto out;
	}
	st = build_rows(v, err);
	if (st)
		goto out;
	view_distinguish(v);
	st = build_headline(v, err);
	if (st)
		goto out;
	view_todos_build(v);
	view_parts_build(v);
	st = view_shape(v, err);
	if (!st)
		st = view_spread_build(v, err);
out:
	if (st)
		view_release(v);
	return st;
}

void view_release(struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		free(v->rows[i].reason);
	for (size_t i = 0; i < v->todo_count; i++) {
		text_release(&v->todos[i].cases);
		text_release(&v->todos[i].some);
	}
	view_shape_release(v);
	free(v->headline);
	free(v->rows);
	free(v->groups);
	free(v->todos);
	free(v->parts);
	pseudonym_map_release(&v->names);
	*v = (struct view){0};
}

void view_run_counts(struct text *out, const struct view *v)
{
	view_counts(out, v->asked_verdicts, v->asked_count);
	if (v->round_count)
		text_addf(out, "; %zu of them were measured again", v->round_count);
	if (v->kernels_count)
		text_addf(out, "; %zu more tried other kernels", v->kernels_count);
	if (v->search_count)
		text_addf(out, "; %zu more are isolation searches", v->search_count);
}

void view_counts(struct text *out, const unsigned verdicts[VERDICT_COUNT], size_t cases)
{
	bool first = true;

	text_addf(out, "%zu case%s", cases, cases == 1 ? "" : "s");
	for (int i = 0; i < VERDICT_COUNT; i++) {
		if (!verdicts[i])
			continue;
		text_addf(out, "%s%u %s", first ? ": " : ", ", verdicts[i], verdict_name((enum verdict)i));
		first = false;
	}
}

/* The text is meant for a shell, so only characters that occur in names of suites and paths are passed;
 * others become a question mark. */
static void add_shell_word(struct text *out, const char *word)
{
	for (const char *s = word; *s; s++)
		text_add_bytes(out, isalnum((unsigned char)*s) || strchr("._/+-=:,", *s) ? s : "?", 1);
}

/* A suite by its name and seed; a job, which has no seed, by its command line. */
void view_repeat(struct text *out, const struct view *v)
{
	const json_t *open = v->in->record->open;
	const char *suite = json_string_value(json_object_get(open, "suite"));
	const json_t *seed = json_object_get(open, "seed"), *words = json_object_get(open, "command");

	if (!json_is_integer(seed) && json_array_size(words) > 1) {
		text_add(out, "assay");
		for (size_t i = 1; i < json_array_size(words); i++) {
			const char *word = json_string_value(json_array_get(words, i));

			text_add(out, " ");
			add_shell_word(out, word ? word : "?");
		}
		return;
	}
	text_addf(out, "assay check%s", suite && suite[0] ? " " : "");
	add_shell_word(out, suite ? suite : "");
	if (json_is_integer(seed))
		text_addf(out, " --seed %" JSON_INTEGER_FORMAT, json_integer_value(seed));
}
