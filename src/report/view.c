/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view.h"
#include <ctype.h>
#include <math.h>
#include "report/view_shape.h"
#include "report/words.h"

/* Cases that one line of "what to do" names. */
enum { TODO_CASES = 4 };

unsigned view_badness(enum verdict verdict)
{
	return (unsigned)(VERDICT_WEIGHT_MOST - verdict_weight(verdict));
}

bool view_number(const struct view_row *row, const char *field, double *out)
{
	return row->phase && record_number(row->phase, field, out) && isfinite(*out);
}

const struct machine *view_machine(const struct view *v, const struct record_case *c)
{
	return v->in->nodes ? v->in->nodes[c->node] : v->in->machine;
}

void view_node_name(char *out, size_t size, const struct view *v, unsigned node)
{
	const struct record *r = v->in->record;

	names_copy(&v->names, out, size, node < r->node_count ? r->node[node].name : "");
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
	/* Which GPU a lost rank had is not known. */
	const struct machine *m =
		c->cause == CAUSE_TEAM_LOST && !json_object_get(c->plan, "gpus") ? NULL : view_machine(v, c);
	const struct cpu *cpu = m ? machine_cpu(m) : NULL;
	const char *target = c->target, *node;
	unsigned index;
	char rest;

	*gpu = NULL;
	if (strcmp(c->where, target)) { /* one of several nodes: by its name */
		names_copy(&v->names, out, size, c->where);
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

bool view_estimate(const struct view_row *row)
{
	return row->j->bound.from == BOUND_CEILING && !strcmp(row->c->limit, "memory");
}

static void expected_text(struct view_row *row)
{
	const struct judgement *j = row->j;
	char value[48];

	row->expected[0] = '\0';
	if (j->has_band && isfinite(j->band.low) && isfinite(j->band.high) && j->band.high > 0) {
		words_range(row->expected, sizeof(row->expected), j->band.low, j->band.high, j->figure_unit);
	} else if (j->bound.from != BOUND_NONE && j->bound.value > 0 && isfinite(j->bound.value)) {
		words_quantity(value, sizeof(value), j->bound.value, 0, j->figure_unit);
		snprintf(row->expected, sizeof(row->expected), "%s %s", view_estimate(row) ? "≈" : "≤",
			 value);
	}
}

static void conditions_text(struct view_row *row)
{
	double value;

	if (!row->j->clock_recovered && view_number(row, "clock_hz", &value))
		snprintf(row->clock, sizeof(row->clock), "%.0f MHz", value / 1e6);
	else if (view_number(row, "clock_nvml_hz", &value))
		snprintf(row->clock, sizeof(row->clock), "~%.0f MHz", value / 1e6);
	if (view_number(row, "power_w", &value))
		snprintf(row->power, sizeof(row->power), "%.0f W", value);
	else if (view_number(row, "power_integral_w", &value))
		snprintf(row->power, sizeof(row->power), "~%.0f W", value);
	if (view_number(row, "temperature_c", &value))
		snprintf(row->temperature, sizeof(row->temperature), "%.0f °C", value);
}

/* A reading of something that is no rate has its own text: the reason says it. */
static const struct record_phase *judged_phase(const struct record_case *c, const struct judgement *j)
{
	static const char *const order[] = {"sustained", "burst", "once", "cold"};
	const struct record_phase *p = j->phase[0] ? record_phase(c, j->phase) : NULL;

	for (size_t i = 0; !p && i < sizeof(order) / sizeof(order[0]); i++) {
		p = record_phase(c, order[i]);
		if (p && !p->values)
			p = NULL;
	}
	return p;
}

/* A share above 100 % never stands alone. What physics does not allow is untrusted, by the judge. */
static const char *over_bound(const struct view_row *row)
{
	const struct judgement *j = row->j;
	double efficiency = j->efficiency_held;

	if (!(j->share_of_bound > 1.0005))
		return "";
	if (j->verdict == VERDICT_UNTRUSTED || j->verdict == VERDICT_ERROR)
		return "do not use the figure";
	if (view_estimate(row))
		return "a bare loop of the same traffic is an estimate of the most, not a bound";
	if (j->bound.from == BOUND_CEILING)
		return "the ceiling is another case of this run, with a spread of its own";
	if (efficiency > 0 && efficiency < j->share_of_bound)
		return "the clock was above the maximum that is told";
	return "within the bound's tolerance";
}

static enum status build_row(struct view_row *row, struct view *v, const struct record_case *c,
			     const struct judgement *j, struct error *err)
{
	const char *reason = j->reason[0] ? j->reason : c->skip_reason ? c->skip_reason : "";
	struct text t = {0};

	row->c = c;
	row->j = j;
	names_copy(&v->names, row->where, sizeof(row->where), c->where);
	row->phase = c->skipped ? NULL : judged_phase(c, j);
	row->aside = c->skipped && j->verdict == VERDICT_SKIP && c->skip_cause == CAUSE_NOT_ASKED;
	row->headline = row->phase && j->has_figure && isfinite(j->figure) && !c->reading &&
			!strcmp(c->phases, "headline");
	words_title(row->base, sizeof(row->base), c);
	if (json_object_get(c->plan, "again"))
		text_copy(row->base + strlen(row->base), sizeof(row->base) - strlen(row->base),
			  ", second round");
	if (record_follows(c))
		text_copy(row->base + strlen(row->base), sizeof(row->base) - strlen(row->base), ", search");
	text_copy(row->title, sizeof(row->title), row->base);
	if (j->has_figure && isfinite(j->figure))
		words_quantity(row->figure, sizeof(row->figure), j->figure, 0, j->figure_unit);
	expected_text(row);
	if (j->share_of_bound > 0 && isfinite(j->share_of_bound))
		words_share(row->share, sizeof(row->share), j->share_of_bound);
	row->over = over_bound(row);
	conditions_text(row);
	names_add(&v->names, &t, reason[0] ? reason : c->text);
	if (t.failed)
		goto out;
	row->reason = t.data ? t.data : strdup("");
out:
	if (t.failed)
		text_release(&t);
	return row->reason ? STATUS_OK
			   : error_set(err, STATUS_NO_RESOURCE, "no memory for the report's rows");
}

/* Another case of this target that reads the same and has another value for this option. */
static bool differs(const struct view *v, const struct view_row *row, const char *key, const char *value)
{
	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *other = &v->rows[i];
		const char *theirs;

		if (other == row || strcmp(other->base, row->base) || strcmp(other->c->where, row->c->where))
			continue;
		theirs = record_option(other->c, key);
		if (theirs && strcmp(theirs, value))
			return true;
	}
	return false;
}

/* Two cases of one target whose plain words agree get the options in which they differ. */
static void tell_apart(struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		struct view_row *row = &v->rows[i];
		const char *key;
		json_t *value;

		json_object_foreach(json_object_get(row->c->plan, "options"), key, value)
		{
			const char *mine = json_string_value(value);
			size_t used = strlen(row->title);
			bool more = used > strlen(row->base); /* one bracket for all of them */

			if (mine && differs(v, row, key, mine))
				snprintf(row->title + used - more, sizeof(row->title) - used + more,
					 more ? ", %s %s)" : " (%s %s)", key, mine);
		}
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
	names_copy(&v->names, g->target, sizeof(g->target), lead->where);
	view_target_name(g->name, sizeof(g->name), v, lead, &g->gpu);
}

/* Rows become contiguous by target, targets in the order of their first case, cases in plan order. */
static enum status build_rows(struct view *v, struct error *err)
{
	const struct record *r = v->in->record;
	size_t at = 0;

	for (size_t i = 0; i < r->case_count; i++)
		if (find_group(v, &r->cases[i]) < 0)
			add_group(v, &r->cases[i]);
	for (size_t g = 0; g < v->group_count; g++) {
		struct view_group *group = &v->groups[g];

		group->first = at;
		group->worst = VERDICT_SKIP;
		for (size_t i = 0; i < r->case_count; i++) {
			const struct judgement *j = &v->in->judged->of_case[i];
			enum status st;

			if (strcmp(r->cases[i].where, group->lead->where))
				continue;
			v->row_count = at + 1;
			st = build_row(&v->rows[at++], v, &r->cases[i], j, err);
			if (st)
				return st;
			group->count++;
			v->verdicts[j->verdict]++;
			if (v->rows[at - 1].aside) {
				v->aside_count++;
				continue;
			}
			if (j->superseded) {
				if (record_follows(&r->cases[i]))
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
				group->worst = j->verdict; /* nobody asked for the others to be judged */
		}
	}
	return STATUS_OK;
}

static void add_todo(struct view *v, const struct view_row *row, const char *action)
{
	struct view_todo *t = NULL;

	for (size_t i = 0; i < v->todo_count && !t; i++)
		if (v->todos[i].cause == row->j->cause && v->todos[i].verdict == row->j->verdict &&
		    !strcmp(v->todos[i].target, row->where) && !strcmp(v->todos[i].action, action))
			t = &v->todos[i];
	if (!t) {
		t = &v->todos[v->todo_count++];
		*t = (struct view_todo){.verdict = row->j->verdict,
					.cause = row->j->cause,
					.action = action,
					.reason = row->reason};
		text_copy(t->target, sizeof(t->target), row->where);
		t->residual_low = t->residual_high = row->j->unexplained;
	}
	t->residual_low = fmin(t->residual_low, row->j->unexplained);
	t->residual_high = fmax(t->residual_high, row->j->unexplained);
	text_addf(&t->cases, "%s%s", t->count ? "; " : "", row->title);
	if (t->count < TODO_CASES)
		text_addf(&t->some, "%s%s", t->count ? "; " : "", row->title);
	t->count++;
}

/* The first case's reason tells of its own residual alone. */
static void name_range(struct view_todo *t)
{
	if (t->cause != CAUSE_UNEXPLAINED || t->count < 2 || !isfinite(t->residual_low) ||
	    !isfinite(t->residual_high))
		return;
	snprintf(t->range, sizeof(t->range),
		 "the factors do not reproduce the figures: residual %.3f .. %.3f", t->residual_low,
		 t->residual_high);
	t->reason = t->range;
}

bool view_asks(const struct view_row *row)
{
	const struct judgement *j = row->j;

	if (j->verdict == VERDICT_MEASURED)
		return false;
	return j->verdict != VERDICT_UNKNOWN || record_asks_judgement(row->c) ||
	       (j->cause != CAUSE_NONE && j->cause != CAUSE_NO_REFERENCE);
}

/* Worst first; within one verdict the order of the rows. */
static void build_todos(struct view *v)
{
	for (unsigned badness = 0; badness <= view_badness(VERDICT_WARN); badness++)
		for (size_t i = 0; i < v->row_count; i++) {
			const struct view_row *row = &v->rows[i];

			if (view_badness(row->j->verdict) != badness || !view_asks(row))
				continue;
			add_todo(v, row, cause_action(row->j->cause));
		}
	for (size_t i = 0; i < v->todo_count; i++) {
		if (v->todos[i].count > TODO_CASES)
			text_addf(&v->todos[i].some, "; and %u more", v->todos[i].count - TODO_CASES);
		name_range(&v->todos[i]);
	}
}

/* What a ticket for the part could be about, short of a failure. */
static bool is_hardware(enum cause cause)
{
	switch (cause) {
	case CAUSE_WRONG_RESULT:
	case CAUSE_NAN:
	case CAUSE_HBM_DATA:
	case CAUSE_SLOW_SM:
	case CAUSE_POWER_BRAKE:
	case CAUSE_THERMAL_SW:
	case CAUSE_THERMAL_HW:
	case CAUSE_TEMPERATURE_STOP:
	case CAUSE_PCIE_WIDTH:
	case CAUSE_PCIE_GEN:
	case CAUSE_PCIE_ERRORS:
	case CAUSE_NVLINK_COUNT:
	case CAUSE_NVLINK_ERRORS:
	case CAUSE_LINK_SLOW:
	case CAUSE_SLOW_RANK:
	case CAUSE_NODE_SLOW:
	case CAUSE_SIBLING_OUTLIER:
	case CAUSE_ECC:
	case CAUSE_REMAP_PENDING:
	case CAUSE_REMAP_FAILED:
	case CAUSE_RETIRED_PAGES:
	case CAUSE_RECOVERY_ACTION:
	case CAUSE_XID:
		return true;
	default:
		return false;
	}
}

bool view_for_ticket(const struct judgement *j)
{
	return j->verdict == VERDICT_FAIL || j->verdict == VERDICT_ERROR ||
	       ((j->verdict == VERDICT_WARN || j->verdict == VERDICT_UNTRUSTED) && is_hardware(j->cause));
}

/* The ends of a pair, or the one of them that its finding is about. */
static void part_of_pair(struct view_part *part, const struct machine *m)
{
	const char *accused = part->row->j->part;
	unsigned from, to;

	if (!m || sscanf(part->row->c->target, "gpu%u>gpu%u", &from, &to) != 2)
		return;
	part->gpu = machine_gpu(m, from);
	part->peer = machine_gpu(m, to);
	if (!part->gpu || !part->peer || !*accused)
		return;
	if (!strcmp(part->peer->pci, accused))
		part->gpu = part->peer;
	part->peer = NULL;
}

void view_part_text(char *out, size_t size, const struct view_part *p, enum part_column column)
{
	const char *own = column == PART_PCI ? p->gpu->pci : column == PART_SLOT ? p->gpu->slot : p->serial;
	const char *peer = !p->peer		 ? NULL
			   : column == PART_PCI	 ? p->peer->pci
			   : column == PART_SLOT ? p->peer->slot
						 : p->peer_serial;

	snprintf(out, size, "%s%s%s%s%s", column == PART_PCI ? p->node : "",
		 column == PART_PCI && *p->node ? "/" : "", *own ? own : WORDS_NONE, peer ? " > " : "",
		 !peer	 ? ""
		 : *peer ? peer
			 : WORDS_NONE);
}

static void copy_serial(struct view *v, char *out, size_t size, const struct gpu *g)
{
	if (g && g->serial[0])
		names_copy(&v->names, out, size, g->serial);
}

static void build_parts(struct view *v)
{
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];
		struct view_part *part = &v->parts[v->part_count];

		*part = (struct view_part){.gpu = group->gpu};
		for (size_t i = group->first; i < group->first + group->count; i++) {
			const struct view_row *row = &v->rows[i];

			if (view_for_ticket(row->j) &&
			    (!part->row || view_badness(row->j->verdict) < view_badness(part->verdict))) {
				part->row = row;
				part->verdict = row->j->verdict;
			}
		}
		if (!part->row)
			continue;
		if (!part->gpu)
			part_of_pair(part, view_machine(v, part->row->c));
		if (!part->gpu)
			continue;
		part->cause = part->row->j->cause;
		view_node_name(part->node, sizeof(part->node), v, part->row->c->node);
		copy_serial(v, part->serial, sizeof(part->serial), part->gpu);
		copy_serial(v, part->peer_serial, sizeof(part->peer_serial), part->peer);
		v->part_count++;
	}
}

