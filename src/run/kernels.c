/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If a product on the CPU stays below the mark from which its ceiling lets it pass, it is done again by other
 * means. First come the library's other kernels and other libraries with the same functions
 * (engine->settings), then the probe's other engines. Each runs in a worker of its own, because a library
 * reads its environment when it is loaded. The first that reaches the mark ends the search, and the next low
 * case begins with it. The cases are journaled as an `extend` with `follows`; the judge reads them. Their
 * number is bounded, not their time: what a run finds must not hang on how busy the machine is.
 */
#include "core/text.h"
#include "machine/machine.h"
#include "run/case_build.h"
#include "run/need.h"
#include "run/supervisor.h"

enum { SETTINGS_MAX = 16, CASES_MOST = 16 /* of a run, about 1.5 s each */ };

struct tries {
	struct run *r;
	const struct bench_case *c; /* the low one */
	double pass;
	unsigned round, cases; /* attempts for this case, in this run */
	struct engine_setting setting[SETTINGS_MAX];
	unsigned count;
	char helped[ENGINE_SETTING]; /* the setting that helped an earlier case */
};

static bool is_low(const struct run *r, const struct bench_case *c, double *pass)
{
	const struct note *n = &r->note[c->id];

	*pass = r->o->expected[c->id].ceiling_pass;
	return c->target.kind == TARGET_CPU && c->engine && c->engine->settings && !c->team &&
	       c->order != STEP_TOGETHER && c->require != REQUIRE_NOTHING && n->done && !n->status &&
	       n->ceiling_ratio > 0 && n->ceiling_ratio < *pass;
}

static bool may_begin(const struct tries *t)
{
	return !run_stopping(t->r) && !t->r->status && t->cases < CASES_MOST;
}

/* Runs it as evidence of the low case. True: it reaches the mark. */
static bool reaches(struct tries *t, struct bench_case *c, const char *tries)
{
	struct step step = {.cases = c, .count = 1};
	const struct note *n;

	c->order = STEP_IN_ORDER;
	t->cases++;
	if (!run_extend(t->r, &step, "follows",
			json_pack("[{s:i, s:i, s:s, s:s}]", "case", (int)t->c->id, "round", (int)++t->round,
				  "why", "other kernels", "tries", tries)))
		return false;
	n = &t->r->note[c->id];
	return n->done && !n->status && n->ceiling_ratio >= t->pass;
}

static bool try_setting(struct tries *t, const char *setting)
{
	struct bench_case c = *t->c; /* what it owns stays the plan's */

	text_copy(c.setting, sizeof(c.setting), setting);
	return reaches(t, &c, setting);
}

static bool try_engine(struct tries *t, const struct engine *e)
{
	json_t *body = case_json(t->c, t->r->machine);
	struct error why = {0};
	struct bench_case c;
	bool reached = false;

	if (!body)
		return false;
	json_object_set_new(body, "engine", json_string(e->name));
	json_object_set_new(body, "group", json_string(e->libs ? e->libs : e->name));
	if (!case_from_json(&c, body, t->r->machine, t->r->registry, &why)) {
		c.work = c.probe->work(t->r->machine, &c.target, c.opts);
		need_estimate(&c, t->r->machine);
		if (!e->supports || !e->supports(t->r->machine, &c.target, c.opts, &why))
			reached = reaches(t, &c, e->name);
		case_release(&c);
	}
	json_decref(body);
	return reached;
}

static void try_all(struct tries *t)
{
	const struct probe *p = t->c->probe;
	unsigned first = 0;

	t->round = 0;
	t->count =
		t->c->engine->settings(t->r->machine, t->r->note[t->c->id].kernels, t->setting, SETTINGS_MAX);
	for (unsigned i = 0; i < t->count; i++)
		if (!strcmp(t->setting[i].text, t->helped))
			first = i;
	for (unsigned i = 0; i < t->count && may_begin(t); i++) {
		const char *setting = t->setting[i ? (i <= first ? i - 1 : i) : first].text;

		if (try_setting(t, setting)) {
			text_copy(t->helped, sizeof(t->helped), setting);
			return;
		}
	}
	for (const struct engine *const *e = p->engines; *e && may_begin(t); e++)
		if (*e != t->c->engine && ((*e)->targets & TARGET_CPU) && try_engine(t, *e))
			return;
}

void kernels_round(struct run *r)
{
	struct tries t = {.r = r};

	if (!r->o->expected || r->tried)
		return;
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			t.c = &r->plan->steps[i].cases[k];
			if (may_begin(&t) && is_low(r, t.c, &t.pass))
				try_all(&t);
		}
}
