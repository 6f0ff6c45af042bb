/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases are followed, the rounds of a search as cases of the run, and its finding into the journal. */
#include <errno.h>
#include <math.h>
#include "core/stats.h"
#include "machine/machine.h"
#include "run/case_build.h"
#include "run/hunt.h"
#include "run/need.h"

#define SHARE_OF_RUN 0.25
#define LEAST_NS 60000000000u
#define MOST_NS 240000000000u
#define RANGE_OF_THREE 1.693 /* expected range of three normal figures, in deviations */
enum { WHOLE_REPEATS = 3, LIMIT_MS = 30000, REPEATS_ROOM = 8 };

/* ---- cases ---- */

/* Options of the trigger's, but what travels: every pair, or one pair. A wrong result is sought in the work
 * that showed it. */
static void set_traffic(json_t *options, const struct hunt *h, enum follow_traffic traffic)
{
	if (!json_object_get(options, "op") || h->fault == FOLLOW_WRONG || traffic == FOLLOW_SAME)
		return;
	json_object_set_new(options, "op",
			    json_string(traffic == FOLLOW_EVERY_PAIR ? "alltoall" : "sendrecv"));
	if (json_object_get(options, "place"))
		json_object_set_new(options, "place", json_string("out"));
	if (json_object_get(options, "reduce"))
		json_object_set_new(options, "reduce", json_string("sum"));
}

static json_t *group_gpus(const struct hunt *h, const uint16_t *member, unsigned count)
{
	json_t *gpus = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			gpus,
			json_string(machine_gpu(h->r->machine, h->trigger->target.gpu[member[i]])->pci));
	return gpus;
}

/* "node:0,2,3", or the trigger's own text where it is all. */
static void group_text(const struct hunt *h, const uint16_t *member, unsigned count, char text[TARGET_TEXT])
{
	size_t used = 0;

	if (count == h->trigger->target.gpu_count) {
		text_copy(text, TARGET_TEXT, h->trigger->target_text);
		return;
	}
	for (unsigned i = 0; i < count && used < TARGET_TEXT; i++)
		used += (size_t)snprintf(text + used, TARGET_TEXT - used, "%s%u",
					 i ? "," : "node:", h->trigger->target.gpu[member[i]]);
}

static enum status group_case(const struct hunt *h, const uint16_t *member, unsigned count,
			      enum follow_traffic traffic, struct bench_case *out, struct error *err)
{
	const struct bench_case *t = h->trigger;
	json_t *body = case_json(t, h->r->machine);
	char text[TARGET_TEXT];
	enum status st;

	if (!body)
		return error_errno(err, ENOMEM, "a case of a search");
	group_text(h, member, count, text);
	set_traffic(json_object_get(body, "options"), h, traffic);
	json_object_set_new(body, "target", json_string(text));
	json_object_set_new(body, "gpus", group_gpus(h, member, count));
	json_object_set_new(body, "ranks", json_integer(count));
	json_object_set_new(body, "phases", json_string(phases_words[PHASES_BURST]));
	json_object_set_new(body, "require", json_string(require_words[REQUIRE_NOTHING]));
	json_object_set_new(body, "limit_ms", json_integer(t->limit_ms < LIMIT_MS ? t->limit_ms : LIMIT_MS));
	json_object_del(body, "round");
	json_object_del(body, "seconds_capped");
	json_object_del(body, "search_s");
	st = case_from_json(out, body, h->r->machine, h->r->registry, err);
	json_decref(body);
	if (st)
		return st;
	out->seconds = 0;
	out->order = STEP_IN_ORDER;
	text_copy(out->beside, sizeof(out->beside), t->beside);
	out->work = out->probe->work(h->r->machine, &out->target, out->opts);
	need_estimate(out, h->r->machine);
	return STATUS_OK;
}

/* ---- rounds ---- */

bool hunt_has_time(const struct hunt *h, unsigned cases)
{
	uint64_t now = clock_now_ns(h->r->o->clock), each = h->tests ? (now - h->begin_ns) / h->tests : 0;

	return now + each * cases < h->end_ns;
}

/* The tests of the search's round, all of them once, then all again: what drifts, drifts for each. False:
 * nothing runs any more. *first: the id of the first; then those of the first repetition, and so on. */
