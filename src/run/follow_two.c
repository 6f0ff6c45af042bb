/* SPDX-License-Identifier: Apache-2.0 */
#include "run/follow_two.h"
#include <stdio.h>
#include "machine/machine.h"
#include "run/hunt.h"
#include "run/suite.h"

/* ---- the decision ---- */

/* Share by which one is below the other; *slow: which. 0: alike, or not both are known. */
static double below(const struct follow_two_row *row, int *slow)
{
	double loss;

	*slow = row->of[0] < row->of[1] ? 0 : 1;
	if (!(row->of[0] > 0) || !(row->of[1] > 0))
		return 0;
	loss = 1 - row->of[*slow] / row->of[!*slow];
	return loss > FOLLOW_TWO_LEAST ? loss : 0;
}

static void take(struct follow_two *out, enum follow_kind kind, int a, const struct follow_two_row *row,
		 double loss)
{
	*out = (struct follow_two){
		.found = kind, .a = a, .b = kind == FOLLOW_PAIR ? !a : -1, .shows = row, .loss = loss};
}

static bool take_wrong(struct follow_two *out, const struct follow_two_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].wrong[0] != rows[i].wrong[1]) {
			take(out, rows[i].link ? FOLLOW_PAIR : FOLLOW_MEMBER, rows[i].wrong[0] ? 0 : 1,
			     &rows[i], 1);
			return true;
		}
	return false;
}

/* The row of this kind that shows most; none where rows contradict each other. */
static bool take_slow(struct follow_two *out, const struct follow_two_row *rows, size_t count, bool link,
		      bool alone)
{
	const struct follow_two_row *shows = NULL;
	double most = 0;
	int who = 0, slow = 0;

	for (size_t i = 0; i < count; i++) {
		double loss = rows[i].link == link && rows[i].alone == alone ? below(&rows[i], &slow) : 0;

		if (loss > 0 && shows && slow != who)
			return false;
		if (loss > most) {
			most = loss;
			who = slow;
			shows = &rows[i];
		}
	}
	if (shows)
		take(out, link ? FOLLOW_PAIR : FOLLOW_MEMBER, who, shows, most);
	return shows;
}

void follow_two(struct follow_two *out, const struct follow_two_row *rows, size_t count)
{
	*out = (struct follow_two){.found = FOLLOW_NOBODY, .a = -1, .b = -1};
	if (!take_wrong(out, rows, count) && !take_slow(out, rows, count, false, true) &&
	    !take_slow(out, rows, count, true, false))
		take_slow(out, rows, count, false, false);
}

/* ---- the cases that it asks for ---- */

enum {
	ROW_LINK,
	ROW_MEMORY,
	ROW_PRODUCT,
	ROW_STORE,
	ROW_LOAD,
	WORKS,
	ROW_GIVES = WORKS, /* what a GPU puts in is wrong wherever it is seen */
	ROW_ARRIVES,	   /* what comes from it is wrong at the other alone */
	ROWS
};
enum { PARTS_REPEATS = 2 };

/* By probe and engine. Kernels of stores are the sender's, those of loads the receiver's: whose they are
 * slows them. */
static const struct {
	const char *probe, *engine, *what;
	bool receiver; /* the second GPU of its target does the work */
} works[WORKS] = {
	[ROW_LINK] = {"p2p", "driver", "is sent to the other", false},
	[ROW_MEMORY] = {"memory", "own", "reads its own memory", false},
	[ROW_PRODUCT] = {"gemm", "cublaslt", "multiplies", false},
	[ROW_STORE] = {"p2p", "store", "writes the other's memory", false},
	[ROW_LOAD] = {"p2p", "load", "reads the other's memory", true},
};

