/* SPDX-License-Identifier: Apache-2.0 */
/* results.json (docs/schema/results.schema.json). Absent is absent: no null stands for a figure, no zero for
 * unknown. */
#include <math.h>
#include "report/about.h"
#include "report/basis.h"
#include "report/json.h"
#include "report/nodes.h"
#include "report/report.h"
#include "report/view.h"

/* Every json_* below may fail for memory alone: a NULL anywhere makes `failed` true and the whole is dropped.
 */
struct builder {
	const struct view *v;
	bool failed;
};

static void put(struct builder *b, json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value))
		b->failed = true;
}

static void push(struct builder *b, json_t *array, json_t *value)
{
	if (!value || json_array_append_new(array, value))
		b->failed = true;
}

/* Bytes that are no UTF-8 cannot stand in JSON: they become U+FFFD. */
static json_t *text_value(const struct builder *b, const char *s)
{
	struct text t = {0};
	json_t *value;

	names_add(&b->v->names, &t, s);
	value = json_text(text_str(&t));
	text_release(&t);
	return value;
}

static void put_text(struct builder *b, json_t *object, const char *key, const char *s)
{
	if (s && s[0])
		put(b, object, key, text_value(b, s));
}

static void put_number(struct builder *b, json_t *object, const char *key, double value)
{
	if (isfinite(value))
		put(b, object, key, json_real(value));
}

/* What counts is exact: an integer where it is one. */
static void put_count(struct builder *b, json_t *object, const char *key, double value)
{
	if (value == trunc(value) && fabs(value) < 0x1p53)
		put(b, object, key, json_integer((json_int_t)value));
	else
		put_number(b, object, key, value);
}

/* The journal's own values, texts with names replaced; what is no number, text or flag is dropped. */
static json_t *values_json(struct builder *b, const json_t *values)
{
	json_t *object = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)values, key, value)
	{
		if (json_is_string(value))
			put(b, object, key, text_value(b, json_string_value(value)));
		else if (json_is_number(value) || json_is_boolean(value))
			put(b, object, key, json_copy(value));
	}
	return object;
}

static json_t *phases_json(struct builder *b, const struct record_case *c)
{
	json_t *array = json_array();

	for (size_t i = 0; i < c->phase_count; i++) {
		const struct record_phase *p = &c->phase[i];
		json_t *object;

		if (!p->values)
			continue;
		object = json_object();
		put(b, object, "phase", json_text(p->name));
		put(b, object, "values", values_json(b, p->values));
		if (p->has_window) {
			put(b, object, "t0_ns", json_integer((json_int_t)p->t0_ns));
			put(b, object, "t1_ns", json_integer((json_int_t)p->t1_ns));
		}
		push(b, array, object);
	}
	return array;
}

static const char *const bound_names[] = {"", "device", "ceiling", "datasheet"};

static void put_expected(struct builder *b, json_t *object, const struct judgement *j)
{
	if (j->bound.from != BOUND_NONE && isfinite(j->bound.value)) {
		json_t *bound = json_object();

		put_number(b, bound, "value", j->bound.value);
		put(b, bound, "from", json_string(bound_names[j->bound.from]));
		put_text(b, bound, "formula", j->bound.formula);
		put(b, object, "bound", bound);
	}
	if (j->has_band) {
		json_t *band = json_object();

		put_number(b, band, "low", j->band.low);
		put_number(b, band, "high", j->band.high);
		put(b, band, "confidence", json_integer(j->band.confidence));
		put_text(b, band, "phase", j->band.phase);
		put_text(b, band, "source", j->band.source);
		put_text(b, band, "date", j->band.date);
		put_text(b, band, "place", j->band.place);
		put_text(b, band, "basis", j->band.basis);
		put(b, object, "band", band);
	}
}

static void put_basis(struct builder *b, json_t *object, const struct judgement *j)
{
	struct text words = {0};
	json_t *basis;

	if (j->judged_by == JUDGED_NOTHING)
		return;
	basis = json_object();
	basis_add(&words, j);
	put(b, basis, "kind", json_string(judged_by_name(j->judged_by)));
	put(b, basis, "low_confidence", json_boolean(j->low_confidence));
	put(b, basis, "text", text_value(b, text_str(&words)));
	put(b, object, "basis", basis);
	text_release(&words);
}

