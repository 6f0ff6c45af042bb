/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/page.h"
#include <inttypes.h>
#include "core/units.h"
#include "core/utf8.h"
#include "profile/inject/ring.h"

enum { ROWS = 30, BRIEF_ROWS = 8, NAME_MAX_SHOWN = 96 };

static const char *time_text(char out[32], double ns)
{
	units_format(out, 32, ns * 1e-9, "s");
	return out;
}

/* A name in a Markdown cell: no line of its own, no column, no code of ours. */
static void add_name(struct text *out, const char *name, size_t most)
{
	struct text clean = {0};

	utf8_add_clean(&clean, name, UTF8_KEEP_NOTHING);
	for (size_t i = 0; i < clean.size && i < most; i++) {
		if (strchr("|`<>*_\\[]", clean.data[i]))
			text_add(out, "\\");
		text_add_bytes(out, &clean.data[i], 1);
	}
	if (clean.size > most)
		text_add(out, "…");
	text_release(&clean);
}

static void add_row(struct text *out, const struct summary_row *r, const struct timeline *t, bool with_rate)
{
	char total[32], mean[32], p50[32], p99[32], most[32], rate[32];

	text_add(out, "| ");
	add_name(out, timeline_name(t, r->name), NAME_MAX_SHOWN);
	text_addf(out, " | %" PRIu64 " | %s | %.1f %% | %s | %s | %s | %s |", r->count,
		  time_text(total, r->total), 100 * r->share, time_text(mean, r->mean),
		  time_text(p50, r->p50), time_text(p99, r->p99), time_text(most, r->max));
	if (with_rate) {
		units_format(rate, sizeof(rate), r->total > 0 ? (double)r->bytes / r->total * 1e9 : 0, "B/s");
		text_addf(out, " %s |", rate);
	}
	text_add(out, "\n");
}

static void add_table(struct text *out, const struct summary *s, const struct timeline *t, const char *title,
		      unsigned kinds, bool with_rate)
{
	size_t shown = 0, rows = 0;

	for (size_t i = 0; i < s->rows; i++)
		rows += kinds >> s->row[i].kind & 1;
	if (!rows)
		return;
	text_addf(out, "\n## %s\n\n| name | count | total | share | mean | median | p99 | max |%s\n", title,
		  with_rate ? " rate |" : "");
	text_addf(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |%s\n",
		  with_rate ? " ---: |" : "");
	for (size_t i = 0; i < s->rows && shown < ROWS; i++)
		if (kinds >> s->row[i].kind & 1) {
			add_row(out, &s->row[i], t, with_rate);
			shown++;
		}
	if (rows > shown)
		text_addf(out, "\n%zu more in summary.csv.\n", rows - shown);
}

static void add_devices(struct text *out, const struct summary *s, const struct timeline *t)
{
	char busy[32], span[32], kernels[32];

	if (!s->devices)
		return;
	text_add(out, "\n## Devices\n\n| device | busy | kernels | from first to last | busy share |\n"
		      "| --- | ---: | ---: | ---: | ---: |\n");
	for (size_t i = 0; i < s->devices; i++) {
		const struct summary_device *d = &s->device[i];
		const struct timeline_device *known = timeline_device_of(t, d->process, d->device);
		double whole = (double)(d->last_ns - d->first_ns);

		text_addf(out, "| GPU %u of pid %u%s", d->device, t->process[d->process].pid,
			  known ? ", " : "");
		add_name(out, known ? timeline_name(t, known->name) : "", NAME_MAX_SHOWN);
		text_addf(out, " | %s | %s | %s | %.1f %% |\n", time_text(busy, (double)d->busy_ns),
			  time_text(kernels, (double)d->kernel_ns), time_text(span, whole),
			  whole > 0 ? 100 * (double)d->busy_ns / whole : 0);
	}
}

static void missing_of(struct text *out, const struct timeline_process *p)
{
	static const char *const stops[] = {[RING_STOP_DISK_FULL] = "the disk is full",
					    [RING_STOP_FILE_LIMIT] =
						    "the size of files is limited (ulimit -f)",
					    [RING_STOP_OTHER] = "its file could not grow"};

	if (p->note)
		text_addf(out, "pid %u: %s\n", p->pid, p->note);
	if (p->stop > RING_STOP_NONE && p->stop <= RING_STOP_OTHER)
		text_addf(out, "pid %u: %s: only what then fitted was kept\n", p->pid, stops[p->stop]);
	if (p->overwritten)
		text_addf(out,
			  "pid %u: the first %" PRIu64
			  " events made room for later ones: --limit-size keeps more\n",
			  p->pid, p->overwritten);
	if (p->dropped)
		text_addf(out, "pid %u: %" PRIu64 " events found no room\n", p->pid, p->dropped);
	if (p->dropped_cupti)
		text_addf(out, "pid %u: CUPTI dropped %" PRIu64 " records\n", p->pid, p->dropped_cupti);
	if (p->left_out)
		text_addf(out, "pid %u: %" PRIu64 " events are over what one timeline holds\n", p->pid,
			  p->left_out);
	if (p->names_lost)
		text_addf(out, "pid %u: %" PRIu64 " times there was no room for a name\n", p->pid,
			  p->names_lost);
	if (p->odd || p->cut_bytes)
		text_addf(out,
			  "pid %u: %" PRIu64 " events and %" PRIu64 " bytes could not be made sense of\n",
			  p->pid, p->odd, p->cut_bytes);
	if (!p->closed && !p->note)
		text_addf(out, "pid %u: it did not come to its exit(): its last half second may be missing\n",
			  p->pid);
}

