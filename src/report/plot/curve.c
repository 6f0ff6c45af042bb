/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/curve.h"
#include <math.h>
#include "core/text/units.h"
#include "report/view/view.h"
#include "report/text/format.h"

/* The largest ratio between the end of a level and the size of the cache that it is named after. Replacement
 * is not exact, and a GPU's L2 consists of two halves. */
#define SAME_CACHE 2.5
#define GPU_L1_MOST (512 * 1024.0)

static double size_of(const struct view_row *row)
{
	const char *text = record_option(row->c, "size");
	double bytes;

	return text && !units_parse(&bytes, text, "B", NULL) && bytes > 0 ? bytes : 0;
}

/* True if the row is a point of a curve: its case has a figure and runs only a burst phase. A failed case
 * keeps its own row. */
static bool is_point(const struct view_row *row)
{
	enum verdict verdict = row->j->verdict;

	return !row->aside && !row->c->reading && row->figure[0] && row->j->figure > 0 &&
	       !strcmp(row->c->phases, "burst") && size_of(row) > 0 && verdict != VERDICT_FAIL &&
	       verdict != VERDICT_ERROR && verdict != VERDICT_SKIP;
}

static bool same_block(const struct view_row *a, const struct view_row *b)
{
	return !strcmp(a->c->where, b->c->where) && !strcmp(a->c->probe, b->c->probe) &&
	       !strcmp(a->c->engine, b->c->engine);
}

/* True if the cases differ only in size. */
static bool same_series(const struct view_row *a, const struct view_row *b)
{
	json_t *ours = json_object_get(a->c->plan, "options"),
	       *theirs = json_object_get(b->c->plan, "options"), *value;
	const char *key;

	if (!same_block(a, b) || a->c->round != b->c->round || strcmp(a->j->figure_unit, b->j->figure_unit) ||
	    json_object_size(ours) != json_object_size(theirs))
		return false;
	json_object_foreach(ours, key, value)
	{
		if (strcmp(key, "size") && !json_equal(value, json_object_get(theirs, key)))
			return false;
	}
	return true;
}

static void cut_out(char *text, const char *part)
{
	char *at = part[0] ? strstr(text, part) : NULL;

	if (at)
		memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
}

/* The case's title without the parts that the block's title has: size, engine, kind of memory. */
static void name_series(struct curve_series *s, const struct view_row *row)
{
	char title[112], part[64], bytes[32];

	text_copy(title, sizeof(title), row->base);
	format_bytes(bytes, sizeof(bytes), size_of(row));
	snprintf(part, sizeof(part), " %s", bytes);
	cut_out(title, part);
	snprintf(part, sizeof(part), ", %s", format_engine(row->c->engine));
	cut_out(title, part);
	cut_out(title, ", one thread");
	if (!strncmp(title, "cache ", 6) || !strncmp(title, "memory ", 7))
		cut_out(title, title[0] == 'c' ? "cache " : "memory ");
	text_copy(s->name, sizeof(s->name), title);
}

/* The point of this size; NULL: none. */
static const struct curve_point *point_at(const struct curve_series *s, double bytes)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->point[i].bytes == bytes)
			return &s->point[i];
	return NULL;
}

/* Inserts a point, sorted by size. The first of two points of one size stays. */
static bool add_point(struct curve_series *s, const struct view_row *row)
{
	double bytes = size_of(row);
	size_t at = s->count;

	if (s->count == CURVE_POINTS || point_at(s, bytes))
		return false;
	for (; at && s->point[at - 1].bytes > bytes; at--)
		s->point[at] = s->point[at - 1];
	s->point[at] = (struct curve_point){bytes, row->j->figure, row};
	s->count++;
	return true;
}

static void add_size(struct curve *c, double bytes)
{
	size_t at = c->size_count;

	for (size_t i = 0; i < c->size_count; i++)
		if (c->size[i] == bytes)
			return;
	if (c->size_count == CURVE_SIZES)
		return;
	for (; at && c->size[at - 1] > bytes; at--)
		c->size[at] = c->size[at - 1];
	c->size[at] = bytes;
	c->size_count++;
}

static bool is_one_thread(const struct view_row *row)
{
	const char *threads = record_option(row->c, "threads");

	return threads && !strcmp(threads, "1");
}

static void title_curve(struct curve *c, const struct view_row *row)
{
	const char *what = !strcmp(row->c->probe, "memory") ? "memory"
			   : !strcmp(row->c->probe, "link") ? "host link"
							    : row->c->probe;

	snprintf(c->title, sizeof(c->title), "%s by size, %s%s", what, format_engine(row->c->engine),
		 is_one_thread(row) ? ", one thread" : "");
}

