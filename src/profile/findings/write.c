/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as JSON and CSV, for programs. */
#include <inttypes.h>
#include "journal/field.h"
#include "profile/findings/savings.h"
#include "profile/findings/findings.h"

/* An unknown value has no key. */
static void put_rate(json_t *row, const char *key, double rate)
{
	if (rate > 0)
		json_object_set_new(row, key, json_real(rate));
}

static void put_count(json_t *row, const char *key, uint64_t count)
{
	if (count)
		json_object_set_new(row, key, json_integer(field_integer(count)));
}

static json_t *nccl_row_json(const struct nccl_row *r)
{
	json_t *row = json_pack("{s:s, s:I, s:b, s:I, s:I}", "operation", nccl_operation_name(r->operation),
				"calls", field_integer(r->calls), "graph", r->graph, "count",
				field_integer(r->count), "paired", field_integer(r->paired));
	json_t *times =
		json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total_ns", r->total, "mean_ns",
			  r->mean, "min_ns", r->min, "p50_ns", r->p50, "p90_ns", r->p90, "p99_ns", r->p99,
			  "max_ns", r->max, "fastest_p50_ns", r->fastest_p50, "waiting_ns", r->waiting);
	char comm[32];

	json_object_update(row, times);
	json_decref(times);
	snprintf(comm, sizeof(comm), "%" PRIx64, r->comm);
	if (r->comm)
		json_object_set_new(row, "communicator", json_string(comm));
	put_count(row, "ranks", r->ranks);
	put_count(row, "size_bytes", r->size);
	put_rate(row, "algorithm_rate", r->algorithm_rate);
	put_rate(row, "bus_rate", r->bus_rate);
	return row;
}

static json_t *nccl_json(const struct nccl *n)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < n->rows; i++)
		json_array_append_new(rows, nccl_row_json(&n->row[i]));
	return json_pack("{s:I, s:I, s:o}", "calls", field_integer(n->calls), "calls_without_kernel",
			 field_integer(n->lonely), "rows", rows);
}

static json_t *breakdown_json(const struct findings *f, const struct breakdown *b)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < b->devices; i++) {
		const struct breakdown_device *d = &b->device[i];
		json_t *states = json_object();

		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
			json_object_set_new(states, breakdown_key(k),
					    json_integer(field_integer(d->state_ns[k])));
		json_array_append_new(
			devices,
			json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
				  "pid", field_integer(f->t->process[d->process].pid), "device",
				  field_integer(d->device), "span_ns", field_integer(d->span_ns), "states_ns",
				  states, "idle_ns", field_integer(breakdown_idle_ns(d)), "busy_ns",
				  field_integer(d->busy_ns), "compute_ns", field_integer(d->compute_ns),
				  "communication_ns", field_integer(d->communication_ns),
				  "communication_hidden_ns", field_integer(d->hidden_ns), "data_copy_ns",
				  field_integer(d->data_copy_ns), "pageable_ns",
				  field_integer(d->pageable_ns), "gaps", field_integer(d->gaps),
				  "longest_gap_ns", field_integer(d->longest_gap_ns), "gaps_after_waits",
				  field_integer(d->waits)));
	}
	return devices;
}

/* The steps belong to one rank. The device of another rank may begin after the first step. */
static uint64_t before_first_step_ns(const struct findings *f, size_t process)
{
	uint64_t from_ns = f->steps.each.span[f->steps.each.first[process]].from_ns;
	uint64_t first_ns = f->steps.process[process].first_ns;

	return from_ns > first_ns ? from_ns - first_ns : 0;
}

