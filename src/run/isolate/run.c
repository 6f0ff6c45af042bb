/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the cases that an isolation search follows, runs the rounds as cases of the run, and writes the
 * finding to the journal. */
#include <errno.h>
#include <math.h>
#include "core/math/stats.h"
#include "journal/figure/expected.h"
#include "machine/machine.h"
#include "run/isolate/run.h"

#define SHARE_OF_RUN 0.25
#define LEAST_NS 60000000000u
#define MOST_NS 240000000000u
#define RANGE_OF_THREE 1.693 /* expected range of three normal figures, in standard deviations */
enum { WHOLE_REPEATS = 3 };

bool isolate_run_in_parallel(const struct isolate_run *h)
{
	return h->trigger->team && h->f.count > 1 && h->team.beside && h->f.at_once;
}

unsigned isolate_run_waves(const struct isolate_run *h, unsigned repeats)
{
	return isolate_run_in_parallel(h) ? repeats : h->f.count * repeats;
}

bool isolate_run_has_time(const struct isolate_run *h, unsigned waves)
{
	uint64_t now = clock_now_ns(h->r->o->clock), each = h->waves ? (now - h->begin_ns) / h->waves : 0;

	return now + each * waves < h->end_ns;
}

/* ---- the whole search ---- */

void isolate_run_all(struct isolate_search *f, unsigned members, const char *what)
{
	memset(f, 0, sizeof(*f));
	f->count = 1;
	f->test[0] = (struct isolate_search_test){.count = members};
	for (unsigned m = 0; m < members; m++)
		f->group[m] = (uint16_t)m;
	text_copy(f->what, sizeof(f->what), what);
}

/* Repeats the whole three times. False: it could not be measured, or wrong data did not appear again. */
static bool whole_again(struct isolate_run *h, struct isolate_search_start *s)
{
	struct isolate_search *f = &h->f;
	double rate[WHOLE_REPEATS], least = INFINITY, most = 0;
	unsigned first, n = 0, wrong = 0;

	if (h->trigger->team)
		isolate_ranks_whole(h);
	else
		isolate_run_all(f, s->members, "all members again");
	if (!isolate_run_tests(h, WHOLE_REPEATS, &first))
		return false;
	for (unsigned k = 0; k < WHOLE_REPEATS; k++) {
		const struct case_outcome *note = &h->r->note[first + k];

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
	return h->fault == ISOLATE_SEARCH_WRONG ? wrong > 0 : n > 0;
}

void isolate_run_name(const struct isolate_run *h, enum isolate_search_kind found, int a, int b,
		      struct isolate_run_finding *out)
{
	const char *between = found == ISOLATE_SEARCH_PAIR ? " <> " : " and ";
	struct isolate_run_place one, other;

	if (found == ISOLATE_SEARCH_NOBODY)
		return;
	one = h->name(h, (unsigned)a);
	text_copy(out->place, sizeof(out->place), one.place);
	text_copy(out->pci, sizeof(out->pci), one.pci);
	if (found == ISOLATE_SEARCH_MEMBER)
		return;
	other = h->name(h, (unsigned)b);
	snprintf(out->place, sizeof(out->place), "%s%s%s", one.place, between, other.place);
	if (*one.pci && *other.pci)
		snprintf(out->pci, sizeof(out->pci), "%s%s%s", one.pci, between, other.pci);
}

static struct isolate_run_place gpu_place(const struct isolate_run *h, unsigned member)
{
	unsigned gpu = h->trigger->target.gpu[member];
	struct isolate_run_place p;

	snprintf(p.place, sizeof(p.place), "gpu%u", gpu);
	text_copy(p.pci, sizeof(p.pci), machine_gpu(h->r->machine, gpu)->pci);
	return p;
}

static void search(struct isolate_run *h, struct isolate_run_finding *out)
{
	struct isolate_search_start s = {.members = h->trigger->target.gpu_count,
					 .overlap = true,
					 .pairs = true,
					 .fault = h->fault,
					 .expected = h->expected};
	struct isolate_search *f = &h->f;
	unsigned first;

	if (!whole_again(h, &s)) {
		text_copy(out->why, sizeof(out->why),
			  *h->stopped			     ? h->stopped
			  : h->fault == ISOLATE_SEARCH_WRONG ? "wrong once: not seen again when repeated"
							     : "the case could not be repeated");
		return;
	}
	if (h->trigger->team) {
		isolate_ranks_search(h, &s, out);
		return;
	}
	if (s.members == 2 &&
	    (h->fault == ISOLATE_SEARCH_WRONG || isolate_search_worth(s.whole, s.expected, s.sigma))) {
		isolate_run_two(h, out);
		return;
	}
	for (isolate_search_begin(f, &s); !f->done; isolate_search_next(f)) {
		if (!isolate_run_has_time(h, isolate_run_waves(h, f->repeats))) {
			snprintf(out->why, sizeof(out->why), "no time for round %u", f->round);
			return;
		}
		if (!isolate_run_tests(h, f->repeats, &first))
			return;
		isolate_run_answers(h, first);
	}
	out->found = f->found;
	out->with = f->with;
	out->without = f->without;
	text_copy(out->why, sizeof(out->why), f->why);
	isolate_run_name(h, h->f.found, h->f.a, h->f.b, out);
}

static void journal_finding(const struct isolate_run *h, const struct isolate_run_finding *found)
{
	static const char *const kinds[] = {[ISOLATE_SEARCH_NOBODY] = "nobody",
					    [ISOLATE_SEARCH_MEMBER] = "member",
					    [ISOLATE_SEARCH_PAIR] = "pair",
					    [ISOLATE_SEARCH_TWO] = "two"};
	json_t *values =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "isolated_fault",
			  h->fault == ISOLATE_SEARCH_WRONG ? "wrong" : "slow", "isolated",
			  kinds[found->found], "isolated_of", found->of, "isolated_place", found->place,
			  "isolated_pci", found->pci, "isolated_why", found->why, "isolated_rounds",
			  (int)isolate_run_round(h), "isolated_tests", (int)h->tests);

	if (values && found->with > 0 && found->without > 0) {
		json_object_set_new(values, "isolated_with", json_real(found->with));
		json_object_set_new(values, "isolated_without", json_real(found->without));
	}
	run_journal(h->r, JOURNAL_RESULT,
		    json_pack("{s:i, s:s, s:o}", "case", (int)h->trigger->id, "phase", "isolated", "values",
			      values));
}

