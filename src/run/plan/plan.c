/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a suite on a machine. Pure: it opens nothing and reads only facts. */
#include <errno.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "run/plan/memory_need.h"
#include "run/plan/builder.h"
#include "run/suite/target_team.h"
#include "team/control/control.h"

enum { PRODUCT_MAX = SUITE_VALUES_MAX };

static enum status no_memory(const struct plan_builder *b)
{
	return error_errno(b->err, ENOMEM, "planning %s", b->suite->name);
}

static enum status step_add(struct plan_builder *b, enum step_order order)
{
	struct plan *p = b->plan;
	struct step *grown = realloc(p->steps, (p->count + 1) * sizeof(*grown));

	if (!grown)
		return no_memory(b);
	p->steps = grown;
	p->steps[p->count++] = (struct step){.order = order};
	return STATUS_OK;
}

/* Consecutive cases on one target and of one group share a step, and so a worker. Takes *c. */
enum status plan_case_add(struct plan_builder *b, struct bench_case *c)
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
	if (!(step->count & (step->count - 1))) { /* at powers of two the array is full */
		grown = realloc(step->cases, (step->count ? 2 * step->count : 1) * sizeof(*grown));
		if (!grown)
			return no_memory(b);
		step->cases = grown;
	}
	if (!plan_duplicates_add(&b->seen, c, p->count - 1, step->count))
		return no_memory(b);
	c->id = (unsigned)p->case_count++;
	step->cases[step->count++] = *c;
	*c = (struct bench_case){0};
	return STATUS_OK;
}
/* "numa: each" stands for every NUMA node of this machine. */
struct each_node {
	char text[64][12];
	char *word[64];
	struct words words;
};

static const struct words *values_of(const struct plan_builder *b, const struct suite_option *o,
				     struct each_node *each, struct plan_choice *k)
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

/* A typing error in a list of sizes must be an error, not hours of work. */
static enum status check_product(const struct plan_builder *b, const struct suite_case *line)
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
		"%s: probe %s: its options make %.0f cases per target; the limit of one cross product is %d",
		place, line->probe, product, PRODUCT_MAX);
}

/* Plans every choice of option values, like an odometer whose last wheel turns fastest. */
static enum status turn_wheels(struct plan_builder *b, struct plan_choice *k)
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
		st = plan_engines(b, k);
		if (!st && b->wishes && b->wishes->stop && *b->wishes->stop)
			st = error_set_cause(b->err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					     "stopped on request during planning: nothing was measured");
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

static enum status add_products(struct plan_builder *b, struct plan_choice *k)
{
	enum status bound = check_product(b, k->line);

	return bound ? bound : turn_wheels(b, k);
}

/* A reading runs only on the target that it reads. */
static enum status check_reads(const struct plan_builder *b, const struct plan_choice *k, const char *place)
{
	const struct probe *p = k->probe;

	if (p->kind != PROBE_READING || k->found->target.kind == p->reads)
		return STATUS_OK;
	return error_set(b->err, STATUS_BAD_INPUT, "%s: target: probe %s reads %s, not %s; its target is %s",
			 place, p->name, p->reads == TARGET_GPU ? "a GPU" : "the node", k->found->text,
			 target_default(p, NULL, 0));
}

/* Lockstep is for GPUs, since each must do the same as the others. */
static enum status check_lockstep(const struct plan_builder *b, const struct plan_choice *k,
				  const char *place)
{
	if (!k->lockstep || (k->found->target.kind == TARGET_GPU && k->probe->kind == PROBE_TIMED))
		return STATUS_OK;
	return error_set(
		b->err, STATUS_BAD_INPUT,
		"%s: lockstep: only timed probes with target gpu can run in lockstep, not probe %s on %s",
		place, k->probe->name, k->found->text);
}

static enum status add_target(struct plan_builder *b, struct plan_choice *k, const char *word)
{
	struct target_found found[TARGETS_MAX];
	char place[300];
	unsigned count;
	enum status st;

	suite_place(b->suite, k->line->target_line, place, sizeof(place));
	st = target_expand(found, &count, word, b->machine, b->wishes ? b->wishes->team : NULL, place,
			   b->err);
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

static enum status find_probe(const struct plan_builder *b, struct plan_choice *k)
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

/* With one GPU, lockstep has no effect: its cases share one worker in their order. */
static enum step_order order_of(const struct plan_builder *b, const struct suite_step *step)
{
	return step->order == STEP_LOCKSTEP && machine_gpu_count(b->machine) < 2 ? STEP_IN_ORDER
										 : step->order;
}

static enum status add_line(struct plan_builder *b, const struct suite_step *step,
			    const struct suite_case *line)
{
	struct plan_choice k = {
		.line = line, .order = order_of(b, step), .lockstep = step->order == STEP_LOCKSTEP};
	enum status st = find_probe(b, &k);

	if (!st && b->round > 1 && k.probe->kind == PROBE_READING)
		return STATUS_OK; /* readings do not change between rounds */

	if (!st && !line->targets.count)
		st = add_target(b, &k, target_default(k.probe, line->engines.word, line->engines.count));
	for (size_t i = 0; !st && i < line->targets.count; i++)
		st = add_target(b, &k, line->targets.word[i]);
	return st;
}

/* Hashes the canonical text of the plan. Equal text means equal plans. The reasons of skips are not part of
 * it. */
static enum status finish(struct plan_builder *b)
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
			if (c->require_said)
				text_add(&t, "judgement asked for in words\n");
			if (c->seconds_capped > 0)
				text_addf(&t, "capped %.9g\n", c->seconds_capped);
		}
	}
	p->seconds_expected = plan_seconds(p);
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

/* A simultaneous run on all GPUs says nothing new on a machine with one GPU. */
static void skip_lone(struct plan_builder *b)
{
	struct step *last = b->plan->count ? &b->plan->steps[b->plan->count - 1] : NULL;

	if (last && last->order == STEP_TOGETHER && last->count == 1 && !last->cases[0].skip &&
	    last->cases[0].target.kind == TARGET_GPU)
		plan_case_skip(&last->cases[0], STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
			       "the machine has one GPU, so there is no other to run simultaneously");
}

/* Plans every line of the suite once. */
static enum status add_round(struct plan_builder *b)
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
		       const struct probe *const *registry, const struct plan_options *wishes,
		       struct error *err)
{
	struct plan_builder b = {
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
	plan_duplicates_release(&b.seen);
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
				json_object_set_new(fields, c->probe->name,
						    field_rows_json(c->probe->fields, c->probe->field_count));
		}
		json_array_append_new(steps, step_json(&p->steps[i], cases));
	}
	return json_pack("{s:s, s:s, s:o, s:o}", "hash", p->hash, "suite", p->suite, "fields", fields,
			 "steps", steps);
}
