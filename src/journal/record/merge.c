/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the journals of all ranks into one record. Each is read separately and is used only if its rank,
 * team size, program and build match rank 0's journal. The plans and results of a rank stay unchanged. Only
 * ids, steps, times and the GPU names of targets are converted, because they are relative to the rank.
 */
#include "journal/record/merge.h"

#include <errno.h>
#include <limits.h>
#include "core/text/text.h"
#include "journal/file/rank_dir.h"

struct merge {
	struct record *r;
	unsigned *node_of; /* by rank */
	unsigned size;
	size_t own; /* cases in rank 0's journal */
	size_t room;
	unsigned step; /* the next free number */
	struct error *err;
};

static enum status no_memory(const struct merge *m)
{
	return error_errno(m->err, ENOMEM, "%s: reading the record", m->r->dir);
}

const char *record_node_state_word(enum record_node_state state)
{
	static const char *const words[] = {
#define X(name, word) word,
		RECORD_NODE_STATES(X)
#undef X
	};

	return words[state];
}

static bool same_text(const json_t *a, const json_t *b, const char *name)
{
	const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);

	return x == y || (x && y && json_equal(x, y));
}

/* Why this journal does not belong to rank `rank` of this team; NULL: it does. */
static const char *foreign(const struct merge *m, const struct record *sub, unsigned rank)
{
	const json_t *team = json_object_get(sub->open, "team");
	const json_t *of = json_object_get(team, "rank"), *size = json_object_get(team, "size");

	if (!sub->open)
		return "it does not begin like the journal of a run";
	if (!json_is_integer(of) || json_integer_value(of) != rank || !json_is_integer(size) ||
	    json_integer_value(size) != m->size)
		return "it belongs to another rank or team";
	if (!same_text(m->r->open, sub->open, "program") || !same_text(m->r->open, sub->open, "build") ||
	    !same_text(m->r->open, sub->open, "seed"))
		return "it belongs to another program, build or seed";
	return sub->plan ? NULL : "it has no plan";
}

static void not_whole(struct record_node *n, enum record_node_state state, unsigned rank, const char *why)
{
	if (n->state < state)
		n->state = state;
	if (!*n->why)
		snprintf(n->why, sizeof(n->why), "rank %u: %.200s", rank, why);
}

/* ---- place of a case ---- */

static int gpu_index(const json_t *machine, const char *pci)
{
	const json_t *gpus = json_object_get(machine, "gpus");

	for (size_t i = 0; pci && i < json_array_size(gpus); i++) {
		const char *other = json_string_value(json_object_get(json_array_get(gpus, i), "pci"));

		if (other && !strcmp(other, pci))
			return (int)i;
	}
	return -1;
}

/* A rank that sees only its own GPU calls it gpu0. Replaces that by its number among the node's GPUs. */
static void retarget(const struct record_node *n, json_t *plan)
{
	const json_t *gpus = json_object_get(plan, "gpus");
	const char *target = json_string_value(json_object_get(plan, "target"));
	int a = gpu_index(n->machine, json_string_value(json_array_get(gpus, 0)));
	int b = gpu_index(n->machine, json_string_value(json_array_get(gpus, 1)));
	char text[64];

	if (!target || strncmp(target, "gpu", 3) || a < 0)
		return;
	if (json_array_size(gpus) == 1)
		snprintf(text, sizeof(text), "gpu%d", a);
	else if (json_array_size(gpus) == 2 && b >= 0)
		snprintf(text, sizeof(text), "gpu%d>gpu%d", a, b);
	else
		return;
	json_object_set_new(plan, "target", json_string(text));
}

/* Adds the facts of GPUs that only this rank sees to the node's facts. */
static enum status add_gpus(struct merge *m, struct record_node *n, const json_t *machine)
{
	const json_t *theirs = json_object_get(machine, "gpus");
	json_t *gpus = json_object_get(n->machine, "gpus"), *gpu;
	size_t i;

	json_array_foreach((json_t *)theirs, i, gpu)
	{
		const char *pci = json_string_value(json_object_get(gpu, "pci"));

		if (json_is_array(gpus) && pci && gpu_index(n->machine, pci) < 0 &&
		    json_array_append(gpus, gpu))
			return no_memory(m);
	}
	return STATUS_OK;
}

