/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include "journal/field.h"
#include "profile/inject/ring.h"
#include "profile/findings/summary.h"

void summary_csv_text(struct text *out, const char *s)
{
	text_add(out, "\"");
	for (; *s; s++) {
		char c = (unsigned char)*s < ' ' ? ' ' : *s;

		if (c == '"')
			text_add(out, "\"");
		text_add_bytes(out, &c, 1);
	}
	text_add(out, "\"");
}

void summary_csv(struct text *out, const struct summary *s, const struct timeline *t)
{
	text_add(out, "kind,name,count,total_ns,mean_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns,share,bytes\n");
	for (size_t i = 0; i < s->rows; i++) {
		const struct summary_row *r = &s->row[i];

		text_addf(out, "%s,", timeline_kind_name(r->kind));
		summary_csv_text(out, timeline_name(t, r->name));
		text_addf(out, ",%" PRIu64 ",%.0f,%.1f,%.0f,%.1f,%.1f,%.1f,%.0f,%.6f,", r->count, r->total,
			  r->mean, r->min, r->p50, r->p90, r->p99, r->max, r->share);
		if (r->kind == TIMELINE_COPY || r->kind == TIMELINE_SET)
			text_addf(out, "%" PRIu64, r->bytes);
		text_add(out, "\n");
	}
}

static json_t *rows_json(const struct summary *s, const struct timeline *t)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < s->rows; i++) {
		const struct summary_row *r = &s->row[i];
		json_t *row = json_pack("{s:s, s:o, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "kind",
					timeline_kind_name(r->kind), "name",
					field_string(timeline_name(t, r->name)), "count",
					field_integer(r->count), "total_ns", r->total, "mean_ns", r->mean,
					"min_ns", r->min, "p50_ns", r->p50, "p90_ns", r->p90, "p99_ns",
					r->p99, "max_ns", r->max, "share", r->share);

		if (row && (r->kind == TIMELINE_COPY || r->kind == TIMELINE_SET))
			json_object_set_new(row, "bytes", json_integer(field_integer(r->bytes)));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *devices_json(const struct summary *s, const struct timeline *t)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < s->devices; i++) {
		const struct summary_device *d = &s->device[i];
		const struct timeline_device *known = timeline_device_of(t, d->process, d->device);

		json_array_append_new(devices,
				      json_pack("{s:I, s:I, s:o, s:I, s:I, s:I}", "pid",
						field_integer(t->process[d->process].pid), "device",
						field_integer(d->device), "name",
						field_string(known ? timeline_name(t, known->name) : ""),
						"busy_ns", field_integer(d->busy_ns), "kernel_ns",
						field_integer(d->kernel_ns), "span_ns",
						field_integer(d->last_ns - d->first_ns)));
	}
	return devices;
}

static json_t *process_json(const struct timeline_process *p)
{
	static const char *const stops[] = {[RING_STOP_DISK_FULL] = "disk_full",
					    [RING_STOP_FILE_LIMIT] = "file_limit",
					    [RING_STOP_OTHER] = "other"};
	json_t *j = json_pack("{s:I, s:I, s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pid",
			      field_integer(p->pid), "parent", field_integer(p->parent), "command",
			      field_string(p->command), "file", field_string(p->file), "closed", p->closed,
			      "events", field_integer(p->events), "overwritten",
			      field_integer(p->overwritten), "dropped", field_integer(p->dropped),
			      "dropped_cupti", field_integer(p->dropped_cupti), "left_out",
			      field_integer(p->left_out), "names_lost", field_integer(p->names_lost), "odd",
			      field_integer(p->odd), "cut_bytes", field_integer(p->cut_bytes),
			      "cupti_version", field_integer(p->cupti_version));

	if (!j)
		return NULL;
	if (p->rank >= 0)
		json_object_set_new(j, "rank", json_integer(p->rank));
	if (p->note)
		json_object_set_new(j, "note", field_string(p->note));
	if (p->library)
		json_object_set_new(j, "cupti", field_string(p->library));
	if (p->stop > RING_STOP_NONE && p->stop <= RING_STOP_OTHER)
		json_object_set_new(j, "stop", json_string(stops[p->stop]));
	if (p->clock_pairs) {
		json_object_set_new(j, "clock_pairs", json_integer(p->clock_pairs));
		json_object_set_new(j, "clock_error_ns", json_real(p->clock_error_ns));
		json_object_set_new(j, "clock_drift", json_real(p->clock_drift));
	}
	if (p->convert_ns > 0)
		json_object_set_new(j, "convert_ns", json_real(p->convert_ns));
	return j;
}

json_t *summary_json(const struct summary *s, const struct timeline *t)
{
	json_t *processes = json_array();

	for (size_t i = 0; i < t->processes; i++)
		json_array_append_new(processes, process_json(&t->process[i]));
	return json_pack("{s:I, s:o, s:o, s:o}", "span_ns", field_integer(t->end_ns - t->start_ns),
			 "processes", processes, "devices", devices_json(s, t), "rows", rows_json(s, t));
}