static struct expected_case as_expected(const struct run *r, const struct bench_case *c)
{
	const struct case_outcome *n = &r->note[c->id];

	return (struct expected_case){.key = c->key,
				      .limit = c->work.limit ? c->work.limit : "",
				      .layout = c->layout,
				      .rate = n->done && !n->status ? n->rate : 0};
}

/* The rate expected because fewer nodes of this run reached it; 0: none. */
static double by_groups(const struct run *r, const struct bench_case *whole)
{
	const struct expected_case w = as_expected(r, whole);
	double most = 0;

	for (size_t i = 0; whole->layout && i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			const struct expected_case g = as_expected(r, &r->plan->steps[i].cases[k]);

			most = fmax(most, expected_by_group(&w, &g));
		}
	return most;
}

/* NCCL reports whether the switch adds after the first call. That choice (`way`) selects the expected rate.
 */
static double expected_rate(const struct run *r, const struct bench_case *c)
{
	struct expected_known known = {0};

	if (!r->o->expected)
		return 0;
	known = r->o->expected[c->id].way[r->note[c->id].way];
	known.group = by_groups(r, c);
	return expected_of(&known).rate;
}

static void isolate_search_case(struct run *r, const struct bench_case *trigger,
				enum isolate_search_fault fault)
{
	struct isolate_run *h = calloc(1, sizeof(*h));
	struct isolate_run_finding found = {.of = trigger->team ? "rank" : "gpu"};
	uint64_t now = clock_now_ns(r->o->clock),
		 budget = (uint64_t)(SHARE_OF_RUN * (double)(now - r->t0_ns));

	if (!h) {
		r->status = error_errno(r->err, ENOMEM, "an isolation search");
		return;
	}
	if (budget < LEAST_NS)
		budget = LEAST_NS;
	h->r = r;
	h->trigger = trigger;
	h->fault = fault;
	h->expected = expected_rate(r, trigger);
	h->name = trigger->team ? isolate_ranks_name : gpu_place;
	h->begin_ns = now;
	h->end_ns = now + (budget < MOST_NS ? budget : MOST_NS);
	search(h, &found);
	if (!run_stopping(r) && !r->status)
		journal_finding(h, &found);
	free(h);
}

/* Whether groups of its GPUs can run the case. */
static bool gpus_can(const struct bench_case *c)
{
	return c->target.kind == TARGET_NODE && c->target.gpu_count == c->target.ranks;
}

/* Share of the rate that the case lost: 1 if its data are wrong, 0 if no search shall follow it. */
static double loss_of(const struct run *r, const struct bench_case *c, enum isolate_search_fault fault)
{
	const struct case_outcome *n = &r->note[c->id];
	double low = expected_rate(r, c);

	if (c->skip || c->target.ranks < 2 || !n->done ||
	    (c->require == REQUIRE_NOTHING &&
	     fault == ISOLATE_SEARCH_SLOW) || /* wrong data is searched regardless of `require` */
	    !(c->team ? isolate_ranks_can(r, c, fault) : gpus_can(c)))
		return 0;
	if (fault == ISOLATE_SEARCH_WRONG)
		return n->status == STATUS_MISMATCH;
	return !n->status && n->rate > 0 && n->rate < low ? 1 - n->rate / low : 0;
}

/* Searches the case with the largest loss, among this rank's own cases or those of the team. */
static void isolate_search_worst(struct run *r, enum isolate_search_fault fault, bool team)
{
	const struct bench_case *worst = NULL;
	double most = 0;

	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			const struct bench_case *c = &r->plan->steps[i].cases[k];
			double loss = !c->team == !team ? loss_of(r, c, fault) : 0;

			if (loss > most) {
				most = loss;
				worst = c;
			}
		}
	if (worst)
		isolate_search_case(r, worst, fault);
}

void isolate_search_searches(struct run *r)
{
	for (unsigned team = 0; team < 2; team++)
		for (enum isolate_search_fault fault = ISOLATE_SEARCH_SLOW; fault <= ISOLATE_SEARCH_WRONG;
		     fault++)
			if (r->o->isolate && !r->searched && !run_stopping(r) && !r->status)
				isolate_search_worst(r, fault, team);
	if (r->o->rank)
		isolate_ranks_follow_rounds(r);
	else
		isolate_ranks_end(r);
}
