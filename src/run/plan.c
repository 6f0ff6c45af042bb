/* SPDX-License-Identifier: Apache-2.0 */
/* A suite resolved on a machine. Pure: nothing is opened, nothing is read but facts. */
#include <errno.h>
#include <math.h>
#include "core/file.h"
#include "core/text.h"
#include "run/case_build.h"
#include "run/need.h"
#include "run/suite.h"
#include "run/target_team.h"
#include "team/control.h"

enum { PRODUCT_MAX = 10000 };
#define TOGETHER_SECONDS 2.0 /* windows that run together must cover each other: a fixed length */

struct builder {
	struct plan *plan;
	const struct suite *suite;
	const struct machine *machine;
	const struct probe *const *registry;
	const struct plan_wishes *wishes;
	unsigned round; /* 0: the only one */
	unsigned line;	/* of the suite, 1 first */
	unsigned teams; /* cases of the whole team so far */
	bool new_step;	/* the next case opens a step */
	struct error *err;
};

/* One line of the suite on one target, with one choice of option values. */
struct choice {
	const struct suite_case *line;
	const struct probe *probe;
	const struct target_found *found;
	const struct assignment *assignment;
	size_t count;
	enum step_order order;
	bool lockstep; /* as the suite has it; with one GPU the order is another */
	bool one_node; /* asked for each NUMA node, and there is one */
	bool any;      /* no engine was named */
};

static enum status no_memory(const struct builder *b)
{
	return error_errno(b->err, ENOMEM, "planning %s", b->suite->name);
}

static enum status step_add(struct builder *b, enum step_order order)
{
	struct plan *p = b->plan;
	struct step *grown = realloc(p->steps, (p->count + 1) * sizeof(*grown));

	if (!grown)
		return no_memory(b);
	p->steps = grown;
	p->steps[p->count++] = (struct step){.order = order};
	return STATUS_OK;
}

/* Cases that follow each other on one target in one group share a step, and so a worker. Takes *c. */
static enum status case_add(struct builder *b, struct bench_case *c)
{
	struct plan *p = b->plan;
	const struct step *last = p->count ? &p->steps[p->count - 1] : NULL;
	const struct bench_case *before = last && last->count ? &last->cases[last->count - 1] : NULL;
	struct bench_case *grown;
	struct step *step;
	enum status st = STATUS_OK;

	if (b->new_step || !last ||
	    (!c->order && (last->order || (before && (strcmp(before->group, c->group) ||
						      strcmp(before->target_text, c->target_text))))))
		st = step_add(b, c->order);
	if (st)
		return st;
	b->new_step = false;
	step = &p->steps[p->count - 1];
	grown = realloc(step->cases, (step->count + 1) * sizeof(*grown));
	if (!grown)
		return no_memory(b);
	step->cases = grown;
	c->id = (unsigned)p->case_count++;
	step->cases[step->count++] = *c;
	*c = (struct bench_case){0};
	return STATUS_OK;
}

static void skip(struct bench_case *c, enum status status, enum cause cause, const char *reason)
{
	c->skip = status;
	c->skip_cause = cause;
	text_copy(c->skip_reason, sizeof(c->skip_reason), reason);
}

/* What keeps a case that its engine supports from running now. */
static void check_circumstances(const struct builder *b, struct bench_case *c)
{
	char reason[160];

	if (c->probe->kind == PROBE_READING)
		return;
	for (unsigned i = 0; i < c->target.gpu_count && !*c->beside; i++)
		if (machine_is_live(b->machine) &&
		    gpu_busy(machine_gpu(b->machine, c->target.gpu[i]), reason, sizeof(reason)))
			text_copy(c->beside, sizeof(c->beside), reason);
	if (!machine_is_live(b->machine))
		skip(c, STATUS_UNSUPPORTED, CAUSE_RECORDED, "a recorded machine is never measured");
	else if (*c->beside && !(b->wishes && b->wishes->beside))
		skip(c, STATUS_UNAVAILABLE, CAUSE_BUSY, c->beside);
}

