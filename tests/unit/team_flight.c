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

static void ask(struct bed *b, enum team_flight_of of, enum team_flight_kind kind, uint64_t bytes,
		int32_t layer)
{
	team_flight_ask(b->written, of,
			&(struct team_flight_named){.kind = kind, .bytes = bytes, .layer = layer});
}

static void test_flight__counts_what_was_asked_begun_and_ended(void **state)
{
	struct bed *b = *state;
	struct team_flight_state f;

	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_int_equal(f.asked, 0);
	for (int i = 0; i < TEAM_FLIGHT_ENTRIES + 3; i++) { /* the record goes round */
		ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, TEAM_FLIGHT_NO_LAYER);
		team_flight_begin(b->written, TEAM_FLIGHT_OF_ALL);
		team_flight_end(b->written, TEAM_FLIGHT_OF_ALL);
	}
	ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_ALL_REDUCE, 4096, 17);
	team_flight_begin(b->written, TEAM_FLIGHT_OF_ALL);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now() + 5000000000u));
	assert_int_equal(f.asked, TEAM_FLIGHT_ENTRIES + 4);
	assert_int_equal(f.begun, TEAM_FLIGHT_ENTRIES + 4);
	assert_int_equal(f.ended, TEAM_FLIGHT_ENTRIES + 3);
	assert_int_equal(f.last.kind, TEAM_FLIGHT_ALL_REDUCE);
	assert_true(f.last.bytes == 4096 && f.last.layer == 17 && f.since_s >= 5);
	assert_true(f.given_s == -1 && f.worked_s == -1);
	team_flight_give(b->written);
	team_flight_worked(b->written);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now() + 7000000000u));
	assert_true(f.given_s >= 7 && f.worked_s >= 7 && f.given_s >= f.worked_s);
	team_flight_ask(NULL, TEAM_FLIGHT_OF_ALL, &f.last); /* no board: nothing happens */
	assert_false(team_flight_read(&f, NULL, TEAM_FLIGHT_OF_ALL, now()));
}

static void test_flight__what_a_copy_does_is_counted_apart(void **state)
{
	struct bed *b = *state;
	struct team_flight_state f;

	for (int i = 0; i < 3; i++)
		ask(b, TEAM_FLIGHT_OF_COPY, TEAM_FLIGHT_ACTIVATIONS, 64, 2);
	team_flight_begin(b->written, TEAM_FLIGHT_OF_COPY);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_int_equal(f.asked, 0);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_COPY, now()));
	assert_true(f.asked == 3 && f.begun == 1 && f.ended == 0 && f.last.kind == TEAM_FLIGHT_ACTIVATIONS);
}

/* Writes as the stream of a device does. */
static void device_is_at(struct bed *b, uint32_t reached, uint32_t left)
{
	struct team_flight_words *w = &team_flight_words(b->written)[TEAM_FLIGHT_OF_ALL];

	atomic_store(&w->reached, reached);
	atomic_store(&w->left, left);
}

static void test_flight__the_device_says_what_it_reached(void **state)
{
	struct bed *b = *state;
	struct team_flight *raw = (struct team_flight *)(void *)(b->written + TEAM_BOARD_RANKS);
	struct team_flight_state f;

	team_flight_by_device(b->written, true);
	for (int i = 1; i <= 3; i++) /* the host is ahead of its device */
		team_flight_ask(b->written, TEAM_FLIGHT_OF_ALL,
				&(struct team_flight_named){TEAM_FLIGHT_ALL_REDUCE,
							    TEAM_FLIGHT_STREAM_COMMUNICATION, 64u * i, i});
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_true(f.asked == 3 && f.begun == 0 && f.ended == 0 && f.at.kind == TEAM_FLIGHT_NONE);
	assert_true(team_flight_before(&f) && !team_flight_inside(&f));
	device_is_at(b, 2, 1);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_true(f.by_device && f.asked == 3 && f.begun == 2 && f.ended == 1);
	assert_true(f.at.bytes == 128 && f.at.layer == 2 && f.at.stream == TEAM_FLIGHT_STREAM_COMMUNICATION);
	assert_true(f.last.bytes == 192 && f.last.layer == 3);
	assert_true(team_flight_inside(&f) && !team_flight_before(&f));
	device_is_at(b, 2, 2);
	ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, TEAM_FLIGHT_NO_LAYER);
	team_flight_begin_all(b->written, TEAM_FLIGHT_OF_ALL); /* a collective of the host counts, too */
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_true(f.begun == 4 && f.ended == 2 && f.at.kind == TEAM_FLIGHT_GATHER);
	team_flight_end_all(b->written, TEAM_FLIGHT_OF_ALL);
	device_is_at(b, 5, 2); /* more than was asked for */
	assert_false(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	team_flight_by_device(b->written, false);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_true(!f.by_device && f.begun == 4 && f.ended == 4);
	/* numbers of more bits than the device's words have */
	team_flight_by_device(b->written, true);
	atomic_store(&raw->of[TEAM_FLIGHT_OF_ALL].asked, UINT64_C(0x300000001));
	ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, TEAM_FLIGHT_NO_LAYER);
	device_is_at(b, 1, 0xffffffff);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, now()));
	assert_true(f.begun == UINT64_C(0x300000001) && f.ended == UINT64_C(0x2ffffffff));
}

