/* SPDX-License-Identifier: Apache-2.0 */
#include "report/files/merge.h"
#include "report/view/about.h"
#include "report/view/gap.h"
#include "report/markdown/markdown.h"
#include "report/text/format.h"

void merge_csv(struct text *out, const struct view *views, size_t count)
{
	csv_heading(out);
	for (size_t i = 0; i < count; i++)
		csv_lines(out, &views[i]);
}

static void share_cell(struct text *out, const struct view_row *row)
{
	char share[24] = "";

	if (row && row->share[0])
		snprintf(share, sizeof(share), "%s%s", view_estimate(row) ? "≈ " : "", row->share);
	markdown_cell(out, share);
}

static void figure_cells(struct text *out, const struct view *v, const struct view_group *g,
			 const struct view_row *row)
{
	double datasheet = row ? gap_datasheet(v->in, g->gpu, row->c->limit) : 0;
	char share[24] = "";

	if (row && datasheet > 0)
		format_share(share, sizeof(share), row->j->figure / datasheet);
	markdown_cell(out, row ? row->title : "");
	markdown_cell(out, row ? row->figure : "");
	share_cell(out, row);
	markdown_cell(out, share);
}

static void device_line(struct text *out, const struct view *v, const struct view_group *g, size_t run)
{
	const struct view_row *compute = view_best(v, g, "compute"), *memory = view_best(v, g, "memory");
	struct text largest = {0};
	struct about_price price;
	char dollars[48] = "";

	if (!compute && !memory)
		return;
	if (compute)
		gap_largest(&largest, compute);
	if (g->gpu && about_price(v, g->gpu, &price))
		snprintf(dollars, sizeof(dollars), price.low == price.high ? "%.2f" : "%.2f–%.2f", price.low,
			 price.high);
	text_addf(out, "| %zu |", run + 1);
	markdown_cell(out, g->name);
	figure_cells(out, v, g, compute);
	markdown_cell(out, memory ? memory->figure : "");
	share_cell(out, memory);
	markdown_cell(out, text_str(&largest));
	markdown_cell(out, dollars);
	text_add(out, "\n");
	text_release(&largest);
}

static void price_notes(struct text *out, const struct view *views, size_t count)
{
	text_add(
		out,
		"\nDollars per hour are the price stated with the run, or a range of public list prices:\n\n");
	for (size_t i = 0; i < count; i++)
		for (size_t g = 0; g < views[i].group_count; g++) {
			const struct gpu *gpu = views[i].groups[g].gpu;
			struct about_price price;

			if (!gpu || !about_price(&views[i], gpu, &price))
				continue;
			text_addf(out, "- run %zu, ", i + 1);
			markdown_text(out, gpu->name);
			text_addf(out, ": %s%s%s%s\n", price.source, price.date[0] ? ", " : "", price.date,
				  price.old ? ": more than 90 days before the run, so look for a newer one"
					    : "");
		}
}

void merge_markdown(struct text *out, const struct view *views, size_t count)
{
	text_addf(out,
		  "# Roofline of %zu run%s\n\n![roofline](roofline.svg)\n\n"
		  "| run | device | best compute case | rate | of bound | MFU | memory | of bound | largest "
		  "loss | $/h |\n"
		  "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |\n",
		  count, count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++)
		for (size_t g = 0; g < views[i].group_count; g++)
			device_line(out, &views[i], &views[i].groups[g], i);
	text_add(
		out,
		"\nMFU is the achieved rate divided by the data sheet's dense peak. Solid lines of the plot were measured by these runs. Dashed lines come from the devices' facts or data sheets. ≈: share of the rate of a plain loop with the same traffic, which is an estimate and no bound.\n");
	price_notes(out, views, count);
	for (size_t i = 0; i < count; i++) {
		text_addf(out, "\n---\n\n# Run %zu\n\n**", i + 1);
		markdown_text(out, views[i].headline);
		text_add(out, "**\n");
		markdown_gaps(out, &views[i]);
		markdown_sanity(out, &views[i]);
		markdown_conditions(out, &views[i]);
	}
}