static json_t *steps_json(const struct findings *f)
{
	json_t *all = json_array();

	for (size_t i = 0; i < f->t->processes; i++) {
		const struct steps_process *p = &f->steps.process[i];
		bool graph = p->mark == STEPS_EVENT && p->kind == TIMELINE_GRAPH && !p->name;

		if (p->steps)
			json_array_append_new(
				all,
				json_pack("{s:I, s:s, s:o, s:I, s:f, s:f, s:f, s:f, s:I}", "pid",
					  field_integer(f->t->process[i].pid), "mark",
					  p->mark == STEPS_RANGE ? "range" : "event", "name",
					  field_string(graph ? "graph" : timeline_name(f->t, p->name)),
					  "steps", field_integer(p->steps), "median_ns", p->median_ns,
					  "mean_ns", p->mean_ns, "p10_ns", p->p10_ns, "p90_ns", p->p90_ns,
					  "first_step_ns", field_integer(before_first_step_ns(f, i))));
	}
	return all;
}

static json_t *late_json(const struct findings *f)
{
	const struct straggler *l = &f->late;
	json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:s, s:f}", "pid",
			      field_integer(f->t->process[l->process].pid), "ranks", field_integer(l->ranks),
			      "also", field_integer(l->also), "steps", field_integer(l->steps), "late_steps",
			      field_integer(l->late_steps), "median_ns", l->median_ns, "per_step_ns",
			      l->per_step_ns, "share", l->share, "state", breakdown_key(l->state), "state_ns",
			      l->state_ns);

	if (j && l->kernel.name)
		json_object_set_new(j, "kernel", field_string(timeline_name(f->t, l->kernel.name)));
	if (j && l->range.name)
		json_object_set_new(j, "range", field_string(timeline_name(f->t, l->range.name)));
	return j;
}

static json_t *copies_json(const struct copies *c)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < c->rows; i++) {
		const struct copies_row *r = &c->row[i];
		char name[64];
		json_t *row;

		copies_name(name, sizeof(name), r);
		row = json_pack("{s:s, s:I, s:I, s:f, s:f}", "name", name, "count", field_integer(r->count),
				"bytes", field_integer(r->bytes), "total_ns", r->total, "rate", r->rate);
		put_rate(row, "fastest_rate", r->fastest);
		put_rate(row, "bound_rate", r->bound);
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *savings_json(const struct findings *f)
{
	const struct savings a = savings_of(f);
	json_t *lines = json_array();

	for (size_t i = 0; i < a.lines; i++)
		json_array_append_new(lines,
				      json_pack("{s:s, s:o, s:o, s:f, s:f}", "key", a.line[i].key, "knob",
						field_string(a.line[i].knob), "evidence",
						field_string(a.line[i].evidence), "share", a.line[i].share,
						"per_step_ns", a.line[i].per_step_ns));
	return lines;
}

static json_t *counters_json(const struct findings *f)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < f->counted.rows; i++) {
		const struct kernel_counters_row *r = &f->counted.row[i];
		json_t *row = json_pack("{s:o, s:I}", "name", field_string(timeline_name(f->t, r->name)),
					"count", field_integer(r->count));

		for (unsigned m = 0; m < KERNEL_COUNTER_METRICS; m++)
			if (kernel_counters_has(r, m))
				json_object_set_new(row, kernel_counters_metric_name(m),
						    json_real(r->value[m]));
		json_array_append_new(rows, row);
	}
	return rows;
}

json_t *findings_json(const struct findings *f)
{
	json_t *all = summary_json(&f->whole.summary, f->t);

	if (!all)
		return NULL;
	json_object_set_new(all, "schema_version", json_integer(FINDINGS_SCHEMA_VERSION));
	json_object_set_new(all, "breakdown", breakdown_json(f, &f->whole.breakdown));
	json_object_set_new(all, "steady", breakdown_json(f, &f->steady.breakdown));
	json_object_set_new(all, "start_up", breakdown_json(f, &f->start_up));
	json_object_set_new(all, "steps", steps_json(f));
	if (f->late.found)
		json_object_set_new(all, "late_rank", late_json(f));
	json_object_set_new(all, "nccl", nccl_json(&f->nccl));
	json_object_set_new(all, "copies", copies_json(&f->whole.copies));
	json_object_set_new(all, "counters", counters_json(f));
	json_object_set_new(all, "savings", savings_json(f));
	return all;
}