static void put_gap(struct builder *b, json_t *object, const struct judgement *j)
{
	json_t *array = json_array();

	for (size_t i = 0; i < j->gap_count; i++) {
		const struct factor *f = &j->gap[i];
		json_t *factor = json_object();

		put_text(b, factor, "name", f->name);
		put_text(b, factor, "signal", f->signal);
		put(b, factor, "present", json_boolean(f->present));
		put(b, factor, "shown_only", json_boolean(f->shown_only));
		if (f->assumed)
			put(b, factor, "assumed", json_true());
		if (f->present) {
			put_number(b, factor, "value", f->value);
			if (f->error > 0)
				put_number(b, factor, "error", f->error);
		}
		push(b, array, factor);
	}
	put(b, object, "gap", array);
	if (j->unexplained > 0)
		put_number(b, object, "unexplained", j->unexplained);
	put(b, object, "explained", json_boolean(j->explained));
	if (j->has_explained_share) {
		put_number(b, object, "explained_share", j->explained_share);
		put_number(b, object, "assumed_share", j->assumed_share);
	}
}

static json_t *advice_json(struct builder *b, const struct judgement *j)
{
	json_t *array = json_array();

	for (size_t i = 0; i < j->advice_count; i++) {
		json_t *object = json_object();

		put_text(b, object, "knob", j->advice[i].knob);
		put_text(b, object, "evidence", j->advice[i].evidence);
		put_text(b, object, "gain", j->advice[i].gain);
		push(b, array, object);
	}
	return array;
}

static json_t *work_json(struct builder *b, const struct record_case *c)
{
	json_t *object = json_object();

	put_count(b, object, "flop", c->work_flop);
	put_count(b, object, "read_bytes", c->work_read);
	put_count(b, object, "write_bytes", c->work_write);
	put_count(b, object, "link_bytes", c->work_link);
	put_count(b, object, "messages", c->work_messages);
	return object;
}

static void put_judgement(struct builder *b, json_t *object, const struct view_row *row)
{
	const struct judgement *j = row->j;

	put(b, object, "verdict", json_string(verdict_name(j->verdict)));
	put(b, object, "cause", json_string(cause_name(j->cause)));
	put_text(b, object, "reason", row->reason);
	put_text(b, object, "phase_judged", row->phase ? row->phase->name : "");
	put(b, object, "judged_by", json_string(judged_by_name(j->judged_by)));
	if (j->has_figure && isfinite(j->figure)) {
		json_t *figure = json_object();

		put_text(b, figure, "field", j->figure_field);
		put_text(b, figure, "unit", j->figure_unit);
		put_number(b, figure, "value", j->figure);
		put(b, object, "figure", figure);
	}
	put_expected(b, object, j);
	if (j->share_of_bound > 0)
		put_number(b, object, "share_of_bound", j->share_of_bound);
	if (j->efficiency_held > 0)
		put_number(b, object, "efficiency_held", j->efficiency_held);
	put(b, object, "low_confidence", json_boolean(j->low_confidence));
	put_basis(b, object, j);
	put_gap(b, object, j);
	put(b, object, "advice", advice_json(b, j));
}

/* Of several nodes: whose journal the case is from, and what the others told of one of the whole team. */
static void put_node(struct builder *b, json_t *object, const struct record_case *c)
{
	const struct record *r = b->v->in->record;
	json_t *ranks = json_array();

	if (r->node_count) {
		put_text(b, object, "node", r->node[c->node].name);
		put(b, object, "rank", json_integer(c->rank));
	}
	for (size_t i = 0; i < c->rank_count; i++) {
		json_t *one = json_object();

		put(b, one, "rank", json_integer(c->ranks[i].rank));
		put(b, one, "ending", json_string(ending_name(c->ranks[i].ending)));
		put(b, one, "values", values_json(b, c->ranks[i].values));
		push(b, ranks, one);
	}
	if (c->rank_count)
		put(b, object, "ranks", json_incref(ranks));
	json_decref(ranks);
}

static json_t *case_json(struct builder *b, const struct view_row *row)
{
	const struct record_case *c = row->c;
	json_t *object = json_object(), *options = json_object_get(c->plan, "options");

	put(b, object, "case", json_integer(c->id));
	put_text(b, object, "key", c->key);
	put_text(b, object, "title", row->title);
	put_text(b, object, "probe", c->probe);
	put_text(b, object, "engine", c->engine);
	put_text(b, object, "target", c->target);
	put_node(b, object, c);
	put_text(b, object, "limit", c->limit);
	put(b, object, "require", json_string(require_words[c->require]));
	put(b, object, "options", values_json(b, options));
	put(b, object, "ending", json_string(c->skipped ? "skipped" : ending_name(c->ending)));
	put(b, object, "status", json_string(status_name(c->skipped ? c->skip_status : c->status)));
	put_text(b, object, "text", c->text);
	put(b, object, "work", work_json(b, c));
	put_judgement(b, object, row);
	put(b, object, "phases", phases_json(b, c));
	return object;
}

