/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of collectives before they are entered, with ranks that are threads. */
#include "train/mesh/collective_table.h"
#include <pthread.h>
#include "model/backend/comm.h"
#include "test.h"

enum { RANKS = 3, STEPS = 6, EACH = 4 /* collectives of a step */ };

/* The steps of the ranks, and the difference of the odd one. */
struct world {
	struct team team[RANKS];
	unsigned odd;  /* RANKS: none */
	uint64_t step; /* from which it differs */
	enum { SAME, SIZE, TYPE, ORDER, FEWER, MORE, PART, SHAPE } how;
	uint64_t shapes; /* kinds of steps that take turns */
	bool evaluates;	 /* collectives that are compared one by one, after each step */
};
struct rank {
	struct world *w;
	unsigned number;
	enum status st;
	struct error err;
	uint64_t gathers, entered;
};

static enum status step(struct rank *r, struct collective_table *t, uint64_t number)
{
	const struct world *w = r->w;
	const bool odd = r->number == w->odd && number >= w->step;
	const uint64_t shape = number % w->shapes + (odd && w->how == SHAPE);
	const unsigned each = EACH + (odd && w->how == MORE) - (odd && w->how == FEWER);
	enum status st = collective_table_part(t, odd && w->how == PART ? "evaluation" : "step", number,
					       shape, &r->err);

	for (unsigned i = 0; i < each && !st; i++) {
		struct collective c = {.kind = i == 2 ? TEAM_FLIGHT_GATHER : TEAM_FLIGHT_ALL_REDUCE,
				       .type = 1,
				       .bytes = 100 * (i + 1) + shape};

		if (odd && i == 1 && w->how == SIZE)
			c.bytes++;
		if (odd && i == 1 && w->how == TYPE)
			c.type = 2;
		if (odd && i < 2 && w->how == ORDER)
			c.bytes = 100 * (2 - i) + shape;
		st = collective_table_enter(t, &c, &r->err);
		r->entered += !st;
	}
	if (!st && w->evaluates)
		st = collective_table_part(t, "after step", number, COMM_PART_ONCE, &r->err);
	if (!st && w->evaluates)
		st = collective_table_enter(
			t, &(struct collective){.kind = TEAM_FLIGHT_GATHER, .bytes = 8 * number}, &r->err);
	return st;
}

static void *work(void *arg)
{
	struct rank *r = arg;
	struct team *team = &r->w->team[r->number];
	struct collective_table *t;

	snprintf(team->name, sizeof(team->name), "rank %u on a node", r->number);
	r->st = collective_table_create(&t, team, &r->err);
	for (uint64_t s = 1; s <= STEPS && !r->st; s++)
		r->st = step(r, t, s);
	if (!r->st)
		r->st = collective_table_quiet(t, &r->err);
	else /* a rank that ends lets nobody wait */
		team_leave(team, &r->err);
	r->gathers = collective_table_gathers(t);
	collective_table_free(&t);
	return NULL;
}

static void run(struct world *w, struct rank ranks[RANKS])
{
	pthread_t thread[RANKS];
	struct error err = {0};

	w->shapes = w->shapes ? w->shapes : 1;
	assert_int_equal(team_threads_create(w->team, RANKS, &err), STATUS_OK);
	for (unsigned r = 0; r < RANKS; r++) {
		ranks[r] = (struct rank){.w = w, .number = r};
		assert_int_equal(pthread_create(&thread[r], NULL, work, &ranks[r]), 0);
	}
	for (unsigned r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	team_threads_end(w->team);
	team_threads_destroy(w->team);
}

static void test_collective_table__equal_ranks_compare_once_per_step(void **state)
{
	struct world w = {.odd = RANKS, .shapes = 2, .evaluates = true};
	struct rank ranks[RANKS];

	(void)state;
	run(&w, ranks);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_int_equal(ranks[r].st, STATUS_OK);
		assert_int_equal(ranks[r].entered, STEPS * EACH);
		/* one per step, one per collective of the first step of each shape, one per evaluation */
		assert_int_equal(ranks[r].gathers, STEPS + 2 * EACH + STEPS);
	}
}

/* All ranks see it in the first step of a kind: the odd one against two others. */
static void test_collective_table__differences_in_a_first_step_are_named_by_all(void **state)
{
	static const int kinds[] = {SIZE, TYPE, ORDER, PART, SHAPE};
	struct rank ranks[RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (unsigned odd = 0; odd < RANKS; odd++) {
			struct world w = {.odd = odd, .step = 1, .how = kinds[i]};
			char name[16];

			run(&w, ranks);
			snprintf(name, sizeof(name), "rank %u ", odd);
			for (unsigned r = 0; r < RANKS; r++) {
				assert_int_equal(ranks[r].st, STATUS_BUG);
				assert_non_null(strstr(ranks[r].err.text, name));
				assert_non_null(strstr(ranks[r].err.text, "2 other ranks"));
				assert_true(ranks[r].entered < 2);
			}
		}
}

/* Later the odd rank itself sees it, without a message, before it enters. */
static void test_collective_table__a_rank_that_leaves_the_table_is_named(void **state)
{
	static const struct {
		int how;
		uint64_t entered;
		const char *text;
	} kinds[] = {
		{SIZE, 3 * EACH + 1,
		 "number 2 of step 4 is (all-reduce of the gradient, 201 bytes of F32), and (all-reduce of the gradient, "
		 "200 bytes of F32) in the table"},
		{TYPE, 3 * EACH + 1, "number 2 of step 4"},
		{ORDER, 3 * EACH, "number 1 of step 4"},
		{FEWER, 4 * EACH - 1, "number 4 of step 4 is (missing)"},
		{MORE, 4 * EACH, "number 5 of step 4"},
	};
	struct rank ranks[RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct world w = {.odd = 1, .step = 4, .how = kinds[i].how};

		run(&w, ranks);
		assert_int_equal(ranks[1].st, STATUS_BUG);
		assert_int_equal(ranks[1].entered, kinds[i].entered);
		assert_non_null(strstr(ranks[1].err.text, "rank 1 on a node asks for another collective"));
		assert_non_null(strstr(ranks[1].err.text, kinds[i].text));
	}
}

/* A part that was agreed on is not the part of the others. */
static void test_collective_table__another_part_is_named(void **state)
{
	struct world w = {.odd = 2, .step = 3, .how = PART};
	struct rank ranks[RANKS];

	(void)state;
	run(&w, ranks);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_int_equal(ranks[r].st, STATUS_BUG);
		assert_non_null(
			strstr(ranks[r].err.text, "rank 2 begins another part of the run: evaluation 3"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collective_table__equal_ranks_compare_once_per_step),
		cmocka_unit_test(test_collective_table__differences_in_a_first_step_are_named_by_all),
		cmocka_unit_test(test_collective_table__a_rank_that_leaves_the_table_is_named),
		cmocka_unit_test(test_collective_table__another_part_is_named),
	};

	return cmocka_run_group_tests_name("train_collective_table", tests, NULL, NULL);
}
