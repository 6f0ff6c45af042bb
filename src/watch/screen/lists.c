/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/screen/lists.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "watch/screen/value.h"

double screen_age(const struct screen_node *n, const struct watch_entity *e)
{
	return watch_age(n->state, e, n->local_ns);
}

bool screen_stale(const struct screen_node *n, const struct watch_entity *e)
{
	double limit = 3 * n->state->interval;

	return screen_age(n, e) > (limit > 3 ? limit : 3);
}

const char *screen_label(const struct watch_entity *e, const char *name)
{
	const char *value = watch_label(e, name);

	return value ? value : "";
}

double screen_number(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = catalogue_row(row)->scope == e->scope ? watch_get(e, row) : NULL;

	return v ? v->value : NAN;
}

bool screen_lost(const struct watch_entity *gpu)
{
	return screen_number(gpu, CATALOGUE_GPU_UP) == 0;
}

const struct watch_entity *screen_first(const struct watch_state *s, enum metric_scope scope)
{
	for (size_t i = 0; i < s->count; i++)
		if (screen_is(&s->entity[i], scope))
			return &s->entity[i];
	return NULL;
}

const struct watch_entity *screen_entity(const struct watch_state *s, uint32_t id)
{
	return id < s->count && s->entity[id].scope < METRIC_SCOPE_COUNT && !s->entity[id].foreign
		       ? &s->entity[id]
		       : NULL;
}

unsigned screen_samples(const struct watch_entity *e, enum catalogue row, float *out, unsigned max)
{
	const struct watch_history *h = watch_history(e, row);
	unsigned count = h ? h->count : 0, skip = count > max ? count - max : 0;

	for (unsigned i = skip; i < count; i++)
		out[i - skip] = watch_history_at(h, i);
	return count - skip;
}

bool screen_sum(double *out, const struct watch_state *s, const struct watch_entity *of, enum catalogue row)
{
	enum metric_scope scope = catalogue_row(row)->scope;
	bool any = false;
	double value;

	*out = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct watch_entity *e = &s->entity[i];

		if (!screen_is(e, scope) || (of && e->of != of->id) || !screen_sample(&value, e, row))
			continue;
		*out += value;
		any = true;
	}
	return any;
}

bool screen_matches(const char *filter, const char *text)
{
	return !*filter || strcasestr(text, filter);
}

/* The order of numbers; NaN comes last whichever way it goes. */
static int by_number(double a, double b, bool ascending)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
	return a == b ? 0 : (a < b) == ascending ? -1 : 1;
}

static double gpu_key(const struct watch_entity *e, enum screen_sort sort)
{
	switch (sort) {
	case SCREEN_SORT_utilization:
		return screen_number(e, CATALOGUE_GPU_UTILIZATION);
	case SCREEN_SORT_memory:
		return screen_number(e, CATALOGUE_GPU_MEMORY_USED);
	case SCREEN_SORT_temperature:
		return screen_number(e, CATALOGUE_GPU_TEMPERATURE);
	case SCREEN_SORT_power:
		return screen_number(e, CATALOGUE_GPU_POWER);
	case SCREEN_SORT_usual:
	case SCREEN_SORT_pid:
	case SCREEN_SORT_user:
	case SCREEN_SORT_command:
	case SCREEN_SORT_COUNT:
		break;
	}
	return 0;
}

static int by_place(const struct watch_entity *a, const struct watch_entity *b)
{
	int order =
		by_number(strtod(screen_label(a, "gpu"), NULL), strtod(screen_label(b, "gpu"), NULL), true);

	if (!order)
		order = strcmp(screen_label(a, "GPU_I_ID"), screen_label(b, "GPU_I_ID"));
	return order ? order : a->id < b->id ? -1 : a->id > b->id;
}

static int compare_gpus(const void *a_, const void *b_, void *view)
{
	const struct watch_entity *a = *(const struct watch_entity *const *)a_;
	const struct watch_entity *b = *(const struct watch_entity *const *)b_;
	const struct screen_view *v = view;
	int order = by_number(gpu_key(a, v->sort), gpu_key(b, v->sort), v->reversed);

	if (order)
		return order;
	return v->reversed && v->sort == SCREEN_SORT_usual ? by_place(b, a) : by_place(a, b);
}

/* Adds the instances of a GPU behind it. */
static void add_instances(struct screen_gpus *l, const struct watch_state *s, const struct watch_entity *gpu)
{
	for (size_t i = 0; i < s->count; i++)
		if (screen_is(&s->entity[i], METRIC_SCOPE_GPU_INSTANCE) && s->entity[i].of == gpu->id)
			l->gpu[l->count++] = &s->entity[i];
}

