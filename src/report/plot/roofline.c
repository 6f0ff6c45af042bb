/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/roofline.h"
#include <math.h>
#include "report/view/gap.h"
#include "report/text/format.h"

static void *grown(struct roofline *r, void *array, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 8;
	void *p;

	if (count < *room)
		return array;
	p = realloc(array, more * size);
	if (p)
		*room = more;
	else
		r->failed = true;
	return p;
}

static struct roofline_series *series_of(struct roofline *r, const char *name)
{
	void *more;

	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->series[i].name, name))
			return &r->series[i];
	more = grown(r, r->series, r->count, &r->room, sizeof(*r->series));
	if (!more)
		return NULL;
	r->series = more;
	r->series[r->count] = (struct roofline_series){0};
	text_copy(r->series[r->count].name, sizeof(r->series[0].name), name);
	return &r->series[r->count++];
}

static void add_ceiling(struct roofline *r, struct roofline_series *s, const struct roofline_ceiling *new)
{
	void *more;

	if (!isfinite(new->value) || new->value <= 0)
		return;
	for (size_t i = 0; i < s->ceiling_count; i++) {
		struct roofline_ceiling *old = &s->ceiling[i];

		if (old->kind == new->kind && old->measured == new->measured &&
		    !strcmp(old->name, new->name)) {
			old->value = new->value > old->value ? new->value : old->value;
			return;
		}
	}
	more = grown(r, s->ceiling, s->ceiling_count, &s->ceiling_room, sizeof(*s->ceiling));
	if (!more)
		return;
	s->ceiling = more;
	s->ceiling[s->ceiling_count++] = *new;
}

static void add_point(struct roofline *r, struct roofline_series *s, const struct roofline_point *new)
{
	void *more = grown(r, s->point, s->point_count, &s->point_room, sizeof(*s->point));

	if (!more)
		return;
	s->point = more;
	s->point[s->point_count++] = *new;
}

/* Writes the name of a limit on the plot; false if the limit has no line. */
static bool limit_name(const struct record_case *c, enum roofline_kind *kind, char *out, size_t size)
{
	if (!strncmp(c->limit, "compute.", 8)) {
		*kind = ROOFLINE_COMPUTE;
		format_type(c->limit, out, size);
		return true;
	}
	*kind = !strcmp(c->limit, "cache") ? ROOFLINE_CACHE : ROOFLINE_MEMORY;
	text_copy(out, size, *kind == ROOFLINE_CACHE ? "cache" : "memory");
	return !strcmp(c->limit, "cache") || !strcmp(c->limit, "memory");
}

/* True if the row measured a ceiling of the device. One thread, a latency and an untrusted figure are not. */
static bool is_ceiling(const struct view_row *row)
{
	const char *threads = record_option(row->c, "threads");

	return (!threads || strcmp(threads, "1")) && row->j->verdict != VERDICT_UNTRUSTED &&
	       row->j->verdict != VERDICT_ERROR;
}

static void add_ceilings(struct roofline *r, struct roofline_series *s, const struct view *v,
			 const struct view_row *row, const struct gpu *gpu)
{
	const struct judgement *j = row->j;
	struct roofline_ceiling ceiling = {.measured = true};
	double measured;

	if (!limit_name(row->c, &ceiling.kind, ceiling.name, sizeof(ceiling.name)) || !is_ceiling(row))
		return;
	if (ceiling.kind == ROOFLINE_COMPUTE) {
		if (!strcmp(row->c->probe, "peak") && view_number(row, "flop_rate", &measured)) {
			ceiling.value = measured;
			add_ceiling(r, s, &ceiling);
		}
	} else if ((!strcmp(row->c->probe, "memory") || !strcmp(row->c->probe, "peak")) &&
		   view_number(row, "byte_rate", &measured)) {
		ceiling.value = measured;
		add_ceiling(r, s, &ceiling);
	}
	ceiling.measured = false;
	if (j->bound.from == BOUND_DEVICE || j->bound.from == BOUND_DATASHEET)
		ceiling.value = j->bound.value;
	else
		ceiling.value = gap_datasheet(v->in, gpu, row->c->limit);
	if (ceiling.kind != ROOFLINE_CACHE)
		add_ceiling(r, s, &ceiling);
}

