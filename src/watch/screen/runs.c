/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of live runs: what a training or a serving run says of itself in its run directory. */
#include <math.h>
#include <string.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

enum { LOSS_WIDTH = 24 };

static const struct part {
	const char *name;
	enum catalogue row;
} parts[] = {{"loss", CATALOGUE_RUN_LOSS},	  {"tokens/s", CATALOGUE_RUN_TOKENS},
	     {"MFU", CATALOGUE_RUN_MFU},	  {"step time", CATALOGUE_RUN_STEP_SECONDS},
	     {"running", CATALOGUE_RUN_REQUESTS}, {"waiting", CATALOGUE_RUN_WAITING},
	     {"TTFT", CATALOGUE_RUN_TTFT},	  {"cache", CATALOGUE_RUN_CACHE}};

/* Parts of a training step. The panel shows their shares of the step. */
static const struct part step_parts[] = {{"forward", CATALOGUE_RUN_PART_FORWARD},
					 {"backward", CATALOGUE_RUN_PART_BACKWARD},
					 {"optimizer", CATALOGUE_RUN_PART_OPTIMIZER},
					 {"wait", CATALOGUE_RUN_PART_WAIT}};
enum { STEP_PARTS = sizeof(step_parts) / sizeof(step_parts[0]) };

static bool has_parts(const struct watch_entity *e)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (watch_get(e, parts[i].row))
			return true;
	return false;
}

/* The share of a part; NAN: the part or the duration of the step is not known. */
static double share_of_step(const struct watch_entity *e, const struct part *part)
{
	double step_s = screen_number(e, CATALOGUE_RUN_STEP_SECONDS);

	return step_s > 0 ? screen_number(e, part->row) / step_s : (double)NAN;
}

static bool has_step_parts(const struct watch_entity *e)
{
	for (size_t i = 0; i < STEP_PARTS; i++)
		if (!isnan(share_of_step(e, &step_parts[i])))
			return true;
	return false;
}

static unsigned rows_of(const struct watch_entity *e)
{
	return 1 + has_parts(e) + has_step_parts(e);
}

unsigned draw_runs_rows(const struct draw *d)
{
	unsigned rows = 0;

	for (size_t i = 0; i < d->n->state->count; i++)
		if (screen_is(&d->n->state->entity[i], METRIC_SCOPE_RUN))
			rows += rows_of(&d->n->state->entity[i]);
	return rows;
}

static void put_name(const struct draw *d, unsigned y, const struct watch_entity *e)
{
	unsigned x =
		screen_putf(d->s, 0, y, d->s->columns, SCREEN_ROLE_TITLE, "%s ", screen_label(e, "kind"));
	double step = screen_number(e, CATALOGUE_RUN_STEP), steps = screen_number(e, CATALOGUE_RUN_STEPS);
	char age[SCREEN_VALUE];

	x += screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_TEXT, "%s  ", screen_label(e, "model"));
	if (!isnan(step) && steps > 0) {
		x += screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_TEXT, "step %.0f of %.0f ", step,
				 steps);
		if (x + 12 < d->s->columns) {
			screen_bar(d->s, x, y, 10, step / steps);
			x += 12;
		}
	} else if (!isnan(step)) {
		x += screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_TEXT, "step %.0f  ", step);
	}
	if (screen_stale(d->n, e))
		x += screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_WARN, "%s old  ",
				 screen_duration(age, screen_age(d->n, e)));
	screen_put(d->s, x, y, d->s->columns, SCREEN_ROLE_DIM, screen_label(e, "run"));
}

static void put_parts(const struct draw *d, unsigned y, const struct watch_entity *e)
{
	unsigned x = 2;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char out[SCREEN_VALUE];
		double value;

		if (!screen_sample(&value, e, parts[i].row))
			continue;
		if (parts[i].row == CATALOGUE_RUN_LOSS)
			snprintf(out, sizeof(out), "%.4g", value);
		else
			screen_short(out, parts[i].row, value, true);
		x += screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_HEADING, "%s ", parts[i].name);
		x += screen_putf(d->s, x, y, d->s->columns,
				 screen_stale(d->n, e) ? SCREEN_ROLE_STALE : SCREEN_ROLE_TEXT, "%s  ", out);
	}
	if (x + LOSS_WIDTH < d->s->columns && watch_get(e, CATALOGUE_RUN_LOSS))
		draw_sparkline(d, x, y, LOSS_WIDTH, e, CATALOGUE_RUN_LOSS, NAN);
}

static void put_step_parts(const struct draw *d, unsigned y, const struct watch_entity *e)
{
	unsigned x = screen_put(d->s, 2, y, d->s->columns, SCREEN_ROLE_HEADING, "step ") + 2;

	for (size_t i = 0; i < STEP_PARTS; i++) {
		double share = share_of_step(e, &step_parts[i]);

		if (isnan(share))
			continue;
		x += screen_putf(d->s, x, y, d->s->columns, SCREEN_ROLE_HEADING, "%s ", step_parts[i].name);
		x += screen_putf(d->s, x, y, d->s->columns,
				 screen_stale(d->n, e) ? SCREEN_ROLE_STALE : SCREEN_ROLE_TEXT, "%.0f %%  ",
				 100 * share);
	}
}

unsigned draw_runs(const struct draw *d, unsigned y, unsigned rows)
{
	unsigned used = 0;

	for (size_t i = 0; i < d->n->state->count && used + 2 <= rows; i++) {
		const struct watch_entity *e = &d->n->state->entity[i];

		if (!screen_is(e, METRIC_SCOPE_RUN))
			continue;
		put_name(d, y + used++, e);
		if (has_parts(e))
			put_parts(d, y + used++, e);
		if (has_step_parts(e) && used < rows)
			put_step_parts(d, y + used++, e);
	}
	return used;
}