static void fill_times(const struct builder *b, struct bench_case *c, const struct choice *k)
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
		c->seconds_capped = k->line->seconds_capped; /* what the command line says is meant */
	if (!(limit > 0))
		limit = (headline ? 120 : 60) + 3 * fmax(c->seconds, c->seconds_capped);
	c->limit_ms = (uint32_t)fmin((limit + c->search_s) * 1000, UINT32_MAX);
}

static void fill_group(struct bench_case *c, const struct choice *k)
{
	if (k->line->group)
		text_copy(c->group, sizeof(c->group), k->line->group);
	else if (!c->engine)
		text_copy(c->group, sizeof(c->group), "readings");
	else
		text_copy(c->group, sizeof(c->group),
			  c->engine->libs && *c->engine->libs ? c->engine->libs : "own");
}

/* Why this engine cannot do it here; STATUS_OK: it can. */
static enum status ask_engine(const struct builder *b, const struct engine *e, const struct bench_case *c,
			      struct error *why)
{
	enum status st = e->supports ? e->supports(b->machine, &c->target, c->opts, why) : STATUS_OK;

	if (st && !why->status)
		error_set(why, st, "%s: %s", e->name, status_text(st));
	if (st == STATUS_NO_RESOURCE &&
	    why->cause == CAUSE_NO_MEMORY) /* known ahead: too large for this machine */
		st = why->status = STATUS_UNSUPPORTED;
	return st;
}

/* The cause as the engine said it, else as its status implies. */
static enum cause cause_of(const struct error *why)
{
	if (why->cause)
		return why->cause;
	return why->status == STATUS_UNSUPPORTED ? CAUSE_UNSUPPORTED : CAUSE_NONE;
}

/* Where nobody named an engine and none can: why each cannot. */
static void ask_every_engine(const struct builder *b, const struct bench_case *c, struct error *why)
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

static enum status ask_choice(const struct builder *b, const struct choice *k, const struct engine *e,
			      const struct bench_case *c, struct error *why)
{
	enum status st = ask_engine(b, e, c, why);

	if (st == STATUS_UNSUPPORTED && k->any)
		ask_every_engine(b, c, why);
	return st;
}

/* The same measurement stands in the plan: a line for one GPU alone, where all others are this one. */
static bool planned(const struct builder *b, const struct bench_case *c, struct error *why)
{
	for (size_t i = 0; i < b->plan->count; i++)
		for (size_t k = 0; k < b->plan->steps[i].count; k++) {
			const struct bench_case *have = &b->plan->steps[i].cases[k];

			if (c->target.kind != TARGET_GPU || c->order || have->order || have->skip ||
			    have->round != c->round || have->phases != c->phases ||
			    strcmp(have->key, c->key) || strcmp(have->target_text, c->target_text))
				continue;
			error_set_cause(why, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED, "case %u is the same",
					have->id);
			return true;
		}
	return false;
}

/* One case on one engine (NULL: a reading), whether it can run or not. */
static enum status add_on_engine(struct builder *b, const struct choice *k, const struct engine *e)
{
	struct bench_case c = {
		.probe = k->probe,
		.engine = e,
		.target = k->found->target,
		.require = k->line->require,
		.round = k->probe->kind == PROBE_TIMED ? b->round : 0,
	};
	struct error why = {0}, other = {0}, few = {0};
	enum status st = case_options(&c, k->assignment, k->count, b->err);

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
	fill_times(b, &c, k);
	fill_group(&c, k);
	if (c.probe->work)
		c.work = c.probe->work(b->machine, &c.target, c.opts);
	if (!k->found->skip)
		need_estimate(&c, b->machine);
	if (b->wishes && !target_asked(&c.target, c.target_text, b->wishes->target))
		skip(&c, STATUS_UNSUPPORTED, CAUSE_NOT_ASKED, "not on the target asked for");
	else if (k->one_node)
		skip(&c, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
		     "this machine has one NUMA node: numa auto is the same");
	else if (other.status)
		skip(&c, other.status, other.cause, other.text);
	else if (k->found->skip)
		skip(&c, k->found->skip, k->found->cause, k->found->reason);
	else if (few.status)
		skip(&c, few.status, few.cause, few.text);
	else if (e && ask_choice(b, k, e, &c, &why))
		skip(&c, why.status, cause_of(&why), why.text);
	else if (need_check(&c, b->machine, &why))
		skip(&c, why.status, cause_of(&why), why.text);
	else if (planned(b, &c, &why))
		skip(&c, why.status, cause_of(&why), why.text);
	else
		check_circumstances(b, &c);
	st = case_add(b, &c);
	case_release(&c);
	return st;
}

