/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of scaling on a terminal. */
#include "report/scaling.h"
#include "report/width.h"

static void widths(unsigned *width, const struct scaling_table *t)
{
	char one[160];

	for (int k = 0; k < SCALING_COLUMN_COUNT; k++) {
		width[k] = width_of(scaling_head((enum scaling_column)k));
		for (size_t i = 0; i < t->count; i++) {
			scaling_cell(one, sizeof(one), t->row[i], (enum scaling_column)k);
			width[k] = width_of(one) > width[k] ? width_of(one) : width[k];
		}
	}
}

/* The heads where `row` is NULL. */
static void add_line(struct text *out, const unsigned *width, const struct view_row *row, unsigned columns)
{
	unsigned used = 0;
	char one[160];

	for (int k = 0; k < SCALING_COLUMN_COUNT; k++) {
		enum scaling_column column = (enum scaling_column)k;
		unsigned room = columns > used + 2 ? columns - used - 2 : 0;
		bool last = k + 1 == SCALING_COLUMN_COUNT;

		if (row)
			scaling_cell(one, sizeof(one), row, column);
		else
			snprintf(one, sizeof(one), "%s", scaling_head(column));
		room = last ? (width_of(one) < room ? width_of(one) : room) : width[k];
		if (used)
			text_add(out, "  ");
		width_add(out, one, room, scaling_right(column) ? WIDTH_RIGHT : WIDTH_LEFT);
		used += room + 2;
	}
	text_add(out, "\n");
}

static void add_table(struct text *out, const struct scaling_table *t, unsigned columns)
{
	unsigned width[SCALING_COLUMN_COUNT];
	struct text note = {0};

	text_addf(out, "\nscaling: %s\n", t->title);
	widths(width, t);
	add_line(out, width, NULL, columns);
	for (size_t i = 0; i < t->count; i++)
		add_line(out, width, t->row[i], columns);
	scaling_note(&note, t);
	width_wrap(out, text_str(&note), columns, 0, 0);
	text_add(out, "\n");
	text_release(&note);
}

void terminal_scaling(struct text *out, const struct view *v, unsigned columns)
{
	struct scaling_tables scaling;

	scaling_collect(&scaling, v);
	for (size_t i = 0; i < scaling.count; i++)
		add_table(out, &scaling.table[i], columns);
}
