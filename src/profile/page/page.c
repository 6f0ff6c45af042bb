/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/page/page.h"
#include <inttypes.h>
#include "core/text/units.h"
#include "core/text/utf8.h"
#include "profile/findings/savings.h"
#include "profile/inject/ring.h"
#include "profile/page/internal.h"
#include "profile/trace/trace.h"
#include "report/html/html.h"
#include "report/markdown/markdown.h"

enum { BRIEF_ROWS = 8 };
static const char trace_opens[] =
	TRACE_FILE " opens in Perfetto, chrome://tracing and Holistic Trace Analysis";

static void missing_of(struct text *out, const struct timeline_process *p)
{
	static const char *const stops[] = {[RING_STOP_DISK_FULL] = "the disk is full",
					    [RING_STOP_FILE_LIMIT] =
						    "the file size limit is reached (ulimit -f)",
					    [RING_STOP_OTHER] = "the ring file cannot grow"};

	if (p->note)
		text_addf(out, "pid %u: %s\n", p->pid, p->note);
	if (p->stop > RING_STOP_NONE && p->stop <= RING_STOP_OTHER)
		text_addf(out, "pid %u: %s, so only some of the events were saved\n", p->pid, stops[p->stop]);
	if (p->overwritten)
		text_addf(out,
			  "pid %u: the first %" PRIu64
			  " events were overwritten by later ones; raise --limit-size to keep more\n",
			  p->pid, p->overwritten);
	if (p->dropped)
		text_addf(out, "pid %u: %" PRIu64 " events were dropped: no space for them\n", p->pid,
			  p->dropped);
	if (p->dropped_cupti)
		text_addf(out, "pid %u: CUPTI dropped %" PRIu64 " records\n", p->pid, p->dropped_cupti);
	if (p->left_out)
		text_addf(out,
			  "pid %u: %" PRIu64 " events were left out: they exceed the limit of one timeline\n",
			  p->pid, p->left_out);
	if (p->names_lost)
		text_addf(out,
			  "pid %u: a name could not be stored %" PRIu64
			  " times: the table of names is full\n",
			  p->pid, p->names_lost);
	if (p->odd || p->cut_bytes)
		text_addf(out, "pid %u: %" PRIu64 " events and %" PRIu64 " bytes could not be decoded\n",
			  p->pid, p->odd, p->cut_bytes);
	if (!p->closed && !p->note)
		text_addf(
			out,
			"pid %u: the process did not reach exit(), so its last half second may be missing\n",
			p->pid);
}

void page_missing(struct text *out, const struct timeline *t, const char *note)
{
	if (!t->processes && *note)
		text_add(out, "no process left readable records, so there is nothing to show\n");
	else if (!t->processes)
		text_add(
			out,
			"no process of the program used CUDA or NVTX, so there is nothing to show (a program that is "
			"linked statically, or clears its environment, does not load the recording library)\n");
	for (size_t i = 0; i < t->processes; i++)
		missing_of(out, &t->process[i]);
	text_add(out, note);
}

typedef void line_visit(struct text *out, const char *line);

static void each_line(struct text *out, const struct text *lines, line_visit *visit)
{
	struct text one = {0};

	for (const char *line = text_str(lines), *end; (end = strchr(line, '\n')); line = end + 1) {
		text_add_bytes(&one, line, (size_t)(end - line));
		visit(out, text_str(&one));
		text_release(&one);
	}
}

/* One line per process. */
static void cost_lines(struct text *out, const struct timeline *t)
{
	char each[32], all[32];

	for (size_t i = 0; i < t->processes; i++) {
		const struct timeline_process *p = &t->process[i];

		if (p->convert_ns > 0)
			text_addf(out,
				  "pid %u: %" PRIu64
				  " activity records took %s each to convert, %s in total, "
				  "outside the program's own threads\n",
				  p->pid, p->converted, page_time(each, p->convert_ns),
				  page_time(all, p->convert_ns * (double)p->converted));
	}
}

/* "ended with exit code 0 after 12.0 s" */
static void add_ending(struct text *out, const struct page *p)
{
	char wall[32];

	units_format(wall, sizeof(wall), p->wall_s, "s");
	text_addf(out, "ended with %s after %s", p->ending, wall);
}

static void markdown_line(struct text *out, const char *line)
{
	text_add(out, "- ");
	markdown_text(out, line);
	text_add(out, "\n");
}

/* "saves at most 12.1 % of the devices' time, 3.2 ms per step; " */
static void add_size(struct text *out, const struct savings_line *l)
{
	char step[32];

	text_addf(out, "saves at most %.1f %% of the devices' time", 100 * l->share);
	if (l->per_step_ns > 0)
		text_addf(out, ", %s per step", page_time(step, l->per_step_ns));
	text_add(out, "; ");
}