static enum status local_plan(const struct hunt *h, struct plan *p, struct error *err)
{
	static const char cases[] =
		"name: isolation\n"
		"cases:\n"
		"  - {probe: memory, engine: own, target: [gpu%u, gpu%u], options: {op: read}, phases: "
		"burst, limit: 20s, require: nothing}\n"
		"  - {probe: gemm, engine: cublaslt, target: [gpu%u, gpu%u], options: {type: bf16, m: 4096, "
		"n: 4096, k: 4096}, phases: burst, limit: 20s, require: nothing}\n"
		"  - {probe: p2p, engine: [driver, store, load], target: [gpu%u>gpu%u, gpu%u>gpu%u], "
		"phases: burst, limit: 20s, require: nothing}\n";
	const uint16_t *g = h->trigger->target.gpu;
	const struct plan_wishes wishes = {.beside = h->r->o->beside};
	struct suite *s = NULL;
	struct text t = {0};
	enum status st;

	text_addf(&t, cases, g[0], g[1], g[0], g[1], g[0], g[1], g[1], g[0]);
	st = suite_parse(&s, "isolation", text_str(&t), t.size, err);
	if (!st)
		st = plan_build(p, s, h->r->machine, h->r->registry, &wishes, err);
	suite_free(s);
	text_release(&t);
	return st;
}

static void take_note(struct follow_two_row rows[ROWS], const struct hunt *h, const struct bench_case *c)
{
	const struct note *n = &h->r->note[c->id];

	for (unsigned i = 0; i < WORKS; i++) {
		unsigned whose, member;

		if (strcmp(works[i].probe, c->probe->name) || strcmp(works[i].engine, c->engine->name))
			continue;
		whose = c->target.gpu[works[i].receiver];
		member = whose == h->trigger->target.gpu[0] ? 0 : 1;
		rows[i].what = works[i].what;
		rows[i].link = i == ROW_LINK;
		rows[i].alone = i == ROW_MEMORY || i == ROW_PRODUCT;
		rows[i].wrong[member] = n->done && n->status == STATUS_MISMATCH;
		if (n->done && !n->status)
			rows[i].of[member] = n->rate;
	}
}

/* The cases of one step, which the plan still owns. */
static bool run_local(struct hunt *h, struct step *step, struct follow_two_row rows[ROWS])
{
	json_t *marks = json_array();

	for (size_t i = 0; i < step->count; i++)
		json_array_append_new(marks,
				      json_pack("{s:i, s:i, s:s}", "case", (int)h->trigger->id, "round",
						(int)h->f.round, "why", "each of the two by itself"));
	h->tests += (unsigned)step->count;
	h->waves++;
	if (!run_extend(h->r, step, "follows", marks))
		return false;
	for (size_t i = 0; i < step->count; i++)
		take_note(rows, h, &step->cases[i]);
	return true;
}

/* Each part of an all-gather comes from one rank, and all see it: what both see is what was put in, what the
 * sender does not see came about on the way. */
static void take_parts(struct follow_two_row rows[ROWS], const struct note *n)
{
	unsigned from = (unsigned)n->suspect - 1;
	bool on_the_way = n->wrong_ranks == 1 && n->wrong_rank != from;

	rows[ROW_ARRIVES].link = true;
	if (n->done && n->status == STATUS_MISMATCH && n->wrong_ranks && from < 2)
		rows[on_the_way ? ROW_ARRIVES : ROW_GIVES].wrong[from] = true;
}

/* Whose part is wrong? False: not known, since it could not be run. */
static bool run_parts(struct hunt *h, struct follow_two_row rows[ROWS])
{
	unsigned first;
	bool known = true;

	h->f.round = 0;
	if (h->fault != FOLLOW_WRONG || strcmp(h->trigger->probe->name, "collective") ||
	    !hunt_has_time(h, PARTS_REPEATS))
		return false;
	hunt_all(&h->f, 2, "whose part of an all-gather is wrong");
	h->f.round = 1;
	h->f.traffic = FOLLOW_PARTS;
	if (!hunt_tests(h, PARTS_REPEATS, &first))
		return false;
	for (unsigned k = 0; k < PARTS_REPEATS; k++) {
		const struct note *n = &h->r->note[first + k];

		take_parts(rows, n);
		known = known && n->done && (!n->status || n->status == STATUS_MISMATCH);
	}
	return known;
}

