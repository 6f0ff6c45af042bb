/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of kernels, as a table and as a roofline. */
#include "core/text/units.h"
#include "profile/page/internal.h"
#include "report/plot/roofline.h"

enum { ROWS = 30, LABELLED = 12, POINT_WIDTH = 44, WIDTH = 960, HEIGHT = 600 };

static void cell_share(struct grid *g, const struct kernel_counters_row *r, enum kernel_counters_metric m)
{
	page_cell_share(g, r->value[m], kernel_counters_has(r, m) ? 1 : 0);
}

static void cell_quantity(struct grid *g, double value, const char *unit)
{
	char cell[32] = "";

	if (value > 0)
		units_format(cell, sizeof(cell), value, unit);
	grid_cell(g, cell);
}

static double seconds(const struct kernel_counters_row *r)
{
	return kernel_counters_has(r, KERNEL_COUNTER_time_ns) ? r->value[KERNEL_COUNTER_time_ns] * 1e-9 : 0;
}

static double rate_of(const struct kernel_counters_row *r, double amount)
{
	return seconds(r) > 0 ? amount / seconds(r) : 0;
}

static bool any_has(const struct kernel_counters *c, enum kernel_counters_metric m)
{
	for (size_t i = 0; i < c->rows; i++)
		if (kernel_counters_has(&c->row[i], m))
			return true;
	return false;
}

void page_counters(struct grid *g, const struct page *p)
{
	static const char *const heads[] = {"count",	    "time",	   "SM active",	  "tensor active",
					    "exponentials", "issue slots", "occupancy",	  "DRAM",
					    "DRAM rate",    "clock",	   "tensor FLOP", "FLOP per byte"};
	const struct kernel_counters *c = &p->f->counted;
	bool l2 = any_has(c, KERNEL_COUNTER_l2_bytes), cut = false;
	struct kernel_labels labels = {0};

	text_add(&g->title, "Counters by kernel");
	grid_column(g, "name", false);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = 0; l2 && i < 2; i++)
		grid_column(g, i ? "L2 hit share" : "L2 rate", true);
	for (size_t i = 0; i < c->rows && i < ROWS; i++) {
		const struct kernel_counters_row *r = &c->row[i];
		double flop = kernel_counters_has(r, KERNEL_COUNTER_tensor_flop)
				      ? r->value[KERNEL_COUNTER_tensor_flop]
				      : 0;
		double bytes = kernel_counters_dram_bytes(r);

		cut |= page_cell_kernel(g, &labels, timeline_name(p->f->t, r->name));
		page_cell_count(g, r->count);
		page_cell_time(g, seconds(r) * 1e9);
		cell_share(g, r, KERNEL_COUNTER_sm_active_share);
		cell_share(g, r, KERNEL_COUNTER_tensor_active_share);
		cell_share(g, r, KERNEL_COUNTER_xu_active_share);
		cell_share(g, r, KERNEL_COUNTER_issue_active_share);
		cell_share(g, r, KERNEL_COUNTER_occupancy_share);
		cell_share(g, r, KERNEL_COUNTER_dram_share);
		cell_quantity(g, rate_of(r, bytes), "B/s");
		cell_quantity(g,
			      kernel_counters_has(r, KERNEL_COUNTER_clock_hz)
				      ? r->value[KERNEL_COUNTER_clock_hz]
				      : 0,
			      "Hz");
		cell_quantity(g, rate_of(r, flop), "FLOP/s");
		cell_quantity(g, bytes > 0 ? flop / bytes : 0, "");
		if (!l2)
			continue;
		cell_quantity(g, rate_of(r, r->value[KERNEL_COUNTER_l2_bytes]), "B/s");
		cell_share(g, r, KERNEL_COUNTER_l2_hit_share);
	}
	text_add(
		&g->note,
		"Each kernel ran alone, so that the counters belong to it only. Times therefore differ from those of the program");
	kernel_labels_release(&labels);
	if (cut)
		text_add(&g->note,
			 ". Names are shortened. counters.csv has the full names, in the same order");
	if (c->rows > ROWS)
		text_addf(&g->note, ". %zu more rows are in counters.csv", c->rows - ROWS);
}

