/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/pair_matrix.h"
#include "core/math/stats.h"
#include "judge/peers/siblings.h"
#include "report/view/view.h"

/* "gpu3>gpu6" */
static bool pair_of(const struct view_row *row, unsigned *from, unsigned *to)
{
	int used = 0;

	return sscanf(row->c->target, "gpu%u>gpu%u%n", from, to, &used) == 2 && !row->c->target[used];
}

static bool fits(const struct view_row *row)
{
	unsigned from, to;

	return !row->aside && !row->in_matrix && row->figure[0] && pair_of(row, &from, &to);
}

static bool alike(const struct view_row *a, const struct view_row *b)
{
	return a->c->node == b->c->node && !strcmp(a->c->key, b->c->key) && a->c->round == b->c->round &&
	       a->c->together == b->c->together;
}

/* The index of a GPU's number, which is inserted if it is new. -1: no room. */
static int place_of(struct matrix *m, unsigned gpu)
{
	size_t at = 0;

	while (at < m->count && m->gpu[at] < gpu)
		at++;
	if (at < m->count && m->gpu[at] == gpu)
		return (int)at;
	if (m->count == MATRIX_GPUS)
		return -1;
	memmove(m->gpu + at + 1, m->gpu + at, (m->count - at) * sizeof(m->gpu[0]));
	m->gpu[at] = gpu;
	m->count++;
	return (int)at;
}

/* Inserts all numbers before any cell, because a new number moves the others. */
static void fill(struct matrix *m, const struct view *v, const struct view_row *lead)
{
	unsigned from, to;

	for (size_t i = 0; i < v->row_count; i++)
		if (fits(&v->rows[i]) && alike(&v->rows[i], lead) && pair_of(&v->rows[i], &from, &to)) {
			(void)place_of(m, from);
			(void)place_of(m, to);
		}
	for (size_t i = 0; i < v->row_count; i++) {
		struct view_row *row = &v->rows[i];
		int a, b;

		if (!fits(row) || !alike(row, lead) || !pair_of(row, &from, &to))
			continue;
		a = place_of(m, from);
		b = place_of(m, to);
		if (a < 0 || b < 0 || m->cell[a][b])
			continue;
		m->cell[a][b] = row;
		m->pairs++;
	}
}

static void find_worst(struct matrix *m)
{
	const struct view_row *row[MATRIX_GPUS * MATRIX_GPUS];
	double figure[MATRIX_GPUS * MATRIX_GPUS], limit, off, worst = SIBLINGS_FLAG;
	bool time = !strcmp(m->unit, "ns");
	size_t n = 0;

	for (size_t a = 0; a < m->count; a++)
		for (size_t b = 0; b < m->count; b++)
			if (m->cell[a][b]) {
				row[n] = m->cell[a][b];
				figure[n++] = m->cell[a][b]->j->figure;
			}
	for (size_t i = 0; i < n; i++) {
		off = siblings_deviation(figure, n, i, &limit);
		off = time ? off : -off;
		if (off <= worst)
			continue;
		worst = m->behind = off;
		m->worst = row[i];
	}
}

/* Finds the case in which every GPU sends to all others at once, by the engine of these pairs. */
static void find_at_once(struct matrix *m, const struct view *v, const struct view_row *lead)
{
	double figure[MATRIX_GPUS * MATRIX_GPUS];
	size_t n = 0;

	if (strcmp(lead->c->limit, "link.p2p"))
		return;
	for (size_t a = 0; a < m->count; a++)
		for (size_t b = 0; b < m->count; b++)
			if (m->cell[a][b])
				figure[n++] = m->cell[a][b]->j->figure;
	m->median = stats_median(figure, n);
	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];

		if (!row->aside && row->figure[0] && !strcmp(row->c->limit, "link.p2p.all") &&
		    !strcmp(row->c->engine, lead->c->engine) && row->c->node == lead->c->node)
			m->at_once = row;
	}
}

