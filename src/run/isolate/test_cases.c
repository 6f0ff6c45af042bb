/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tests of an isolation search into cases of the run, and reads their outcomes. The tests of
 * launched ranks are in launched_ranks.c. */
#include <errno.h>
#include <math.h>
#include "core/math/stats.h"
#include "core/text/units.h"
#include "machine/machine.h"
#include "run/probe.h"
#include "run/isolate/run.h"
#include "run/plan/memory_need.h"
#include "run/timing/phases.h"

enum { LIMIT_MS = 30000, REPEATS_ROOM = 8 };
#define PARTS_LEAST 65536 /* bytes: an all-gather of 8 bytes has no data from some ranks */

static void set_word(json_t *options, const char *name, const char *word)
{
	if (json_object_get(options, name))
		json_object_set_new(options, name, json_string(word));
}

static void set_size(json_t *options)
{
	const char *size = json_string_value(json_object_get(options, "size"));
	uint64_t bytes;

	if (size && !units_parse_u64(&bytes, size, "B", NULL) && bytes < PARTS_LEAST)
		json_object_set_new(options, "size", json_sprintf("%d", PARTS_LEAST));
}

/* Replaces the traffic in the trigger's options. Wrong data needs no replacement, except that an all-gather
 * shows whose part is wrong. Options that only the trigger's operation has return to their defaults. */
static void set_traffic(json_t *options, const struct isolate_run_order *o)
{
	static const char *const ops[] = {[ISOLATE_SEARCH_EVERY_PAIR] = "alltoall",
					  [ISOLATE_SEARCH_ONE_PAIR] = "sendrecv",
					  [ISOLATE_SEARCH_PARTS] = "allgather"};

	if (o->traffic == ISOLATE_SEARCH_SAME ||
	    (o->fault == ISOLATE_SEARCH_WRONG && o->traffic != ISOLATE_SEARCH_PARTS))
		return;
	if (!json_object_get(options, "op"))
		return;
	set_word(options, "op", ops[o->traffic]);
	set_word(options, "place", "out");
	set_word(options, "reduce", "sum");
	set_word(options, "root", "0");
	set_word(options, "algorithm", "auto");
	set_word(options, "protocol", "auto");
	if (o->traffic == ISOLATE_SEARCH_PARTS)
		set_size(options);
}

enum status isolate_run_case(const struct isolate_run_order *o, const struct isolate_run_group *g,
			     struct bench_case *out, struct error *err)
{
	const struct bench_case *t = o->trigger;
	json_t *body = case_json(t, o->r->machine);
	enum status st;

	if (!body) {
		json_decref(g->gpus);
		return error_errno(err, ENOMEM, "a case of an isolation search");
	}
	set_traffic(json_object_get(body, "options"), o);
	json_object_set_new(body, "target", json_string(g->text));
	json_object_set_new(body, "gpus", g->gpus);
	json_object_set_new(body, "ranks", json_integer(g->ranks));
	json_object_set_new(body, "team", json_integer(g->team));
	json_object_set_new(body, "phases", json_string(phases_words[PHASES_BURST]));
	json_object_set_new(body, "require", json_string(require_words[REQUIRE_NOTHING]));
	json_object_set_new(body, "limit_ms", json_integer(t->limit_ms < LIMIT_MS ? t->limit_ms : LIMIT_MS));
	json_object_del(body, "layout");
	json_object_del(body, "round");
	json_object_del(body, "seconds_capped");
	json_object_del(body, "search_s");
	st = case_from_json(out, body, o->r->machine, o->r->registry, err);
	json_decref(body);
	if (st)
		return st;
	/* for as long as a burst without a setting, or as the trigger if that is less */
	out->seconds = t->seconds < PHASE_BURST_NS * 1e-9 ? t->seconds : 0;
	out->order = STEP_IN_ORDER;
	text_copy(out->beside, sizeof(out->beside), t->beside);
	out->work = out->probe->work(o->r->machine, &out->target, out->opts);
	memory_need_estimate(out, o->r->machine);
	return STATUS_OK;
}

