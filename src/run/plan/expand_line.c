/* SPDX-License-Identifier: Apache-2.0 */
/* Turns one choice of a suite's line into cases: on which engine, for how long, or why it is skipped. Pure.
 */
#include <math.h>
#include "core/text/text.h"
#include "machine/machine.h"
#include "run/plan/rank_layout.h"
#include "run/plan/memory_need.h"
#include "run/timing/phases.h"
#include "run/plan/builder.h"
#include "run/suite/target_team.h"

/* windows that run together must overlap completely, so they have a fixed length */
#define TOGETHER_SECONDS 2.0

void plan_case_skip(struct bench_case *c, enum status status, enum cause cause, const char *reason)
{
	c->skip = status;
	c->skip_cause = cause;
	text_copy(c->skip_reason, sizeof(c->skip_reason), reason);
}

/* Skips a case that cannot run now although its engine supports it, or notes who else uses its GPU. */
static void check_circumstances(const struct plan_builder *b, struct bench_case *c)
{
	char reason[160];

	if (c->probe->kind == PROBE_READING)
		return;
	for (unsigned i = 0; i < c->target.gpu_count && !*c->beside; i++)
		if (machine_is_live(b->machine) &&
		    gpu_busy(machine_gpu(b->machine, c->target.gpu[i]), reason, sizeof(reason)))
			text_copy(c->beside, sizeof(c->beside), reason);
	if (!machine_is_live(b->machine))
		plan_case_skip(c, STATUS_UNSUPPORTED, CAUSE_RECORDED, "a recorded machine is never measured");
	else if (*c->beside && !(b->wishes && b->wishes->beside))
		plan_case_skip(c, STATUS_UNAVAILABLE, CAUSE_BUSY, c->beside);
}

static void fill_times(const struct plan_builder *b, struct bench_case *c, const struct plan_choice *k)
{
	double wish = b->wishes ? b->wishes->seconds : 0, limit = k->line->limit_s;
	bool headline = k->line->phases == PHASES_HEADLINE;

	if (c->probe->kind == PROBE_READING) {
		c->limit_ms = limit > 0 ? (uint32_t)(limit * 1000) : 20000;
		return;
	}
	c->phases = k->line->phases;
	c->seconds = wish > 0 && headline ? wish : k->line->seconds;
	c->search_s = b->wishes && c->engine && c->engine->variants ? b->wishes->search_seconds : 0;
	c->order = k->order;
	if (c->order == STEP_TOGETHER && !(c->seconds > 0))
		c->seconds = TOGETHER_SECONDS;
	else if (c->order != STEP_TOGETHER && headline && !(wish > 0))
		c->seconds_capped = k->line->seconds_capped; /* the command line's seconds take precedence */
	if (!(limit > 0))
		limit = (headline ? 120 : 60) + 3 * fmax(c->seconds, c->seconds_capped);
	c->limit_ms = (uint32_t)fmin((limit + c->search_s) * 1000, UINT32_MAX);
}

static void fill_group(struct bench_case *c, const struct plan_choice *k)
{
	if (k->line->group)
		text_copy(c->group, sizeof(c->group), k->line->group);
	else if (!c->engine)
		text_copy(c->group, sizeof(c->group), "readings");
	else
		text_copy(c->group, sizeof(c->group),
			  c->engine->libs && *c->engine->libs ? c->engine->libs
			  /* launches cost more after hardware counters were used */
			  : phase_counted_may(c) ? "counted"
						 : "own");
}

/* Asks the engine whether it can run the case here; otherwise *why is the reason. STATUS_OK: it can. */
static enum status ask_engine(const struct plan_builder *b, const struct engine *e,
			      const struct bench_case *c, struct error *why)
{
	enum status st = e->supports ? e->supports(b->machine, &c->target, c->opts, why) : STATUS_OK;

	if (st && !why->status)
		error_set(why, st, "%s: %s", e->name, status_text(st));
	if (st == STATUS_NO_RESOURCE &&
	    why->cause == CAUSE_NO_MEMORY) /* known before the run: too large for this machine */
		st = why->status = STATUS_UNSUPPORTED;
	return st;
}

/* The cause that the engine gave, or the one that its status implies. */
static enum cause cause_of(const struct error *why)
{
	if (why->cause)
		return why->cause;
	return why->status == STATUS_UNSUPPORTED ? CAUSE_UNSUPPORTED : CAUSE_NONE;
}