/* The first engine that can; else the one that only lacks something; else the first of its kind. NULL: none
 * of its kind. */
static const struct engine *pick_engine(const struct builder *b, const struct choice *k)
{
	const struct engine *lacks = NULL, *first = NULL;
	struct bench_case c = {.probe = k->probe, .target = k->found->target};

	if (case_options(&c, k->assignment, k->count, NULL)) {
		case_release(&c);
		return k->probe->engines[0]; /* the options are wrong: making the case says how */
	}
	for (const struct engine *const *e = k->probe->engines; *e; e++) {
		struct error why = {0};
		enum status st;

		if (!((*e)->targets & (unsigned)k->found->target.kind))
			continue;
		first = first ? first : *e;
		st = k->found->skip ? STATUS_OK : ask_engine(b, *e, &c, &why);
		if (!st) {
			lacks = *e;
			break;
		}
		if (st == STATUS_UNAVAILABLE && !lacks)
			lacks = *e;
	}
	case_release(&c);
	return lacks ? lacks : first;
}

static enum status no_engine(const struct builder *b, const struct choice *k)
{
	char place[300];

	suite_place(b->suite, k->line->target_line, place, sizeof(place));
	return error_set(b->err, STATUS_BAD_INPUT, "%s: no engine of probe %s runs on target %s", place,
			 k->probe->name, k->found->text);
}

static enum status unknown_engine(const struct builder *b, const struct choice *k, const char *name)
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

static enum status add_all_engines(struct builder *b, const struct choice *k)
{
	enum status st = STATUS_OK;
	bool any = false;

	for (const struct engine *const *e = k->probe->engines; !st && *e; e++)
		if ((*e)->targets & (unsigned)k->found->target.kind) {
			any = true;
			st = add_on_engine(b, k, *e);
		}
	return st || any ? st : no_engine(b, k);
}

static enum status add_engines(struct builder *b, const struct choice *k)
{
	const struct words *names = &k->line->engines;
	enum status st = STATUS_OK;

	if (k->probe->kind == PROBE_READING)
		return names->count ? unknown_engine(b, k, names->word[0]) : add_on_engine(b, k, NULL);
	if (!names->count) {
		const struct engine *e = pick_engine(b, k);
		struct choice any = *k;

		any.any = true;
		return e ? add_on_engine(b, &any, e) : no_engine(b, k);
	}
	for (size_t i = 0; !st && i < names->count; i++) {
		const struct engine *e = engine_by_name(k->probe, names->word[i]);

		if (!strcmp(names->word[i], "all"))
			st = add_all_engines(b, k);
		else if (!e)
			st = unknown_engine(b, k, names->word[i]);
		else if (!(e->targets & (unsigned)k->found->target.kind))
			st = no_engine(b, k);
		else
			st = add_on_engine(b, k, e);
	}
	return st;
}

/* "numa: each" is every NUMA node of this machine. */
struct each_node {
	char text[64][12];
	char *word[64];
	struct words words;
};

static const struct words *values_of(const struct builder *b, const struct suite_option *o,
				     struct each_node *each, struct choice *k)
{
	const struct cpu *cpu = machine_cpu(b->machine);

	if (strcmp(o->name, "numa") || o->values.count != 1 || strcmp(o->values.word[0], "each"))
		return &o->values;
	k->one_node = cpu->numa_count < 2;
	each->words = (struct words){.word = each->word, .count = k->one_node ? 1 : cpu->numa_count};
	for (size_t i = 0; i < each->words.count; i++) {
		each->word[i] = each->text[i];
		if (k->one_node)
			text_copy(each->text[i], sizeof(each->text[i]), "auto");
		else
			snprintf(each->text[i], sizeof(each->text[i]), "%d", cpu->numa[i].node);
	}
	return &each->words;
}

