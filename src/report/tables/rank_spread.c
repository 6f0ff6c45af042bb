/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/rank_spread.h"
#include "report/text/format.h"

/* The ranks of a case's judged phase. */
struct spread {
	const struct view_row *row;
	double ranks, least, median, most, wait, skew;
	double shortest, longest, late; /* rank numbers; -1: unknown or none */
};

static double number(const struct view_row *row, const char *field, double fallback)
{
	double value;

	return view_number(row, field, &value) ? value : fallback;
}

/* Fills the spread. False for cases whose ranks have different work, or without such values. */
static bool spread_of(struct spread *s, const struct view_row *row)
{
	const char *pattern = record_option(row->c, "pattern");

	*s = (struct spread){.row = row, .ranks = number(row, "ranks", 0)};
	if (row->aside || s->ranks < 2 || (pattern && (!strcmp(pattern, "out") || !strcmp(pattern, "in"))))
		return false;
	s->least = number(row, "rank_ns_min", 0);
	s->median = number(row, "rank_ns_median", 0);
	s->most = number(row, "rank_ns_max", 0);
	s->wait = number(row, "wait_share", -1);
	s->skew = number(row, "skew_ns", -1);
	s->longest = number(row, "rank_longest", -1);
	s->shortest = number(row, "rank_shortest", s->ranks == 2 && s->longest >= 0 ? 1 - s->longest : -1);
	s->late = number(row, "rank_late", -1);
	return s->least > 0 && s->most >= s->least;
}

static double apart(const struct spread *s)
{
	return 1 - s->least / s->most;
}

static bool is_notable(const struct spread *s)
{
	return apart(s) >= RANKS_APART || s->wait >= RANKS_APART;
}

/* Writes "rank 3 (gpu3)" for GPUs of one node, "rank 9 (node-b)" for launched ranks. */
static void rank_name(char *out, size_t size, const struct view *v, const struct record_case *c, double rank)
{
	const struct record *r = v->in->record;
	const struct machine *m = view_machine(v, c);
	const char *pci = json_string_value(json_array_get(json_object_get(c->plan, "gpus"), (size_t)rank));
	char node[64];

	snprintf(out, size, "rank %.0f", rank);
	for (unsigned i = 0; pci && m && i < machine_gpu_count(m); i++)
		if (!strcmp(machine_gpu(m, i)->pci, pci))
			snprintf(out, size, "rank %.0f (gpu%u)", rank, i);
	for (size_t i = 0; c->rank_count && i < r->case_count; i++)
		if (r->cases[i].rank == rank && r->node_count) {
			view_node_name(node, sizeof(node), v, r->cases[i].node);
			snprintf(out, size, "rank %.0f (%s)", rank, node);
			return;
		}
}

/* "12.3 us, rank 3 (gpu3)" */
static void time_cell(struct grid *g, const struct view *v, const struct spread *s, double ns, double rank)
{
	char time[32], name[96] = "", one[160];

	format_quantity(time, sizeof(time), ns, 0, "ns");
	if (rank >= 0)
		rank_name(name, sizeof(name), v, s->row->c, rank);
	snprintf(one, sizeof(one), "%s%s%s", ns > 0 ? time : "", ns > 0 && *name ? ", " : "", name);
	grid_cell(g, one);
}

static void share_cell(struct grid *g, double share)
{
	char one[24] = "";

	if (share >= 0)
		format_share(one, sizeof(one), share);
	grid_cell(g, one);
}

static void add_row(struct grid *g, const struct view *v, const struct spread *s)
{
	struct text title = {0};
	char one[96];

	text_add(&title, s->row->title);
	if (strcmp(s->row->c->where, "node"))
		text_addf(&title, ", %s", s->row->where);
	grid_cell(g, text_str(&title));
	text_release(&title);
	snprintf(one, sizeof(one), "%.0f", s->ranks);
	grid_cell(g, one);
	time_cell(g, v, s, s->least, s->shortest);
	time_cell(g, v, s, s->median, -1);
	time_cell(g, v, s, s->most, s->longest);
	share_cell(g, apart(s));
	share_cell(g, s->wait);
	time_cell(g, v, s, s->skew, -1);
	one[0] = '\0';
	if (s->late >= 0)
		rank_name(one, sizeof(one), v, s->row->c, s->late);
	grid_cell(g, one);
}

void ranks_grid(struct grid *g, const struct view *v, bool notable)
{
	static const struct {
		const char *head;
		bool right;
	} columns[] = {{"case", false},	  {"ranks", true},    {"shortest", false},
		       {"median", true},  {"longest", false}, {"difference", true},
		       {"waiting", true}, {"skew", true},     {"last to start", false}};
	struct spread s;

	text_add(&g->title, notable ? "Ranks that differ" : "Ranks");
	g->folded = !notable;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		grid_column(g, columns[i].head, columns[i].right);
	for (size_t i = 0; i < v->row_count; i++)
		if (spread_of(&s, &v->rows[i]) && (!notable || is_notable(&s)))
			add_row(g, v, &s);
	text_add(
		&g->note,
		"Times are the mean time per iteration of a rank. If no rank can finish before all have started, the last rank to start has the shortest time, and the others wait for it. Skew: from the first start to the last");
}