/* If no engine was named and none can run the case: collects the reasons of all engines. */
static void ask_every_engine(const struct plan_builder *b, const struct bench_case *c, struct error *why)
{
	size_t n = strlen(c->probe->name), engines = 0;
	struct text t = {0};

	for (const struct engine *const *e = c->probe->engines; *e; e++) {
		struct error one = {0};
		const char *words = one.text;

		if (!((*e)->targets & (unsigned)c->target.kind) || !ask_engine(b, *e, c, &one))
			continue;
		if (!strncmp(words, c->probe->name, n) && !strncmp(words + n, ": ", 2))
			words += n + 2;
		text_addf(&t, "%s%s: %s", engines++ ? "; " : "", (*e)->name, words);
	}
	if (engines > 1 && !t.failed)
		text_copy(why->text, sizeof(why->text), text_str(&t));
	text_release(&t);
}

static enum status ask_choice(const struct plan_builder *b, const struct plan_choice *k,
			      const struct engine *e, const struct bench_case *c, struct error *why)
{
	enum status st = ask_engine(b, e, c, why);

	if (st == STATUS_UNSUPPORTED && k->any)
		ask_every_engine(b, c, why);
	return st;
}

struct asked {
	const struct plan_builder *b;
	const struct bench_case *c;
};

static bool on_same_gpus(void *arg, const struct bench_case *have)
{
	const struct asked *a = arg;

	return target_same_gpus(&have->target, &a->c->target, a->b->machine, a->b->wishes);
}

/* Whether the plan already has the same measurement. Example: a line for one GPU alone on a machine with one
 * GPU, or for the team if one node has all of its GPUs. Rank 0 knows the node's GPUs, and its skip applies to
 * all ranks. */
static bool planned(const struct plan_builder *b, const struct bench_case *c, struct error *why)
{
	struct asked asked = {b, c};
	const struct bench_case *have = plan_duplicates_find(&b->seen, b->plan, c, on_same_gpus, &asked);

	if (!have)
		return false;
	error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED, "case %u is the same measurement",
			have->id);
	return true;
}

/* A typing error in values, targets or rounds must not plan a million cases. */
static enum status check_room(const struct plan_builder *b, const struct plan_choice *k)
{
	char place[300];

	if (b->plan->case_count < PLAN_CASES_MAX)
		return STATUS_OK;
	suite_place(b->suite, k->line->line, place, sizeof(place));
	return error_set(b->err, STATUS_BAD_INPUT,
			 "%s: probe %s: with this line the suite has more than %d cases, the limit "
			 "of one plan; split the suite",
			 place, k->probe->name, PLAN_CASES_MAX);
}

/* Adds the case on one engine (NULL: a reading), even if it is skipped. */
static enum status add_on_engine(struct plan_builder *b, const struct plan_choice *k, const struct engine *e)
{
	struct bench_case c = {
		.probe = k->probe,
		.engine = e,
		.target = k->found->target,
		.require = k->line->require,
		.require_said = k->line->require_said,
		.round = k->probe->kind == PROBE_TIMED ? b->round : 0,
	};
	struct error why = {0}, other = {0}, few = {0}, shared = {0};
	enum status st = check_room(b, k);

	if (!st)
		st = case_options(&c, k->assignment, k->count, b->err);
	if (!st)
		st = case_key(&c, b->err);
	if (st) {
		case_release(&c);
		return st;
	}
	text_copy(c.target_text, sizeof(c.target_text), k->found->text);
	c.line = b->line;
	if (target_shared(&c.target, e, b->wishes))
		c.team = ++b->teams;
	else
		target_mine(&c.target, b->machine, b->wishes, &other);
	target_ranks(&c.target, e, b->machine, b->wishes, &few);
	c.layout = rank_layout_json(&c.target, b->wishes);
	target_unshared(&c.target, k->probe->kind == PROBE_READING, b->machine, b->wishes, &shared);
	fill_times(b, &c, k);
	fill_group(&c, k);
	if (c.probe->work)
		c.work = c.probe->work(b->machine, &c.target, c.opts);
	if (!k->found->skip)
		memory_need_estimate(&c, b->machine);
	if (b->wishes && !target_asked(&c.target, c.target_text, b->wishes->target))
		plan_case_skip(&c, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED, "--target selects another target");
	else if (k->one_node)
		plan_case_skip(&c, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
			       "this machine has one NUMA node: numa auto is the same");
	else if (other.status)
		plan_case_skip(&c, other.status, other.cause, other.text);
	else if (k->found->skip)
		plan_case_skip(&c, k->found->skip, k->found->cause, k->found->reason);
	else if (few.status)
		plan_case_skip(&c, few.status, few.cause, few.text);
	else if (shared.status)
		plan_case_skip(&c, shared.status, shared.cause, shared.text);
	else if (e && ask_choice(b, k, e, &c, &why))
		plan_case_skip(&c, why.status, cause_of(&why), why.text);
	else if (memory_need_check(&c, b->machine, &why))
		plan_case_skip(&c, why.status, cause_of(&why), why.text);
	else if (planned(b, &c, &why))
		plan_case_skip(&c, why.status, cause_of(&why), why.text);
	else
		check_circumstances(b, &c);
	if (c.team && b->wishes->rank && c.skip != STATUS_UNAVAILABLE)
		c.require = REQUIRE_NOTHING; /* rank 0 reports and judges its figures */
	st = plan_case_add(b, &c);
	case_release(&c);
	return st;
}

