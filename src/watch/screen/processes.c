/* SPDX-License-Identifier: Apache-2.0 */
/* The table of processes on GPUs; in the tree, below their GPUs. */
#include <math.h>
#include <string.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

enum { PID = 8, USER = 10, GPUS = 7, MEMORY = 7, SM = 5, CONTAINER = 14 };

struct fields {
	bool user, sm, container;
	unsigned command; /* its place */
};

static struct fields fields_of(unsigned columns)
{
	struct fields f = {.user = columns >= 50, .sm = columns >= 40, .container = columns >= 100};

	f.command = PID + 1 + GPUS + 1 + MEMORY + 1 + (f.user ? USER + 1 : 0) + (f.sm ? SM + 1 : 0) +
		    (f.container ? CONTAINER + 1 : 0);
	return f;
}

static unsigned put(const struct draw *d, unsigned x, unsigned y, unsigned width, enum screen_role role,
		    const char *text)
{
	screen_put(d->s, x, y, width, role, text);
	return x + width + 1;
}

static unsigned put_right(const struct draw *d, unsigned x, unsigned y, unsigned width, enum screen_role role,
			  const char *text)
{
	screen_put_right(d->s, x, y, width, role, text);
	return x + width + 1;
}

static void put_headings(const struct draw *d, const struct fields *f, unsigned y)
{
	unsigned x = put_right(d, 0, y, PID, SCREEN_ROLE_HEADING, "process");

	if (f->user)
		x = put(d, x, y, USER, SCREEN_ROLE_HEADING, "user");
	x = put(d, x, y, GPUS, SCREEN_ROLE_HEADING, "GPU");
	x = put_right(d, x, y, MEMORY, SCREEN_ROLE_HEADING, "memory");
	if (f->sm)
		x = put_right(d, x, y, SM, SCREEN_ROLE_HEADING, "SM");
	if (f->container)
		x = put(d, x, y, CONTAINER, SCREEN_ROLE_HEADING, "container");
	if (x < d->s->columns)
		screen_put(d->s, x, y, d->s->columns - x, SCREEN_ROLE_HEADING, "command");
}

static void put_process(const struct draw *d, const struct fields *f, unsigned y,
			const struct screen_process *p)
{
	enum screen_role role = screen_stale(d->n, p->entity) ? SCREEN_ROLE_STALE : SCREEN_ROLE_TEXT;
	char out[SCREEN_VALUE];
	unsigned x;

	if (p->heading) {
		screen_putf(d->s, 0, y, d->s->columns, SCREEN_ROLE_TITLE, "GPU %s", p->gpus);
		return;
	}
	x = put_right(d, 0, y, PID, role, p->pid_text);
	if (f->user)
		x = put(d, x, y, USER, role, *p->user ? p->user : "-");
	x = put(d, x, y, GPUS, role, p->gpus);
	x = put_right(d, x, y, MEMORY, role,
		      screen_short(out, CATALOGUE_PROCESS_MEMORY, p->memory, !isnan(p->memory)));
	if (f->sm)
		x = put_right(d, x, y, SM, role,
			      screen_short(out, CATALOGUE_PROCESS_SM, p->sm, !isnan(p->sm)));
	if (f->container)
		x = put(d, x, y, CONTAINER, SCREEN_ROLE_DIM, *p->container ? p->container : "-");
	if (x < d->s->columns)
		screen_put(d->s, x, y, d->s->columns - x, role, p->command);
}

/* "processes: 3 of 12 match "python"" */
static void put_title(const struct draw *d, unsigned y, const struct screen_processes *l)
{
	size_t shown = 0;

	for (size_t i = 0; i < l->count; i++)
		shown += !l->row[i].heading;
	if (d->v->only_pid)
		screen_putf(d->s, 0, y, d->s->columns, SCREEN_ROLE_DIM, "process %llu alone (--pid)%s",
			    (unsigned long long)d->v->only_pid, shown ? "" : ": it uses no GPU");
	else if (*d->v->filter)
		screen_putf(d->s, 0, y, d->s->columns, SCREEN_ROLE_DIM, "%zu of %zu processes match \"%s\"",
			    shown, l->processes, d->v->filter);
	else
		screen_put(d->s, 0, y, d->s->columns, SCREEN_ROLE_DIM, "no process on a GPU");
}

unsigned draw_processes(const struct draw *d, unsigned y, unsigned rows)
{
	struct fields f = fields_of(d->s->columns);
	struct screen_processes l;
	unsigned used = 0;
	size_t first;

	screen_processes_make(&l, d->v, d->n);
	if (rows && (!l.count || *d->v->filter || d->v->only_pid) &&
	    screen_first(d->n->state, METRIC_SCOPE_GPU))
		put_title(d, y + used++, &l);
	if (l.count && rows > used + 1)
		put_headings(d, &f, y + used++);
	first = draw_scroll(&d->v->process_at, l.count, rows > used ? rows - used : 0);
	for (size_t i = first; i < l.count && used < rows; i++, used++) {
		put_process(d, &f, y + used, &l.row[i]);
		d->s->hit[y + used] = (struct screen_hit){SCREEN_TARGET_PROCESS, i};
		if (i == d->v->process_at && d->v->on_processes)
			screen_paint(d->s, 0, y + used, PID, SCREEN_ROLE_SELECTED);
	}
	screen_processes_release(&l);
	return used;
}