/* A slip of the hand in a list of sizes is told, not planned for hours. */
static enum status check_product(const struct builder *b, const struct suite_case *line)
{
	double product = 1;
	char place[300];

	for (size_t i = 0; i < line->option_count; i++)
		product *= (double)line->option[i].values.count;
	if (product <= PRODUCT_MAX)
		return STATUS_OK;
	suite_place(b->suite, line->line, place, sizeof(place));
	return error_set(
		b->err, STATUS_BAD_INPUT,
		"%s: probe %s: its options make %.0f cases on each target, %d at most in one cross product",
		place, line->probe, product, PRODUCT_MAX);
}

/* Every choice of option values: an odometer whose last wheel turns fastest. */
static enum status turn_wheels(struct builder *b, struct choice *k)
{
	const struct suite_case *line = k->line;
	struct assignment *a = calloc(line->option_count + 1, sizeof(*a));
	size_t *wheel = calloc(line->option_count + 1, sizeof(*wheel));
	char(*place)[300] = calloc(line->option_count + 1, sizeof(*place));
	const struct words **values = calloc(line->option_count + 1, sizeof(*values));
	enum status st = a && wheel && place && values ? STATUS_OK : no_memory(b);
	struct each_node each;
	bool more = true;

	for (size_t i = 0; !st && i < line->option_count; i++)
		values[i] = values_of(b, &line->option[i], &each, k);

	while (!st && more) {
		for (size_t i = 0; i < line->option_count; i++) {
			const struct suite_option *o = &line->option[i];

			suite_place(b->suite, o->line, place[i], sizeof(place[i]));
			a[i] = (struct assignment){o->name, values[i]->word[wheel[i]], place[i]};
		}
		k->assignment = a;
		k->count = line->option_count;
		st = add_engines(b, k);
		more = false;
		for (size_t i = line->option_count; !more && i-- > 0;) {
			more = ++wheel[i] < values[i]->count;
			if (!more)
				wheel[i] = 0;
		}
	}
	free(a);
	free(wheel);
	free(values);
	free(place);
	return st;
}

static enum status add_products(struct builder *b, struct choice *k)
{
	enum status bound = check_product(b, k->line);

	return bound ? bound : turn_wheels(b, k);
}

/* A reading runs on what it reads and nowhere else. */
static enum status check_reads(const struct builder *b, const struct choice *k, const char *place)
{
	const struct probe *p = k->probe;

	if (p->kind != PROBE_READING || k->found->target.kind == p->reads)
		return STATUS_OK;
	return error_set(b->err, STATUS_BAD_INPUT, "%s: target: probe %s reads %s, not %s; its target is %s",
			 place, p->name, p->reads == TARGET_GPU ? "a GPU" : "the node", k->found->text,
			 target_default(p));
}

/* What keeps in step is GPUs: each does the same as the others. */
static enum status check_lockstep(const struct builder *b, const struct choice *k, const char *place)
{
	if (!k->lockstep || (k->found->target.kind == TARGET_GPU && k->probe->kind == PROBE_TIMED))
		return STATUS_OK;
	return error_set(
		b->err, STATUS_BAD_INPUT,
		"%s: lockstep: what is timed on each GPU belongs here (target: gpu), not probe %s on %s",
		place, k->probe->name, k->found->text);
}

static enum status add_target(struct builder *b, struct choice *k, const char *word)
{
	struct target_found found[TARGETS_MAX];
	char place[300];
	unsigned count;
	enum status st;

	suite_place(b->suite, k->line->target_line, place, sizeof(place));
	st = target_expand(found, &count, word, b->machine,
			   b->wishes && b->wishes->team ? b->wishes->team->size : 0, place, b->err);
	for (unsigned i = 0; !st && i < count; i++) {
		k->found = &found[i];
		st = check_reads(b, k, place);
		if (!st)
			st = check_lockstep(b, k, place);
		if (!st)
			st = add_products(b, k);
	}
	return st;
}