static void markdown_advice(struct text *out, const struct page *p)
{
	const struct savings a = savings_of(p->f);

	if (a.lines)
		text_add(out, "\n## How to save time\n\n");
	for (size_t i = 0; i < a.lines; i++) {
		text_add(out, "- **");
		markdown_text(out, a.line[i].knob);
		text_add(out, "**: ");
		add_size(out, &a.line[i]);
		markdown_text(out, a.line[i].evidence);
		text_add(out, ".\n");
	}
}

static void markdown_grid(void *arg, const char *section, const struct grid *g)
{
	struct text *out = arg;

	if (section)
		text_addf(out, "\n## %s\n", section);
	grid_markdown(out, g);
}

static void markdown_roofline(struct text *out, const struct page *p)
{
	struct text svg = {0};
	const char *why;

	text_add(out, "\n## Roofline\n\n");
	if (page_roofline(&svg, p, &why))
		text_add(out, "PROFILE.html shows it.\n");
	else
		text_addf(out, "None: %s.\n", why);
	text_release(&svg);
}

void page_markdown(struct text *out, const struct page *p)
{
	struct text missing = {0}, cost = {0};

	text_add(out, "# Profile\n\n");
	markdown_text(out, p->command);
	text_add(out, " ");
	add_ending(out, p);
	text_add(out, ".\n");
	page_missing(&missing, p->f->t, p->note);
	if (missing.size) {
		text_add(out, "\n## Missing data\n\n");
		each_line(out, &missing, markdown_line);
	}
	text_release(&missing);
	markdown_advice(out, p);
	page_each(p, markdown_grid, out);
	markdown_roofline(out, p);
	cost_lines(&cost, p->f->t);
	if (cost.size) {
		text_add(out, "\n## Cost of recording\n\n");
		each_line(out, &cost, markdown_line);
	}
	text_release(&cost);
	if (p->trace)
		text_addf(out, "\n%s.\n", trace_opens);
}

static void html_line(struct text *out, const char *line)
{
	html_element(out, "li", line);
	text_add(out, "\n");
}

static void html_advice(struct text *out, const struct page *p)
{
	const struct savings a = savings_of(p->f);

	if (!a.lines)
		return;
	text_add(out, "<section id=\"knobs\"><h2>How to save time</h2>\n");
	for (size_t i = 0; i < a.lines; i++) {
		text_add(out, "<div class=\"knob\">");
		html_element(out, "b", a.line[i].knob);
		text_add(out, "<br><span class=\"muted\">");
		add_size(out, &a.line[i]);
		html_add(out, a.line[i].evidence);
		text_add(out, ".</span></div>\n");
	}
	text_add(out, "</section>\n");
}

struct html_page {
	struct text *out;
	bool open; /* a section is open */
};

static void html_grid(void *arg, const char *section, const struct grid *g)
{
	struct html_page *h = arg;

	if (section) {
		text_add(h->out, h->open ? "</section>\n<section>" : "<section>");
		html_element(h->out, "h2", section);
		h->open = true;
	}
	grid_html(h->out, g);
}

static void html_lines(struct text *out, const char *title, bool box, const struct text *lines)
{
	if (!lines->size)
		return;
	text_add(out, box ? "<section class=\"box\">" : "<section>");
	html_element(out, "h2", title);
	text_add(out, "<ul>\n");
	each_line(out, lines, html_line);
	text_add(out, "</ul></section>\n");
}

static void html_roofline(struct text *out, const struct page *p)
{
	struct text svg = {0};
	const char *why;

	text_add(out, "<section class=\"roofline\"><h2>Roofline</h2>\n");
	if (page_roofline(&svg, p, &why)) {
		text_add(out, "<div class=\"wide\">");
		text_add_bytes(out, svg.data, svg.size);
		text_add(out, "</div>");
	} else {
		text_add(out, "<p>None: ");
		html_add(out, why);
		text_add(out, ".</p>");
	}
	text_add(out, "</section>\n");
	out->failed |= svg.failed;
	text_release(&svg);
}

static void html_lanes(struct text *out, const struct page *p)
{
	struct text svg = {0};

	if (page_lanes(&svg, p)) {
		text_add(out, "<section class=\"roofline\" id=\"lanes\"><h2>Timeline</h2>\n<div "
			      "class=\"wide\">");
		text_add_bytes(out, svg.data, svg.size);
		text_addf(out, "</div>\n<p class=\"muted\">%s</p></section>\n",
			  p->f->steps.steps
				  ? "The line below each strip marks the steps. The picture shows the step "
				    "whose time is nearest to the median."
				  : "No steps were found.");
	}
	out->failed |= svg.failed;
	text_release(&svg);
}

