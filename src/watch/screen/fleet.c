/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of nodes, and their order: worst first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "watch/screen/lists.h"
#include "watch/screen/value.h"

/* Facts of a node, worst first. A node's place follows its worst fact, then how often it has it, then its
 * utilization. This is an order and no verdict. */
enum worst {
	UTILIZED,
	CLOCK_HELD,
	LINK_DOWN,
	ROWS_PENDING,
	OLD,
	SLOWED,
	XID,
	ECC,
	LOST,
	SILENT,
	WORST_COUNT
};

struct finding {
	enum worst worst;
	unsigned count;
};

static void found(struct screen_summary *s, struct finding *f, enum worst worst, const char *what)
{
	if (f->worst == worst)
		f->count++;
	if (worst <= f->worst)
		return;
	*f = (struct finding){worst, 1};
	text_copy(s->what, sizeof(s->what), what);
}

static bool is_on(const struct watch_entity *e, enum catalogue row)
{
	return screen_number(e, row) > 0;
}

static void find_in_gpu(struct screen_summary *s, struct finding *f, const struct screen_node *n,
			const struct watch_entity *e)
{
	char name[40], what[96];

	snprintf(name, sizeof(name), "GPU %.16s", screen_label(e, "gpu"));
	if (screen_lost(e)) {
		snprintf(what, sizeof(what), "%s is lost", name);
		found(s, f, LOST, what);
	} else if (e->why) {
		snprintf(what, sizeof(what), "%.24s: %.60s", name, e->why);
		found(s, f, LOST, what);
	}
	if (screen_stale(n, e)) {
		snprintf(what, sizeof(what), "%s: values %.0f s old", name, screen_age(n, e));
		found(s, f, OLD, what);
	}
	if (is_on(e, CATALOGUE_GPU_ECC_UNCORRECTED) || is_on(e, CATALOGUE_GPU_ROWS_FAILED)) {
		snprintf(what, sizeof(what), "%s: uncorrected ECC errors", name);
		found(s, f, ECC, what);
	}
	if (is_on(e, CATALOGUE_GPU_XID_LAST)) {
		snprintf(what, sizeof(what), "%s: Xid %.0f", name, screen_number(e, CATALOGUE_GPU_XID_LAST));
		found(s, f, XID, what);
	}
	if (is_on(e, CATALOGUE_GPU_HELD_HW_SLOWDOWN) || is_on(e, CATALOGUE_GPU_HELD_HW_THERMAL) ||
	    is_on(e, CATALOGUE_GPU_HELD_SW_THERMAL) || is_on(e, CATALOGUE_GPU_HELD_BRAKE)) {
		snprintf(what, sizeof(what), "%s: clock held by heat or power brake", name);
		found(s, f, SLOWED, what);
	}
	if (is_on(e, CATALOGUE_GPU_ROWS_PENDING)) {
		snprintf(what, sizeof(what), "%s: a row will be remapped at reset", name);
		found(s, f, ROWS_PENDING, what);
	}
	if (is_on(e, CATALOGUE_GPU_HELD_POWER)) {
		snprintf(what, sizeof(what), "%s: clock held by the power limit", name);
		found(s, f, CLOCK_HELD, what);
	}
}

static void add_to(double *sum, double value)
{
	if (!isnan(value))
		*sum = isnan(*sum) ? value : *sum + value;
}

static void add_gpu(struct screen_summary *s, const struct screen_node *n, const struct watch_entity *e,
		    unsigned *with_utilization)
{
	double utilization = screen_number(e, CATALOGUE_GPU_UTILIZATION);

	s->gpus++;
	s->lost += screen_lost(e);
	s->stale += screen_stale(n, e);
	*with_utilization += !isnan(utilization);
	add_to(&s->utilization, utilization);
	add_to(&s->memory_used, screen_number(e, CATALOGUE_GPU_MEMORY_USED));
	add_to(&s->memory_total, screen_number(e, CATALOGUE_GPU_MEMORY));
	add_to(&s->power, screen_number(e, CATALOGUE_GPU_POWER));
	add_to(&s->power_limit, screen_number(e, CATALOGUE_GPU_POWER_LIMIT));
	s->temperature = fmax(s->temperature, screen_number(e, CATALOGUE_GPU_TEMPERATURE));
	s->age = fmax(s->age, screen_age(n, e));
}