static enum status find_probe(const struct builder *b, struct choice *k)
{
	const char *known[256], *near;
	size_t count = 0;
	char place[300];

	k->probe = probe_by_name(b->registry, k->line->probe);
	if (k->probe)
		return STATUS_OK;
	for (; b->registry[count] && count < 256; count++)
		known[count] = b->registry[count]->name;
	near = opt_nearest(k->line->probe, known, count);
	suite_place(b->suite, k->line->line, place, sizeof(place));
	return error_set(b->err, STATUS_BAD_INPUT, "%s: there is no probe \"%.40s\"%s%s", place,
			 k->line->probe, near ? "; did you mean " : "", near ? near : "");
}

/* With one GPU there is nothing to keep in step: its cases share one worker in their order. */
static enum step_order order_of(const struct builder *b, const struct suite_step *step)
{
	return step->order == STEP_LOCKSTEP && machine_gpu_count(b->machine) < 2 ? STEP_IN_ORDER
										 : step->order;
}

static enum status add_line(struct builder *b, const struct suite_step *step, const struct suite_case *line)
{
	struct choice k = {
		.line = line, .order = order_of(b, step), .lockstep = step->order == STEP_LOCKSTEP};
	enum status st = find_probe(b, &k);

	if (!st && b->round > 1 && k.probe->kind == PROBE_READING)
		return STATUS_OK; /* what is read does not change from round to round */

	if (!st && !line->targets.count)
		st = add_target(b, &k, target_default(k.probe));
	for (size_t i = 0; !st && i < line->targets.count; i++)
		st = add_target(b, &k, line->targets.word[i]);
	return st;
}

double plan_case_seconds(const struct bench_case *c)
{
	double wish = fmax(c->seconds, c->seconds_capped);

	if (c->skip)
		return 0;
	if (c->probe->kind == PROBE_READING)
		return 0.01;
	if (c->phases == PHASES_BURST)
		return 0.25 + wish; /* as the committed runs took: tests/unit/plan_time.c */
	return 1.0 + fmin(2, wish > 0 ? wish : 2) + (wish > 0 ? wish : 1.5);
}

/* Together: the longest; in lockstep: the GPU with the longest sum; else one after the other. */
static double step_seconds(const struct step *s)
{
	double longest = 0, sum = 0, most = 0;

	for (size_t i = 0; i < s->count; i++) {
		double own = plan_case_seconds(&s->cases[i]), lane = 0;

		sum += own;
		longest = fmax(longest, own);
		for (size_t k = 0; s->order == STEP_LOCKSTEP && k < s->count; k++)
			if (!strcmp(s->cases[k].target_text, s->cases[i].target_text))
				lane += plan_case_seconds(&s->cases[k]);
		most = fmax(most, lane);
	}
	return s->order == STEP_TOGETHER ? longest : s->order == STEP_LOCKSTEP ? most : sum;
}

/* The canonical text: what makes two plans the same. Reasons are words about it, not part of it. */
static enum status finish(struct builder *b)
{
	const struct team_shape *team = b->wishes ? b->wishes->team : NULL;
	struct plan *p = b->plan;
	struct text t = {0};

	if (team && team->size > 1)
		text_addf(&t, "rank %u of %u on %u nodes\n", b->wishes->rank, team->size, team->nodes);
	for (size_t i = 0; i < p->count; i++) {
		if (p->steps[i].order == STEP_LOCKSTEP)
			text_add(&t, "step lockstep\n");
		else
			text_addf(&t, "step together=%d\n", p->steps[i].order == STEP_TOGETHER);
		for (size_t k = 0; k < p->steps[i].count; k++) {
			const struct bench_case *c = &p->steps[i].cases[k];

			text_addf(&t, "%s | %s | %d %d %.9g | %s %s\n", c->key, c->target_text, c->require,
				  c->phases, c->seconds, status_name(c->skip), cause_name(c->skip_cause));
			if (c->seconds_capped > 0)
				text_addf(&t, "capped %.9g\n", c->seconds_capped);
		}
		p->seconds_expected += step_seconds(&p->steps[i]);
	}
	file_sha256(p->hash, text_str(&t), t.size);
	text_copy(p->suite, sizeof(p->suite), b->suite->name);
	p->within_s = b->suite->within_s;
	if (t.failed) {
		text_release(&t);
		return no_memory(b);
	}
	text_release(&t);
	return STATUS_OK;
}