static enum status take_machine(struct merge *m, struct record_node *n, const json_t *machine)
{
	if (!machine)
		return STATUS_OK;
	if (n->machine)
		return add_gpus(m, n, machine);
	n->machine = json_deep_copy(machine);
	return n->machine ? STATUS_OK : no_memory(m);
}

/* Sets c->where; with several nodes the node's name comes first. `part`: "rank-3/" if the rank's GPUs are not
 * known. */
static enum status place(struct merge *m, struct record_case *c, unsigned rank, const char *part)
{
	const struct record_node *n = &m->r->node[m->node_of[rank]];
	json_t *plan = (json_t *)c->plan;
	json_t *where;

	c->node = m->node_of[rank];
	c->rank = rank;
	c->target = json_string_value(json_object_get(plan, "target"));
	c->target = c->target ? c->target : "";
	c->where = c->target;
	if ((m->r->node_count < 2 && !*part) || json_object_get(plan, "team"))
		return STATUS_OK;
	where = m->r->node_count < 2 ? json_sprintf("%s%s", part, c->target)
				     : json_sprintf("%s/%s%s", n->name, part, c->target);
	if (!where || json_object_set_new(plan, "where", where))
		return no_memory(m);
	c->where = json_string_value(where);
	return STATUS_OK;
}

/* ---- cases of a rank ---- */

static enum status add_case(struct merge *m, const struct record_case *c)
{
	struct record *r = m->r;
	struct record_case *more;

	if (r->case_count >= m->room) {
		m->room = 2 * r->case_count + 64;
		more = realloc(r->cases, m->room * sizeof(*more));
		if (!more)
			return no_memory(m);
		r->cases = more;
	}
	r->cases[r->case_count] = *c;
	r->cases[r->case_count].id = (unsigned)r->case_count;
	r->case_count++;
	return STATUS_OK;
}

/* Rank 0's case with the same number among the team's cases, if it is the same case. */
static struct record_case *team_case(const struct merge *m, const struct record_case *c)
{
	const json_t *ordinal = json_object_get(c->plan, "team");

	for (size_t i = 0; i < m->own; i++) {
		struct record_case *own = &m->r->cases[i];

		if (json_equal(json_object_get(own->plan, "team"), ordinal) && !strcmp(own->key, c->key))
			return own;
	}
	return NULL;
}

static enum status add_part(struct merge *m, const struct record_case *c, unsigned rank)
{
	struct record_case *own = team_case(m, c);
	const struct record_phase *p = record_phase(c, "rank");
	struct record_rank *more;

	if (!own || !c->begun)
		return STATUS_OK;
	more = realloc(own->ranks, (own->rank_count + 1) * sizeof(*more));
	if (!more)
		return no_memory(m);
	own->ranks = more;
	own->ranks[own->rank_count++] = (struct record_rank){.rank = rank,
							     .ended = c->ended,
							     .ending = c->ending,
							     .values = p ? json_incref(p->values) : NULL};
	return STATUS_OK;
}

/* A GPU that several ranks share has no case; the first of them has reported that already. */
static bool said_before(const struct merge *m, const struct record_case *c)
{
	if (!c->skipped || c->skip_cause != CAUSE_GPU_SHARED)
		return false;
	for (size_t i = 0; i < m->r->case_count; i++) {
		const struct record_case *have = &m->r->cases[i];

		if (have->skipped && have->skip_cause == CAUSE_GPU_SHARED && have->node == c->node &&
		    have->round == c->round && !strcmp(have->where, c->where) && !strcmp(have->key, c->key))
			return true;
	}
	return false;
}

static void shift_case(const struct record_node *n, struct record_case *c)
{
	c->t0_ns = record_clock_zero(n, c->t0_ns);
	c->t1_ns = record_clock_zero(n, c->t1_ns);
	for (size_t i = 0; i < c->phase_count; i++) {
		c->phase[i].t0_ns = record_clock_zero(n, c->phase[i].t0_ns);
		c->phase[i].t1_ns = record_clock_zero(n, c->phase[i].t1_ns);
	}
}

/* Member `name` of this object refers to a case by its id in the rank's own journal. Converts the id, or
 * removes the member if there is no such case. */
static enum status renumber(struct merge *m, json_t *object, const char *name, const size_t *place_of,
			    size_t count)
{
	const json_t *place = json_object_get(object, name);
	size_t first;

	if (!place)
		return STATUS_OK;
	first = json_is_integer(place) ? (size_t)json_integer_value(place) : count;
	if (first >= count || place_of[first] == SIZE_MAX)
		json_object_del(object, name);
	else if (json_object_set_new(object, name, json_integer((json_int_t)place_of[first])))
		return no_memory(m);
	return STATUS_OK;
}