void page_missing(struct text *out, const struct timeline *t)
{
	if (!t->processes)
		text_add(out, "no process of it began to use CUDA or NVTX: there is nothing to show (a "
			      "program that is "
			      "linked statically, or cleans its environment, does not load the library)\n");
	for (size_t i = 0; i < t->processes; i++)
		missing_of(out, &t->process[i]);
}

static void add_processes(struct text *out, const struct timeline *t)
{
	text_add(out, "\n## Processes\n\n| pid | rank | events | command | CUPTI | clock error | drift |\n"
		      "| ---: | ---: | ---: | --- | --- | ---: | ---: |\n");
	for (size_t i = 0; i < t->processes; i++) {
		const struct timeline_process *p = &t->process[i];
		char rank[16] = "", error[32] = "", drift[32] = "";

		if (p->rank >= 0)
			snprintf(rank, sizeof(rank), "%d", p->rank);
		if (p->clock_pairs) {
			time_text(error, p->clock_error_ns);
			snprintf(drift, sizeof(drift), "%.2f ppm", p->clock_drift * 1e6);
		}
		text_addf(out, "| %u | %s | %" PRIu64 " | ", p->pid, rank, p->events);
		add_name(out, p->command, NAME_MAX_SHOWN);
		text_add(out, " | ");
		add_name(out, p->library ? p->library : "", NAME_MAX_SHOWN);
		text_addf(out, " | %s | %s |\n", error, drift);
	}
}

static void add_cost(struct text *out, const struct timeline *t)
{
	char text[32];

	for (size_t i = 0; i < t->processes; i++)
		if (t->process[i].convert_ns > 0)
			text_addf(out,
				  "- pid %u: an activity record cost %s to write down, beside the program's "
				  "threads\n",
				  t->process[i].pid, time_text(text, t->process[i].convert_ns));
}

void page_write(struct text *out, const struct summary *s, const struct timeline *t,
		const struct page_told *told)
{
	struct text missing = {0};
	char wall[32];

	units_format(wall, sizeof(wall), told->wall_s, "s");
	text_add(out, "# Profile\n\n`");
	utf8_add_clean(out, told->command, UTF8_KEEP_NOTHING);
	text_addf(out, "` ended with %s after %s.\n", told->ending, wall);
	page_missing(&missing, t);
	text_add(&missing, told->note);
	if (missing.size) {
		text_add(out, "\n## What is missing\n\n");
		for (char *line = missing.data, *end; *line; line = end + 1) {
			end = strchr(line, '\n');
			text_add(out, "- ");
			text_add_bytes(out, line, (size_t)(end + 1 - line));
		}
	}
	add_devices(out, s, t);
	add_table(out, s, t, "Kernels", 1u << TIMELINE_KERNEL | 1u << TIMELINE_GRAPH, false);
	add_table(out, s, t, "Copies and sets", 1u << TIMELINE_COPY | 1u << TIMELINE_SET, true);
	add_table(out, s, t, "CUDA calls", 1u << TIMELINE_RUNTIME | 1u << TIMELINE_DRIVER, false);
	add_table(out, s, t, "Synchronisation", 1u << TIMELINE_SYNC, false);
	add_table(out, s, t, "Ranges (NVTX)", 1u << TIMELINE_RANGE, false);
	add_processes(out, t);
	text_add(out, "\n## What it cost\n\n");
	add_cost(out, t);
	add_table(out, s, t, "CUPTI's own overhead", 1u << TIMELINE_OVERHEAD, false);
	text_add(out, "\ntrace.json opens in Perfetto, chrome://tracing and Holistic Trace Analysis.\n");
	text_release(&missing);
}

void page_brief(struct text *out, const struct summary *s, const struct timeline *t,
		const struct page_told *told)
{
	char total[32], mean[32], wall[32];
	size_t shown = 0;

	units_format(wall, sizeof(wall), told->wall_s, "s");
	text_addf(out,
		  "%s after %s; %zu process%s, %" PRIu64 " kernels (%s), %" PRIu64 " copies, %" PRIu64
		  " calls\n",
		  told->ending, wall, t->processes, t->processes == 1 ? "" : "es", s->count[TIMELINE_KERNEL],
		  time_text(total, s->total_ns[TIMELINE_KERNEL]), s->count[TIMELINE_COPY],
		  s->count[TIMELINE_RUNTIME] + s->count[TIMELINE_DRIVER]);
	for (size_t i = 0; i < s->rows && shown < BRIEF_ROWS; i++) {
		const struct summary_row *r = &s->row[i];

		if (!timeline_on_device(r->kind))
			continue;
		text_addf(out, "%5.1f %% %10s %8" PRIu64 " x %-9s ", 100 * r->share,
			  time_text(total, r->total), r->count, time_text(mean, r->mean));
		utf8_add_clean(out, timeline_name(t, r->name), UTF8_KEEP_NOTHING);
		text_add(out, "\n");
		shown++;
	}
}
