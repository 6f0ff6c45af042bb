/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "report/load/load.h"
#include "report/markdown/markdown.h"
#include "report/text/format.h"
#include "report/view/about.h"

static void add_list(struct text *out, const char *title, const json_t *list)
{
	const json_t *one;
	size_t i;

	if (!json_array_size(list))
		return;
	text_addf(out, "\n**%s**\n\n", title);
	json_array_foreach((json_t *)list, i, one)
	{
		text_add(out, "- ");
		markdown_text(out, json_string_value(one) ? json_string_value(one) : "");
		text_add(out, "\n");
	}
}

static void add_command(struct text *out, const struct view *v)
{
	const char *wall = json_string_value(json_object_get(v->in->record->open, "wall"));

	text_add(out, "\n```\n");
	view_repeat(out, v);
	text_add(out, "\n```\n");
	if (wall)
		text_addf(out, "\nBegun %.20s. assay %.30s.\n", wall,
			  json_string_value(json_object_get(v->in->record->open, "program"))
				  ? json_string_value(json_object_get(v->in->record->open, "program"))
				  : "");
}

static void add_grid(void *arg, const struct grid *g)
{
	grid_markdown(arg, g);
}

void load_summary_page(struct text *out, const struct view *v)
{
	const struct judgements *j = v->in->judged;
	const json_t *values = load_values(v);

	text_addf(out, "# Load test: %s\n\n**", verdict_name(j->verdict));
	markdown_text(out, v->headline);
	text_addf(out, "** (exit code %d)\n", j->exit_code);
	if (v->todo_count && *v->todos[0].action) {
		text_add(out, "\nWhat to do: ");
		markdown_text(out, v->todos[0].action);
		text_add(out, ".\n");
	}
	add_command(out, v);
	add_list(out, "Why the figures cannot be trusted", json_object_get(values, "untrusted"));
	load_grids(v, add_grid, out);
	text_add(
		out,
		"\nThe page with charts is `report.html`. `load.json` and `load.csv` have the figures for programs, and "
		"`requests.jsonl` has a line for each request.\n");
}