void screen_gpus_make(struct screen_gpus *l, const struct screen_view *v, const struct screen_node *n)
{
	const struct watch_state *s = n->state;
	size_t room = (size_t)s->of_scope[METRIC_SCOPE_GPU] + s->of_scope[METRIC_SCOPE_GPU_INSTANCE] + 1;
	const struct watch_entity **gpus = calloc(room, sizeof(*gpus));
	size_t count = 0;

	*l = (struct screen_gpus){.gpu = calloc(room, sizeof(const struct watch_entity *))};
	for (size_t i = 0; l->gpu && gpus && i < s->count; i++)
		if (screen_is(&s->entity[i], METRIC_SCOPE_GPU))
			gpus[count++] = &s->entity[i];
	if (count)
		qsort_r(gpus, count, sizeof(*gpus), compare_gpus, (void *)v);
	for (size_t i = 0; i < count; i++) {
		l->gpu[l->count++] = gpus[i];
		add_instances(l, s, gpus[i]);
	}
	free(gpus);
}

void screen_gpus_release(struct screen_gpus *l)
{
	free(l->gpu);
	*l = (struct screen_gpus){0};
}

static bool process_matches(const struct screen_view *v, const struct screen_process *p)
{
	if (v->only_pid)
		return p->pid == v->only_pid;
	return screen_matches(v->filter, p->command) || screen_matches(v->filter, p->user) ||
	       screen_matches(v->filter, p->container) || screen_matches(v->filter, p->pid_text);
}

static struct screen_process *add_process(struct screen_processes *l)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 32;
		struct screen_process *grown = realloc(l->row, room * sizeof(*grown));

		if (!grown)
			return NULL;
		l->row = grown;
		l->room = room;
	}
	l->row[l->count] = (struct screen_process){.memory = NAN, .sm = NAN};
	return &l->row[l->count++];
}

static struct screen_process process_of(const struct watch_entity *e)
{
	struct screen_process p = {.entity = e,
				   .pid_text = screen_label(e, "pid"),
				   .user = screen_label(e, "user"),
				   .container = screen_label(e, "container"),
				   .command = *screen_label(e, "command") ? screen_label(e, "command")
									  : screen_label(e, "comm"),
				   .memory = screen_number(e, CATALOGUE_PROCESS_MEMORY),
				   .sm = screen_number(e, CATALOGUE_PROCESS_SM)};

	p.pid = strtoull(p.pid_text, NULL, 10);
	text_copy(p.gpus, sizeof(p.gpus), screen_label(e, "gpu"));
	return p;
}

/* Adds what another GPU knows of the same process. */
static void join(struct screen_process *p, const struct screen_process *other)
{
	char before[sizeof(p->gpus)], added[sizeof(p->gpus)];

	p->memory = isnan(p->memory) ? other->memory : p->memory + (isnan(other->memory) ? 0 : other->memory);
	p->sm = isnan(p->sm) ? other->sm : isnan(other->sm) ? p->sm : fmax(p->sm, other->sm);
	text_copy(before, sizeof(before), p->gpus);
	text_copy(added, sizeof(added), other->gpus);
	snprintf(p->gpus, sizeof(p->gpus), "%.12s,%.10s", before, added);
}

static int compare_processes(const void *a_, const void *b_, void *view)
{
	const struct screen_process *a = a_, *b = b_;
	const struct screen_view *v = view;
	int order = 0, sign = v->reversed ? -1 : 1;

	if (v->tree)
		order = by_number(strtod(a->gpus, NULL), strtod(b->gpus, NULL), true);
	if (order)
		return order;
	switch (v->sort) {
	case SCREEN_SORT_pid:
		break;
	case SCREEN_SORT_user:
		order = sign * strcmp(a->user, b->user);
		break;
	case SCREEN_SORT_command:
		order = sign * strcmp(a->command, b->command);
		break;
	case SCREEN_SORT_utilization:
		order = by_number(a->sm, b->sm, v->reversed);
		break;
	case SCREEN_SORT_usual:
	case SCREEN_SORT_memory:
	case SCREEN_SORT_temperature:
	case SCREEN_SORT_power:
	case SCREEN_SORT_COUNT:
		order = by_number(a->memory, b->memory, v->reversed);
		break;
	}
	return order ? order : a->pid < b->pid ? -sign : a->pid > b->pid ? sign : 0;
}

static int compare_pids(const void *a_, const void *b_)
{
	const struct screen_process *a = a_, *b = b_;

	return a->pid < b->pid	       ? -1
	       : a->pid > b->pid       ? 1
	       : a->entity < b->entity ? -1
				       : a->entity > b->entity;
}

/* One row a process: those of several GPUs are joined. */
static void join_processes(struct screen_processes *l)
{
	size_t kept = 0;

	if (!l->count)
		return;
	qsort(l->row, l->count, sizeof(*l->row), compare_pids);
	for (size_t i = 1; i < l->count; i++) {
		if (l->row[i].pid == l->row[kept].pid)
			join(&l->row[kept], &l->row[i]);
		else
			l->row[++kept] = l->row[i];
	}
	l->count = kept + 1;
}