void page_html(struct text *out, const struct page *p)
{
	struct text ending = {0}, missing = {0}, cost = {0};
	struct html_page h = {.out = out};

	html_begin(out, p->command);
	text_add(out, "<header><h1>");
	html_add(out, p->command);
	text_add(out, "</h1><p class=\"muted\">");
	add_ending(&ending, p);
	html_add(out, text_str(&ending));
	text_add(out, ".</p></header>\n<main id=\"main\">\n");
	text_release(&ending);
	page_missing(&missing, p->f->t, p->note);
	html_lines(out, "Missing data", true, &missing);
	text_release(&missing);
	html_advice(out, p);
	html_lanes(out, p);
	page_each(p, html_grid, &h);
	text_add(out, h.open ? "</section>\n" : "");
	html_roofline(out, p);
	cost_lines(&cost, p->f->t);
	html_lines(out, "Cost of recording", false, &cost);
	text_release(&cost);
	text_addf(out, "</main>\n<footer>%s%sGB = 10⁹ bytes.</footer>\n", p->trace ? trace_opens : "",
		  p->trace ? ". " : "");
	html_end(out);
}

/* "steady state: 60 steps of 12.3 ms, starting 8.1 s after the first work on a device". For the process with
 * most steps. */
static void brief_steps(struct text *out, const struct findings *f)
{
	const struct steps *s = &f->steps;
	size_t most = 0;
	char step[32], before[32];

	if (!s->steps) {
		if (f->whole.breakdown.devices)
			text_addf(
				out,
				"no steady state: no step repeats at least %d times; shares are of the whole program\n",
				STEPS_LEAST);
		return;
	}
	for (size_t i = 1; i < f->t->processes; i++)
		if (s->process[i].steps > s->process[most].steps)
			most = i;
	text_addf(out, "steady state: %zu steps of %s, starting %s after the first work on a device\n",
		  s->process[most].steps, page_time(step, s->process[most].median_ns),
		  page_time(before,
			    (double)(s->each.span[s->each.first[most]].from_ns - s->process[most].first_ns)));
}

static void brief_states(struct text *out, const struct findings *f)
{
	const struct findings_part *part = findings_main(f);
	double state[BREAKDOWN_STATE_COUNT] = {0}, whole = findings_device_s(part) * 1e9;
	bool any = false;

	for (size_t i = 0; i < part->breakdown.devices; i++)
		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
			state[k] += (double)part->breakdown.device[i].state_ns[k];
	for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
		if (whole > 0 && state[k] / whole >= 0.001) {
			text_addf(out, "%s%s %.1f %%", any ? ", " : "devices: ", breakdown_name(k),
				  100 * state[k] / whole);
			any = true;
		}
	text_add(out, any ? "\n" : "");
}

/* Only the first line of advice: the page has the others. */
static void brief_advice(struct text *out, const struct findings *f)
{
	const struct savings a = savings_of(f);

	if (!a.lines)
		return;
	text_addf(out, "first advice: %s (saves at most %.1f %%)\n", a.line[0].knob, 100 * a.line[0].share);
}

static void brief_name(struct text *out, struct kernel_labels *labels, enum timeline_kind kind,
		       const char *name)
{
	const char *label = NULL;

	if (kind == TIMELINE_KERNEL) {
		label = kernel_labels_add(labels, name, KERNEL_LABEL_WIDTH);
		out->failed |= !label;
	}
	utf8_add_clean(out, label ? label : name, UTF8_KEEP_NOTHING);
}

void page_brief(struct text *out, const struct page *p)
{
	const struct summary *all = &p->f->whole.summary, *s = &findings_main(p->f)->summary;
	const struct timeline *t = p->f->t;
	struct kernel_labels labels = {0};
	char total[32], mean[32], wall[32];
	size_t shown = 0;

	units_format(wall, sizeof(wall), p->wall_s, "s");
	text_addf(out,
		  "%s after %s; %zu process%s, %" PRIu64 " kernels (%s), %" PRIu64 " copies, %" PRIu64
		  " calls\n",
		  p->ending, wall, t->processes, t->processes == 1 ? "" : "es", all->count[TIMELINE_KERNEL],
		  page_time(total, all->total_ns[TIMELINE_KERNEL]), all->count[TIMELINE_COPY],
		  all->count[TIMELINE_RUNTIME] + all->count[TIMELINE_DRIVER]);
	if (t->counteds)
		text_addf(out, "counters of %zu kernels\n", t->counteds);
	brief_steps(out, p->f);
	brief_states(out, p->f);
	brief_advice(out, p->f);
	for (size_t i = 0; i < s->rows && shown < BRIEF_ROWS; i++) {
		const struct summary_row *r = &s->row[i];

		if (!timeline_on_device(r->kind))
			continue;
		text_addf(out, "%5.1f %% %10s %8" PRIu64 " x %-9s ", 100 * r->share,
			  page_time(total, r->total), r->count, page_time(mean, r->mean));
		brief_name(out, &labels, r->kind, timeline_name(t, r->name));
		text_add(out, "\n");
		shown++;
	}
	kernel_labels_release(&labels);
}
