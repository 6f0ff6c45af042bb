/* SPDX-License-Identifier: Apache-2.0 */
/* results.json (docs/schema/results.schema.json). A missing value has no key: there is no null for a figure
 * and no zero for an unknown. */
#include "report/view/about.h"
#include "report/data/json.h"
#include "report/tables/attention.h"
#include "report/tables/collective_scaling.h"
#include "report/data/json_build.h"
#include "report/tables/nodes.h"
#include "report/report.h"

struct fact_object {
	struct json_build *b;
	json_t *object;
};

static void put_fact(void *arg, const char *name, const char *value)
{
	struct fact_object *f = arg;
	json_t *text = json_text(value);

	json_put(f->b, f->object, name, text);
}

static json_t *gpu_json(struct json_build *b, const struct gpu *g, unsigned index)
{
	json_t *object = json_object(), *facts = json_object();
	struct about_price price;

	json_put(b, object, "index", json_integer(index));
	json_put_text(b, object, "name", g->name);
	json_put_text(b, object, "pci", g->pci);
	json_put_text(b, object, "slot", g->slot);
	json_put_text(b, object, "serial", g->serial);
	json_put_text(b, object, "uuid", g->uuid);
	json_put_text(b, object, "vbios", g->vbios);
	json_put_text(b, object, "sku", about_sku(b->v, g));
	json_put(b, object, "status", json_string(status_name(g->status)));
	for (int i = 0; i < GPU_FACT_COUNT; i++)
		if (gpu_has(g, (enum gpu_fact)i))
			json_put_count(b, facts, gpu_fact_name((enum gpu_fact)i),
				       gpu_get(g, (enum gpu_fact)i, 0));
	json_put(b, object, "facts", facts);
	if (about_price(b->v, g, &price)) {
		json_t *p = json_object();

		json_put_number(b, p, "low", price.low);
		json_put_number(b, p, "high", price.high);
		json_put_text(b, p, "source", price.source);
		json_put_text(b, p, "date", price.date);
		if (price.old)
			json_put(b, p, "old", json_true());
		json_put(b, object, "dollars_per_hour", p);
	}
	return object;
}

json_t *json_gpus(const struct view *v)
{
	struct json_build b = {.v = v};
	const struct machine *m = v->in->machine;
	json_t *array = json_array();

	for (unsigned i = 0; m && i < machine_gpu_count(m); i++)
		json_push(&b, array, gpu_json(&b, machine_gpu(m, i), i));
	if (b.failed) {
		json_decref(array);
		return NULL;
	}
	return array;
}

json_t *json_facts(const struct view *v, void (*facts)(const struct view *, about_visit *, void *))
{
	struct json_build b = {.v = v};
	struct fact_object f = {&b, json_object()};

	facts(v, put_fact, &f);
	if (b.failed) {
		json_decref(f.object);
		return NULL;
	}
	return f.object;
}

static json_t *parts_json(struct json_build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->part_count; i++) {
		const struct view_part *p = &b->v->parts[i];
		json_t *object = json_object(), *evidence = json_array();

		json_put_text(b, object, "node", p->node);
		json_put_text(b, object, "pci", p->gpu->pci);
		json_put_text(b, object, "name", p->gpu->name);
		json_put_text(b, object, "slot", p->gpu->slot);
		json_put_text(b, object, "serial", p->serial);
		if (p->peer) {
			json_put_text(b, object, "peer_pci", p->peer->pci);
			json_put_text(b, object, "peer_slot", p->peer->slot);
			json_put_text(b, object, "peer_serial", p->peer_serial);
		}
		json_put(b, object, "verdict", json_string(verdict_name(p->verdict)));
		json_put(b, object, "cause", json_string(cause_name(p->cause)));
		for (size_t k = 0; k < b->v->row_count; k++) {
			const struct view_row *row = &b->v->rows[k];
			struct text t = {0};

			if (strcmp(row->c->where, p->row->c->where) || row->j->verdict != p->verdict ||
			    !view_for_ticket(row->j))
				continue;
			text_addf(&t, "%s: %s", row->title, row->reason);
			json_push(b, evidence, json_text(text_str(&t)));
			text_release(&t);
		}
		json_put(b, object, "evidence", evidence);
		json_push(b, array, object);
	}
	return array;
}

