/* SPDX-License-Identifier: Apache-2.0 */
/* A case of results.json: its options, values and judgement. */
#include <math.h>
#include "report/text/basis.h"
#include "report/data/json_build.h"
#include "report/tables/energy.h"
#include "report/tables/unit_use.h"

/* The journal's values, with pseudonyms in texts. Values other than numbers, texts and booleans are dropped.
 */
static json_t *values_json(struct json_build *b, const json_t *values)
{
	json_t *object = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)values, key, value)
	{
		if (json_is_string(value))
			json_put(b, object, key, json_shown(b, json_string_value(value)));
		else if (json_is_number(value) || json_is_boolean(value))
			json_put(b, object, key, json_copy(value));
	}
	return object;
}

static json_t *phases_json(struct json_build *b, const struct record_case *c)
{
	json_t *array = json_array();

	for (size_t i = 0; i < c->phase_count; i++) {
		const struct record_phase *p = &c->phase[i];
		json_t *object;

		if (!p->values)
			continue;
		object = json_object();
		json_put(b, object, "phase", json_text(p->name));
		json_put(b, object, "values", values_json(b, p->values));
		if (p->has_window) {
			json_put(b, object, "t0_ns", json_integer((json_int_t)p->t0_ns));
			json_put(b, object, "t1_ns", json_integer((json_int_t)p->t1_ns));
		}
		json_push(b, array, object);
	}
	return array;
}

static const char *const bound_names[] = {"", "device", "ceiling", "datasheet"};

static void put_expected(struct json_build *b, json_t *object, const struct judgement *j)
{
	if (j->bound.from != BOUND_NONE && isfinite(j->bound.value)) {
		json_t *bound = json_object();

		json_put_number(b, bound, "value", j->bound.value);
		json_put(b, bound, "from", json_string(bound_names[j->bound.from]));
		json_put_text(b, bound, "formula", j->bound.formula);
		json_put(b, object, "bound", bound);
	}
	if (j->has_band) {
		json_t *band = json_object();

		json_put_number(b, band, "low", j->band.low);
		json_put_number(b, band, "high", j->band.high);
		json_put(b, band, "confidence", json_integer(j->band.confidence));
		json_put_text(b, band, "phase", j->band.phase);
		json_put_text(b, band, "source", j->band.source);
		json_put_text(b, band, "date", j->band.date);
		json_put_text(b, band, "place", j->band.place);
		json_put_text(b, band, "basis", j->band.basis);
		json_put(b, object, "band", band);
	}
}

static void put_basis(struct json_build *b, json_t *object, const struct judgement *j)
{
	struct text words = {0};
	json_t *basis;

	if (j->judged_by == JUDGED_NOTHING)
		return;
	basis = json_object();
	basis_add(&words, j);
	json_put(b, basis, "kind", json_string(judged_by_name(j->judged_by)));
	json_put(b, basis, "low_confidence", json_boolean(j->low_confidence));
	json_put(b, basis, "text", json_shown(b, text_str(&words)));
	json_put(b, object, "basis", basis);
	text_release(&words);
}

static void put_gap(struct json_build *b, json_t *object, const struct judgement *j)
{
	json_t *array = json_array();

	for (size_t i = 0; i < j->gap_count; i++) {
		const struct factor *f = &j->gap[i];
		json_t *factor = json_object();

		json_put_text(b, factor, "name", f->name);
		json_put_text(b, factor, "signal", f->signal);
		json_put(b, factor, "present", json_boolean(f->present));
		json_put(b, factor, "shown_only", json_boolean(f->shown_only));
		if (f->assumed)
			json_put(b, factor, "assumed", json_true());
		if (f->present) {
			json_put_number(b, factor, "value", f->value);
			if (f->error > 0)
				json_put_number(b, factor, "error", f->error);
		}
		json_push(b, array, factor);
	}
	json_put(b, object, "gap", array);
	if (j->unexplained > 0)
		json_put_number(b, object, "unexplained", j->unexplained);
	json_put(b, object, "explained", json_boolean(j->explained));
	if (j->has_explained_share) {
		json_put_number(b, object, "explained_share", j->explained_share);
		json_put_number(b, object, "assumed_share", j->assumed_share);
	}
}

