/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BLAS kernel search. If a GEMM on the CPU stays below the threshold that its ceiling sets, other kernels
 * run it. First come the library's other kernels and other libraries with the same functions
 * (engine->settings), then the probe's other engines. Each attempt has a worker of its own, because a library
 * reads its environment when it is loaded. The first attempt that reaches the threshold ends the search, and
 * the next low case begins with it. The journal records the attempts as an `extend` with `follows`; the judge
 * reads them. Each low case has its own limit of attempts, so a case that nothing helps does not use up those
 * of the next. A setting that helped no earlier case of the same kind is not tried again. No search begins
 * after the run has searched for SEARCH_NS.
 */
#include <errno.h>
#include <math.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "run/probe.h"
#include "run/plan/memory_need.h"
#include "run/supervisor/supervisor.h"

enum {
	SETTINGS_MAX = 16,
	CASES_MOST = 16, /* attempts for one low case, about 1.5 s each */
	/* smallest dimension; below it kernels differ in their edges, above it in their loops */
	SMALL = 256
};
#define SEARCH_NS 300000000000u /* limit per run: far more than a busy machine needs for a built-in suite */

struct tries {
	struct run *r;
	const struct bench_case *c; /* the low case */
	double pass;
	unsigned round, cases; /* attempts for this case, including those before a resume */
	uint64_t began_ns;
	struct engine_setting setting[SETTINGS_MAX];
	unsigned count;
	char helped[ENGINE_SETTING]; /* the setting that helped an earlier case */
};

static bool is_low(const struct run *r, const struct bench_case *c, double *pass)
{
	const struct case_outcome *n = &r->note[c->id];

	*pass = r->o->expected[c->id].ceiling_pass;
	return c->target.kind == TARGET_CPU && c->engine && c->engine->settings && !c->team &&
	       c->order != STEP_TOGETHER && c->require != REQUIRE_NOTHING && n->done && !n->status &&
	       n->ceiling_ratio > 0 && n->ceiling_ratio < *pass;
}

/* A share above the limit does not count: the library's threads spin while they wait, and so slow the
 * ceiling. */
static bool reaches_mark(const struct run *r, unsigned id, const struct case_outcome *n)
{
	const struct expected_before_run *e = &r->o->expected[id];

	return n->done && !n->status && n->ceiling_ratio >= e->ceiling_pass &&
	       n->ceiling_ratio <= e->ceiling_above;
}

static bool may_begin(const struct tries *t)
{
	return !run_stopping(t->r) && !t->r->status && t->cases < CASES_MOST &&
	       clock_now_ns(t->r->o->clock) - t->began_ns < SEARCH_NS;
}

/* ---- attempts so far ---- */

static bool keep(struct run *r, unsigned id, const char *what, bool reached)
{
	struct run_try *more = realloc(r->tries, (r->try_count + 1) * sizeof(*more));

	if (!more)
		return false;
	r->tries = more;
	more[r->try_count] = (struct run_try){.id = id, .reached = reached};
	text_copy(more[r->try_count++].what, sizeof(more->what), what);
	return true;
}

enum status blas_search_take_up(struct run *r, const struct record_case *c, struct error *err)
{
	const char *what = record_tries(c);
	struct case_outcome n = {0};
	json_int_t id = json_integer_value(json_object_get(json_object_get(c->plan, "follows"), "case"));

	if (!r->o->expected || !what || !c->ended || id < 0 || (size_t)id >= r->plan->case_count)
		return STATUS_OK;
	/* an attempt that was stopped has no result */
	if (c->ending == ENDING_CANCELLED || c->ending == ENDING_NOT_RUN || c->ending == ENDING_CUT)
		return STATUS_OK;
	case_outcome_record(&n, c);
	if (!keep(r, (unsigned)id, what, reaches_mark(r, id, &n)))
		return error_errno(err, ENOMEM, "attempts of the BLAS kernel search");
	return STATUS_OK;
}

static const struct bench_case *planned(const struct run *r, unsigned id)
{
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++)
			if (r->plan->steps[i].cases[k].id == id)
				return &r->plan->steps[i].cases[k];
	return NULL;
}