/* Puts a heading above the processes of each GPU. */
static void add_headings(struct screen_processes *l)
{
	struct screen_processes with = {.processes = l->processes};

	for (size_t i = 0; i < l->count; i++) {
		struct screen_process *row;

		if ((!i || strcmp(l->row[i].gpus, l->row[i - 1].gpus)) && (row = add_process(&with))) {
			row->heading = true;
			row->entity = l->row[i].entity;
			text_copy(row->gpus, sizeof(row->gpus), l->row[i].gpus);
		}
		row = add_process(&with);
		if (row)
			*row = l->row[i];
	}
	free(l->row);
	*l = with;
}

void screen_processes_make(struct screen_processes *l, const struct screen_view *v,
			   const struct screen_node *n)
{
	const struct watch_state *s = n->state;
	size_t kept = 0;

	*l = (struct screen_processes){0};
	for (size_t i = 0; i < s->count; i++) {
		struct screen_process *row;

		if (!screen_is(&s->entity[i], METRIC_SCOPE_PROCESS))
			continue;
		row = add_process(l);
		if (row)
			*row = process_of(&s->entity[i]);
	}
	if (!v->tree)
		join_processes(l);
	l->processes = l->count;
	for (size_t i = 0; i < l->count; i++)
		if (process_matches(v, &l->row[i]))
			l->row[kept++] = l->row[i];
	l->count = kept;
	if (l->count)
		qsort_r(l->row, l->count, sizeof(*l->row), compare_processes, (void *)v);
	if (v->tree)
		add_headings(l);
}

void screen_processes_release(struct screen_processes *l)
{
	free(l->row);
	*l = (struct screen_processes){0};
}

void screen_entity_name(struct text *out, const struct watch_entity *e)
{
	const char *gpu = screen_label(e, "gpu");

	switch (e->scope) {
	case METRIC_SCOPE_GPU:
		text_addf(out, "GPU %s", gpu);
		return;
	case METRIC_SCOPE_GPU_INSTANCE:
		text_addf(out, "GPU %s/%s %s", gpu, screen_label(e, "GPU_I_ID"),
			  screen_label(e, "GPU_I_PROFILE"));
		return;
	case METRIC_SCOPE_NVLINK:
		text_addf(out, "NVLink %s of GPU %s", screen_label(e, "nvlink"), gpu);
		return;
	case METRIC_SCOPE_XID:
		text_addf(out, "Xid %s of GPU %s", screen_label(e, "xid"), gpu);
		return;
	case METRIC_SCOPE_PROCESS:
		text_addf(out, "process %s on GPU %s: %s", screen_label(e, "pid"), gpu,
			  screen_label(e, "command"));
		return;
	case METRIC_SCOPE_NODE:
	case METRIC_SCOPE_CPU:
	case METRIC_SCOPE_PORT:
	case METRIC_SCOPE_PORT_ERROR:
	case METRIC_SCOPE_INTERFACE:
	case METRIC_SCOPE_DISK:
	case METRIC_SCOPE_RUN:
	case METRIC_SCOPE_CHECK:
	case METRIC_SCOPE_READER:
	case METRIC_SCOPE_SOURCE:
	case METRIC_SCOPE_EXPORTER:
	case METRIC_SCOPE_COUNT:
		break;
	}
	text_add(out, e->scope < METRIC_SCOPE_COUNT ? metric_scope_row(e->scope)->name : "");
	for (unsigned i = 0; i < e->label_count; i++)
		text_addf(out, "%s%s", i ? "/" : " ", e->label[i].value);
}

static void add_metric(struct screen_metrics *l, const struct watch_entity *e, enum catalogue row)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		struct screen_metric *grown = realloc(l->row, room * sizeof(*grown));

		if (!grown)
			return;
		l->row = grown;
		l->room = room;
	}
	l->row[l->count++] = (struct screen_metric){e, row};
}

static void add_metrics_of(struct screen_metrics *l, const struct watch_entity *e, const char *filter)
{
	struct text name = {0};
	char row_name[96];
	bool all, heading = false;

	screen_entity_name(&name, e);
	all = screen_matches(filter, text_str(&name));
	for (enum catalogue c = 0; c < CATALOGUE_COUNT; c++) {
		const char *why = watch_why(e, c);

		if (catalogue_row(c)->scope != e->scope || (!watch_get(e, c) && (!why || why == e->why)))
			continue;
		if (!all && !screen_matches(filter, screen_row_name(row_name, c)))
			continue;
		if (!heading)
			add_metric(l, e, CATALOGUE_COUNT);
		heading = true;
		add_metric(l, e, c);
	}
	text_release(&name);
}

void screen_metrics_make(struct screen_metrics *l, const struct screen_view *v, const struct screen_node *n)
{
	*l = (struct screen_metrics){0};
	for (enum metric_scope scope = 0; scope < METRIC_SCOPE_COUNT; scope++)
		for (size_t i = 0; i < n->state->count; i++)
			if (screen_is(&n->state->entity[i], scope))
				add_metrics_of(l, &n->state->entity[i], v->filter);
}

void screen_metrics_release(struct screen_metrics *l)
{
	free(l->row);
	*l = (struct screen_metrics){0};
}