/* How far `text` goes along with `key`, which the judge may have cut. */
static size_t along(const char *text, const char *key)
{
	size_t n = 0;

	while (key[n] && text[n] == key[n])
		n++;
	return n;
}

/* The judge knows cases by their keys; people know them by what they do. */
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
	names_add(&v->names, &shown, text_str(&plain));
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
	names_init(&v->names, in->record, in->machine, in->real_names);
	for (size_t i = 0; in->nodes && i < in->record->node_count; i++)
		names_learn(&v->names, in->nodes[i]);
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
	tell_apart(v);
	st = build_headline(v, err);
	if (st)
		goto out;
	build_todos(v);
	build_parts(v);
	st = view_shape(v, err);
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
	names_release(&v->names);
	*v = (struct view){0};
}

void view_run_counts(struct text *out, const struct view *v)
{
	view_counts(out, v->asked_verdicts, v->asked_count);
	if (v->round_count)
		text_addf(out, "; %zu of them had another round", v->round_count);
	if (v->search_count)
		text_addf(out, "; %zu more searched what is bad", v->search_count);
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

void view_repeat(struct text *out, const struct view *v)
{
	const json_t *open = v->in->record->open;
	const char *suite = json_string_value(json_object_get(open, "suite"));
	const json_t *seed = json_object_get(open, "seed");

	text_addf(out, "assay check%s", suite && suite[0] ? " " : "");
	/* This is meant for a shell: what a suite's name or path does not need does not get there. */
	for (const char *s = suite ? suite : ""; *s; s++)
		text_add_bytes(out, isalnum((unsigned char)*s) || strchr("._/+-", *s) ? s : "?", 1);
	if (json_is_integer(seed))
		text_addf(out, " --seed %" JSON_INTEGER_FORMAT, json_integer_value(seed));
}