static enum status take_cases(struct merge *m, struct record *sub, unsigned rank)
{
	const struct record_node *n = &m->r->node[m->node_of[rank]];
	size_t *place_of = malloc((sub->case_count + 1) * sizeof(*place_of));
	enum status st = place_of ? STATUS_OK : no_memory(m);
	unsigned step = m->step;

	for (size_t i = 0; i < sub->case_count && !st; i++) {
		struct record_case *c = &sub->cases[i];
		json_t *plan = (json_t *)c->plan;

		place_of[i] = SIZE_MAX;
		if (json_object_get(plan, "team")) {
			st = add_part(m, c, rank);
			continue;
		}
		retarget(n, plan);
		st = place(m, c, rank, "");
		if (!st && said_before(m, c))
			continue;
		if (!st)
			st = renumber(m, plan, "again", place_of, i);
		if (!st)
			st = renumber(m, json_object_get(plan, "follows"), "case", place_of, i);
		if (st)
			break;
		shift_case(n, c);
		c->step += step;
		if (c->step >= m->step)
			m->step = c->step + 1;
		place_of[i] = m->r->case_count;
		st = add_case(m, c);
		if (!st) { /* the merged record owns it now */
			c->phase = NULL;
			c->phase_count = 0;
		}
	}
	free(place_of);
	return st;
}

/* The lowest rank of a node samples for the whole node; adds further series of other ranks. */
static enum status take_series(struct merge *m, struct record_node *n, struct record *sub)
{
	bool first = n == m->r->node;
	struct series **array = first ? &m->r->series : &n->series;
	size_t *count = first ? &m->r->series_count : &n->series_count;

	for (size_t i = 0; i < sub->series_count; i++) {
		struct series *s = &sub->series[i], *into = NULL;
		size_t before = *count;
		enum status st = series_find(&into, array, count, s->source, s->signal, s->kind, m->err);

		if (st == STATUS_NO_RESOURCE)
			return st;
		error_clear(m->err);
		if (st || *count == before)
			continue;
		for (size_t k = 0; k < s->count; k++)
			s->t_ns[k] = record_clock_zero(n, s->t_ns[k]);
		*into = *s;
		*s = (struct series){0};
	}
	return STATUS_OK;
}

static uint64_t on_axis(const void *node, uint64_t t_ns)
{
	return record_clock_zero(node, t_ns);
}

/* ---- a rank without a journal ---- */

/* Makes the lost rank's case from rank 0's. Do not free *c. */
static enum status lost_case(struct merge *m, struct record_case *c, const struct record_case *own,
			     unsigned rank, const char *why)
{
	const struct record_node *n = &m->r->node[m->node_of[rank]];
	json_t *plan = json_deep_copy(own->plan);
	char part[24] = "";
	enum status st;

	if (!plan || json_array_append_new(m->r->lent, plan))
		return no_memory(m);
	json_object_del(plan, "gpus"); /* the lost rank's GPUs are not known */
	json_object_del(plan, "where");
	if (n->ranks > 1)
		snprintf(part, sizeof(part), "rank-%u/", rank);
	*c = *own;
	c->plan = plan;
	st = place(m, c, rank, part);
	c->step = m->step;
	c->begun = false;
	c->ended = false;
	c->ending = ENDING_NOT_RUN;
	c->status = STATUS_UNAVAILABLE;
	c->cause = CAUSE_TEAM_LOST;
	snprintf(c->text, sizeof(c->text), "no result from rank %u on %s: %.300s", rank, n->name, why);
	c->t0_ns = c->t1_ns = 0;
	c->phase = NULL;
	c->phase_count = c->rank_count = 0;
	c->ranks = NULL;
	return st;
}

/* All ranks have the same suite, so the lost rank had the same cases as rank 0. Only the lowest rank of a
 * node has its CPU cases and readings. */
static enum status lose_rank(struct merge *m, unsigned rank, const char *why)
{
	const struct record_node *n = &m->r->node[m->node_of[rank]];
	enum status st = STATUS_OK;