void findings_nccl_csv(struct text *out, const struct findings *f)
{
	text_add(
		out,
		"operation,communicator,ranks,size_bytes,calls,graph,count,paired,total_ns,mean_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns,fastest_p50_ns,waiting_ns,algorithm_rate,bus_rate\n");
	for (size_t i = 0; i < f->nccl.rows; i++) {
		const struct nccl_row *r = &f->nccl.row[i];

		text_addf(out, "%s,%" PRIx64 ",%u,%" PRIu64 ",%u,%d,%" PRIu64 ",%" PRIu64 ",",
			  nccl_operation_name(r->operation), r->comm, r->ranks, r->size, r->calls, r->graph,
			  r->count, r->paired);
		text_addf(out, "%.0f,%.1f,%.0f,%.1f,%.1f,%.1f,%.0f,%.1f,%.0f,%.0f,%.0f\n", r->total, r->mean,
			  r->min, r->p50, r->p90, r->p99, r->max, r->fastest_p50, r->waiting,
			  r->algorithm_rate, r->bus_rate);
	}
}

void findings_breakdown_csv(struct text *out, const struct findings *f)
{
	text_add(out, "pid,device,span_ns");
	for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
		text_addf(out, ",%s_ns", breakdown_key(k));
	text_add(out, ",busy_ns,compute_union_ns,communication_union_ns,communication_hidden_ns\n");
	for (size_t i = 0; i < f->whole.breakdown.devices; i++) {
		const struct breakdown_device *d = &f->whole.breakdown.device[i];

		text_addf(out, "%u,%u,%" PRIu64, f->t->process[d->process].pid, d->device, d->span_ns);
		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
			text_addf(out, ",%" PRIu64, d->state_ns[k]);
		text_addf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", d->busy_ns,
			  d->compute_ns, d->communication_ns, d->hidden_ns);
	}
}

void findings_copies_csv(struct text *out, const struct findings *f)
{
	text_add(out, "name,count,bytes,total_ns,rate,fastest_rate,bound_rate\n");
	for (size_t i = 0; i < f->whole.copies.rows; i++) {
		const struct copies_row *r = &f->whole.copies.row[i];
		char name[64];

		copies_name(name, sizeof(name), r);
		text_addf(out, "\"%s\",%" PRIu64 ",%" PRIu64 ",%.0f,%.0f,%.0f,%.0f\n", name, r->count,
			  r->bytes, r->total, r->rate, r->fastest, r->bound);
	}
}

static void add_metric_names(struct text *out)
{
	for (unsigned m = 0; m < KERNEL_COUNTER_METRICS; m++)
		text_addf(out, ",%s", kernel_counters_metric_name(m));
	text_add(out, "\n");
}

/* has: one bit per metric. Metrics that were not counted stay empty. */
static void add_metrics(struct text *out, uint32_t has, const double *value)
{
	for (unsigned m = 0; m < KERNEL_COUNTER_METRICS; m++) {
		text_add(out, ",");
		if (has >> m & 1)
			text_addf(out, "%.9g", value[m]);
	}
	text_add(out, "\n");
}

void findings_counters_csv(struct text *out, const struct findings *f)
{
	text_add(out, "name,count");
	add_metric_names(out);
	for (size_t i = 0; i < f->counted.rows; i++) {
		const struct kernel_counters_row *r = &f->counted.row[i];

		summary_csv_text(out, timeline_name(f->t, r->name));
		text_addf(out, ",%" PRIu64, r->count);
		add_metrics(out, r->has, r->value);
	}
}

void findings_launches_csv(struct text *out, const struct findings *f)
{
	text_add(out, "name,pid,device,at_ns");
	add_metric_names(out);
	for (size_t i = 0; i < f->t->counteds; i++) {
		const struct timeline_counted *c = &f->t->counted[i];

		summary_csv_text(out, timeline_name(f->t, c->name));
		text_addf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu64, f->t->process[c->process].pid, c->device,
			  c->at_ns);
		add_metrics(out, c->has, c->value);
	}
}
