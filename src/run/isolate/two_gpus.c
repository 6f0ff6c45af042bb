/* SPDX-License-Identifier: Apache-2.0 */
/* Isolation search between two GPUs of a node. It compares the work that each does by itself and the two
 * directions between them, and it checks whose part of an all-gather is wrong. */
#include "run/isolate/two_gpus.h"
#include <errno.h>
#include <stdio.h>
#include "machine/machine.h"
#include "run/suite/suite.h"

enum { PARTS_REPEATS = 2 };

/* ---- the compared work ---- */

const char *const works_words[WORKS] = {"link", "memory", "product", "store", "load"};

/* Found by probe and engine. The kernel of a store runs on the sender, that of a load on the receiver. A slow
 * GPU slows its own kernels. */
static const struct {
	const char *probe, *engine, *what;
	bool receiver; /* the second GPU of its target does the work */
} works[WORKS] = {
	[WORK_LINK] = {"p2p", "driver", "copies to the other", false},
	[WORK_MEMORY] = {"memory", "own", "reads its own memory", false},
	[WORK_GEMM] = {"gemm", "cublaslt", "runs a GEMM", false},
	[WORK_STORE] = {"p2p", "store", "writes the other's memory", false},
	[WORK_LOAD] = {"p2p", "load", "reads the other's memory", true},
};

static enum status works_plan(const struct run *r, const uint16_t *gpu, unsigned count, bool between,
			      struct plan *p, struct error *err)
{
	static const char own[] =
		"  - {probe: memory, engine: own, target: [%s], options: {op: read}, phases: burst, limit: "
		"20s, require: nothing}\n"
		"  - {probe: gemm, engine: cublaslt, target: [%s], options: {type: bf16, m: 4096, n: 4096, k: "
		"4096}, phases: burst, limit: 20s, require: nothing}\n";
	static const char both[] =
		"  - {probe: p2p, engine: [driver, store, load], target: [gpu%u>gpu%u, gpu%u>gpu%u], phases: "
		"burst, limit: 20s, require: nothing}\n";
	const struct plan_options wishes = {.beside = r->o->beside};
	struct text t = {0}, names = {0};
	struct suite *s = NULL;
	enum status st;

	for (unsigned i = 0; i < count; i++)
		text_addf(&names, "%sgpu%u", i ? ", " : "", gpu[i]);
	text_add(&t, "name: isolation\ncases:\n");
	if (between)
		text_addf(&t, both, gpu[0], gpu[1], gpu[1], gpu[0]);
	else
		text_addf(&t, own, text_str(&names), text_str(&names));
	st = suite_parse(&s, "isolation", text_str(&t), t.size, err);
	if (!st)
		st = plan_build(p, s, r->machine, r->registry, &wishes, err);
	suite_free(s);
	text_release(&names);
	text_release(&t);
	return st;
}

static void take_note(struct isolate_search_two_row rows[WORKS], const struct case_outcome *n,
		      const struct bench_case *c, uint16_t first)
{
	for (unsigned i = 0; i < WORKS; i++) {
		unsigned member = c->target.gpu[works[i].receiver] != first;

		if (strcmp(works[i].probe, c->probe->name) || strcmp(works[i].engine, c->engine->name))
			continue;
		rows[i].wrong[member] = n->done && n->status == STATUS_MISMATCH;
		rows[i].late[member] = !n->done && n->cause == CAUSE_TIMED_OUT;
		if (n->done && !n->status)
			rows[i].of[member] = n->rate;
	}
}

/* The cases of one step, which the plan still owns. */
static bool run_step(const struct isolate_run_order *o, struct step *step, uint16_t first,
		     struct isolate_search_two_row rows[WORKS])
{
	json_t *marks = json_array();

	for (size_t i = 0; i < step->count; i++)
		json_array_append_new(marks, isolate_run_mark(o));
	if (!run_extend(o->r, step, "follows", marks))
		return false;
	for (size_t i = 0; i < step->count; i++)
		take_note(rows, &o->r->note[step->cases[i].id], &step->cases[i], first);
	return true;
}

bool works_run(const struct isolate_run_order *o, const uint16_t *gpu, unsigned count, bool between,
	       struct isolate_search_two_row rows[WORKS], unsigned *cases)
{
	struct run *r = o->r;
	struct plan p = {0};
	bool on;

