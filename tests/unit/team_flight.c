/* SPDX-License-Identifier: Apache-2.0 */
/* The flight record of a rank's collectives, and who is named by the records of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include "core/clock.h"
#include "team/links/flight.h"
#include "team/links/wait_board.h"

struct bed {
	struct team_board *read, *written;
	int fd;
};

static int make(void **state)
{
	static struct bed b;

	b.read = team_board_create(&b.fd);
	assert_non_null(b.read);
	b.written = team_board_open(b.fd);
	assert_non_null(b.written);
	*state = &b;
	return 0;
}

static int destroy(void **state)
{
	struct bed *b = *state;

	team_board_destroy(&b->read, &b->fd);
	return 0;
}

static uint64_t now(void)
{
	return clock_now_ns(clock_monotonic());
}

static void test_flight__counts_what_was_asked_begun_and_ended(void **state)
{
	struct bed *b = *state;
	struct team_flight_state f;

	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_int_equal(f.asked, 0);
	for (int i = 0; i < TEAM_FLIGHT_ENTRIES + 3; i++) { /* the record goes round */
		team_flight_ask(b->written, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, TEAM_FLIGHT_NO_LAYER);
		team_flight_begin(b->written, TEAM_FLIGHT_OF_ALL);
		team_flight_end(b->written, TEAM_FLIGHT_OF_ALL);
	}
	team_flight_ask(b->written, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_ALL_REDUCE, 4096, 17);
	team_flight_begin(b->written, TEAM_FLIGHT_OF_ALL);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now() + 5000000000u));
	assert_int_equal(f.asked, TEAM_FLIGHT_ENTRIES + 4);
	assert_int_equal(f.begun, TEAM_FLIGHT_ENTRIES + 4);
	assert_int_equal(f.ended, TEAM_FLIGHT_ENTRIES + 3);
	assert_int_equal(f.kind, TEAM_FLIGHT_ALL_REDUCE);
	assert_true(f.bytes == 4096 && f.layer == 17 && f.since_s >= 5);
	assert_true(f.given_s == -1 && f.worked_s == -1);
	team_flight_give(b->written);
	team_flight_worked(b->written);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now() + 7000000000u));
	assert_true(f.given_s >= 7 && f.worked_s >= 7 && f.given_s >= f.worked_s);
	team_flight_ask(NULL, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, 0); /* no board: nothing happens */
	assert_false(team_flight_read(&f, NULL, TEAM_FLIGHT_OF_ALL, now()));
}

static void test_flight__what_a_copy_does_is_counted_apart(void **state)
{
	struct bed *b = *state;
	struct team_flight_state f;

	for (int i = 0; i < 3; i++)
		team_flight_ask(b->written, TEAM_FLIGHT_OF_COPY, TEAM_FLIGHT_ACTIVATIONS, 64, 2);
	team_flight_begin(b->written, TEAM_FLIGHT_OF_COPY);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_int_equal(f.asked, 0);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_COPY, now()));
	assert_true(f.asked == 3 && f.begun == 1 && f.ended == 0 && f.kind == TEAM_FLIGHT_ACTIVATIONS);
}

