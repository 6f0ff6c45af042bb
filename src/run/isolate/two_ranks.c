/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation search for launched ranks that groups cannot separate: two ranks in total, two nodes that cannot
 * be compared, or an engine that starts on all ranks at once. An all-gather shows whose part is wrong. Two
 * ranks also measure their own GPUs at the same time, and the results are compared.
 */
#include <stdio.h>
#include "machine/machine.h"
#include "run/isolate/two_gpus.h"
#include "run/suite/target_team.h"
#include "team/control/control.h"

/* ---- work of one rank by itself ---- */

static json_t *works_json(const struct isolate_search_two_row rows[WORKS])
{
	json_t *said = json_object();

	for (unsigned i = 0; i < WORKS; i++)
		if (rows[i].of[0] > 0 || rows[i].wrong[0] || rows[i].late[0])
			json_object_set_new(said, works_words[i],
					    json_pack("{s:f, s:b, s:b}", "rate", rows[i].of[0], "wrong",
						      rows[i].wrong[0], "late", rows[i].late[0]));
	return said;
}

static void works_take(struct isolate_search_two_row rows[WORKS], unsigned member, const json_t *said)
{
	for (unsigned i = 0; i < WORKS; i++) {
		const json_t *one = json_object_get(said, works_words[i]);

		rows[i].of[member] = json_number_value(json_object_get(one, "rate"));
		rows[i].wrong[member] = json_is_true(json_object_get(one, "wrong"));
		rows[i].late[member] = json_is_true(json_object_get(one, "late"));
	}
}

/* A rank without exactly one GPU, or outside the trigger's target, measures nothing. */
static bool own_works(const struct isolate_run_order *o, struct isolate_search_two_row rows[WORKS],
		      unsigned *cases)
{
	const struct target *t = &o->trigger->target;

	*cases = 0;
	return !target_takes(t, o->r->o->rank) || t->gpu_count != 1 ||
	       works_run(o, t->gpu, 1, false, rows, cases);
}

static bool run_works(const struct isolate_run_order *o, struct isolate_search_two_row rows[WORKS],
		      unsigned *cases, json_t **all)
{
	struct error why = {0};

	return own_works(o, rows, cases) && isolate_ranks_figures(o->r, works_json(rows), all, &why);
}

bool isolate_ranks_works(const struct isolate_run_order *o, json_t **all)
{
	struct isolate_search_two_row rows[WORKS] = {{0}};
	unsigned cases;

	return run_works(o, rows, &cases, all);
}

/* ---- rank 0 ---- */

static void each_by_itself(struct isolate_run *h, const uint16_t member[2],
			   struct isolate_search_two_row rows[WORKS])
{
	const struct isolate_run_order o = {.r = h->r,
					    .trigger = h->trigger,
					    .fault = h->fault,
					    .round = ++h->f.round,
					    .repeats = 1,
					    .what = "each of the two by itself"};
	json_t *all = NULL;
	unsigned cases = 0;

	if (isolate_ranks_order(h, &o, json_pack("{s:b}", "works", 1)) && run_works(&o, rows, &cases, &all))
		for (unsigned i = 0; i < 2; i++)
			works_take(rows, i, json_array_get(all, member[i]));
	h->tests += 2 * cases;
	h->waves++;
	json_decref(all);
}

/* Index on this machine of that rank's GPU; -1: the rank is on another node or has not exactly one GPU. */
static int gpu_here(const struct isolate_run *h, unsigned rank)
{
	const struct team_shape *s = control_shape(h->r->o->control);

	if (s->rank[rank].node != s->rank[h->r->o->rank].node || s->rank[rank].gpu_count != 1)
		return -1;
	for (unsigned g = 0; g < machine_gpu_count(h->r->machine); g++)
		if (!strcmp(machine_gpu(h->r->machine, g)->pci, s->rank[rank].pci[0]))
			return (int)g;
	return -1;
}

/* If both GPUs are on this node, rank 0 copies between them while the other ranks wait. */
static void between_both(struct isolate_run *h, const uint16_t member[2],
			 struct isolate_search_two_row rows[WORKS])
{
	struct isolate_run_order o = {.r = h->r, .trigger = h->trigger, .what = "copies between the two"};
	int a = gpu_here(h, member[0]), b = gpu_here(h, member[1]);
	const uint16_t gpu[2] = {(uint16_t)a, (uint16_t)b};
	unsigned cases;

	if (a < 0 || b < 0 || !isolate_run_has_time(h, 1))
		return;
	o.round = ++h->f.round;
	works_run(&o, gpu, 2, true, rows, &cases);
	h->tests += cases;
	h->waves++;
}

static bool goes_on(const struct isolate_run *h)
{
	return !h->r->status && !run_stopping(h->r) && !h->r->team_over.status;
}

static void search_two(struct isolate_run *h, const uint16_t member[2], const struct isolate_run_parts *parts,
		       struct isolate_run_finding *out)
{
	struct isolate_search_two_row rows[WORKS] = {{0}};

	if (goes_on(h) && isolate_run_has_time(h, 1))
		each_by_itself(h, member, rows);
	if (goes_on(h) && !works_finding(h, rows, member, out))
		between_both(h, member, rows);
	if (!works_finding(h, rows, member, out) && !suspect_finding(h, member, 2, out))
		two_indistinguishable(h, rows, parts, member, out);
}

/* The ranks that take part, in ascending order. */
static unsigned members_of(const struct isolate_search_layout *l, uint16_t member[ISOLATE_SEARCH_MEMBERS])
{
	unsigned count = 0;

	for (unsigned r = 0; r < l->ranks; r++)
		if (l->node_of[r] != ISOLATE_SEARCH_NO_MEMBER)
			member[count++] = (uint16_t)r;
	return count;
}

bool isolate_ranks_pair(struct isolate_run *h, const struct isolate_search_start *s,
			struct isolate_run_finding *out)
{
	bool once = h->trigger->engine->once, wrong = h->fault == ISOLATE_SEARCH_WRONG;
	uint16_t member[ISOLATE_SEARCH_MEMBERS];
	unsigned count = members_of(&h->team.layout, member);
	struct isolate_run_parts parts;

	if (!once && count != 2 && (!wrong || isolate_search_team_groups(&h->team)))
		return false;
	if (!wrong && !isolate_search_worth(s->whole, s->expected, s->sigma))
		return false; /* search_team.c then reports this */
	out->of = "rank";
	parts_run(h, &parts);
	if (parts_finding(h, &parts, member, count, out))
		return true;
	if (count == 2 && !once)
		search_two(h, member, &parts, out);
	else if (!suspect_finding(h, member, count, out))
		snprintf(out->why, sizeof(out->why), "%s, and no groups of its ranks can do it",
			 parts.known ? "the parts of an all-gather show no bad rank"
				     : "an all-gather could not be run");
	isolate_ranks_over(h);
	if (out->found == ISOLATE_SEARCH_NOBODY && *h->stopped)
		text_copy(out->why, sizeof(out->why), h->stopped);
	return true;
}
