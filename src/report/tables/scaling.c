/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/scaling.h"

/* The sum of the parts may differ from the host's clock by this share: docs/explanation/methods/scaling.md.
 */
#define CLOSED 0.03

/* name, head, flush right */
#define SCALING_COLUMNS(X)                                                                                   \
	X(ranks, "ranks", 1)                                                                                 \
	X(target, "target", 0)                                                                               \
	X(step, "step", 1)                                                                                   \
	X(efficiency, "efficiency", 1)                                                                       \
	X(compute, "compute", 1)                                                                             \
	X(exposed, "exposed", 1)                                                                             \
	X(waiting, "waiting", 1)                                                                             \
	X(slowest, "slowest", 0)                                                                             \
	X(largest_loss, "largest loss", 0)
#define X(name, ...) SCALING_COLUMN_##name,
enum scaling_column { SCALING_COLUMNS(X) SCALING_COLUMN_COUNT };
#undef X

static const struct record_phase *account(const struct view_row *row)
{
	return strcmp(row->c->probe, "scaling") ? NULL : record_phase(row->c, "once");
}

static double number(const struct view_row *row, const char *field)
{
	double value = 0;

	return record_number(account(row), field, &value) ? value : 0;
}

static unsigned ranks_of(const struct view_row *row)
{
	double rate = number(row, "tokens_rate"), step = number(row, "step_ns");
	const char *m = json_string_value(json_object_get(json_object_get(row->c->plan, "options"), "m"));
	double rows = m ? strtod(m, NULL) : 0;

	return rows > 0 ? (unsigned)(rate * step * 1e-9 / rows + 0.5) : 0;
}

static bool fits(const struct view_row *row)
{
	double step;

	return !row->aside && account(row) && record_number(account(row), "step_ns", &step) && step > 0;
}

static struct scaling_table *table_of(struct scaling_tables *out, const struct view_row *row)
{
	for (size_t i = 0; i < out->count; i++)
		if (!strcmp(out->table[i].row[0]->c->key, row->c->key))
			return &out->table[i];
	if (out->count == SCALING_TABLES)
		return NULL;
	out->table[out->count] = (struct scaling_table){.title = row->title};
	return &out->table[out->count++];
}

static void insert(struct scaling_table *t, const struct view_row *row)
{
	size_t at = t->count;

	if (t->count == SCALING_ROWS)
		return;
	for (; at && ranks_of(t->row[at - 1]) > ranks_of(row); at--)
		t->row[at] = t->row[at - 1];
	t->row[at] = row;
	t->count++;
}

void scaling_collect(struct scaling_tables *out, const struct view *v)
{
	*out = (struct scaling_tables){.count = 0};
	for (size_t i = 0; i < v->row_count; i++) {
		struct scaling_table *t = fits(&v->rows[i]) ? table_of(out, &v->rows[i]) : NULL;

		if (t)
			insert(t, &v->rows[i]);
	}
}

static void share(char *out, size_t size, const struct view_row *row, const char *field)
{
	double value;

	if (record_number(account(row), field, &value))
		snprintf(out, size, "%.1f %%", 100 * value);
}

static void cell_text(char *out, size_t size, const struct view_row *row, enum scaling_column column)
{
	const char *slowest = record_text(account(row), "slowest_rank");
	const char *loss = record_text(account(row), "largest_loss");

	*out = '\0';
	switch (column) {
	case SCALING_COLUMN_ranks:
		snprintf(out, size, "%u", ranks_of(row));
		break;
	case SCALING_COLUMN_target:
		snprintf(out, size, "%s", row->c->target);
		break;
	case SCALING_COLUMN_step:
		snprintf(out, size, "%.4g ms", 1e-6 * number(row, "step_ns"));
		break;
	case SCALING_COLUMN_efficiency:
		share(out, size, row, "efficiency");
		break;
	case SCALING_COLUMN_compute:
		share(out, size, row, "compute_share");
		break;
	case SCALING_COLUMN_exposed:
		share(out, size, row, "exposed_share");
		break;
	case SCALING_COLUMN_waiting:
		share(out, size, row, "waiting_share");
		break;
	case SCALING_COLUMN_slowest:
		snprintf(out, size, "%s", slowest ? slowest : "");
		break;
	case SCALING_COLUMN_largest_loss:
		snprintf(out, size, "%s", loss ? loss : "");
		break;
	case SCALING_COLUMN_COUNT:
		break;
	}
}

static void add_note(struct text *out, const struct scaling_table *t)
{
	text_add(
		out,
		"Every rank has the same work. Efficiency: one rank's step time divided by this one. The shares are of the step, mean over ranks. Waiting: for the slowest rank");
	for (size_t i = 0; i < t->count; i++) {
		double off = number(t->row[i], "unexplained_share");

		if (off > CLOSED)
			text_addf(
				out,
				". On %u ranks the sum of the parts differs from the host's clock by %.1f %%, unexplained",
				ranks_of(t->row[i]), 100 * off);
	}
}

void scaling_grid(struct grid *g, const struct scaling_table *t)
{
#define X(name, head, right) {head, right},
	static const struct {
		const char *head;
		bool right;
	} columns[] = {SCALING_COLUMNS(X)};
#undef X
	char one[160];

	text_addf(&g->title, "Scaling: %s", t->title);
	for (int k = 0; k < SCALING_COLUMN_COUNT; k++)
		grid_column(g, columns[k].head, columns[k].right);
	for (size_t i = 0; i < t->count; i++)
		for (int k = 0; k < SCALING_COLUMN_COUNT; k++) {
			cell_text(one, sizeof(one), t->row[i], (enum scaling_column)k);
			grid_cell(g, one);
		}
	add_note(&g->note, t);
}