/* Collects every series of the block of `first` with enough points. */
static void collect_series(struct curve *c, struct view *v, struct view_row *first,
			   const struct view_group *g)
{
	struct view_row *end = &v->rows[g->first + g->count];

	for (struct view_row *row = first; row < end && c->series_count < CURVE_SERIES; row++) {
		struct curve_series *s = &c->series[c->series_count];

		if (row->in_curve || !is_point(row) || !same_block(first, row))
			continue;
		s->count = 0;
		for (struct view_row *other = row; other < end; other++)
			if (!other->in_curve && is_point(other) && same_series(row, other))
				add_point(s, other);
		if (s->count < CURVE_LEAST)
			continue;
		name_series(s, row);
		text_copy(s->unit, sizeof(s->unit), row->j->figure_unit);
		s->time = !strcmp(s->unit, "ns") || !strcmp(s->unit, "s");
		for (size_t i = 0; i < s->count; i++) {
			v->rows[s->point[i].row - v->rows].in_curve = true;
			c->doubtful += s->point[i].row->j->verdict == VERDICT_UNTRUSTED;
			add_size(c, s->point[i].bytes);
		}
		c->series_count++;
	}
	if (c->series_count)
		title_curve(c, c->series[0].point[0].row);
}

static const struct curve_series *series_of(const struct curve *c, bool time)
{
	for (size_t i = 0; i < c->series_count; i++)
		if (c->series[i].time == time && (time || !strcmp(c->series[i].unit, "B/s")))
			return &c->series[i];
	return NULL;
}

/* The sizes of the target's caches as the machine reports them; 0: hidden. */
static void known_caches(const struct view *v, const struct view_group *g, double size[3])
{
	const struct machine *m = view_machine(v, g->lead);
	const struct cpu *cpu = m ? machine_cpu(m) : NULL;

	size[0] = size[1] = size[2] = 0;
	if (g->gpu) {
		size[1] = gpu_get(g->gpu, GPU_FACT_l2_bytes, 0);
	} else if (cpu && !strncmp(g->lead->target, "cpu", 3)) {
		size[0] = (double)cpu->l1d_bytes;
		size[1] = (double)cpu->l2_bytes;
		size[2] = (double)cpu->l3_bytes;
	}
}

static void name_levels(struct curve *c, const struct view *v, double largest)
{
	const struct view_group *g = &v->groups[c->group];
	double known[3], all = 0;
	size_t next = 0;

	known_caches(v, g, known);
	for (size_t k = 0; k < 3; k++)
		all = known[k] > all ? known[k] : all;
	for (size_t i = 0; i < c->level_count; i++) {
		struct curve_level *l = &c->level[i];

		snprintf(l->name, sizeof(l->name), "level %u", (unsigned)i + 1);
		if (i + 1 == c->level_count) {
			if (largest >= 2 * all)
				text_copy(l->name, sizeof(l->name), "memory");
			continue;
		}
		if (g->gpu && l->end_bytes <= GPU_L1_MOST)
			text_copy(l->name, sizeof(l->name), "L1");
		for (size_t k = next; k < 3; k++) {
			if (!(known[k] > 0) || l->end_bytes > SAME_CACHE * known[k] ||
			    l->end_bytes * SAME_CACHE < known[k])
				continue;
			snprintf(l->name, sizeof(l->name), "L%u", (unsigned)k + 1);
			l->known_bytes = known[k];
			next = k + 1;
			break;
		}
	}
}

/* Removes the points of a level without a trusted point, because untrusted points alone make no level. False:
 * every level has a trusted point. */
static bool drop_untrusted(double *x, double *y, bool *trusted, size_t *points, const struct level *found,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t first = found[i].first, end = i + 1 < count ? found[i + 1].first : *points, k = first;

		while (k < end && !trusted[k])
			k++;
		if (k < end || first == end)
			continue;
		memmove(x + first, x + end, (*points - end) * sizeof(*x));
		memmove(y + first, y + end, (*points - end) * sizeof(*y));
		memmove(trusted + first, trusted + end, (*points - end) * sizeof(*trusted));
		*points -= end - first;
		return *points > 0;
	}
	return false;
}

/* Finds the memory levels, by latency if it was measured: the rate of a small size mostly shows the cost of
 * the launch. */