struct fact_object {
	struct builder *b;
	json_t *object;
};

static void put_fact(void *arg, const char *name, const char *value)
{
	struct fact_object *f = arg;
	json_t *text = json_text(value);

	put(f->b, f->object, name, text);
}

static json_t *gpu_json(struct builder *b, const struct gpu *g, unsigned index)
{
	json_t *object = json_object(), *facts = json_object();
	struct about_price price;

	put(b, object, "index", json_integer(index));
	put_text(b, object, "name", g->name);
	put_text(b, object, "pci", g->pci);
	put_text(b, object, "slot", g->slot);
	put_text(b, object, "serial", g->serial);
	put_text(b, object, "uuid", g->uuid);
	put_text(b, object, "vbios", g->vbios);
	put_text(b, object, "sku", about_sku(b->v, g));
	put(b, object, "status", json_string(status_name(g->status)));
	for (int i = 0; i < GPU_FACT_COUNT; i++)
		if (gpu_has(g, (enum gpu_fact)i))
			put_count(b, facts, gpu_fact_name((enum gpu_fact)i), gpu_get(g, (enum gpu_fact)i, 0));
	put(b, object, "facts", facts);
	if (about_price(b->v, g, &price)) {
		json_t *p = json_object();

		put_number(b, p, "low", price.low);
		put_number(b, p, "high", price.high);
		put_text(b, p, "source", price.source);
		put_text(b, p, "date", price.date);
		put(b, object, "dollars_per_hour", p);
	}
	return object;
}

json_t *json_gpus(const struct view *v)
{
	struct builder b = {.v = v};
	const struct machine *m = v->in->machine;
	json_t *array = json_array();

	for (unsigned i = 0; m && i < machine_gpu_count(m); i++)
		push(&b, array, gpu_json(&b, machine_gpu(m, i), i));
	if (b.failed) {
		json_decref(array);
		return NULL;
	}
	return array;
}

json_t *json_facts(const struct view *v, void (*facts)(const struct view *, about_visit *, void *))
{
	struct builder b = {.v = v};
	struct fact_object f = {&b, json_object()};

	facts(v, put_fact, &f);
	if (b.failed) {
		json_decref(f.object);
		return NULL;
	}
	return f.object;
}

static json_t *parts_json(struct builder *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->part_count; i++) {
		const struct view_part *p = &b->v->parts[i];
		json_t *object = json_object(), *evidence = json_array();

		put_text(b, object, "node", p->node);
		put_text(b, object, "pci", p->gpu->pci);
		put_text(b, object, "name", p->gpu->name);
		put_text(b, object, "slot", p->gpu->slot);
		put_text(b, object, "serial", p->serial);
		if (p->peer) {
			put_text(b, object, "peer_pci", p->peer->pci);
			put_text(b, object, "peer_slot", p->peer->slot);
			put_text(b, object, "peer_serial", p->peer_serial);
		}
		put(b, object, "verdict", json_string(verdict_name(p->verdict)));
		put(b, object, "cause", json_string(cause_name(p->cause)));
		for (size_t k = 0; k < b->v->row_count; k++) {
			const struct view_row *row = &b->v->rows[k];
			struct text t = {0};

			if (strcmp(row->c->where, p->row->c->where) || row->j->verdict != p->verdict ||
			    !view_for_ticket(row->j))
				continue;
			text_addf(&t, "%s: %s", row->title, row->reason);
			push(b, evidence, json_text(text_str(&t)));
			text_release(&t);
		}
		put(b, object, "evidence", evidence);
		push(b, array, object);
	}
	return array;
}

static json_t *lines_json(struct builder *b, char (*lines)[200], size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		push(b, array, text_value(b, lines[i]));
	return array;
}

static json_t *counts_json(struct builder *b)
{
	json_t *object = json_object();

	for (int i = 0; i < VERDICT_COUNT; i++)
		put(b, object, verdict_name((enum verdict)i), json_integer(b->v->verdicts[i]));
	return object;
}

