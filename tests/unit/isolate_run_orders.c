/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of a search among launched ranks where they do not come to figures: orders that make no sense, a group
 * that cannot be told, what all skip, a worker that is gone. What the others say is the test's own.
 */
#include "test.h"

#include "core/text/text.h"
#include "machine/machine.h"
#include "probe/registry.h"
#include "run/isolate/run.h"
#include "run/suite/suite.h"
#include "team/control/control.h"

enum { RANKS = 4, ENDS = 16 };
static struct world {
	const char *const *orders; /* rank 0's, one after the other, NULL at the end */
	unsigned gathers, begins;
	struct error agreed; /* on every case */
	enum ending said;    /* of this rank's own */
	struct {
		unsigned id;
		enum ending ending;
		enum cause cause;
		char text[128];
	} end[ENDS];
	unsigned ends;
	struct team_rank rank[RANKS];
	struct team_node node[2];
	struct team_shape shape;
} w;

const struct team_shape *__wrap_control_shape(const struct control *c);
const struct team_shape *__wrap_control_shape(const struct control *c)
{
	(void)c;
	return &w.shape;
}

enum status __wrap_control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
				  struct error *err);
enum status __wrap_control_gather(struct control *c, const char *what, json_t *mine, json_t **all, unsigned limit_ms,
				  struct error *err)
{
	const char *order = w.orders ? w.orders[w.gathers] : "{}";

	(void)c, (void)what, (void)limit_ms, (void)err;
	json_decref(mine);
	assert_non_null(order);
	*all = json_pack("[o]", json_loads(order, 0, NULL));
	assert_non_null(*all);
	w.gathers++;
	return STATUS_OK;
}

enum status __wrap_control_begin(struct control *c, unsigned ordinal, const char *key, const struct error *mine,
				 struct error *agreed, unsigned *generation, unsigned limit_ms, struct error *err);
enum status __wrap_control_begin(struct control *c, unsigned ordinal, const char *key, const struct error *mine,
				 struct error *agreed, unsigned *generation, unsigned limit_ms, struct error *err)
{
	(void)c, (void)ordinal, (void)key, (void)mine, (void)limit_ms, (void)err;
	*agreed = w.agreed;
	*generation = 1;
	w.begins++;
	return STATUS_OK;
}

enum status __wrap_control_end(struct control *c, enum ending mine, enum ending *worst, unsigned *rank,
			       unsigned limit_ms, struct error *err);
enum status __wrap_control_end(struct control *c, enum ending mine, enum ending *worst, unsigned *rank,
			       unsigned limit_ms, struct error *err)
{
	(void)c, (void)limit_ms, (void)err;
	w.said = *worst = mine;
	*rank = 0;
	return STATUS_OK;
}

void __wrap_run_journal(struct run *r, enum journal_type type, json_t *body);
void __wrap_run_journal(struct run *r, enum journal_type type, json_t *body)
{
	(void)r, (void)type;
	json_decref(body);
}

void __wrap_run_end(struct run *r, const struct bench_case *c, enum ending ending, enum status status, enum cause cause,
		    const char *text, const char *place);
void __wrap_run_end(struct run *r, const struct bench_case *c, enum ending ending, enum status status, enum cause cause,
		    const char *text, const char *place)
{
	(void)r, (void)status, (void)place;
	assert_in_range(w.ends, 0, ENDS - 1);
	w.end[w.ends].id = c->id;
	w.end[w.ends].ending = ending;
	w.end[w.ends].cause = cause;
	text_copy(w.end[w.ends++].text, sizeof(w.end[0].text), text);
}

static struct machine *machine;
static struct plan plan;
static struct run r;
static struct run_options options;
static struct run_summary summary;
static struct error err;
static struct isolate_run h;
static struct bench_case *trigger;
static int there;

/* A recorded one that is said to be live: the null probe measures nothing of it. */
static void read_machine(void)
{
	struct machine *recorded = NULL;
	json_t *facts;

	assert_int_equal(machine_read(&recorded, LAYER_SOFTWARE, SOURCE_DIR "/tests/replay/cpu-vm-2core", NULL, &err),
			 STATUS_OK);
	facts = json_deep_copy(machine_json(recorded));
	json_object_set_new(facts, "live", json_true());
	assert_int_equal(machine_from_json(&machine, facts, &err), STATUS_OK);
	json_decref(facts);
	machine_free(recorded);
}

/* Two nodes of two ranks, a case of all; this is rank `rank`. */
static void set(unsigned rank)
{
	static const char cases[] = "name: tiny\ncases:\n  - {probe: 'null', engine: ranks, target: team, phases: burst}\n";
	const struct plan_options wishes = {.team = &w.shape, .rank = rank};
	struct suite *s = NULL;

	w = (struct world){.shape = {.size = RANKS, .nodes = 2, .rank = w.rank, .node = w.node}};
	for (unsigned i = 0; i < RANKS; i++)
		w.rank[i] = (struct team_rank){.node = i / 2, .local_rank = i % 2};
	for (unsigned n = 0; n < 2; n++)
		w.node[n] = (struct team_node){.leader = 2 * n, .ranks = 2};
	err = (struct error){0};
	read_machine();
	if (suite_parse(&s, "tiny.yaml", cases, sizeof(cases) - 1, &err) ||
	    plan_build(&plan, s, machine, probe_list, &wishes, &err))
		fail_msg("%s", err.text);
	suite_free(s);
	options = (struct run_options){
		.dir = "here", .control = (struct control *)&there, .rank = rank, .clock = clock_monotonic()};
	summary = (struct run_summary){0};
	r = (struct run){.plan = &plan,
			 .machine = machine,
			 .registry = probe_list,
			 .o = &options,
			 .out = &summary,
			 .err = &err,
			 .next_id = 1};
	trigger = &plan.steps[0].cases[0];
	if (trigger->skip)
		fail_msg("%s", trigger->skip_reason);
	assert_int_equal(trigger->team, 1);
	assert_int_equal(run_reserve(&r, 1, &err), STATUS_OK);
}