/* "bf16 4 small": cases of one kind probably use the same kernels of a library. */
static void kind_of(const struct run *r, const struct bench_case *c, char *out, size_t size)
{
	static const char *const sides[] = {"m", "n", "k"};
	const json_t *options;
	json_t *body = case_json(c, r->machine);
	double least = HUGE_VAL;
	const char *type, *threads;

	options = json_object_get(body, "options");
	for (size_t i = 0; i < 3; i++) {
		const char *text = json_string_value(json_object_get(options, sides[i]));

		if (text)
			least = fmin(least, strtod(text, NULL));
	}
	type = json_string_value(json_object_get(options, "type"));
	threads = json_string_value(json_object_get(options, "threads"));
	snprintf(out, size, "%s %s %s %s %s", c->probe->name, c->engine->name, type ? type : "",
		 threads ? threads : "", least < SMALL ? "small" : "large");
	json_decref(body);
}

/* Whether `what` was tried for this case, or for another case of the same kind without success. */
static bool was_tried(const struct tries *t, const char *what)
{
	char kind[96], other[96];

	kind_of(t->r, t->c, kind, sizeof(kind));
	for (size_t i = 0; i < t->r->try_count; i++) {
		const struct run_try *one = &t->r->tries[i];
		const struct bench_case *of = planned(t->r, one->id);

		if (strcmp(one->what, what) || !of || (one->reached && one->id != t->c->id))
			continue;
		kind_of(t->r, of, other, sizeof(other));
		if (one->id == t->c->id || !strcmp(kind, other))
			return true;
	}
	return false;
}

/* Takes over the attempts before a resume. True: one of them reached the threshold. */
static bool is_settled(struct tries *t)
{
	bool reached = false;

	t->cases = 0;
	for (size_t i = 0; i < t->r->try_count; i++)
		if (t->r->tries[i].id == t->c->id) {
			t->cases++;
			reached = reached || t->r->tries[i].reached;
		}
	return reached;
}

/* Runs the attempt as evidence for the low case. True: it reaches the threshold. */
static bool reaches(struct tries *t, struct bench_case *c, const char *tries)
{
	struct step step = {.cases = c, .count = 1};
	const struct case_outcome *n;
	bool reached;

	c->order = STEP_IN_ORDER;
	t->cases++;
	if (!run_extend(t->r, &step, "follows",
			json_pack("[{s:i, s:i, s:s, s:s}]", "case", (int)t->c->id, "round", (int)++t->round,
				  "why", "other kernels", "tries", tries)))
		return false;
	n = &t->r->note[c->id];
	reached = reaches_mark(t->r, t->c->id, n);
	(void)keep(t->r, t->c->id, tries, reached); /* out of memory: the attempt may be repeated */
	return reached;
}

static bool try_setting(struct tries *t, const char *setting)
{
	struct bench_case c = *t->c; /* the plan still owns its members */

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
		memory_need_estimate(&c, t->r->machine);
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

	t->round = t->cases;
	t->count =
		t->c->engine->settings(t->r->machine, t->r->note[t->c->id].kernels, t->setting, SETTINGS_MAX);
	for (unsigned i = 0; i < t->count; i++)
		if (!strcmp(t->setting[i].text, t->helped))
			first = i;
	for (unsigned i = 0; i < t->count && may_begin(t); i++) {
		const char *setting = t->setting[i ? (i <= first ? i - 1 : i) : first].text;

		if (!was_tried(t, setting) && try_setting(t, setting)) {
			text_copy(t->helped, sizeof(t->helped), setting);
			return;
		}
	}
	for (const struct engine *const *e = p->engines; *e && may_begin(t); e++)
		if (*e != t->c->engine && ((*e)->targets & TARGET_CPU) && !was_tried(t, (*e)->name) &&
		    try_engine(t, *e))
			return;
}

void blas_search_round(struct run *r)
{
	struct tries t = {.r = r, .began_ns = clock_now_ns(r->o->clock)};

	if (!r->o->expected)
		return;
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			t.c = &r->plan->steps[i].cases[k];
			if (is_low(r, t.c, &t.pass) && !is_settled(&t) && may_begin(&t))
				try_all(&t);
		}
}