static bool tell_part(const struct follow_two *two, const struct follow_two_row rows[ROWS], unsigned a,
		      unsigned b, struct hunt_finding *out)
{
	if (two->shows == &rows[ROW_GIVES])
		snprintf(out->why, sizeof(out->why),
			 "in an all-gather, where each part comes from one GPU, gpu%u's is wrong, gpu%u's is "
			 "not",
			 a, b);
	else if (two->shows == &rows[ROW_ARRIVES])
		snprintf(out->why, sizeof(out->why),
			 "in an all-gather gpu%u's part arrives wrong on gpu%u, on gpu%u itself it is right",
			 a, b, a);
	else
		return false;
	return true;
}

static void tell(const struct hunt *h, const struct follow_two *two, const struct follow_two_row rows[ROWS],
		 struct hunt_finding *out)
{
	unsigned a = h->trigger->target.gpu[two->a], b = h->trigger->target.gpu[!two->a];
	const char *what = two->shows->what;

	snprintf(out->place, sizeof(out->place), two->found == FOLLOW_PAIR ? "gpu%u>gpu%u" : "gpu%u", a, b);
	text_copy(out->pci, sizeof(out->pci), machine_gpu(h->r->machine, a)->pci);
	out->found = two->found;
	if (tell_part(two, rows, a, b, out))
		return;
	if (two->shows->wrong[two->a] && two->found == FOLLOW_PAIR)
		snprintf(out->why, sizeof(out->why),
			 "copies from gpu%u to gpu%u arrive wrong, those back do not", a, b);
	else if (two->shows->wrong[two->a])
		snprintf(out->why, sizeof(out->why), "by itself gpu%u %s wrongly, gpu%u does not", a, what,
			 b);
	else if (two->found == FOLLOW_PAIR)
		snprintf(out->why, sizeof(out->why),
			 "copies from gpu%u to gpu%u are %.0f %% slower than back", a, b, 100 * two->loss);
	else
		snprintf(out->why, sizeof(out->why), "by itself gpu%u %s %.0f %% more slowly than gpu%u", a,
			 what, 100 * two->loss, b);
}

/* Nothing that each does by itself shows it; what was wrong may still bear a rank's mark. */
static void tell_suspect(const struct hunt *h, bool parts, struct hunt_finding *out)
{
	const struct note *n = &h->r->note[h->trigger->id];
	int suspect = n->suspect;
	unsigned gpu;

	snprintf(out->why, sizeof(out->why),
		 "two GPUs, alike in what each does by itself and in both directions between them%s: one of "
		 "them, or "
		 "their link",
		 parts ? ", and in the parts of an all-gather" : "");
	if (h->fault != FOLLOW_WRONG || suspect < 1 || suspect > 2 || n->wrong_ranks < 2)
		return;
	gpu = h->trigger->target.gpu[suspect - 1];
	out->found = FOLLOW_MEMBER;
	snprintf(out->place, sizeof(out->place), "gpu%u", gpu);
	text_copy(out->pci, sizeof(out->pci), machine_gpu(h->r->machine, gpu)->pci);
	snprintf(out->why, sizeof(out->why),
		 "what is wrong differs by what gpu%u should have put in; with two GPUs no group is without "
		 "it",
		 gpu);
}

/* What each does by itself, and the two directions. */
static void run_works(struct hunt *h, struct follow_two_row rows[ROWS])
{
	struct plan p = {0};
	bool on = true;

	h->f.round++;
	h->r->status = local_plan(h, &p, h->r->err);
	for (size_t i = 0; on && i < p.count && hunt_has_time(h, 1); i++)
		on = run_local(h, &p.steps[i], rows);
	plan_release(&p);
}

void hunt_two(struct hunt *h, struct hunt_finding *out)
{
	struct follow_two_row rows[ROWS] = {{0}};
	struct follow_two two;
	bool parts = run_parts(h, rows);

	follow_two(&two, rows, ROWS);
	if (two.found == FOLLOW_NOBODY && !h->r->status && !run_stopping(h->r)) {
		run_works(h, rows);
		follow_two(&two, rows, ROWS);
	}
	if (two.found == FOLLOW_NOBODY)
		tell_suspect(h, parts, out);
	else
		tell(h, &two, rows, out);
}