static json_t *todos_json(struct builder *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->todo_count; i++) {
		const struct view_todo *t = &b->v->todos[i];
		json_t *object = json_object();

		put(b, object, "verdict", json_string(verdict_name(t->verdict)));
		put(b, object, "cause", json_string(cause_name(t->cause)));
		put_text(b, object, "target", t->target);
		put_text(b, object, "action", t->action);
		put_text(b, object, "cases", text_str(&t->cases));
		put_text(b, object, "reason", t->reason);
		push(b, array, object);
	}
	return array;
}

static json_t *series_json(struct builder *b, const struct curve_series *s)
{
	json_t *object = json_object(), *points = json_array();

	put_text(b, object, "name", s->name);
	put_text(b, object, "unit", s->unit);
	for (size_t i = 0; i < s->count; i++) {
		const struct curve_point *p = &s->point[i];
		json_t *point = json_object();

		put_count(b, point, "size_bytes", p->bytes);
		put_number(b, point, "value", p->value);
		put(b, point, "case", json_integer(p->row->c->id));
		put(b, point, "verdict", json_string(verdict_name(p->row->j->verdict)));
		push(b, points, point);
	}
	put(b, object, "points", points);
	return object;
}

static json_t *levels_json(struct builder *b, const struct curve *c)
{
	json_t *levels = json_array();

	for (size_t i = 0; i < c->level_count; i++) {
		const struct curve_level *l = &c->level[i];
		json_t *level = json_object();

		put_text(b, level, "name", l->name);
		put_number(b, level, "end_bytes", l->end_bytes); /* absent for the last: it is not finite */
		if (l->known_bytes > 0)
			put_count(b, level, "cache_bytes", l->known_bytes);
		if (l->rate > 0)
			put_number(b, level, "bytes_per_s", l->rate);
		if (l->latency > 0)
			put_number(b, level, "latency_ns", l->latency);
		push(b, levels, level);
	}
	return levels;
}

static json_t *fit_json(struct builder *b, const struct curve_fit *f)
{
	json_t *object = json_object(), *lines = json_array();

	put_text(b, object, "name", f->name);
	put(b, object, "told", json_boolean(f->fit.told));
	for (size_t i = 0; i < f->fit.lines; i++) {
		const struct fit_line *l = &f->fit.line[i];
		json_t *line = json_object();

		put_count(b, line, "from_bytes", f->from[i]);
		put_count(b, line, "to_bytes", f->to[i]);
		if (*f->way[i])
			put_text(b, line, "way", f->way[i]);
		put_number(b, line, "latency_ns", l->latency_ns);
		put_number(b, line, "latency_ns_half", l->latency_half);
		if (l->rate > 0) {
			put_number(b, line, "bytes_per_s", l->rate * 1e9);
			put_number(b, line, "bytes_per_s_half", l->rate_half * 1e9);
		}
		put_number(b, line, "worst_share", l->worst);
		if (i && f->fit.change[i - 1].at > 0)
			put_number(b, line, "crosses_at_bytes", f->fit.change[i - 1].at / f->factor);
		push(b, lines, line);
	}
	put(b, object, "lines", lines);
	return object;
}

static json_t *curves_json(struct builder *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->curve_count; i++) {
		const struct curve *c = &b->v->curves[i];
		json_t *object = json_object(), *series = json_array();

		put_text(b, object, "title", c->title);
		put_text(b, object, "target", b->v->groups[c->group].target);
		put_text(b, object, "probe", c->probe);
		put_text(b, object, "engine", c->engine);
		for (size_t k = 0; k < c->series_count; k++)
			push(b, series, series_json(b, &c->series[k]));
		put(b, object, "series", series);
		put(b, object, "levels", levels_json(b, c));
		if (c->fit_count) {
			json_t *fits = json_array();

			for (size_t k = 0; k < c->fit_count; k++)
				push(b, fits, fit_json(b, &c->fit[k]));
			put(b, object, "fits", fits);
		}
		push(b, array, object);
	}
	return array;
}

static json_t *matrix_cells_json(struct builder *b, const struct matrix *m)
{
	json_t *cells = json_array();

	for (size_t from = 0; from < m->count; from++)
		for (size_t to = 0; to < m->count; to++) {
			const struct view_row *row = m->cell[from][to];
			json_t *object;

			if (!row)
				continue;
			object = json_object();
			put_count(b, object, "from", m->gpu[from]);
			put_count(b, object, "to", m->gpu[to]);
			put_count(b, object, "case", row->c->id);
			put_number(b, object, "value", row->j->figure);
			put(b, object, "verdict", json_string(verdict_name(row->j->verdict)));
			put_text(b, object, "path", matrix_path(row));
			push(b, cells, object);
		}
	return cells;
}