static void test_flight__the_supervisor_notes_when_the_device_got_there(void **state)
{
	struct bed *b = *state;
	struct team_flight_state f;
	const uint64_t asked = now() + 1000000000u;

	team_flight_by_device(b->written, true);
	for (int i = 0; i < 2 * TEAM_FLIGHT_ENTRIES; i++)
		ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_ALL_REDUCE, 64, 0);
	device_is_at(b, 2 * TEAM_FLIGHT_ENTRIES - 2, 2 * TEAM_FLIGHT_ENTRIES - 3);
	team_flight_note(b->read, asked + 10000000000u);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, asked + 15000000000u));
	assert_float_equal(f.since_s, 5, 1e-6);
	team_flight_note(b->read, asked + 13000000000u); /* nothing has changed */
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, asked + 15000000000u));
	assert_float_equal(f.since_s, 5, 1e-6);
	device_is_at(b, 2 * TEAM_FLIGHT_ENTRIES - 2, 2 * TEAM_FLIGHT_ENTRIES - 2);
	team_flight_note(b->read, asked + 14000000000u);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, asked + 15000000000u));
	assert_float_equal(f.since_s, 1, 1e-6);
	team_flight_note(NULL, asked);
}

static void test_flight__a_device_may_be_far_behind_its_host(void **state)
{
	struct bed *b = *state;
	struct team_flight_state f;
	const uint64_t asked = now() + 1000000000u;

	team_flight_by_device(b->written, true);
	for (int i = 0; i < 3 * TEAM_FLIGHT_ENTRIES; i++)
		ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_ALL_REDUCE, 64, 0);
	device_is_at(b, 10, 9); /* their entries belong to later numbers */
	team_flight_note(b->read, asked + 10000000000u);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, asked + 15000000000u));
	assert_true(f.begun == 10 && f.ended == 9 && f.at.kind == TEAM_FLIGHT_NONE);
	assert_float_equal(f.since_s, 5, 1e-6);
	team_flight_note(b->read, asked + 12000000000u); /* nothing has changed */
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, asked + 15000000000u));
	assert_float_equal(f.since_s, 5, 1e-6);
	device_is_at(b, 10, 10);
	team_flight_note(b->read, asked + 13000000000u);
	assert_true(team_flight_read(&f, b->read, TEAM_FLIGHT_OF_ALL, asked + 15000000000u));
	assert_float_equal(f.since_s, 2, 1e-6);
}

static void test_flight__the_rank_whose_device_is_behind_is_named(void **state)
{
	struct team_flight_state f[3];
	const bool known[3] = {true, true, true};

	(void)state;
	for (int r = 0; r < 3; r++) /* the hosts are ahead, by different numbers */
		f[r] = (struct team_flight_state){
			.asked = 20 - (unsigned)r, .begun = 12, .ended = 11, .by_device = true};
	assert_int_equal(team_flight_behind(f, known, 3), -1); /* all are inside of one collective */
	f[0].begun = 11;				       /* its own work before it has not ended */
	assert_int_equal(team_flight_behind(f, known, 3), 0);
	f[0].begun = f[0].ended = 12; /* it alone has left it: the link of the others hangs */
	assert_int_equal(team_flight_behind(f, known, 3), -1);
	f[1].ended = 12; /* rank 2 alone has not */
	assert_int_equal(team_flight_behind(f, known, 3), 2);
	f[2].ended = 12;
	assert_int_equal(team_flight_behind(f, known, 3), -1);
	f[1].asked = 12; /* its host has not asked for the next one */
	assert_int_equal(team_flight_behind(f, known, 3), 1);
}

