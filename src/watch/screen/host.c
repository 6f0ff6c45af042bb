/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the host: processors and memory, network, disks, ports and NVLinks; and what does not answer.
 */
#include <math.h>
#include <string.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

enum { BAR = 10 };

/* Text of a line, written from left to right as far as it fits. */
struct line {
	const struct draw *d;
	unsigned x, y;
	bool stale;
};

static void add(struct line *l, enum screen_role role, const char *text)
{
	if (l->x < l->d->s->columns)
		l->x += screen_put(l->d->s, l->x, l->y, l->d->s->columns - l->x,
				   l->stale && role != SCREEN_ROLE_HEADING ? SCREEN_ROLE_STALE : role, text);
}

static void add_bar(struct line *l, double share)
{
	if (isnan(share) || l->x + BAR + 1 > l->d->s->columns)
		return;
	screen_bar(l->d->s, l->x, l->y, BAR, share);
	l->x += BAR;
	add(l, SCREEN_ROLE_TEXT, " ");
}

static void add_value(struct line *l, enum catalogue row, double value)
{
	char out[SCREEN_VALUE];

	add(l, isnan(value) ? SCREEN_ROLE_DIM : SCREEN_ROLE_TEXT,
	    screen_short(out, row, value, !isnan(value)));
}

static void add_rate(struct line *l, enum catalogue row, double value)
{
	char out[SCREEN_VALUE];

	add(l, isnan(value) ? SCREEN_ROLE_DIM : SCREEN_ROLE_TEXT,
	    screen_long(out, row, value, !isnan(value)));
}

static double rate_of(const struct draw *d, enum catalogue row)
{
	double sum;

	return screen_sum(&sum, d->n->state, NULL, row) ? sum : NAN;
}

static void cpu_line(const struct draw *d, const struct watch_entity *cpu, unsigned y)
{
	struct line l = {d, 0, y, screen_stale(d->n, cpu)};
	double busy = screen_number(cpu, CATALOGUE_CPU_BUSY), count = screen_number(cpu, CATALOGUE_CPU_COUNT);
	double load = screen_number(cpu, CATALOGUE_CPU_LOAD),
	       total = screen_number(cpu, CATALOGUE_MEMORY_TOTAL);
	double used = total - screen_number(cpu, CATALOGUE_MEMORY_AVAILABLE), watts;
	char text[48], age[SCREEN_VALUE];

	add(&l, SCREEN_ROLE_HEADING, "CPU ");
	if (d->s->columns >= 80)
		add_bar(&l, busy);
	add_value(&l, CATALOGUE_CPU_BUSY, busy);
	if (!isnan(count)) {
		snprintf(text, sizeof(text), " of %.0f", count);
		add(&l, SCREEN_ROLE_DIM, text);
	}
	add(&l, SCREEN_ROLE_HEADING, "  memory ");
	if (d->s->columns >= 80)
		add_bar(&l, used / total);
	add_value(&l, CATALOGUE_MEMORY_TOTAL, used);
	add(&l, SCREEN_ROLE_DIM, "/");
	add_value(&l, CATALOGUE_MEMORY_TOTAL, total);
	if (!isnan(load)) {
		add(&l, SCREEN_ROLE_HEADING, "  load ");
		snprintf(text, sizeof(text), "%.2f", load);
		add(&l, SCREEN_ROLE_TEXT, text);
	}
	if (screen_sample(&watts, cpu, CATALOGUE_CPU_ENERGY)) {
		add(&l, SCREEN_ROLE_HEADING, "  power ");
		add_value(&l, CATALOGUE_CPU_ENERGY, watts);
	}
	if (l.stale) {
		snprintf(text, sizeof(text), "  %s old", screen_duration(age, screen_age(d->n, cpu)));
		l.stale = false;
		add(&l, SCREEN_ROLE_WARN, text);
	}
}

/* "  net out 1.2M in 3.4M": two rates of a scope; nothing if none is known. */
static void add_rates(struct line *l, const char *heading, enum metric_scope scope, const char *first_name,
		      enum catalogue first, const char *second_name, enum catalogue second)
{
	double out = rate_of(l->d, first), in = rate_of(l->d, second);