/* The first engine that can run the case; otherwise the first that is only unavailable; otherwise the first
 * for this kind of target. NULL: no engine for this kind of target. For a case of all ranks, this rank's
 * libraries do not count, so that all ranks choose the same engine. */
static const struct engine *pick_engine(const struct plan_builder *b, const struct plan_choice *k)
{
	const struct engine *lacks = NULL, *first = NULL;

	for (const struct engine *const *e = k->probe->engines; *e; e++) {
		struct bench_case c = {.probe = k->probe, .engine = *e, .target = k->found->target};
		struct error why = {0};
		enum status st;

		if (!((*e)->targets & (unsigned)k->found->target.kind))
			continue;
		first = first ? first : *e;
		if (!target_fits(&c.target, *e, b->wishes))
			continue;
		/* option checks need the number of ranks */
		target_ranks(&c.target, *e, b->machine, b->wishes, NULL);
		st = case_options(&c, k->assignment, k->count, NULL);
		if (!st && !k->found->skip && !target_shared(&c.target, *e, b->wishes))
			st = ask_engine(b, *e, &c, &why);
		case_release(&c);
		if (!st) {
			lacks = *e;
			break;
		}
		if (st == STATUS_UNAVAILABLE && !lacks)
			lacks = *e;
	}
	return lacks ? lacks : first; /* if options are wrong, add_on_engine() reports the error */
}

/* `asked`: the engine that the line names; NULL: none. */
static enum status no_engine(const struct plan_builder *b, const struct plan_choice *k,
			     const struct engine *asked)
{
	char place[300];

	suite_place(b->suite, k->line->target_line, place, sizeof(place));
	if (asked)
		return error_set(b->err, STATUS_BAD_INPUT,
				 "%s: engine %s of probe %s does not run on target %s", place, asked->name,
				 k->probe->name, k->found->text);
	return error_set(b->err, STATUS_BAD_INPUT, "%s: no engine of probe %s runs on target %s", place,
			 k->probe->name, k->found->text);
}

static enum status unknown_engine(const struct plan_builder *b, const struct plan_choice *k, const char *name)
{
	const char *known[32] = {"all"}, *near;
	size_t count = 1;
	char place[300];

	for (const struct engine *const *e = k->probe->engines; e && *e && count < 32; e++)
		known[count++] = (*e)->name;
	near = opt_nearest(name, known, count);
	suite_place(b->suite, k->line->engine_line, place, sizeof(place));
	return error_set(b->err, STATUS_BAD_INPUT, "%s: engine: probe %s has no engine \"%.40s\"%s%s", place,
			 k->probe->name, name, near ? "; did you mean " : "", near ? near : "");
}

static enum status add_all_engines(struct plan_builder *b, const struct plan_choice *k)
{
	enum status st = STATUS_OK;
	bool any = false;

	for (const struct engine *const *e = k->probe->engines; !st && *e; e++)
		if ((*e)->targets & (unsigned)k->found->target.kind) {
			any = true;
			st = add_on_engine(b, k, *e);
		}
	return st || any ? st : no_engine(b, k, NULL);
}

enum status plan_engines(struct plan_builder *b, const struct plan_choice *k)
{
	const struct words *names = &k->line->engines;
	enum status st = STATUS_OK;

	if (k->probe->kind == PROBE_READING)
		return names->count ? unknown_engine(b, k, names->word[0]) : add_on_engine(b, k, NULL);
	if (!names->count) {
		const struct engine *e = pick_engine(b, k);
		struct plan_choice any = *k;

		any.any = true;
		return e ? add_on_engine(b, &any, e) : no_engine(b, k, NULL);
	}
	for (size_t i = 0; !st && i < names->count; i++) {
		const struct engine *e = engine_by_name(k->probe, names->word[i]);

		if (!strcmp(names->word[i], "all"))
			st = add_all_engines(b, k);
		else if (!e)
			st = unknown_engine(b, k, names->word[i]);
		else if (!(e->targets & (unsigned)k->found->target.kind))
			st = no_engine(b, k, e);
		else
			st = add_on_engine(b, k, e);
	}
	return st;
}