/* Two copies of two ranks: the device of rank 3 has not reached a collective of its copy. Its host is ahead
 * of that of rank 2. */
static void test_flight__the_rank_whose_device_is_behind_in_its_copy_is_named(void **state)
{
	struct team_flight_state all[4], copy[4];
	const bool known[4] = {true, true, true, true};
	struct team_flight_found found;

	(void)state;
	for (int r = 0; r < 4; r++) {
		all[r] = (struct team_flight_state){.asked = 9, .begun = 9, .ended = 8, .by_device = true};
		copy[r] =
			(struct team_flight_state){.asked = 50, .begun = 50, .ended = 50, .by_device = true};
	}
	all[2].asked = all[2].begun = all[3].begun = all[2].ended = all[3].ended = 8;
	copy[2].begun = 40;
	copy[2].ended = copy[3].begun = copy[3].ended = 39;
	found = team_flight_behind_copies(all, copy, known, 4, 2);
	assert_true(found.rank == 3 && found.within && !found.shared);
	copy[3].begun = 40; /* both are inside of it: their link */
	found = team_flight_behind_copies(all, copy, known, 4, 2);
	assert_true(found.rank == 2 && !found.within && found.shared);
}

static void test_flight__impossible_records_are_not_believed(void **state)
{
	struct bed *b = *state;
	struct team_flight *raw = (struct team_flight *)(void *)(b->written + TEAM_BOARD_RANKS);
	struct team_flight_state f;

	ask(b, TEAM_FLIGHT_OF_ALL, TEAM_FLIGHT_GATHER, 8, TEAM_FLIGHT_NO_LAYER);
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
	f[0].ended = f[1].ended = f[2].ended = 8;
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
	copy[5].asked = copy[5].begun = copy[5].ended = 51;
	found = team_flight_behind_copies(all, copy, known, 6, 2);
	assert_true(found.rank == 5 && found.within);
	found = team_flight_behind_copies(all, copy, known, 6, 1); /* no copies are shared */
	assert_int_equal(found.rank, -1);
}

static void test_flight__a_mismatch_is_found(void **state)
{
	const struct team_flight_state gather = {.asked = 9,
						 .last = {.kind = TEAM_FLIGHT_GATHER, .bytes = 8}};
	struct team_flight_state f[3] = {gather, gather, gather};
	const bool known[3] = {true, true, true};
	unsigned a, b;

	(void)state;
	assert_false(team_flight_differs(f, known, 3, &a, &b));
	f[2].last.bytes = 16;
	assert_true(team_flight_differs(f, known, 3, &a, &b));
	assert_true(a == 0 && b == 2);
	f[2].last.bytes = 8;
	f[1].last.kind = TEAM_FLIGHT_ALL_REDUCE;
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
		cmocka_unit_test_setup_teardown(test_flight__the_device_says_what_it_reached, make, destroy),
		cmocka_unit_test_setup_teardown(test_flight__the_supervisor_notes_when_the_device_got_there,
						make, destroy),
		cmocka_unit_test_setup_teardown(test_flight__a_device_may_be_far_behind_its_host, make,
						destroy),
		cmocka_unit_test(test_flight__the_rank_whose_device_is_behind_is_named),
		cmocka_unit_test(test_flight__the_rank_whose_device_is_behind_in_its_copy_is_named),
		cmocka_unit_test_setup_teardown(test_flight__impossible_records_are_not_believed, make,
						destroy),
		cmocka_unit_test(test_flight__the_rank_behind_is_named),
		cmocka_unit_test(test_flight__the_rank_behind_in_its_copy_is_named),
		cmocka_unit_test(test_flight__a_mismatch_is_found),
	};

	return cmocka_run_group_tests_name("team_flight", tests, NULL, NULL);
}
