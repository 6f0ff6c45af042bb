/* SPDX-License-Identifier: Apache-2.0 */
/* Sparklines, and the page with one value over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

enum { LABEL = 11, BRAILLE = 0x2800, DOTS_DOWN = 4, DOTS_ACROSS = 2 };

static void range_of(const float *sample, unsigned count, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (unsigned i = 0; i < count; i++) {
		if (isnan(sample[i]))
			continue;
		*low = fmin(*low, (double)sample[i]);
		*high = fmax(*high, (double)sample[i]);
	}
}

void draw_sparkline(const struct draw *d, unsigned x, unsigned y, unsigned width,
		    const struct watch_entity *e, enum catalogue row, double top)
{
	float sample[SCREEN_SAMPLES];
	unsigned count;
	double low, high;

	width = width < SCREEN_SAMPLES ? width : SCREEN_SAMPLES;
	count = screen_samples(e, row, sample, width);
	range_of(sample, count, &low, &high);
	if (!isnan(top)) {
		low = 0;
		high = top;
	}
	for (unsigned i = 0; i < count; i++) {
		double share = high > low ? ((double)sample[i] - low) / (high - low) : 0.5;
		unsigned eighths = isnan(sample[i]) ? 0 : (unsigned)lround(7 * fmin(fmax(share, 0), 1));

		screen_set(d->s, x + width - count + i, y, isnan(sample[i]) ? ' ' : 0x2581 + eighths,
			   isnan(top) ? SCREEN_ROLE_LINE : screen_level(share));
	}
}

/* Where on the axis the graph ends: shares from 0 to 1 at least, other values from 0 to a round number. */
static void axis_of(enum catalogue row, double *low, double *high)
{
	double step;

	if (!isfinite(*low) || !isfinite(*high)) {
		*low = 0;
		*high = 1;
		return;
	}
	if (!strcmp(catalogue_row(row)->unit, "ratio"))
		*high = fmax(*high, 1);
	if (row != CATALOGUE_RUN_LOSS) /* a loss is read from its shape; other values from zero */
		*low = fmin(*low, 0);
	step = pow(10, floor(log10(fmax(*high - *low, 1e-12))));
	*high = step / 2 * ceil(*high / (step / 2) - 1e-9);
	*low = step / 2 * floor(*low / (step / 2) + 1e-9);
	if (*high <= *low)
		*high = *low + step;
}

/* Bits of a braille cell for its eight dots, two across and four down from the top. */
static const uint8_t dots[DOTS_DOWN][DOTS_ACROSS] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

/* Fills the column of dots from the bottom to the value. */
static void fill(uint8_t *cells, unsigned columns, unsigned rows, unsigned dot_x, unsigned level)
{
	for (unsigned i = 0; i < level; i++) {
		unsigned dot_y = rows * DOTS_DOWN - 1 - i;

		cells[dot_y / DOTS_DOWN * columns + dot_x / DOTS_ACROSS] |=
			dots[dot_y % DOTS_DOWN][dot_x % DOTS_ACROSS];
	}
}

static void put_area(const struct draw *d, unsigned x, unsigned y, unsigned columns, unsigned rows,
		     const float *sample, unsigned count, double low, double high)
{
	uint8_t *cells = calloc((size_t)columns * rows, 1);
	unsigned across = columns * DOTS_ACROSS, skip = count < across ? across - count : 0;

	for (unsigned i = 0; cells && i < count && skip + i < across; i++) {
		double share = ((double)sample[i] - low) / (high - low);

		if (!isnan(sample[i]))
			fill(cells, columns, rows, skip + i,
			     (unsigned)lround(1 + (rows * DOTS_DOWN - 1) * fmin(fmax(share, 0), 1)));
	}
	for (unsigned i = 0; cells && i < columns * rows; i++)
		if (cells[i])
			screen_set(d->s, x + i % columns, y + i / columns, BRAILLE + cells[i],
				   SCREEN_ROLE_LINE);
	free(cells);
}

static void put_axis(const struct draw *d, unsigned y, unsigned rows, enum catalogue row, double low,
		     double high)
{
	char out[SCREEN_VALUE];

	for (unsigned i = 0; i < rows; i++) {
		unsigned every = rows > 8 ? 4 : rows > 2 ? rows - 1 : 1;

		if (i % every && i != rows - 1)
			continue;
		screen_put_right(
			d->s, 0, y + i, LABEL - 1, SCREEN_ROLE_DIM,
			screen_long(out, row, high - (high - low) * i / (rows > 1 ? rows - 1 : 1), true));
	}
}

static void put_figures(const struct draw *d, unsigned y, enum catalogue row, const float *sample,
			unsigned count)
{
	double low, high, sum = 0;
	unsigned known = 0, x = 0;
	char out[SCREEN_VALUE];
	struct {
		const char *name;
		double value;
	} figures[4];

	range_of(sample, count, &low, &high);
	for (unsigned i = 0; i < count; i++) {
		if (isnan(sample[i]))
			continue;
		sum += (double)sample[i];
		known++;
	}
	if (!known) {
		screen_put(d->s, 0, y, d->s->columns, SCREEN_ROLE_DIM, "no value yet");
		return;
	}
	figures[0].name = "now ", figures[0].value = (double)sample[count - 1];
	figures[1].name = "  least ", figures[1].value = low;
	figures[2].name = "  mean ", figures[2].value = sum / known;
	figures[3].name = "  most ", figures[3].value = high;
	for (unsigned i = 0; i < 4; i++) {
		x += screen_put(d->s, x, y, d->s->columns, SCREEN_ROLE_HEADING, figures[i].name);
		x += screen_put(d->s, x, y, d->s->columns, SCREEN_ROLE_TEXT,
				screen_long(out, row, figures[i].value, !isnan(figures[i].value)));
	}
	screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_DIM, "  %u readings", count);
}

void draw_graph_of(const struct draw *d, const struct watch_entity *e, enum catalogue row, unsigned y,
		   unsigned rows)
{
	struct text name = {0};
	float sample[SCREEN_SAMPLES];
	unsigned columns = d->s->columns > LABEL ? d->s->columns - LABEL : 1, across = columns * DOTS_ACROSS,
		 count;
	double low, high;
	char row_name[96], age[SCREEN_VALUE], text[48];

	screen_entity_name(&name, e);
	screen_putf(d->s, 0, y, d->s->columns, SCREEN_ROLE_TITLE, "%s  %s", text_str(&name),
		    screen_row_name(row_name, row));
	text_release(&name);
	if (screen_stale(d->n, e)) {
		snprintf(text, sizeof(text), " %s old", screen_duration(age, screen_age(d->n, e)));
		screen_put_right(d->s, d->s->columns - 14, y, 14, SCREEN_ROLE_WARN, text);
	}
	count = screen_samples(e, row, sample, across < SCREEN_SAMPLES ? across : SCREEN_SAMPLES);
	range_of(sample, count, &low, &high);
	axis_of(row, &low, &high);
	put_axis(d, y + 1, rows - 2, row, low, high);
	put_area(d, LABEL, y + 1, columns, rows - 2, sample, count, low, high);
	put_figures(d, y + rows - 1, row, sample, count);
}

void draw_graph(const struct draw *d, unsigned y, unsigned rows)
{
	const struct watch_entity *e = screen_entity(d->n->state, d->v->entity);

	if (!e || d->v->row >= CATALOGUE_COUNT || catalogue_row(d->v->row)->scope != e->scope || rows < 3)
		screen_put(d->s, 0, y, d->s->columns, SCREEN_ROLE_DIM, "this value is gone");
	else
		draw_graph_of(d, e, d->v->row, y, rows);
}
