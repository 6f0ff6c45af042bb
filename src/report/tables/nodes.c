/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/nodes.h"
#include <math.h>
#include "report/text/fact_label.h"
#include "report/files/merge.h"
#include "report/text/format.h"

const char *const nodes_headings[NODES_COLUMNS] = {"node", "state", "ranks", "GPUs", "clock"};
const char *const *nodes_difference_headings(const struct view *v)
{
	static const char *const of_two[NODES_DIFFERENCE_COLUMNS] = {"fact", "first node", "other node",
								     "effect"};
	static const char *const of_more[NODES_DIFFERENCE_COLUMNS] = {"fact", "most nodes", "other nodes",
								      "effect"};

	return v->in->record->node_count == 2 ? of_two : of_more;
}

bool nodes_any(const struct view *v)
{
	return v->in->record->node_count > 0;
}

bool nodes_many(const struct view *v)
{
	enum { FEW = 8 };

	return v->in->record->node_count > FEW;
}

const char *nodes_alike(const struct view *v)
{
	const struct record *r = v->in->record;
	unsigned known = 0;

	for (size_t i = 0; i < r->node_count; i++)
		known += r->node[i].machine != NULL;
	return known > 1 ? "No compared fact differs between the nodes"
			 : "The facts of only one node are known, so there is nothing to compare";
}

static void span_text(char *out, size_t size, double ns)
{
	const double a = fabs(ns);

	if (a < 1e3)
		snprintf(out, size, "%.0f ns", ns);
	else if (a < 1e6)
		snprintf(out, size, "%.1f µs", ns / 1e3);
	else if (a < 1e9)
		snprintf(out, size, "%.3f ms", ns / 1e6);
	else
		snprintf(out, size, "%.3f s", ns / 1e9);
}

/* Writes "3.250 ms ahead of rank 0's, ± 40 ns; 1.0 µs more at the end". */
static void clock_text(char *out, size_t size, const struct record *r, const struct record_node *n)
{
	char offset[32], error[32], drift[32] = "";
	double more;

	if (!n->leader) {
		text_copy(out, size, r->node_count > 1 ? "reference for the other nodes" : "this node's own");
		return;
	}
	if (!n->joined.known) {
		text_copy(out, size, "not measured: times are not corrected");
		return;
	}
	span_text(offset, sizeof(offset), fabs((double)n->joined.offset_ns));
	span_text(error, sizeof(error), (double)n->joined.error_ns);
	snprintf(out, size, "%s %s rank 0's, ± %s", offset, n->joined.offset_ns < 0 ? "behind" : "ahead of",
		 error);
	if (!n->parted.known)
		return;
	more = (double)(n->parted.offset_ns - n->joined.offset_ns);
	if (more == 0)
		return;
	span_text(drift, sizeof(drift), fabs(more));
	snprintf(out + strlen(out), size - strlen(out), "; %s %s at the end", drift,
		 more < 0 ? "less" : "more");
}

static void state_text(struct text *out, const struct view *v, const struct record_node *n)
{
	text_add(out, record_node_state_word(n->state));
	if (!*n->why)
		return;
	text_add(out, ": ");
	pseudonym_map_add(&v->names, out, n->why);
}

static unsigned cpus_of(const struct record_node *n)
{
	return (unsigned)json_number_value(json_object_get(json_object_get(n->machine, "cpu"), "threads"));
}

/* True if the node has more ranks than CPUs; false if its CPUs are unknown. */
static bool crowded(const struct record_node *n)
{
	return cpus_of(n) && n->ranks > cpus_of(n);
}

/* Writes "ranks 0 to 3, sharing 2 CPUs"; "4 of ranks 0 to 6" if other nodes have the others. */
static void ranks_text(char *out, size_t size, const struct record_node *n)
{
	if (n->ranks == 1)
		snprintf(out, size, "rank %u", n->leader);
	else if (n->last - n->leader + 1 == n->ranks)
		snprintf(out, size, "ranks %u to %u", n->leader, n->last);
	else
		snprintf(out, size, "%u of ranks %u to %u", n->ranks, n->leader, n->last);
	if (crowded(n))
		snprintf(out + strlen(out), size - strlen(out), ", sharing %u CPU%s", cpus_of(n),
			 cpus_of(n) == 1 ? "" : "s");
}

static void gpus_text(char *out, size_t size, const struct record_node *n)
{
	if (n->machine)
		snprintf(out, size, "%zu", json_array_size(json_object_get(n->machine, "gpus")));
	else
		text_copy(out, size, FORMAT_NONE);
}