/* Writes a short label, "BF16 8192, zeros": without GEMM, which the axis implies, and without the engine,
 * which the table has. */
static void shorten(char *name, const struct record_case *c)
{
	const char *engine = format_engine(c->engine);
	size_t size = strlen(name), tail = strlen(engine);
	char *word = strstr(name, "GEMM ");

	if (size > tail + 2 && !strcmp(name + size - tail, engine) && name[size - tail - 2] == ',')
		name[size - tail - 2] = '\0';
	if (word)
		memmove(word, word + 5, strlen(word + 5) + 1);
}

static void add_case(struct roofline *r, struct roofline_series *s, const struct view_row *row)
{
	double bytes = row->c->work_read + row->c->work_write, rate;
	struct roofline_point point = {.verdict = row->j->verdict,
				       .labelled = row->headline && record_asks_judgement(row->c)};

	if (row->c->work_flop <= 0 || bytes <= 0 || !strcmp(row->c->probe, "peak") ||
	    !view_number(row, "flop_rate", &rate) || rate <= 0)
		return;
	point.intensity = row->c->work_flop / bytes;
	point.rate = rate;
	text_copy(point.name, sizeof(point.name), row->title);
	shorten(point.name, row->c);
	if (isfinite(point.intensity))
		add_point(r, s, &point);
}

/* Adds the levels of the group's curves that are a known cache; device memory has cases of its own. False:
 * there are none. */
static bool add_levels(struct roofline *r, const struct view *v, size_t group, const char *name)
{
	struct roofline_series *s = NULL;
	bool any = false;

	for (size_t i = 0; i < v->curve_count; i++)
		for (size_t k = 0; k < v->curves[i].level_count && v->curves[i].group == group; k++) {
			const struct curve_level *l = &v->curves[i].level[k];
			struct roofline_ceiling ceiling = {
				.kind = ROOFLINE_CACHE, .measured = true, .value = l->rate};

			any = true;
			/* The rate of one thread does not bound the rate of all threads. */
			if (l->name[0] != 'L' || l->one_thread || !(s = s ? s : series_of(r, name)))
				continue;
			text_copy(ceiling.name, sizeof(ceiling.name), l->name);
			add_ceiling(r, s, &ceiling);
		}
	return any;
}

/* A level with too few or too slow points may be below the memory's rate; then it is no ceiling. */
static void drop_low_caches(struct roofline_series *s)
{
	double memory = 0;
	size_t kept = 0;

	for (size_t i = 0; i < s->ceiling_count; i++)
		if (s->ceiling[i].kind == ROOFLINE_MEMORY && s->ceiling[i].measured)
			memory = fmax(memory, s->ceiling[i].value);
	for (size_t i = 0; i < s->ceiling_count; i++)
		if (s->ceiling[i].kind != ROOFLINE_CACHE || s->ceiling[i].value > memory)
			s->ceiling[kept++] = s->ceiling[i];
	s->ceiling_count = kept;
}

void roofline_add(struct roofline *r, const struct view *v)
{
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];
		const char *name = group->gpu && group->gpu->name[0] ? group->gpu->name : group->name;
		struct roofline_series *s = NULL;
		bool levels = add_levels(r, v, g, name);

		for (size_t i = group->first; i < group->first + group->count; i++) {
			const struct view_row *row = &v->rows[i];

			if (!row->phase || row->c->reading)
				continue;
			s = s ? s : series_of(r, name);
			if (!s)
				return;
			if (!levels || !row->in_curve)
				add_ceilings(r, s, v, row, group->gpu);
			if (!row->in_curve) /* the levels show what its points would */
				add_case(r, s, row);
		}
		if (s)
			drop_low_caches(s);
	}
}

bool roofline_any(const struct roofline *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->series[i].ceiling_count || r->series[i].point_count)
			return true;
	return false;
}

void roofline_release(struct roofline *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->series[i].ceiling);
		free(r->series[i].point);
	}
	free(r->series);
	*r = (struct roofline){0};
}