static void clear(void)
{
	free(r.attempt);
	free(r.done);
	free(r.note);
	plan_release(&plan);
	machine_free(machine);
}

static void test_orders__that_make_no_sense_are_passed_over(void **state)
{
	static const char *const orders[] = {
		"{\"round\":1,\"team\":9,\"repeats\":1,\"groups\":[\"team:0-1\"]}", /* no such case */
		"{\"round\":1,\"team\":1,\"repeats\":1,\"groups\":[]}",
		"{\"round\":1,\"team\":1,\"repeats\":1}",
		"{\"round\":1,\"team\":1,\"repeats\":0,\"groups\":[\"team:0-1\"]}",
		"{\"round\":1,\"team\":1,\"repeats\":9,\"groups\":[\"team:0-1\"]}",
		"{\"round\":1,\"team\":9,\"works\":true}",
		"{}", /* the end */
		NULL};

	(void)state;
	set(1);
	w.orders = orders;
	isolate_ranks_follow_rounds(&r);
	assert_int_equal(w.gathers, 7);
	assert_int_equal(w.begins, 0);
	assert_int_equal(r.next_id, 1);
	assert_int_equal(r.status, STATUS_OK);
	clear();
}

/* Two groups, one of each node, at one time. */
static struct isolate_run_order round_of_two(void)
{
	struct isolate_search_layout layout = {.ranks = RANKS, .nodes = 2, .node_of = {0, 0, 1, 1}};
	const struct isolate_search_start s = {.fault = ISOLATE_SEARCH_WRONG, .expected = 1};

	h = (struct isolate_run){.r = &r, .trigger = trigger, .fault = ISOLATE_SEARCH_WRONG, .end_ns = UINT64_MAX, .name = isolate_ranks_name};
	isolate_search_team_whole(&h.team, &h.f, &layout);
	isolate_search_team_begin(&h.team, &s);
	assert_int_equal(h.f.count, 2);
	return (struct isolate_run_order){.r = &r, .trigger = trigger, .fault = ISOLATE_SEARCH_WRONG, .round = 1, .repeats = 1, .what = "two"};
}

static void test_orders__what_all_skip_is_recorded_of_each_group(void **state)
{
	struct isolate_run_order o;

	(void)state;
	set(0);
	o = round_of_two();
	error_set_cause(&w.agreed, STATUS_UNSUPPORTED, CAUSE_NO_MEMORY, "rank 3 on node-b has no room");
	assert_false(isolate_ranks_tests(&h, &o));
	assert_int_equal(w.begins, 1);	/* at one time */
	assert_int_equal(w.gathers, 1); /* the order; nobody is asked for figures */
	assert_int_equal(w.ends, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(w.end[i].id, 1 + i); /* its own, and the other node's */
		assert_int_equal(w.end[i].ending, ENDING_DONE);
		assert_int_equal(w.end[i].cause, CAUSE_NO_MEMORY);
		assert_string_equal(w.end[i].text, "rank 3 on node-b has no room");
	}
	clear();
}

/* Every other of 100 ranks has no room in a target's text. */
static void test_orders__a_group_that_cannot_be_listed_ends_the_search(void **state)
{
	const struct isolate_run_order o = {.r = &r, .repeats = 1, .what = "one"};
	struct isolate_search_layout layout = {.ranks = 100, .nodes = 1};

	(void)state;
	set(0);
	for (unsigned i = 1; i < layout.ranks; i += 2)
		layout.node_of[i] = ISOLATE_SEARCH_NO_MEMBER;
	h = (struct isolate_run){.r = &r, .trigger = trigger};
	isolate_search_team_whole(&h.team, &h.f, &layout);
	assert_false(isolate_ranks_tests(&h, &o));
	assert_string_equal(h.stopped, "the list of a group's ranks is too long");
	assert_int_equal(w.gathers, 0);
	clear();
}

static void test_orders__a_worker_that_fell_between_two_cases(void **state)
{
	struct run_wave v;

	(void)state;
	set(0);
	v = (struct run_wave){.like = trigger, .own = trigger, .again = true, .what = "again"};
	r.team = &r.teams[trigger->engine->launched];
	r.team->any = true;
	r.team->port = 29611;
	assert_true(team_wave_work(&r, &v));
	assert_int_equal(w.ends, 1);
	assert_int_equal(w.end[0].ending, ENDING_NOT_RUN);
	assert_string_equal(w.end[0].text, "this rank's worker died between two cases");
	assert_int_equal(w.said, ENDING_CRASHED);
	assert_false(r.team->any); /* the next ones are new */
	clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders__that_make_no_sense_are_passed_over),
		cmocka_unit_test(test_orders__what_all_skip_is_recorded_of_each_group),
		cmocka_unit_test(test_orders__a_group_that_cannot_be_listed_ends_the_search),
		cmocka_unit_test(test_orders__a_worker_that_fell_between_two_cases),
	};

	return cmocka_run_group_tests_name("hunt_orders", tests, NULL, NULL);
}
