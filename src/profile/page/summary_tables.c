/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the summary, and the order of all tables. */
#include <inttypes.h>
#include "core/text/units.h"
#include "core/text/utf8.h"
#include "profile/page/internal.h"

enum { ROWS = 30, NAME_SHOWN = 96 };

const char *page_time(char out[32], double ns)
{
	units_format(out, 32, ns * 1e-9, "s");
	return out;
}

void page_cell_time(struct grid *g, double ns)
{
	char cell[32];

	grid_cell(g, page_time(cell, ns));
}

void page_cell_share(struct grid *g, double part, double whole)
{
	char cell[32] = "";

	if (whole > 0)
		snprintf(cell, sizeof(cell), "%.1f %%", 100 * part / whole);
	grid_cell(g, cell);
}

void page_cell_count(struct grid *g, uint64_t count)
{
	char cell[32];

	snprintf(cell, sizeof(cell), "%" PRIu64, count);
	grid_cell(g, cell);
}

void page_cell_name(struct grid *g, const char *name)
{
	struct text clean = {0};

	utf8_add_clean(&clean, name, UTF8_KEEP_NOTHING);
	if (clean.size > NAME_SHOWN) {
		size_t cut = NAME_SHOWN;

		while (cut && ((unsigned char)clean.data[cut] & 0xc0) == 0x80)
			cut--; /* do not cut inside a character */
		clean.data[cut] = '\0';
		clean.size = cut;
		text_add(&clean, "…");
	}
	grid_cell(g, text_str(&clean));
	text_release(&clean);
}

bool page_cell_kernel(struct grid *g, struct kernel_labels *labels, const char *name)
{
	const char *label = kernel_labels_add(labels, name, KERNEL_LABEL_WIDTH);
	bool differs = label && strcmp(label, name);

	g->failed |= !label;
	grid_cell(g, label ? label : "");
	if (differs)
		grid_hint(g, name);
	return differs;
}

void page_device_name(struct text *out, const struct timeline *t, uint16_t process, uint32_t device)
{
	const struct timeline_device *known = timeline_device_of(t, process, device);
	const struct timeline_process *p = &t->process[process];

	text_addf(out, "GPU %u of ", device);
	if (p->rank >= 0)
		text_addf(out, "rank %d, ", p->rank);
	text_addf(out, "pid %u", p->pid);
	if (known)
		text_addf(out, ", %s", timeline_name(t, known->name));
}

/* Table of these kinds, longest total first. */
static void rows_grid(struct grid *g, const struct page *p, const char *title, unsigned kinds)
{
	static const char *const heads[] = {"count", "total", "share", "mean", "median", "p99", "max"};
	const struct summary *s = &findings_main(p->f)->summary;
	struct kernel_labels labels = {0};
	size_t rows = 0;
	bool cut = false;

	text_add(&g->title, title);
	grid_column(g, "name", false);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = 0; i < s->rows; i++) {
		const struct summary_row *r = &s->row[i];

		if (!(kinds >> r->kind & 1) || rows++ >= ROWS)
			continue;
		if (r->kind == TIMELINE_KERNEL)
			cut |= page_cell_kernel(g, &labels, timeline_name(p->f->t, r->name));
		else
			page_cell_name(g, timeline_name(p->f->t, r->name));
		page_cell_count(g, r->count);
		page_cell_time(g, r->total);
		page_cell_share(g, r->share, 1);
		page_cell_time(g, r->mean);
		page_cell_time(g, r->p50);
		page_cell_time(g, r->p99);
		page_cell_time(g, r->max);
	}
	kernel_labels_release(&labels);
	if (cut)
		text_add(&g->note,
			 "Names are shortened. summary.csv has the full names, and covers the whole program");
	if (rows > ROWS)
		text_addf(&g->note, "%s%zu more rows are in summary.csv", cut ? ". " : "", rows - ROWS);
}

static void page_kernels(struct grid *g, const struct page *p)
{
	rows_grid(g, p, "Kernels", 1u << TIMELINE_KERNEL | 1u << TIMELINE_GRAPH);
}

static void page_calls(struct grid *g, const struct page *p)
{
	rows_grid(g, p, "CUDA calls", 1u << TIMELINE_RUNTIME | 1u << TIMELINE_DRIVER);
}

static void page_syncs(struct grid *g, const struct page *p)
{
	rows_grid(g, p, "Synchronization", 1u << TIMELINE_SYNC);
}

static void page_ranges(struct grid *g, const struct page *p)
{
	rows_grid(g, p, "Ranges (NVTX)", 1u << TIMELINE_RANGE);
}

static void page_overhead(struct grid *g, const struct page *p)
{
	rows_grid(g, p, "Overhead of CUPTI", 1u << TIMELINE_OVERHEAD);
}

static void page_processes(struct grid *g, const struct page *p)
{
	static const struct {
		const char *head;
		bool right;
	} columns[] = {{"pid", true},	 {"rank", true},	{"events", true}, {"command", false},
		       {"CUPTI", false}, {"clock error", true}, {"drift", true}};
	const struct timeline *t = p->f->t;

	text_add(&g->title, "Processes");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		grid_column(g, columns[i].head, columns[i].right);
	for (size_t i = 0; i < t->processes; i++) {
		const struct timeline_process *one = &t->process[i];
		char rank[16] = "", error[32] = "", drift[32] = "";

		if (one->rank >= 0)
			snprintf(rank, sizeof(rank), "%d", one->rank);
		if (one->clock_pairs) {
			page_time(error, one->clock_error_ns);
			snprintf(drift, sizeof(drift), "%.2f ppm", one->clock_drift * 1e6);
		}
		page_cell_count(g, one->pid);
		grid_cell(g, rank);
		page_cell_count(g, one->events);
		page_cell_name(g, one->command);
		page_cell_name(g, one->library ? one->library : "");
		grid_cell(g, error);
		grid_cell(g, drift);
	}
}

void page_each(const struct page *p, page_visit *visit, void *arg)
{
	static const struct {
		const char *section;
		void (*fill)(struct grid *g, const struct page *p);
	} tables[] = {
		{"Where the time went", page_steps},
		{"Where the time went", page_devices},
		{"Where the time went", page_start_up},
		{"Where the time went", page_overlap},
		{"Communication", page_nccl},
		{"Kernels and copies", page_kernels},
		{"Kernels and copies", page_copies},
		{"Counters", page_counters},
		{"Host", page_calls},
		{"Host", page_syncs},
		{"Host", page_ranges},
		{"Recording", page_processes},
		{"Recording", page_overhead},
	};
	const char *section = "";

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct grid g = {0};

		tables[i].fill(&g, p);
		if (g.cells || g.failed) {
			visit(arg, strcmp(section, tables[i].section) ? tables[i].section : NULL, &g);
			section = tables[i].section;
		}
		grid_release(&g);
	}
}
