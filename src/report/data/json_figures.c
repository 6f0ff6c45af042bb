/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of results.json that join several cases: curves, matrices of pairs, the best way to run a
 * collective. */
#include "report/data/json_build.h"
#include "report/tables/collective_ways.h"

static json_t *series_json(struct json_build *b, const struct curve_series *s)
{
	json_t *object = json_object(), *points = json_array();

	json_put_text(b, object, "name", s->name);
	json_put_text(b, object, "unit", s->unit);
	for (size_t i = 0; i < s->count; i++) {
		const struct curve_point *p = &s->point[i];
		json_t *point = json_object();

		json_put_count(b, point, "size_bytes", p->bytes);
		json_put_number(b, point, "value", p->value);
		json_put(b, point, "case", json_integer(p->row->c->id));
		json_put(b, point, "verdict", json_string(verdict_name(p->row->j->verdict)));
		json_push(b, points, point);
	}
	json_put(b, object, "points", points);
	return object;
}

static json_t *levels_json(struct json_build *b, const struct curve *c)
{
	json_t *levels = json_array();

	for (size_t i = 0; i < c->level_count; i++) {
		const struct curve_level *l = &c->level[i];
		json_t *level = json_object();

		json_put_text(b, level, "name", l->name);
		json_put_number(b, level, "end_bytes",
				l->end_bytes); /* absent for the last: it is not finite */
		if (l->known_bytes > 0)
			json_put_count(b, level, "cache_bytes", l->known_bytes);
		if (l->rate > 0)
			json_put_number(b, level, "bytes_per_s", l->rate);
		if (l->latency > 0)
			json_put_number(b, level, "latency_ns", l->latency);
		json_push(b, levels, level);
	}
	return levels;
}

static json_t *fit_json(struct json_build *b, const struct curve_fit *f)
{
	json_t *object = json_object(), *lines = json_array();

	json_put_text(b, object, "name", f->name);
	json_put(b, object, "told", json_boolean(f->fit.told));
	for (size_t i = 0; i < f->fit.lines; i++) {
		const struct latency_fit_line *l = &f->fit.line[i];
		json_t *line = json_object();

		json_put_count(b, line, "from_bytes", f->from[i]);
		json_put_count(b, line, "to_bytes", f->to[i]);
		if (*f->way[i])
			json_put_text(b, line, "way", f->way[i]);
		json_put_number(b, line, "latency_ns", l->latency_ns);
		json_put_number(b, line, "latency_ns_half", l->latency_half);
		if (l->rate > 0) {
			json_put_number(b, line, "bytes_per_s", l->rate * 1e9);
			json_put_number(b, line, "bytes_per_s_half", l->rate_half * 1e9);
		}
		json_put_number(b, line, "worst_share", l->worst);
		if (i && f->fit.change[i - 1].at > 0)
			json_put_number(b, line, "crosses_at_bytes", f->fit.change[i - 1].at / f->factor);
		json_push(b, lines, line);
	}
	json_put(b, object, "lines", lines);
	return object;
}

json_t *json_curves(struct json_build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->curve_count; i++) {
		const struct curve *c = &b->v->curves[i];
		json_t *object = json_object(), *series = json_array();

		json_put_text(b, object, "title", c->title);
		json_put_text(b, object, "target", b->v->groups[c->group].target);
		json_put_text(b, object, "probe", c->probe);
		json_put_text(b, object, "engine", c->engine);
		for (size_t k = 0; k < c->series_count; k++)
			json_push(b, series, series_json(b, &c->series[k]));
		json_put(b, object, "series", series);
		json_put(b, object, "levels", levels_json(b, c));
		if (c->fit_count) {
			json_t *fits = json_array();

			for (size_t k = 0; k < c->fit_count; k++)
				json_push(b, fits, fit_json(b, &c->fit[k]));
			json_put(b, object, "fits", fits);
		}
		json_push(b, array, object);
	}
	return array;
}

static json_t *matrix_cells_json(struct json_build *b, const struct matrix *m)
{
	json_t *cells = json_array();

	for (size_t from = 0; from < m->count; from++)
		for (size_t to = 0; to < m->count; to++) {
			const struct view_row *row = m->cell[from][to];
			json_t *object;

			if (!row)
				continue;
			object = json_object();
			json_put_count(b, object, "from", m->gpu[from]);
			json_put_count(b, object, "to", m->gpu[to]);
			json_put_count(b, object, "case", row->c->id);
			json_put_number(b, object, "value", row->j->figure);
			json_put(b, object, "verdict", json_string(verdict_name(row->j->verdict)));
			json_put_text(b, object, "path", matrix_path(row));
			json_push(b, cells, object);
		}
	return cells;
}

json_t *json_p2p(struct json_build *b)
{
	json_t *matrices = json_array(), *root = json_object();

	for (size_t i = 0; i < b->v->matrix_count; i++) {
		const struct matrix *m = &b->v->matrices[i];
		json_t *object = json_object(), *worst;

		json_put_text(b, object, "title", m->title);
		json_put_text(b, object, "unit", m->scale < 1 ? "B/s" : m->unit);
		json_put(b, object, "cells", matrix_cells_json(b, m));
		if (m->worst) {
			worst = json_object();
			json_put_text(b, worst, "target", m->worst->where);
			json_put_number(b, worst, "behind_share", m->behind);
			json_put(b, object, "worst", worst);
		}
		if (m->at_once) {
			json_t *all = json_object();

			json_put_count(b, all, "case", m->at_once->c->id);
			json_put_number(b, all, "value", m->at_once->j->figure);
			json_put(b, object, "all_at_once", all);
		}
		json_push(b, matrices, object);
	}
	json_put(b, root, "matrix", matrices);
	return root;
}

static json_t *way_json(struct json_build *b, const struct judge_way *w)
{
	const struct record_case *cases = b->v->in->record->cases, *c = &cases[w->best];
	json_t *object = json_object();
	struct text name = {0};

	ways_name(&name, b->v, w);
	json_put_text(b, object, "target", c->where);
	json_put_text(b, object, "operation", record_option(c, "op"));
	json_put_text(b, object, "size", record_option(c, "size"));
	json_put_text(b, object, "way", text_str(&name));
	json_put_count(b, object, "case", c->id);
	json_put(b, object, "searched", json_boolean(w->searched));
	json_put_number(b, object, "value", w->figure);
	json_put_text(b, object, "unit", w->unit);
	json_put_text(b, object, "algorithm", w->algorithm);
	json_put_text(b, object, "protocol", w->protocol);
	json_put_count(b, object, "ways", w->ways);
	json_put_count(b, object, "variants", w->tried);
	if (w->has_plain)
		json_put_count(b, object, "default_case", cases[w->plain].id);
	if (w->ratio > 0)
		json_put_number(b, object, "over_default", w->ratio);
	if (w->low > 0) {
		json_put_number(b, object, "over_default_low", w->low);
		json_put_number(b, object, "over_default_high", w->high);
	}
	text_release(&name);
	return object;
}

json_t *json_ways(struct json_build *b)
{
	const struct judgements *j = b->v->in->judged;
	json_t *array = json_array();

	for (size_t i = 0; i < j->way_count; i++)
		json_push(b, array, way_json(b, &j->way[i]));
	return array;
}
