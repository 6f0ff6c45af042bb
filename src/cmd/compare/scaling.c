/* SPDX-License-Identifier: Apache-2.0 */
/* Scaling over runs with different numbers of ranks, as a table and as JSON. */
#include "cmd/compare/compare.h"
#include "core/text/width.h"

enum { RUN_COLUMNS = 28, NUMBER_COLUMNS = 13, NAME = 1024 };

static void number(struct text *out, const char *format, double value)
{
	char cell[48];

	snprintf(cell, sizeof(cell), format, value);
	width_add(out, cell, NUMBER_COLUMNS, WIDTH_RIGHT);
}

void compare_scaling_show(struct text *out, const struct scaled_runs *s, const struct compare_run *runs,
			  size_t count)
{
	char name[NAME];

	text_add(out,
		 "Scaling: efficiency relative to the run with the fewest ranks, and the share of the time "
		 "lost to each part\n");
	width_add(out, "run", RUN_COLUMNS, WIDTH_LEFT);
	width_add(out, "ranks", 6, WIDTH_RIGHT);
	width_add(out, "tokens/s", NUMBER_COLUMNS, WIDTH_RIGHT);
	width_add(out, "efficiency", NUMBER_COLUMNS, WIDTH_RIGHT);
	for (int p = 0; p < SCALED_COUNT; p++) {
		text_add(out, "  ");
		width_add(out, scaled_part_text((enum scaled_part)p), NUMBER_COLUMNS, WIDTH_RIGHT);
	}
	text_add(out, "\n");
	for (size_t i = 0; i < s->count; i++) {
		const struct scaled_run *r = &s->run[i];
		char ranks[16];

		compare_name(name, sizeof(name), runs, count, r->run);
		snprintf(ranks, sizeof(ranks), "%u", r->ranks);
		width_add(out, name, RUN_COLUMNS, WIDTH_LEFT);
		width_add(out, ranks, 6, WIDTH_RIGHT);
		number(out, "%.0f", r->rate);
		number(out, "%.1f %%", 100 * r->efficiency);
		for (int p = 0; p < SCALED_COUNT; p++) {
			text_add(out, "  ");
			number(out, "%.1f %%", 100 * r->lost[p]);
		}
		text_add(out, "\n");
	}
	for (size_t i = 0; i < s->count; i++)
		if (*s->run[i].text)
			text_addf(out, "%s\n", s->run[i].text);
	text_add(out, "\n");
}

json_t *compare_scaling_json(const struct scaled_runs *s)
{
	json_t *all = json_array();

	for (size_t i = 0; i < s->count; i++) {
		const struct scaled_run *r = &s->run[i];
		json_t *lost = json_object(), *one;

		for (int p = 0; p < SCALED_COUNT; p++)
			json_object_set_new(lost, scaled_part_text((enum scaled_part)p),
					    json_real(r->lost[p]));
		one = json_pack("{s:s, s:i, s:f, s:f, s:f, s:o, s:s}", "run", r->run, "ranks", (int)r->ranks,
				"tokens_per_s", r->rate, "tokens_per_rank_step", r->tokens, "efficiency",
				r->efficiency, "lost", lost, "text", r->text);
		json_array_append_new(all, one);
	}
	return all;
}