static json_t *advice_json(struct json_build *b, const struct judgement *j)
{
	json_t *array = json_array();

	for (size_t i = 0; i < j->advice_count; i++) {
		json_t *object = json_object();

		json_put_text(b, object, "knob", j->advice[i].knob);
		json_put_text(b, object, "evidence", j->advice[i].evidence);
		json_put_text(b, object, "gain", j->advice[i].gain);
		json_push(b, array, object);
	}
	return array;
}

static json_t *work_json(struct json_build *b, const struct record_case *c)
{
	json_t *object = json_object();

	json_put_count(b, object, "flop", c->work_flop);
	json_put_count(b, object, "read_bytes", c->work_read);
	json_put_count(b, object, "write_bytes", c->work_write);
	json_put_count(b, object, "link_bytes", c->work_link);
	json_put_count(b, object, "messages", c->work_messages);
	return object;
}

static void put_judgement(struct json_build *b, json_t *object, const struct view_row *row)
{
	const struct judgement *j = row->j;
	json_t *metrics, *energy;

	json_put(b, object, "verdict", json_string(verdict_name(j->verdict)));
	json_put(b, object, "cause", json_string(cause_name(j->cause)));
	json_put_text(b, object, "reason", row->reason);
	json_put_text(b, object, "phase_judged", row->phase ? row->phase->name : "");
	json_put(b, object, "judged_by", json_string(judged_by_name(j->judged_by)));
	if (j->has_figure && isfinite(j->figure)) {
		json_t *figure = json_object();

		json_put_text(b, figure, "field", j->figure_field);
		json_put_text(b, figure, "unit", j->figure_unit);
		json_put_number(b, figure, "value", j->figure);
		json_put(b, object, "figure", figure);
	}
	put_expected(b, object, j);
	if (j->share_of_bound > 0)
		json_put_number(b, object, "share_of_bound", j->share_of_bound);
	if (j->efficiency_held > 0)
		json_put_number(b, object, "efficiency_held", j->efficiency_held);
	json_put(b, object, "low_confidence", json_boolean(j->low_confidence));
	put_basis(b, object, j);
	put_gap(b, object, j);
	json_put(b, object, "advice", advice_json(b, j));
	metrics = unit_use_json(b, row);
	if (json_array_size(metrics))
		json_put(b, object, "metrics", metrics);
	else
		json_decref(metrics);
	energy = energy_json(b, row);
	if (energy)
		json_put(b, object, "energy", energy);
}

/* For runs of several nodes: adds the node and rank whose journal has the case, and the values of all ranks
 * if all of them ran it. */
static void put_node(struct json_build *b, json_t *object, const struct record_case *c)
{
	const struct record *r = b->v->in->record;
	json_t *ranks = json_array();

	if (r->node_count) {
		json_put_text(b, object, "node", r->node[c->node].name);
		json_put(b, object, "rank", json_integer(c->rank));
	}
	for (size_t i = 0; i < c->rank_count; i++) {
		json_t *one = json_object();

		json_put(b, one, "rank", json_integer(c->ranks[i].rank));
		json_put(b, one, "ending", json_string(ending_name(c->ranks[i].ending)));
		json_put(b, one, "values", values_json(b, c->ranks[i].values));
		json_push(b, ranks, one);
	}
	if (c->rank_count)
		json_put(b, object, "ranks", json_incref(ranks));
	json_decref(ranks);
}

json_t *json_case(struct json_build *b, const struct view_row *row)
{
	const struct record_case *c = row->c;
	json_t *object = json_object(), *options = json_object_get(c->plan, "options");

	json_put(b, object, "case", json_integer(c->id));
	json_put_text(b, object, "key", c->key);
	json_put_text(b, object, "title", row->title);
	json_put_text(b, object, "probe", c->probe);
	json_put_text(b, object, "engine", c->engine);
	json_put_text(b, object, "target", c->target);
	put_node(b, object, c);
	json_put_text(b, object, "limit", c->limit);
	json_put(b, object, "require", json_string(require_words[c->require]));
	json_put(b, object, "options", values_json(b, options));
	json_put(b, object, "ending", json_string(c->skipped ? "skipped" : ending_name(c->ending)));
	json_put(b, object, "status", json_string(status_name(c->skipped ? c->skip_status : c->status)));
	json_put_text(b, object, "text", c->text);
	json_put(b, object, "work", work_json(b, c));
	put_judgement(b, object, row);
	json_put(b, object, "phases", phases_json(b, c));
	return object;
}