static json_t *lines_json(struct json_build *b, char (*lines)[200], size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_push(b, array, json_shown(b, lines[i]));
	return array;
}

static json_t *counts_json(struct json_build *b)
{
	json_t *object = json_object();

	for (int i = 0; i < VERDICT_COUNT; i++)
		json_put(b, object, verdict_name((enum verdict)i), json_integer(b->v->verdicts[i]));
	return object;
}

static json_t *todos_json(struct json_build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->todo_count; i++) {
		const struct view_todo *t = &b->v->todos[i];
		json_t *object = json_object();

		json_put(b, object, "verdict", json_string(verdict_name(t->verdict)));
		json_put(b, object, "cause", json_string(cause_name(t->cause)));
		json_put_text(b, object, "target", t->spread.target);
		json_put_text(b, object, "action", t->action);
		json_put_text(b, object, "cases", text_str(&t->cases));
		json_put_text(b, object, "reason", t->reason);
		json_push(b, array, object);
	}
	return array;
}

static json_t *stated_json(struct json_build *b, const struct judgement *j)
{
	json_t *object = json_object();

	json_put(b, object, "verdict", json_string(verdict_name(j->verdict)));
	json_put(b, object, "cause", json_string(cause_name(j->cause)));
	json_put_text(b, object, "reason", j->reason);
	return object;
}

static void put_unless_empty(struct json_build *b, json_t *object, const char *key, json_t *array)
{
	if (json_array_size(array))
		json_put(b, object, key, array);
	else
		json_decref(array);
}

static json_t *report_object(struct json_build *b)
{
	const struct report_input *in = b->v->in;
	json_t *root = json_object(), *cases = json_array();

	json_put(b, root, "schema", json_string("assay.results"));
	json_put(b, root, "schema_version", json_integer(REPORT_SCHEMA_VERSION));
	json_put(b, root, "verdict", json_string(verdict_name(in->judged->verdict)));
	json_put(b, root, "exit_code", json_integer(in->judged->exit_code));
	json_put(b, root, "headline", json_text(b->v->headline));
	json_put(b, root, "counts", counts_json(b));
	json_put(b, root, "complete", json_boolean(in->record->closed && !in->record->cut_bytes));
	json_put(b, root, "expectations_hash", json_text(in->judged->expectations_hash));
	json_put(b, root, "run", json_facts(b->v, about_run));
	json_put(b, root, "software", json_facts(b->v, about_software));
	json_put(b, root, "machine", json_facts(b->v, about_machine));
	json_put(b, root, "gpus", json_gpus(b->v));
	for (size_t i = 0; i < b->v->row_count; i++)
		json_push(b, cases, json_case(b, &b->v->rows[i]));
	json_put(b, root, "cases", cases);
	json_put(b, root, "curves", json_curves(b));
	if (b->v->matrix_count)
		json_put(b, root, "p2p", json_p2p(b));
	if (in->judged->way_count)
		json_put(b, root, "best_ways", json_ways(b));
	put_unless_empty(b, root, "collective_groups", collective_scaling_json(b));
	put_unless_empty(b, root, "attention", attention_json(b));
	if (nodes_any(b->v))
		json_put(b, root, "team", json_nodes(b));
	if (in->judged->has_stated)
		json_put(b, root, "stated", stated_json(b, &in->judged->stated));
	json_put(b, root, "parts", parts_json(b));
	json_put(b, root, "what_to_do", todos_json(b));
	json_put(b, root, "could_not_look",
		 lines_json(b, in->judged->could_not_look, in->judged->could_not_look_count));
	json_put(b, root, "operator_input",
		 lines_json(b, in->judged->operator_input, in->judged->operator_input_count));
	return root;
}

enum status report_json(struct text *out, const struct report_input *in, struct error *err)
{
	struct view v;
	struct json_build b = {.v = &v};
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