static void find_levels(struct curve *c, const struct view *v)
{
	const struct curve_series *time = series_of(c, true), *rate = series_of(c, false),
				  *s = time ? time : rate;
	double x[CURVE_POINTS], y[CURVE_POINTS];
	bool trusted[CURVE_POINTS];
	struct level found[LEVELS_MAX];
	size_t points = s ? s->count : 0;

	if (!s || strcmp(c->probe, "memory"))
		return;
	for (size_t i = 0; i < s->count; i++) {
		x[i] = s->point[i].bytes;
		y[i] = s->point[i].value;
		trusted[i] = s->point[i].row->j->verdict != VERDICT_UNTRUSTED;
	}
	do
		c->level_count = levels_of(x, y, points, found, LEVELS_MAX);
	while (drop_untrusted(x, y, trusted, &points, found, c->level_count));
	if (c->level_count < 2) {
		c->level_count = 0;
		return;
	}
	for (size_t i = 0; i < c->level_count; i++) {
		struct curve_level *l = &c->level[i];

		*l = (struct curve_level){.end_bytes = found[i].end, .latency = time ? found[i].value : 0};
		for (size_t k = 0; rate && k < rate->count; k++) {
			const struct curve_point *p = &rate->point[k];

			if (p->bytes < x[found[i].first] || p->bytes > l->end_bytes || p->value <= l->rate)
				continue;
			l->rate = p->value;
			l->one_thread = is_one_thread(p->row);
		}
	}
	name_levels(c, v, x[points - 1]);
}

bool curve_collect(struct curve **out, size_t *count, struct view *v)
{
	for (size_t g = 0; g < v->group_count; g++) {
		const struct view_group *group = &v->groups[g];

		for (size_t i = group->first; i < group->first + group->count; i++) {
			struct curve *more, *c;

			if (v->rows[i].in_curve || !is_point(&v->rows[i]))
				continue;
			more = realloc(*out, (*count + 1) * sizeof(*more));
			if (!more)
				return false;
			*out = more;
			c = &more[*count];
			*c = (struct curve){
				.group = g, .probe = v->rows[i].c->probe, .engine = v->rows[i].c->engine};
			collect_series(c, v, &v->rows[i], group);
			if (!c->series_count)
				continue;
			find_levels(c, v);
			curve_fits(c, v);
			++*count;
		}
	}
	return true;
}

void curve_cell(char *out, size_t size, const struct curve_series *s, double bytes)
{
	const struct curve_point *p = point_at(s, bytes);

	snprintf(out, size, "%s%s", p ? p->row->figure : "",
		 p && p->row->j->verdict == VERDICT_UNTRUSTED ? " ?" : "");
}

/* Writes a size with two digits: the end of a level is not known more exactly. */
static void about_bytes(char *out, size_t size, double bytes)
{
	double unit = bytes >= 1048576 ? 1048576 : 1024, digits = pow(10, floor(log10(bytes / unit)) - 1);

	format_bytes(
		out, size,
		unit * (bytes / unit >= 10 ? digits * round(bytes / unit / digits) : round(bytes / unit)));
}

void curve_level_text(char *out, size_t size, const struct curve_level *l)
{
	char bytes[32], value[48];
	struct text t = {0};

	text_add(&t, l->name);
	if (l->known_bytes > 0) {
		format_bytes(bytes, sizeof(bytes), l->known_bytes);
		text_addf(&t, " of %s,", bytes);
	}
	if (isfinite(l->end_bytes)) {
		about_bytes(bytes, sizeof(bytes), l->end_bytes);
		text_addf(&t, " to about %s", bytes);
	}
	if (l->rate > 0) {
		format_quantity(value, sizeof(value), l->rate, 0, "B/s");
		text_addf(&t, ": %s", value);
	}
	if (l->latency > 0) {
		format_quantity(value, sizeof(value), l->latency, 0, "ns");
		text_addf(&t, "%s %s", l->rate > 0 ? "," : ":", value);
	}
	text_copy(out, size, text_str(&t));
	text_release(&t);
}

void curve_doubt_text(struct text *out, const struct curve *c)
{
	const char *previous = NULL;

	for (size_t i = 0; i < c->series_count; i++)
		for (size_t k = 0; k < c->series[i].count; k++) {
			const struct view_row *row = c->series[i].point[k].row;

			if (row->j->verdict != VERDICT_UNTRUSTED)
				continue;
			text_addf(out, "%s%s", previous ? "; " : "? not trusted: ", row->title);
			if (!previous || strcmp(previous, row->reason))
				text_addf(out, ": %s", row->reason);
			previous = row->reason;
		}
}

void curve_file(char *out, size_t size, size_t index)
{
	snprintf(out, size, "curve-%zu.svg", index + 1);
}