/* Of pairs of GPUs; values in the unit of their cases. */
static json_t *p2p_json(struct builder *b)
{
	json_t *matrices = json_array(), *root = json_object();

	for (size_t i = 0; i < b->v->matrix_count; i++) {
		const struct matrix *m = &b->v->matrices[i];
		json_t *object = json_object(), *worst;

		put_text(b, object, "title", m->title);
		put_text(b, object, "unit", m->scale < 1 ? "B/s" : m->unit);
		put(b, object, "cells", matrix_cells_json(b, m));
		if (m->worst) {
			worst = json_object();
			put_text(b, worst, "target", m->worst->where);
			put_number(b, worst, "behind_share", m->behind);
			put(b, object, "worst", worst);
		}
		if (m->at_once) {
			json_t *all = json_object();

			put_count(b, all, "case", m->at_once->c->id);
			put_number(b, all, "value", m->at_once->j->figure);
			put(b, object, "all_at_once", all);
		}
		push(b, matrices, object);
	}
	put(b, root, "matrix", matrices);
	return root;
}

static json_t *stated_json(struct builder *b, const struct judgement *j)
{
	json_t *object = json_object();

	put(b, object, "verdict", json_string(verdict_name(j->verdict)));
	put(b, object, "cause", json_string(cause_name(j->cause)));
	put_text(b, object, "reason", j->reason);
	return object;
}

static json_t *report_object(struct builder *b)
{
	const struct report_input *in = b->v->in;
	json_t *root = json_object(), *cases = json_array();

	put(b, root, "schema", json_string("assay.results"));
	put(b, root, "schema_version", json_integer(REPORT_SCHEMA_VERSION));
	put(b, root, "verdict", json_string(verdict_name(in->judged->verdict)));
	put(b, root, "exit_code", json_integer(in->judged->exit_code));
	put(b, root, "headline", json_text(b->v->headline));
	put(b, root, "counts", counts_json(b));
	put(b, root, "complete", json_boolean(in->record->closed && !in->record->cut_bytes));
	put(b, root, "expectations_hash", json_text(in->judged->expectations_hash));
	put(b, root, "run", json_facts(b->v, about_run));
	put(b, root, "software", json_facts(b->v, about_software));
	put(b, root, "machine", json_facts(b->v, about_machine));
	put(b, root, "gpus", json_gpus(b->v));
	for (size_t i = 0; i < b->v->row_count; i++)
		push(b, cases, case_json(b, &b->v->rows[i]));
	put(b, root, "cases", cases);
	put(b, root, "curves", curves_json(b));
	if (b->v->matrix_count)
		put(b, root, "p2p", p2p_json(b));
	if (nodes_any(b->v))
		put(b, root, "team", nodes_json(b->v));
	if (in->judged->has_stated)
		put(b, root, "stated", stated_json(b, &in->judged->stated));
	put(b, root, "parts", parts_json(b));
	put(b, root, "what_to_do", todos_json(b));
	put(b, root, "could_not_look",
	    lines_json(b, in->judged->could_not_look, in->judged->could_not_look_count));
	put(b, root, "operator_input",
	    lines_json(b, in->judged->operator_input, in->judged->operator_input_count));
	return root;
}

json_t *json_text(const char *s)
{
	json_t *value = json_string(s);
	struct text t = {0};
	size_t size;

	if (value)
		return value;
	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size) {
		if (code == 0xfffd)
			text_add(&t, "\xef\xbf\xbd");
		else
			text_add_bytes(&t, s, size);
	}
	value = json_string(text_str(&t));
	text_release(&t);
	return value;
}

enum status json_dump(struct text *out, json_t *root, struct error *err)
{
	char *dumped = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;

	json_decref(root);
	if (!dumped)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the results as JSON");
	utf8_add_json(out, dumped);
	text_add(out, "\n");
	free(dumped);
	return out->failed ? error_set(err, STATUS_NO_RESOURCE, "no memory for the results as JSON")
			   : STATUS_OK;
}

enum status report_json(struct text *out, const struct report_input *in, struct error *err)
{
	struct view v;
	struct builder b = {.v = &v};
	enum status st = view_build(&v, in, err);
	json_t *root;

	if (st)
		return st;
	root = report_object(&b);
	if (b.failed) {
		json_decref(root);
		root = NULL;
	}
	st = json_dump(out, root, err);
	view_release(&v);
	return st;
}