static void mark(struct view *v, const struct view_row *lead)
{
	for (size_t i = v->row_count;
	     i-- > 0;) /* the lead is compared with the others, so it is marked last */
		if (&v->rows[i] != lead && fits(&v->rows[i]) && alike(&v->rows[i], lead))
			v->rows[i].in_matrix = true;
	v->rows[lead - v->rows].in_matrix = true;
}

bool matrix_collect(struct matrix **out, size_t *count, struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *lead = &v->rows[i];
		bool time = !strcmp(lead->j->figure_unit, "ns");
		struct matrix *more, *m;

		if (!fits(lead))
			continue;
		more = realloc(*out, (*count + 1) * sizeof(*more));
		if (!more)
			return false;
		*out = more;
		m = &more[*count];
		*m = (struct matrix){
			.title = lead->title, .unit = time ? "ns" : "GB/s", .scale = time ? 1 : 1e-9};
		fill(m, v, lead);
		if (m->pairs < MATRIX_LEAST)
			continue;
		find_worst(m);
		find_at_once(m, v, lead);
		mark(v, lead);
		++*count;
	}
	return true;
}

/* Writes "395", with " !" if the cell is a finding; "" if it was not measured. */
static void cell_text(char *out, size_t size, const struct matrix *m, size_t from, size_t to)
{
	const struct view_row *row = m->cell[from][to];
	double value = row ? row->j->figure * m->scale : 0;

	*out = '\0';
	if (row)
		snprintf(out, size, "%.*f%s", value < 100 ? 1 : 0, value, view_matrix_asks(row) ? " !" : "");
	else if (from == to)
		snprintf(out, size, "-");
}

const char *matrix_path(const struct view_row *row)
{
	const char *path = record_text(record_phase(row->c, "once"), "path");

	return path ? path : "";
}

/* Appends "GB/s; rows send, columns receive; every pair by NV18; all at once: 370 GB/s sent by
 * each, 0.97 of a pair alone; gpu3>gpu2 is 50.1 % behind the median of the others". */
static void add_note(struct text *out, const struct matrix *m)
{
	const char *path = NULL;
	bool one = true;

	text_addf(out, "%s; rows send, columns receive", m->unit);
	for (size_t a = 0; a < m->count; a++)
		for (size_t b = 0; b < m->count; b++) {
			if (!m->cell[a][b])
				continue;
			one &= !path || !strcmp(path, matrix_path(m->cell[a][b]));
			path = path ? path : matrix_path(m->cell[a][b]);
		}
	if (path && *path && one)
		text_addf(out, "; every pair by %s", path);
	for (size_t a = 0; !one && a < m->count; a++)
		for (size_t b = 0; b < m->count; b++)
			if (m->cell[a][b] && *matrix_path(m->cell[a][b]))
				text_addf(out, "; %s %s", m->cell[a][b]->where, matrix_path(m->cell[a][b]));
	if (m->at_once && m->median > 0)
		text_addf(out, "; all at once: %.0f GB/s sent by each, %.2f of a pair alone",
			  m->at_once->j->figure * m->scale, m->at_once->j->figure / m->median);
	if (m->worst)
		text_addf(out, "; %s is %.1f %% behind the median of the others", m->worst->where,
			  100 * m->behind);
}

void matrix_grid(struct grid *g, const struct matrix *m)
{
	char one[32];

	text_add(&g->title, m->title);
	g->style = "matrix";
	g->row_heads = true;
	grid_column(g, "", false);
	for (size_t b = 0; b < m->count; b++) {
		snprintf(one, sizeof(one), "gpu%u", m->gpu[b]);
		grid_column(g, one, true);
	}
	for (size_t a = 0; a < m->count; a++) {
		snprintf(one, sizeof(one), "gpu%u", m->gpu[a]);
		grid_cell(g, one);
		for (size_t b = 0; b < m->count; b++) {
			cell_text(one, sizeof(one), m, a, b);
			grid_cell(g, one);
			if (m->cell[a][b] && !view_matrix_asks(m->cell[a][b]))
				grid_place(g, m->cell[a][b]);
		}
	}
	add_note(&g->note, m);
}