	*cases = 0;
	for (unsigned i = 0; i < WORKS; i++) {
		rows[i].what = works[i].what;
		rows[i].link = i == WORK_LINK;
		rows[i].alone = i == WORK_MEMORY || i == WORK_GEMM;
	}
	r->status = works_plan(r, gpu, count, between, &p, r->err);
	on = !r->status;
	for (size_t i = 0; on && i < p.count; i++) {
		on = run_step(o, &p.steps[i], gpu[0], rows);
		*cases += (unsigned)p.steps[i].count;
	}
	plan_release(&p);
	return on;
}

static void place(const struct isolate_run *h, unsigned member, struct isolate_run_finding *out)
{
	struct isolate_run_place p = h->name(h, member);

	text_copy(out->place, sizeof(out->place), p.place);
	text_copy(out->pci, sizeof(out->pci), p.pci);
}

/* "gpu0>gpu1", "rank 0 on node-a > rank 1 on node-b" */
static void place_way(const struct isolate_run *h, unsigned from, unsigned to,
		      struct isolate_run_finding *out)
{
	struct isolate_run_place a = h->name(h, from), b = h->name(h, to);

	snprintf(out->place, sizeof(out->place), "%s%s%s", a.place, h->trigger->team ? " > " : ">", b.place);
	text_copy(out->pci, sizeof(out->pci), a.pci);
}

bool works_finding(const struct isolate_run *h, const struct isolate_search_two_row rows[WORKS],
		   const uint16_t member[2], struct isolate_run_finding *out)
{
	struct isolate_search_two two;
	double percent;

	isolate_search_two(&two, rows, WORKS);
	percent = 100 * two.loss;
	out->found = two.found;
	if (two.found == ISOLATE_SEARCH_NOBODY)
		return false;
	if (two.found == ISOLATE_SEARCH_PAIR)
		place_way(h, member[two.a], member[!two.a], out);
	else
		place(h, member[two.a], out);
	if (two.shows->wrong[two.a] && two.found == ISOLATE_SEARCH_PAIR)
		snprintf(out->why, sizeof(out->why),
			 "copies in this direction arrive wrong, copies back arrive right");
	else if (two.shows->wrong[two.a])
		snprintf(out->why, sizeof(out->why), "by itself it %s with wrong results, the other does not",
			 two.shows->what);
	else if (two.shows->late[two.a])
		snprintf(out->why, sizeof(out->why),
			 "by itself it exceeds the time limit, the other does not: it %s", two.shows->what);
	else if (two.found == ISOLATE_SEARCH_PAIR)
		snprintf(out->why, sizeof(out->why),
			 "copies in this direction are %.0f %% slower than copies back", percent);
	else
		snprintf(out->why, sizeof(out->why), "by itself it %s %.0f %% more slowly than the other",
			 two.shows->what, percent);
	return true;
}

/* ---- parts of an all-gather ---- */

/* A part that is wrong on more than one member was wrong at its source. A part that is wrong on one other
 * member only became wrong on the way. */
static void take_parts(struct isolate_run_parts *p, const struct case_outcome *n)
{
	unsigned from = (unsigned)n->suspect - 1;
	bool on_the_way = n->wrong_ranks == 1 && n->wrong_rank != from, first = !p->seen;

	if (!n->done || n->status != STATUS_MISMATCH || !n->wrong_ranks)
		return;
	if (n->suspect < 1 || (!first && from != p->from)) { /* parts of several members are wrong */
		p->found = ISOLATE_SEARCH_NOBODY;
	} else if (!first && (!on_the_way || n->wrong_rank != p->at)) {
		p->found = ISOLATE_SEARCH_MEMBER;
	} else if (first) {
		p->found = on_the_way ? ISOLATE_SEARCH_PAIR : ISOLATE_SEARCH_MEMBER;
		p->at = n->wrong_rank;
	}
	p->from = from;
	p->seen = n->wrong_ranks > p->seen ? n->wrong_ranks : p->seen;
}