	if (!screen_first(l->d->n->state, scope))
		return;
	add(l, SCREEN_ROLE_HEADING, l->x ? "  " : "");
	add(l, SCREEN_ROLE_HEADING, heading);
	add(l, SCREEN_ROLE_DIM, first_name);
	add_rate(l, first, out);
	add(l, SCREEN_ROLE_DIM, second_name);
	add_rate(l, second, in);
}

static void count_up(const struct draw *d, enum metric_scope scope, enum catalogue row, unsigned *up,
		     unsigned *count)
{
	*up = *count = 0;
	for (size_t i = 0; i < d->n->state->count; i++) {
		const struct watch_entity *e = &d->n->state->entity[i];

		if (!screen_is(e, scope))
			continue;
		(*count)++;
		*up += screen_number(e, row) > 0;
	}
}

/* "ports 8 of 8 up" */
static void add_count(struct line *l, const char *heading, enum metric_scope scope, enum catalogue row)
{
	unsigned up, count;
	char text[48];

	count_up(l->d, scope, row, &up, &count);
	if (!count)
		return;
	add(l, SCREEN_ROLE_HEADING, l->x ? "  " : "");
	add(l, SCREEN_ROLE_HEADING, heading);
	snprintf(text, sizeof(text), "%u/%u up", up, count);
	add(l, up < count ? SCREEN_ROLE_BAD : SCREEN_ROLE_TEXT, text);
}

static bool grows(const struct draw *d, enum catalogue row)
{
	double sum;

	return screen_sum(&sum, d->n->state, NULL, row) && sum > 0;
}

unsigned draw_links(const struct draw *d, unsigned y, unsigned rows)
{
	struct line l = {.d = d, .y = y};

	if (!rows)
		return 0;
	add_count(&l, "NVLinks ", METRIC_SCOPE_NVLINK, CATALOGUE_NVLINK_UP);
	if (grows(d, CATALOGUE_GPU_NVLINK_CRC) || grows(d, CATALOGUE_GPU_NVLINK_REPLAY) ||
	    grows(d, CATALOGUE_GPU_NVLINK_RECOVERY))
		add(&l, SCREEN_ROLE_BAD, ", errors rise");
	add_rates(&l, "", METRIC_SCOPE_NVLINK, "out ", CATALOGUE_NVLINK_TX, " in ", CATALOGUE_NVLINK_RX);
	add_count(&l, "ports ", METRIC_SCOPE_PORT, CATALOGUE_PORT_UP);
	if (grows(d, CATALOGUE_PORT_ERRORS))
		add(&l, SCREEN_ROLE_BAD, ", errors rise");
	add_rates(&l, "", METRIC_SCOPE_PORT, "out ", CATALOGUE_PORT_TX, " in ", CATALOGUE_PORT_RX);
	return l.x ? 1 : 0;
}

unsigned draw_host(const struct draw *d, unsigned y, unsigned rows)
{
	const struct watch_entity *cpu = screen_first(d->n->state, METRIC_SCOPE_CPU);
	struct line l = {.d = d, .y = y + 1};

	if (!cpu || !rows)
		return 0;
	cpu_line(d, cpu, y);
	if (rows < 2)
		return 1;
	l.stale = screen_stale(d->n, cpu);
	add_rates(&l, "net", METRIC_SCOPE_INTERFACE, " out ", CATALOGUE_INTERFACE_TX, " in ",
		  CATALOGUE_INTERFACE_RX);
	add_rates(&l, "disk", METRIC_SCOPE_DISK, " read ", CATALOGUE_DISK_READ, " write ",
		  CATALOGUE_DISK_WRITTEN);
	return l.x ? 2 : 1;
}

unsigned draw_problems(const struct draw *d, unsigned y, unsigned rows)
{
	const struct watch_state *s = d->n->state;
	unsigned used = 0;

	if (d->n->why && used < rows)
		screen_put(d->s, 0, y + used++, d->s->columns, SCREEN_ROLE_BAD, d->n->why);
	for (unsigned i = 0; i < s->source_count && used < rows; i++)
		if (s->source[i].why)
			screen_putf(d->s, 0, y + used++, d->s->columns, SCREEN_ROLE_WARN, "%s: %s",
				    s->source[i].name, s->source[i].why);
	return used;
}