json_t *isolate_run_mark(const struct isolate_run_order *o)
{
	return json_pack("{s:i, s:i, s:s}", "case", (int)o->trigger->id, "round", (int)o->round, "why",
			 o->what);
}

/* ---- a node's GPUs ---- */

static json_t *group_gpus(const struct isolate_run *h, const uint16_t *member, unsigned count)
{
	json_t *gpus = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			gpus,
			json_string(machine_gpu(h->r->machine, h->trigger->target.gpu[member[i]])->pci));
	return gpus;
}

/* "node:0,2,3", or the trigger's own text if the group has all its GPUs. */
static void group_text(const struct isolate_run *h, const uint16_t *member, unsigned count,
		       char text[TARGET_TEXT])
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

static enum status group_case(const struct isolate_run *h, const struct isolate_run_order *o,
			      const struct isolate_search_test *t, struct bench_case *out, struct error *err)
{
	const uint16_t *member = &h->f.group[t->first];
	char text[TARGET_TEXT];
	const struct isolate_run_group g = {
		.text = text, .gpus = group_gpus(h, member, t->count), .ranks = t->count};

	group_text(h, member, t->count, text);
	return isolate_run_case(o, &g, out, err);
}

/* Tests of one node's GPUs: runs all tests of the round once, then all again, so that drift affects each
 * equally. */
static bool run_tests(struct isolate_run *h, const struct isolate_run_order *o)
{
	const struct isolate_search *f = &h->f;
	size_t count = (size_t)f->count * o->repeats;
	struct bench_case *cases = calloc(count, sizeof(*cases));
	struct step step = {.cases = cases};
	json_t *marks = json_array();
	bool on = cases && marks;

	if (!on)
		h->r->status = error_errno(h->r->err, ENOMEM, "%zu cases of an isolation search", count);
	for (; on && step.count < count; step.count++) {
		h->r->status =
			group_case(h, o, &f->test[step.count % f->count], &cases[step.count], h->r->err);
		json_array_append_new(marks, isolate_run_mark(o));
		on = !h->r->status;
	}
	if (on)
		on = run_extend(h->r, &step, "follows", marks);
	else
		json_decref(marks);
	for (size_t i = 0; i < step.count; i++)
		case_release(&cases[i]);
	free(cases);
	return on;
}

bool isolate_run_tests(struct isolate_run *h, unsigned repeats, unsigned *first)
{
	const struct isolate_run_order o = {.r = h->r,
					    .trigger = h->trigger,
					    .fault = h->fault,
					    .traffic = h->f.traffic,
					    .round = isolate_run_round(h),
					    .repeats = repeats,
					    .what = h->f.what};

	*first = h->r->next_id;
	h->tests += h->f.count * repeats;
	h->waves += isolate_run_waves(h, repeats);
	return h->trigger->team ? isolate_ranks_tests(h, &o) : run_tests(h, &o);
}

unsigned isolate_run_round(const struct isolate_run *h)
{
	return h->trigger->team ? isolate_search_team_round(&h->team) : h->f.round;
}

static double variance_of(const double *rate, unsigned n)
{
	struct stats s = stats_of(rate, n);

	return n > 1 && s.mean > 0 ? s.stddev * s.stddev / (s.mean * s.mean) : 0;
}

void isolate_run_answers(struct isolate_run *h, unsigned first)
{
	struct isolate_search *f = &h->f;

	for (unsigned i = 0; i < f->count; i++) {
		struct isolate_search_test *t = &f->test[i];
		double rate[REPEATS_ROOM];
		unsigned n = 0;

		t->ran = t->sound = true;
		for (unsigned k = 0; k < f->repeats; k++) {
			const struct case_outcome *note = &h->r->note[first + k * f->count + i];
			bool wrong = note->status == STATUS_MISMATCH;

			t->wrong = t->wrong || wrong;
			t->sound = t->sound && note->done &&
				   (!note->status || (wrong && h->fault == ISOLATE_SEARCH_WRONG));
			if (note->rate > 0)
				rate[n++] = note->rate;
		}
		t->figure = n ? stats_median(rate, n) : 0;
		t->variance = variance_of(rate, n);
	}
}