/* What runs together on all GPUs says nothing new where there is one. */
static void skip_lone(struct builder *b)
{
	struct step *last = b->plan->count ? &b->plan->steps[b->plan->count - 1] : NULL;

	if (last && last->order == STEP_TOGETHER && last->count == 1 && !last->cases[0].skip &&
	    last->cases[0].target.kind == TARGET_GPU)
		skip(&last->cases[0], STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
		     "one GPU: there is none to run together with");
}

/* Every line of the suite once. */
static enum status add_round(struct builder *b)
{
	const struct suite *s = b->suite;
	enum status st = STATUS_OK;

	for (size_t i = 0; !st && i < s->count; i++) {
		const struct suite_step *step = &s->steps[i];
		enum step_order order = order_of(b, step);

		b->line++;
		if (order)
			b->new_step = true;
		for (size_t k = 0; !st && k < step->count; k++)
			st = add_line(b, step, &step->cases[k]);
		if (order) {
			skip_lone(b);
			b->new_step = true;
		}
	}
	return st;
}

enum status plan_build(struct plan *p, const struct suite *s, const struct machine *m,
		       const struct probe *const *registry, const struct plan_wishes *wishes,
		       struct error *err)
{
	struct builder b = {
		.plan = p, .suite = s, .machine = m, .registry = registry, .wishes = wishes, .err = err};
	unsigned rounds = wishes && wishes->rounds > 1 ? wishes->rounds : 1;
	enum status st = wishes && wishes->target ? target_wish(wishes->target, m, err) : STATUS_OK;

	*p = (struct plan){0};
	for (unsigned round = 1; !st && round <= rounds; round++) {
		b.round = rounds > 1 ? round : 0;
		b.new_step = true;
		b.line = 0;
		st = add_round(&b);
	}
	if (!st)
		st = finish(&b);
	if (st)
		plan_release(p);
	return st;
}

void plan_release(struct plan *p)
{
	for (size_t i = 0; i < p->count; i++) {
		for (size_t k = 0; k < p->steps[i].count; k++)
			case_release(&p->steps[i].cases[k]);
		free(p->steps[i].cases);
	}
	free(p->steps);
	*p = (struct plan){0};
}

static json_t *fields_json(const struct probe *p)
{
	static const char *const kinds[] = {"f64", "u64", "text", "bits"};
	json_t *fields = json_array();

	for (size_t i = 0; i < p->field_count; i++) {
		const struct field *f = &p->fields[i];

		json_array_append_new(fields, json_pack("{s:s, s:s, s:s, s:i, s:s}", "name", f->name, "unit",
							f->unit, "kind", kinds[f->kind], "better", f->better,
							"help", f->help));
	}
	return fields;
}

/* Takes `cases`. */
static json_t *step_json(const struct step *s, json_t *cases)
{
	json_t *j = json_pack("{s:b, s:o}", "together", s->order == STEP_TOGETHER, "cases", cases);

	if (j && s->order == STEP_LOCKSTEP)
		json_object_set_new(j, "lockstep", json_true());
	return j;
}

json_t *plan_json(const struct plan *p, const struct machine *m)
{
	json_t *steps = json_array(), *fields = json_object();

	for (size_t i = 0; i < p->count; i++) {
		json_t *cases = json_array();

		for (size_t k = 0; k < p->steps[i].count; k++) {
			const struct bench_case *c = &p->steps[i].cases[k];

			json_array_append_new(cases, case_json(c, m));
			if (!json_object_get(fields, c->probe->name))
				json_object_set_new(fields, c->probe->name, fields_json(c->probe));
		}
		json_array_append_new(steps, step_json(&p->steps[i], cases));
	}
	return json_pack("{s:s, s:s, s:o, s:o}", "hash", p->hash, "suite", p->suite, "fields", fields,
			 "steps", steps);
}