	for (size_t i = 0; i < m->own && !st; i++) {
		const struct record_case own = m->r->cases[i]; /* the array moves */
		struct record_case c;

		if (own.skipped || json_object_get(own.plan, "team") || json_object_get(own.plan, "again") ||
		    json_object_get(own.plan, "follows") ||
		    (n->leader != rank && strncmp(own.target, "gpu", 3)))
			continue;
		st = lost_case(m, &c, &own, rank, why);
		if (!st)
			st = add_case(m, &c);
	}
	m->step++;
	return st;
}

/* ---- all ranks ---- */

static enum status take_whole(struct merge *m, struct record *sub, unsigned rank)
{
	struct record_node *n = &m->r->node[m->node_of[rank]];
	enum status st = take_machine(m, n, sub->machine);

	if (sub->cut_bytes)
		not_whole(n, NODE_CUT, rank, "its journal ends early");
	else if (!sub->closed)
		not_whole(n, NODE_CUT, rank, "its journal was not closed");
	if (!st && json_array_append(m->r->lent, sub->plan))
		st = no_memory(m);
	if (!st)
		st = take_cases(m, sub, rank);
	if (!st)
		st = take_series(m, n, sub);
	return st ? st
		  : health_join(n == m->r->node ? &m->r->health : &n->health, &sub->health, on_axis, n,
				m->err);
}

static enum status take_rank(struct merge *m, unsigned rank, unsigned *missing)
{
	struct record_node *n = &m->r->node[m->node_of[rank]];
	char dir[PATH_MAX];
	struct error own = {0};
	const char *why = NULL;
	struct record sub;
	enum status st;

	rank_dir_path(dir, sizeof(dir), m->r->dir, n->name, rank);
	st = record_read_alone(&sub, dir, &own);
	if (st == STATUS_NO_RESOURCE)
		return error_set_cause(m->err, st, own.cause, "%s", own.text);
	if (st) /* a message that does not depend on the path of the directory */
		why = st == STATUS_UNAVAILABLE ? "its journal was not received"
					       : "its journal cannot be read";
	else
		why = foreign(m, &sub, rank);
	if (why) {
		not_whole(n, NODE_CUT, rank, why);
		++*missing;
		st = lose_rank(m, rank, why);
	} else {
		st = take_whole(m, &sub, rank);
	}
	record_release(&sub);
	return st;
}

static enum status take_own(struct merge *m)
{
	struct record *r = m->r;
	enum status st = take_machine(m, &r->node[0], r->machine);

	for (size_t i = 0; i < m->own && !st; i++) {
		st = place(m, &r->cases[i], 0, "");
		if (r->cases[i].step >= m->step)
			m->step = r->cases[i].step + 1;
	}
	if (r->cut_bytes || !r->closed)
		not_whole(&r->node[0], NODE_CUT, 0,
			  r->cut_bytes ? "its journal ends early" : "its journal was not closed");
	return st;
}

static enum status take_node(struct merge *m, unsigned node)
{
	struct record_node *n = &m->r->node[node];
	enum status st = STATUS_OK;
	unsigned missing = 0;

	n->first_case = node ? m->r->case_count : 0;
	for (unsigned rank = 1; rank < m->size && !st; rank++)
		if (m->node_of[rank] == node)
			st = take_rank(m, rank, &missing);
	if (missing == n->ranks)
		n->state = NODE_MISSING;
	n->case_count = m->r->case_count - n->first_case;
	return st;
}

enum status record_merge(struct record *r, struct error *err)
{
	struct merge m = {.r = r, .own = r->case_count, .room = r->case_count, .err = err};
	enum status st = record_team(r, &m.node_of, &m.size, err);

	if (!st && m.size) {
		r->lent = json_array();
		st = r->lent ? take_own(&m) : no_memory(&m);
	}
	for (unsigned n = 0; n < r->node_count && !st; n++)
		st = take_node(&m, n);
	if (!st && m.size && r->node[0].machine) { /* includes the GPUs that rank 0 does not see */
		json_decref(r->machine);
		r->machine = json_incref(r->node[0].machine);
	}
	free(m.node_of);
	return st;
}

void record_slice(struct record *out, const struct record *r, unsigned node)
{
	const struct record_node *n = r->node_count ? &r->node[node] : NULL;

	*out = *r;
	out->node = NULL;
	out->node_count = 0;
	if (!n)
		return;
	out->cases = r->cases + n->first_case;
	out->case_count = n->case_count;
	out->machine = n->machine;
	if (node) {
		out->health = n->health;
		out->series = n->series;
		out->series_count = n->series_count;
	}
}