static void find_in_links(struct screen_summary *s, struct finding *f, const struct watch_entity *e)
{
	struct text name = {0};
	char what[96];

	if ((!screen_is(e, METRIC_SCOPE_NVLINK) || screen_number(e, CATALOGUE_NVLINK_UP) != 0) &&
	    (!screen_is(e, METRIC_SCOPE_PORT) || screen_number(e, CATALOGUE_PORT_UP) != 0))
		return;
	screen_entity_name(&name, e);
	snprintf(what, sizeof(what), "%.60s is down", text_str(&name));
	found(s, f, LINK_DOWN, what);
	text_release(&name);
}

/* "the reader of gpu7 ended with ..": the line has the name already. */
static const char *without_name(const char *why)
{
	const char *ended = !strncmp(why, "the reader of ", 14) ? strstr(why, " ended with ") : NULL;

	return ended ? ended + 1 : why;
}

void screen_summary_make(struct screen_summary *s, const struct screen_node *n)
{
	const struct watch_entity *cpu = screen_first(n->state, METRIC_SCOPE_CPU);
	struct finding f = {UTILIZED, 0};
	unsigned with_utilization = 0;

	*s = (struct screen_summary){.utilization = NAN,
				     .memory_used = NAN,
				     .memory_total = NAN,
				     .temperature = NAN,
				     .power = NAN,
				     .power_limit = NAN,
				     .age = NAN,
				     .cpu = cpu ? screen_number(cpu, CATALOGUE_CPU_BUSY) : NAN};
	for (size_t i = 0; i < n->state->count; i++) {
		const struct watch_entity *e = &n->state->entity[i];

		s->runs += screen_is(e, METRIC_SCOPE_RUN);
		find_in_links(s, &f, e);
		if (!screen_is(e, METRIC_SCOPE_GPU))
			continue;
		add_gpu(s, n, e, &with_utilization);
		find_in_gpu(s, &f, n, e);
	}
	if (isnan(s->age) && cpu)
		s->age = screen_age(n, cpu);
	if (with_utilization)
		s->utilization /= with_utilization;
	for (unsigned i = 0; i < n->state->source_count; i++) {
		if (n->state->source[i].why) {
			char what[96];

			snprintf(what, sizeof(what), "%.15s: %.70s", n->state->source[i].name,
				 n->state->source[i].why);
			found(s, &f, OLD, what);
		}
	}
	if (n->why)
		found(s, &f, SILENT, without_name(n->why));
	else if (!n->state->count)
		text_copy(s->what, sizeof(s->what), "waiting for the first reading");
	s->score = 1e6 * f.worst + 1e3 * fmin(f.count, 99) + (isnan(s->utilization) ? 0 : s->utilization);
}

static double key_of(const struct screen_summary *s, enum screen_sort sort)
{
	switch (sort) {
	case SCREEN_SORT_utilization:
		return s->utilization;
	case SCREEN_SORT_memory:
		return s->memory_used;
	case SCREEN_SORT_temperature:
		return s->temperature;
	case SCREEN_SORT_power:
		return s->power;
	case SCREEN_SORT_usual:
	case SCREEN_SORT_pid:
	case SCREEN_SORT_user:
	case SCREEN_SORT_command:
	case SCREEN_SORT_COUNT:
		break;
	}
	return s->score;
}

static int compare(const void *a_, const void *b_, void *view)
{
	const struct screen_summary *a = a_, *b = b_;
	const struct screen_view *v = view;
	double first = key_of(a, v->sort), second = key_of(b, v->sort);

	if (isnan(first) || isnan(second)) {
		int order = (isnan(first) ? 1 : 0) - (isnan(second) ? 1 : 0);

		if (order)
			return order;
	} else if (first != second) {
		return (first > second) != v->reversed ? -1 : 1;
	}
	return a->index < b->index ? -1 : a->index > b->index;
}

struct screen_summary *screen_fleet_make(size_t *count_out, const struct screen_view *v,
					 const struct screen_node *nodes, size_t count)
{
	struct screen_summary *list = calloc(count + 1, sizeof(*list));
	size_t kept = 0;

	for (size_t i = 0; list && i < count; i++) {
		const char *name = *nodes[i].name ? nodes[i].name : nodes[i].state->node;

		if (!screen_matches(v->filter, name))
			continue;
		screen_summary_make(&list[kept], &nodes[i]);
		list[kept++].index = i;
	}
	*count_out = list ? kept : 0;
	if (kept)
		qsort_r(list, kept, sizeof(*list), compare, (void *)v);
	return list;
}