void parts_run(struct isolate_run *h, struct isolate_run_parts *out)
{
	unsigned first;

	*out = (struct isolate_run_parts){.found = ISOLATE_SEARCH_NOBODY};
	if (h->fault != ISOLATE_SEARCH_WRONG || strcmp(h->trigger->probe->name, "collective") ||
	    !isolate_run_has_time(h, PARTS_REPEATS))
		return;
	text_copy(h->f.what, sizeof(h->f.what), "an all-gather, to find whose part is wrong");
	h->f.round = 1;
	h->f.traffic = ISOLATE_SEARCH_PARTS;
	if (!isolate_run_tests(h, PARTS_REPEATS, &first))
		return;
	out->known = true;
	for (unsigned k = 0; k < PARTS_REPEATS; k++) {
		const struct case_outcome *n = &h->r->note[first + k];

		take_parts(out, n);
		out->known = out->known && n->done && (!n->status || n->status == STATUS_MISMATCH);
	}
}

bool parts_finding(const struct isolate_run *h, const struct isolate_run_parts *p, const uint16_t *member,
		   unsigned count, struct isolate_run_finding *out)
{
	if (p->found == ISOLATE_SEARCH_NOBODY || p->from >= count || p->at >= count)
		return false;
	out->found = p->found;
	if (p->found == ISOLATE_SEARCH_PAIR) {
		place_way(h, member[p->from], member[p->at], out);
		snprintf(out->why, sizeof(out->why),
			 "in an all-gather its part is right on itself and arrives wrong on the other");
		return true;
	}
	place(h, member[p->from], out);
	if (count == 2)
		snprintf(out->why, sizeof(out->why),
			 "its part of an all-gather is wrong, the other part is right");
	else
		snprintf(out->why, sizeof(out->why),
			 "its part of an all-gather is wrong on %u of %u members, and no other part is wrong",
			 p->seen, count);
	return true;
}

bool suspect_finding(const struct isolate_run *h, const uint16_t *member, unsigned count,
		     struct isolate_run_finding *out)
{
	const struct case_outcome *n = &h->r->note[h->trigger->id];

	if (h->fault != ISOLATE_SEARCH_WRONG || n->suspect < 1 || (unsigned)n->suspect > count ||
	    n->wrong_ranks < 2)
		return false;
	out->found = ISOLATE_SEARCH_MEMBER;
	place(h, member[n->suspect - 1], out);
	snprintf(out->why, sizeof(out->why), "the error of the sum is its share");
	return true;
}

void two_indistinguishable(const struct isolate_run *h, const struct isolate_search_two_row rows[WORKS],
			   const struct isolate_run_parts *parts, const uint16_t member[2],
			   struct isolate_run_finding *out)
{
	struct isolate_run_place a = h->name(h, member[0]), b = h->name(h, member[1]);
	bool works_known = false;

	for (unsigned i = 0; i < WORKS; i++)
		works_known = works_known || (rows[i].of[0] > 0 && rows[i].of[1] > 0);
	snprintf(out->why, sizeof(out->why), "%s and %s cannot be told apart: %s%s", a.place, b.place,
		 works_known ? "each does its own work alike" : "their own work could not be measured",
		 parts->known ? ", and in the parts of an all-gather" : "");
}

/* ---- two GPUs of a node ---- */

void isolate_run_two(struct isolate_run *h, struct isolate_run_finding *out)
{
	static const uint16_t member[2] = {0, 1};
	const uint16_t *gpu = h->trigger->target.gpu;
	const struct isolate_run_order o = {
		.r = h->r, .trigger = h->trigger, .what = "each of the two by itself"};
	struct isolate_search_two_row rows[WORKS] = {{0}};
	struct isolate_run_parts parts;
	bool on = true;

	isolate_run_all(&h->f, 2, "");
	parts_run(h, &parts);
	if (parts_finding(h, &parts, member, 2, out))
		return;
	for (unsigned between = 0; between < 2 && on && !h->r->status && !run_stopping(h->r); between++) {
		struct isolate_run_order round = o;
		unsigned cases;

		round.round = ++h->f.round;
		on = isolate_run_has_time(h, 1) && works_run(&round, gpu, 2, between, rows, &cases);
		h->tests += on ? cases : 0;
		h->waves += on;
	}
	if (!works_finding(h, rows, member, out) && !suspect_finding(h, member, 2, out))
		two_indistinguishable(h, rows, &parts, member, out);
}