static bool run_tests(struct hunt *h, unsigned repeats, unsigned *first)
{
	const struct follow *f = &h->f;
	size_t count = (size_t)f->count * repeats;
	struct bench_case *cases = calloc(count, sizeof(*cases));
	struct step step = {.cases = cases};
	json_t *marks = json_array();
	bool on = cases && marks;

	if (!on)
		h->r->status = error_errno(h->r->err, ENOMEM, "%zu cases of a search", count);
	for (; on && step.count < count; step.count++) {
		const struct follow_test *t = &f->test[step.count % f->count];

		h->r->status = group_case(h, &f->group[t->first], t->count, f->traffic, &cases[step.count],
					  h->r->err);
		json_array_append_new(marks, json_pack("{s:i, s:i, s:s}", "case", (int)h->trigger->id,
						       "round", (int)f->round, "why", f->what));
		on = !h->r->status;
	}
	*first = h->r->next_id;
	h->tests += (unsigned)count;
	if (on)
		on = run_extend(h->r, &step, "follows", marks);
	else
		json_decref(marks);
	for (size_t i = 0; i < step.count; i++)
		case_release(&cases[i]);
	free(cases);
	return on;
}

static double variance_of(const double *rate, unsigned n)
{
	struct stats s = stats_of(rate, n);

	return n > 1 && s.mean > 0 ? s.stddev * s.stddev / (s.mean * s.mean) : 0;
}

static void take_answers(struct hunt *h, unsigned first)
{
	struct follow *f = &h->f;

	for (unsigned i = 0; i < f->count; i++) {
		struct follow_test *t = &f->test[i];
		double rate[REPEATS_ROOM];
		unsigned n = 0;

		t->ran = t->sound = true;
		for (unsigned k = 0; k < f->repeats; k++) {
			const struct note *note = &h->r->note[first + k * f->count + i];
			bool wrong = note->status == STATUS_MISMATCH;

			t->wrong = t->wrong || wrong;
			t->sound = t->sound && note->done &&
				   (!note->status || (wrong && h->fault == FOLLOW_WRONG));
			if (note->rate > 0)
				rate[n++] = note->rate;
		}
		t->figure = n ? stats_median(rate, n) : 0;
		t->variance = variance_of(rate, n);
	}
}

/* ---- the whole search ---- */

/* The whole once more, three times: was it slow (or wrong) once only? */
static bool whole_again(struct hunt *h, struct follow_start *s)
{
	struct follow *f = &h->f;
	double rate[WHOLE_REPEATS], least = INFINITY, most = 0;
	unsigned first, n = 0, wrong = 0;

	memset(f, 0, sizeof(*f));
	f->count = 1;
	f->test[0] = (struct follow_test){.count = s->members};
	for (unsigned m = 0; m < s->members; m++)
		f->group[m] = (uint16_t)m;
	text_copy(f->what, sizeof(f->what), "all of them again");
	if (!run_tests(h, WHOLE_REPEATS, &first))
		return false;
	for (unsigned k = 0; k < WHOLE_REPEATS; k++) {
		const struct note *note = &h->r->note[first + k];

		wrong += note->done && note->status == STATUS_MISMATCH;
		if (!note->done || note->status || !(note->rate > 0))
			continue;
		rate[n++] = note->rate;
		least = fmin(least, note->rate);
		most = fmax(most, note->rate);
		s->sigma = fmax(s->sigma, note->noise);
	}
	s->whole = n ? stats_median(rate, n) : 0;
	if (n == WHOLE_REPEATS)
		s->sigma = fmax(s->sigma, (most - least) / RANGE_OF_THREE / s->whole);
	return h->fault == FOLLOW_WRONG ? wrong > 0 : n > 0;
}

static void name_members(const struct hunt *h, struct hunt_finding *out)
{
	static const char *const between[] = {[FOLLOW_PAIR] = " <> ", [FOLLOW_TWO] = " and "};
	const struct follow *f = &h->f;
	const struct gpu *a, *b;
	unsigned i, k;

	if (f->found == FOLLOW_NOBODY)
		return;
	i = h->trigger->target.gpu[f->a];
	a = machine_gpu(h->r->machine, i);
	snprintf(out->place, sizeof(out->place), "gpu%u", i);
	text_copy(out->pci, sizeof(out->pci), a->pci);
	if (f->found == FOLLOW_MEMBER)
		return;
	k = h->trigger->target.gpu[f->b];
	b = machine_gpu(h->r->machine, k);
	snprintf(out->place, sizeof(out->place), "gpu%u%sgpu%u", i, between[f->found], k);
	snprintf(out->pci, sizeof(out->pci), "%.20s%s%.20s", a->pci, between[f->found], b->pci);
}