void nodes_each(const struct view *v, nodes_visit *visit, void *arg)
{
	const struct record *r = v->in->record;

	for (unsigned i = 0; i < r->node_count; i++) {
		const struct record_node *n = &r->node[i];
		char name[64], ranks[64], gpus[16], clock[128];
		struct text state = {0};

		view_node_name(name, sizeof(name), v, i);
		state_text(&state, v, n);
		ranks_text(ranks, sizeof(ranks), n);
		gpus_text(gpus, sizeof(gpus), n);
		clock_text(clock, sizeof(clock), r, n);
		visit(arg, n->state == NODE_WHOLE && !crowded(n) ? VERDICT_MEASURED : VERDICT_WARN,
		      (const char *const[NODES_COLUMNS]){name, text_str(&state), ranks, gpus, clock});
		text_release(&state);
	}
}

/* Appends a value in words, with pseudonyms. */
static void value_text(struct text *out, const struct view *v, const struct judge_difference *d,
		       const char *value)
{
	char leaf[128];

	fact_leaf(leaf, sizeof(leaf), d->fact, value);
	pseudonym_map_add(&v->names, out, d->how_many ? value : leaf);
}

static void label_text(char *out, size_t size, const struct judge_difference *d)
{
	char label[160];

	fact_label(label, sizeof(label), d->fact);
	snprintf(out, size, "%s%s", d->how_many ? "how many: " : "", label);
}

/* Appends ": node-b, node-d and 3 more", the nodes with the value of the other node `from`. */
static void holders_text(struct text *out, const struct view *v, const struct judge_difference *d,
			 size_t from)
{
	enum { NAMES = 8 };
	unsigned count = 0;
	char name[64];

	for (size_t k = from; k < d->other_count; k++) {
		if (strcmp(d->other[k].value, d->other[from].value) || count++ >= NAMES)
			continue;
		view_node_name(name, sizeof(name), v, d->other[k].node);
		text_addf(out, "%s%s", k == from ? ": " : ", ", name);
	}
	if (count > NAMES)
		text_addf(out, " and %u more", count - NAMES);
}

static bool seen_before(const struct judge_difference *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(d->other[k].value, d->other[i].value))
			return true;
	return false;
}

/* Appends "7: node-b, node-d; 6: node-c". nodes.csv and results.json list all values and nodes. */
static void others_text(struct text *out, const struct view *v, const struct judge_difference *d)
{
	enum { VALUES = 6 };
	unsigned values = 0;

	for (size_t i = 0; i < d->other_count; i++) {
		if (seen_before(d, i) || values++ >= VALUES)
			continue;
		text_add(out, out->size ? "; " : "");
		value_text(out, v, d, d->other[i].value);
		holders_text(out, v, d, i);
	}
	if (values > VALUES)
		text_addf(out, "; and %u more values (nodes.csv has them)", values - VALUES);
}

void nodes_each_difference(const struct view *v, nodes_visit *visit, void *arg)
{
	const struct judgements *j = v->in->judged;

	for (size_t i = 0; i < j->difference_count; i++) {
		const struct judge_difference *d = &j->difference[i];
		struct text most = {0}, others = {0}, does = {0};
		char label[192];

		label_text(label, sizeof(label), d);
		value_text(&most, v, d, d->majority);
		text_addf(&most, " (%u node%s)", d->alike, d->alike == 1 ? "" : "s");
		others_text(&others, v, d);
		if (d->hurts)
			text_addf(&does, "%s [%s]", d->hurts, d->source);
		visit(arg, d->hurts ? VERDICT_WARN : VERDICT_MEASURED,
		      (const char *const[NODES_DIFFERENCE_COLUMNS]){label, text_str(&most), text_str(&others),
								    text_str(&does)});
		text_release(&most);
		text_release(&others);
		text_release(&does);
	}
}

void nodes_csv(struct text *out, const struct view *v)
{
	const struct judgements *j = v->in->judged;

	text_add(out, "Fact,Node,Value,MostNodes,Hurts,Source\r\n");
	for (size_t i = 0; i < j->difference_count; i++)
		for (size_t k = 0; k < j->difference[i].other_count; k++) {
			const struct judge_difference *d = &j->difference[i];
			const char *const cells[] = {d->fact,
						     v->in->record->node[d->other[k].node].name,
						     d->other[k].value,
						     d->majority,
						     d->hurts ? d->hurts : "",
						     d->source ? d->source : ""};

			for (size_t c = 0; c < sizeof(cells) / sizeof(cells[0]); c++) {
				struct text t = {0};

				pseudonym_map_add(&v->names, &t, cells[c]);
				text_add(out, c ? "," : "");
				csv_text(out, text_str(&t));
				text_release(&t);
			}
			text_add(out, "\r\n");
		}
}