static void test_flight__impossible_records_are_not_believed(void **state)
{
	struct bed *b = *state;
	struct team_flight *raw = (struct team_flight *)(void *)(b->written + TEAM_BOARD_RANKS);
	struct team_flight_state f;

	team_flight_ask(b->written, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, TEAM_FLIGHT_NO_LAYER);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	atomic_store(&raw->of[TEAM_FLIGHT_OF_ALL].begun, 5);
	assert_false(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	atomic_store(&raw->of[TEAM_FLIGHT_OF_ALL].begun, 0);
	atomic_store(&raw->of[TEAM_FLIGHT_OF_ALL].entry[1].kind, TEAM_FLIGHT_COUNT);
	assert_false(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	atomic_store(&raw->of[TEAM_FLIGHT_OF_ALL].entry[1].kind, TEAM_FLIGHT_GATHER);
	atomic_store(&raw->of[TEAM_FLIGHT_OF_ALL].entry[1].layer, -2);
	assert_false(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
}

static void test_flight__the_rank_behind_is_named(void **state)
{
	struct team_flight_state f[4] = {
		{.asked = 9, .begun = 9}, {.asked = 9, .begun = 9}, {.asked = 9, .begun = 8}, {0}};
	const bool known[4] = {true, true, true, false}; /* rank 3 has no record */

	(void)state;
	assert_int_equal(team_flight_behind(f, known, 4), 2);
	f[2].begun = 9;
	assert_int_equal(team_flight_behind(f, known, 4), -1);
	f[1].asked = f[1].begun = 8; /* the others have asked, and compare before they begin */
	f[0].begun = f[2].begun = 8;
	assert_int_equal(team_flight_behind(f, known, 4), 1);
	f[0] = f[1] =
		(struct team_flight_state){.asked = 8, .begun = 8, .ended = 7}; /* still in the last one */
	f[1].ended = 8;
	assert_int_equal(team_flight_behind(f, known, 4), 1);
}

/* Six ranks in three copies of two. */
static void test_flight__the_rank_behind_in_its_copy_is_named(void **state)
{
	struct team_flight_state all[6], copy[6];
	const bool known[6] = {true, true, true, true, true, true};
	struct team_flight_found found;

	(void)state;
	for (int r = 0; r < 6; r++) {
		all[r] = (struct team_flight_state){.asked = 9, .begun = 9, .ended = 8};
		copy[r] = (struct team_flight_state){.asked = 50 + (unsigned)r / 2,
						     .begun = 50 + (unsigned)r / 2,
						     .ended = 50 + (unsigned)r / 2};
	}
	found = team_flight_behind_copies(all, copy, known, 6, 2);
	assert_int_equal(found.rank, -1);
	all[2].asked = all[2].begun = all[3].asked = all[3].begun = 8; /* rank 2 waits for rank 3 */
	all[2].ended = all[3].ended = 8;
	copy[2].asked = copy[2].begun = 61;
	copy[2].ended = copy[3].asked = copy[3].begun = copy[3].ended = 60;
	found = team_flight_behind_copies(all, copy, known, 6, 2);
	assert_true(found.rank == 3 && found.within && !found.shared);
	assert_int_equal(team_flight_behind(all, known, 6), 2); /* the count of all ranks is not enough */
	copy[3] = copy[2];					/* both are in one collective of their copy */
	found = team_flight_behind_copies(all, copy, known, 6, 2);
	assert_true(found.rank == 2 && !found.within && found.shared);
	all[2].asked = all[2].begun = 9; /* rank 3 alone is behind, whatever its copy did */
	found = team_flight_behind_copies(all, copy, known, 6, 2);
	assert_true(found.rank == 3 && !found.within && !found.shared);
	all[3].asked = all[3].begun = 9; /* all have entered the same collective of all ranks */
	all[3].ended = all[2].ended = 8;
	copy[5].asked--;
	copy[4].begun = 52;
	found = team_flight_behind_copies(all, copy, known, 6, 2);
	assert_true(found.rank == 5 && found.within);
	found = team_flight_behind_copies(all, copy, known, 6, 1); /* no copies are shared */
	assert_int_equal(found.rank, -1);
}

static void test_flight__a_mismatch_is_found(void **state)
{
	struct team_flight_state f[3] = {{.asked = 9, .kind = TEAM_FLIGHT_GATHER, .bytes = 8},
					 {.asked = 9, .kind = TEAM_FLIGHT_GATHER, .bytes = 8},
					 {.asked = 9, .kind = TEAM_FLIGHT_GATHER, .bytes = 8}};
	const bool known[3] = {true, true, true};
	unsigned a, b;

	(void)state;
	assert_false(team_flight_differs(f, known, 3, &a, &b));
	f[2].bytes = 16;
	assert_true(team_flight_differs(f, known, 3, &a, &b));
	assert_true(a == 0 && b == 2);
	f[2].bytes = 8;
	f[1].kind = TEAM_FLIGHT_ALL_REDUCE;
	assert_true(team_flight_differs(f, known, 3, &a, &b));
	assert_true(a == 0 && b == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flight__counts_what_was_asked_begun_and_ended, make,
						destroy),
		cmocka_unit_test_setup_teardown(test_flight__what_a_copy_does_is_counted_apart, make,
						destroy),
		cmocka_unit_test_setup_teardown(test_flight__impossible_records_are_not_believed, make,
						destroy),
		cmocka_unit_test(test_flight__the_rank_behind_is_named),
		cmocka_unit_test(test_flight__the_rank_behind_in_its_copy_is_named),
		cmocka_unit_test(test_flight__a_mismatch_is_found),
	};

	return cmocka_run_group_tests_name("team_flight", tests, NULL, NULL);
}