static void search(struct hunt *h, struct hunt_finding *out)
{
	struct follow_start s = {.members = h->trigger->target.gpu_count,
				 .overlap = true,
				 .pairs = true,
				 .fault = h->fault,
				 .expected = h->expected};
	struct follow *f = &h->f;
	unsigned first;

	if (!whole_again(h, &s)) {
		text_copy(out->why, sizeof(out->why),
			  h->fault == FOLLOW_WRONG ? "wrong once: not seen again when repeated"
						   : "it could not be repeated");
		return;
	}
	if (s.members == 2 && (h->fault == FOLLOW_WRONG || follow_worth(s.whole, s.expected, s.sigma))) {
		hunt_two(h, out);
		return;
	}
	for (follow_begin(f, &s); !f->done; follow_next(f)) {
		if (!hunt_has_time(h, f->count * f->repeats)) {
			snprintf(out->why, sizeof(out->why), "no time for round %u", f->round);
			return;
		}
		if (!run_tests(h, f->repeats, &first))
			return;
		take_answers(h, first);
	}
	out->found = f->found;
	out->with = f->with;
	out->without = f->without;
	text_copy(out->why, sizeof(out->why), f->why);
	name_members(h, out);
}

static void journal_finding(const struct hunt *h, const struct hunt_finding *found)
{
	static const char *const kinds[] = {[FOLLOW_NOBODY] = "nobody",
					    [FOLLOW_MEMBER] = "member",
					    [FOLLOW_PAIR] = "pair",
					    [FOLLOW_TWO] = "two"};
	json_t *values =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "isolated_fault",
			  h->fault == FOLLOW_WRONG ? "wrong" : "slow", "isolated", kinds[found->found],
			  "isolated_place", found->place, "isolated_pci", found->pci, "isolated_why",
			  found->why, "isolated_rounds", (int)h->f.round, "isolated_tests", (int)h->tests);

	if (values && found->with > 0 && found->without > 0) {
		json_object_set_new(values, "isolated_with", json_real(found->with));
		json_object_set_new(values, "isolated_without", json_real(found->without));
	}
	run_journal(h->r, JOURNAL_RESULT,
		    json_pack("{s:i, s:s, s:o}", "case", (int)h->trigger->id, "phase", "isolated", "values",
			      values));
}

/* Whether the switch adds is told by the first call, before anything is expected of it. */
static double expected_of(const struct run *r, const struct bench_case *c)
{
	return r->o->expected_low ? r->o->expected_low[c->id].rate[r->note[c->id].way] : 0;
}

static void follow_case(struct run *r, const struct bench_case *trigger, enum follow_fault fault)
{
	struct hunt *h = calloc(1, sizeof(*h));
	struct hunt_finding found = {0};
	uint64_t now = clock_now_ns(r->o->clock),
		 budget = (uint64_t)(SHARE_OF_RUN * (double)(now - r->t0_ns));

	if (!h) {
		r->status = error_errno(r->err, ENOMEM, "a search");
		return;
	}
	if (budget < LEAST_NS)
		budget = LEAST_NS;
	h->r = r;
	h->trigger = trigger;
	h->fault = fault;
	h->expected = expected_of(r, trigger);
	h->begin_ns = now;
	h->end_ns = now + (budget < MOST_NS ? budget : MOST_NS);
	search(h, &found);
	if (!run_stopping(r) && !r->status)
		journal_finding(h, &found);
	free(h);
}

/* How much of it is lost: 1 where it is wrong, 0 where it is not to be followed. */
static double loss_of(const struct run *r, const struct bench_case *c, enum follow_fault fault)
{
	const struct note *n = &r->note[c->id];
	double low = expected_of(r, c);

	if (c->skip || c->team || c->target.kind != TARGET_NODE || c->target.ranks < 2 ||
	    c->target.gpu_count != c->target.ranks || c->require == REQUIRE_NOTHING || !n->done)
		return 0;
	if (fault == FOLLOW_WRONG)
		return n->status == STATUS_MISMATCH;
	return !n->status && n->rate > 0 && n->rate < low ? 1 - n->rate / low : 0;
}

void follow_searches(struct run *r)
{
	for (enum follow_fault fault = FOLLOW_SLOW; fault <= FOLLOW_WRONG; fault++) {
		const struct bench_case *worst = NULL;
		double most = 0;

		if (!r->o->isolate || r->searched || run_stopping(r) || r->status)
			return;
		for (size_t i = 0; i < r->plan->count; i++)
			for (size_t k = 0; k < r->plan->steps[i].count; k++) {
				const struct bench_case *c = &r->plan->steps[i].cases[k];
				double loss = loss_of(r, c, fault);

				if (loss > most) {
					most = loss;
					worst = c;
				}
			}
		if (worst)
			follow_case(r, worst, fault);
	}
}