/* The device that the first counted kernel ran on; NULL: unknown. */
static const struct timeline_device *device_of(const struct timeline *t)
{
	return t->counteds ? timeline_device_of(t, t->counted[0].process, t->counted[0].device) : NULL;
}

static size_t add_ceilings(struct roofline_ceiling *ceiling, const struct page *p,
			   const struct timeline_device *d)
{
	const struct findings_bounds *b = &p->f->bounds;
	size_t count = 0;

	if (d && d->bandwidth_bytes)
		ceiling[count++] = (struct roofline_ceiling){
			.kind = ROOFLINE_MEMORY, .value = (double)d->bandwidth_bytes, .name = "memory"};
	for (size_t i = 0; i < sizeof(b->compute) / sizeof(b->compute[0]) && b->compute[i].name; i++) {
		ceiling[count] =
			(struct roofline_ceiling){.kind = ROOFLINE_COMPUTE, .value = b->compute[i].rate};
		text_copy(ceiling[count].name, sizeof(ceiling[0].name), b->compute[i].name);
		count++;
	}
	return count;
}

/* Copies `s`, cut at a character's end to fit. */
static void copy_letters(char *out, size_t size, const char *s)
{
	size_t cut = strlen(s) < size ? strlen(s) : size - 1;

	while (cut && ((unsigned char)s[cut] & 0xc0) == 0x80)
		cut--;
	text_copy(out, cut + 1, s);
}

/* Adds a point for each kernel that has FLOP and bytes. */
static size_t add_points(struct roofline_point *point, const struct page *p)
{
	const struct kernel_counters *c = &p->f->counted;
	struct kernel_labels labels = {0};
	size_t count = 0;

	for (size_t i = 0; i < c->rows; i++) {
		const struct kernel_counters_row *r = &c->row[i];
		double bytes = kernel_counters_dram_bytes(r), flop = r->value[KERNEL_COUNTER_tensor_flop];
		const char *label;

		if (!kernel_counters_has(r, KERNEL_COUNTER_tensor_flop) || flop <= 0 || bytes <= 0 ||
		    seconds(r) <= 0)
			continue;
		point[count] = (struct roofline_point){.intensity = flop / bytes,
						       .rate = flop / seconds(r),
						       .verdict = VERDICT_MEASURED,
						       .labelled = count < LABELLED};
		label = point[count].labelled
				? kernel_labels_add(&labels, timeline_name(p->f->t, r->name), POINT_WIDTH)
				: NULL;
		copy_letters(point[count].name, sizeof(point[count].name), label ? label : "");
		count++;
	}
	kernel_labels_release(&labels);
	return count;
}

/* Whether a process noted why it has no records or counters. */
static bool has_note(const struct timeline *t)
{
	for (size_t i = 0; i < t->processes; i++)
		if (t->process[i].note)
			return true;
	return false;
}

bool page_roofline(struct text *svg, const struct page *p, const char **why)
{
	struct roofline_ceiling ceiling[8];
	const struct timeline_device *d = device_of(p->f->t);
	struct roofline_point *point = calloc(p->f->counted.rows + 1, sizeof(*point));
	struct roofline_series series = {.ceiling = ceiling, .point = point};
	struct roofline r = {
		.series = &series,
		.count = 1,
		.key = "dashed lines: limits of the device, or from its data sheet · marks: kernels; those that took most time have labels"};
	struct canvas c;

	*why = !p->f->counted.rows && has_note(p->f->t) ? "no counters were taken; \"Missing data\" says why"
	       : !p->f->counted.rows
		       ? "no counters were taken; profile with --counters . --counters-flop to take them"
		       : "no kernel has both tensor FLOP and DRAM bytes; --counters-flop counts FLOP, but only those of "
			 "the tensor pipe";
	if (!point) {
		svg->failed = 1;
		return false;
	}
	text_copy(series.name, sizeof(series.name), d ? timeline_name(p->f->t, d->name) : "GPU");
	series.ceiling_count = add_ceilings(ceiling, p, d);
	series.point_count = add_points(point, p);
	if (series.point_count) {
		canvas_init(&c, WIDTH, HEIGHT);
		roofline_draw(&c, &r, NULL);
		canvas_svg(svg, &c, "roofline of the program's kernels: rate over arithmetic intensity",
			   false);
		canvas_release(&c);
	}
	free(point);
	return series.point_count > 0;
}
