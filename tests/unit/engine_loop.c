/* SPDX-License-Identifier: Apache-2.0 */
/* The engine behind a socket, as a front end sees it. */
#include "engine_bed.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "engine/engine_loop.h"
#include "engine/frame/frame.h"
#include "engine/step/step_cost.h"

enum { EPOCH = 5, TEXT = 20 };
static const int32_t text[TEXT] = {7, 23, 16, 36, 5, 30, 21, 13, 37, 2, 9, 11, 20, 8, 3, 1, 22, 14, 29, 31};

struct peer {
	struct engine_loop loop;
	struct frame_link *link;
	pthread_t thread;
	enum status ended;
	struct error error;
	struct heard h[FEW];
	bool ready;
	int beats, long_beats;		/* heartbeats; those that predict a time */
	volatile int calls, long_calls; /* of alive() */
	char path[512];
};

static void alive(void *arg, double expected_s)
{
	struct peer *p = arg;

	p->calls++;
	p->long_calls += expected_s > 0;
}

static void *run(void *arg)
{
	struct peer *p = arg;

	p->ended = engine_loop(&p->loop, &p->error);
	return NULL;
}

static void peer_open_held(struct peer *p, double long_step_s, uint64_t (*hold)(const struct engine *engine))
{
	struct engine_options o;
	struct error err = {0};
	int ends[2];

	*p = (struct peer){0};
	o = bed_options(p->path, "llama");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	p->loop = (struct engine_loop){.engine = bed_engine(&o),
				       .fd = ends[1],
				       .epoch = EPOCH,
				       .alive = alive,
				       .arg = p,
				       .hold = hold,
				       .long_step_s = long_step_s};
	must(frame_link_create(&p->link, ends[0], EPOCH, 0, &err), &err);
	assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
}

static void peer_open(struct peer *p, double long_step_s)
{
	peer_open_held(p, long_step_s, NULL);
}

static void take(struct peer *p, const struct frame_message *m)
{
	switch (m->kind) {
	case FRAME_READY:
		p->ready = true;
		assert_int_equal(m->ready.vocab, BED_VOCAB);
		break;
	case FRAME_HEARTBEAT:
		p->beats++;
		p->long_beats += m->heartbeat.expected_ns > 0;
		break;
	case FRAME_STEP:
		for (size_t i = 0; i < m->step.count; i++)
			bed_hear(&p->h[m->step.events[i].id - 1], &m->step.events[i]);
		break;
	default:
		fail_msg("a frame of kind %d", (int)m->kind);
	}
}

/* Receives for a while. False: the engine has closed the socket. */
static bool receive(struct peer *p)
{
	struct pollfd in = {.fd = frame_link_fd(p->link), .events = POLLIN};
	struct frame_message m;
	struct error err = {0};
	bool got = true;

	poll(&in, 1, 100);
	while (got) {
		enum status st = frame_receive(p->link, &m, &got, &err);

		if (st == STATUS_UNAVAILABLE)
			return false;
		must(st, &err);
		if (got)
			take(p, &m);
	}
	return true;
}

static void send_request(struct peer *p, uint64_t id, int64_t tokens)
{
	const struct engine_request r = bed_request(id, text, TEXT, tokens);
	struct error err = {0};

	must(frame_send_request(p->link, &r, &err), &err);
}

static void await_end(struct peer *p, uint64_t id)
{
	while (!p->h[id - 1].ends)
		assert_true(receive(p));
}

static void peer_close(struct peer *p, enum status ended)
{
	frame_link_destroy(&p->link);
	pthread_join(p->thread, NULL);
	if (p->ended != ended)
		fail_msg("%s: %s", status_name(p->ended), p->error.text);
	engine_destroy(&p->loop.engine);
}

static void test_loop__answers_cancels_and_drains(void **state)
{
	struct error err = {0};
	struct peer p;

	(void)state;
	peer_open(&p, 0);
	send_request(&p, 1, 6);
	send_request(&p, 2, 90);
	must(frame_send_cancel(p.link, 2, &err), &err);
	await_end(&p, 1);
	await_end(&p, 2);
	assert_true(p.ready);
	assert_int_equal(p.h[0].last.end, ENGINE_END_LENGTH);
	assert_int_equal(p.h[0].tokens, 6);
	send_request(&p, 3, 90);
	must(frame_send_drain(p.link, &err), &err);
	send_request(&p, 4, 1); /* after the drain: refused, if the engine still reads it */
	while (receive(&p))
		;
	assert_int_equal(p.h[2].last.end, ENGINE_END_LENGTH);
	if (p.h[3].ends) {
		assert_int_equal(p.h[3].last.end, ENGINE_END_REFUSED);
		assert_string_equal(p.h[3].last.text, "the server is shutting down");
	}
	assert_int_equal(p.long_beats + p.long_calls, 0);
	peer_close(&p, STATUS_OK);
}

/* Every step is long here: each is announced before it begins, to both processes. */
static void test_loop__long_steps_are_announced(void **state)
{
	struct peer p;

	(void)state;
	peer_open(&p, 1e-12);
	send_request(&p, 1, 10);
	await_end(&p, 1);
	assert_true(p.long_beats >= 10);
	peer_close(&p, STATUS_OK);
	assert_true(p.long_calls >= 10);
}

static void test_loop__an_idle_engine_has_a_heartbeat(void **state)
{
	struct peer p;

	(void)state;
	peer_open(&p, 0);
	while (p.beats < 2)
		assert_true(receive(&p));
	assert_int_equal(p.long_beats, 0);
	peer_close(&p, STATUS_OK);
	assert_true(p.calls >= 2);
}

static void test_loop__a_front_end_that_is_gone_ends_it(void **state)
{
	struct peer p;

	(void)state;
	peer_open(&p, 0);
	send_request(&p, 1, 90);
	while (!p.h[0].tokens)
		assert_true(receive(&p));
	peer_close(&p, STATUS_OK);
}

static void test_loop__a_wrong_frame_ends_it(void **state)
{
	static const struct frame_heartbeat wrong = {.step = 1};
	struct error err = {0};
	struct peer p;

	(void)state;
	peer_open(&p, 0);
	must(frame_send_heartbeat(p.link, &wrong, &err), &err);
	while (receive(&p))
		;
	peer_close(&p, STATUS_BAD_INPUT);
	if (!strstr(p.error.text, "the front end sent a frame of kind"))
		fail_msg("%s", p.error.text);
}

static volatile uint64_t steps_before_second; /* steps when the engine had its second request */

/* The second step waits until there are two requests. */
static uint64_t until_two(const struct engine *e)
{
	const struct engine_facts f = engine_facts(e);

	if (f.steps == 0 || steps_before_second)
		return 0;
	if (f.running + f.waiting + (int64_t)f.ended < 2)
		return UINT64_MAX;
	steps_before_second = f.steps;
	return 0;
}

static void test_loop__a_request_that_comes_during_a_step_joins_the_next(void **state)
{
	struct peer p;

	(void)state;
	steps_before_second = 0;
	peer_open_held(&p, 0, until_two);
	send_request(&p, 1, 6);
	while (!p.h[0].tokens)
		assert_true(receive(&p));
	while (p.beats < 2) /* a loop that waits is alive */
		assert_true(receive(&p));
	assert_int_equal(p.h[0].tokens, 1);
	send_request(&p, 2, 6);
	await_end(&p, 1);
	await_end(&p, 2);
	assert_int_equal(p.h[0].tokens, 6);
	assert_int_equal(p.h[1].tokens, 6);
	assert_int_equal(steps_before_second, 1);
	peer_close(&p, STATUS_OK);
}

static void test_loop__a_front_end_that_is_gone_ends_a_wait(void **state)
{
	struct peer p;

	(void)state;
	steps_before_second = 0;
	peer_open_held(&p, 0, until_two);
	send_request(&p, 1, 90);
	while (!p.h[0].tokens)
		assert_true(receive(&p));
	peer_close(&p, STATUS_OK);
}

static volatile bool released;

/* The loop waits after the first step until it is released. */
static uint64_t until_released(const struct engine *e)
{
	return engine_facts(e).steps && !released ? UINT64_MAX : 0;
}

static void test_loop__a_request_that_is_cancelled_during_a_wait_ends(void **state)
{
	struct error err = {0};
	struct peer p;

	(void)state;
	released = false;
	peer_open_held(&p, 0, until_released);
	send_request(&p, 1, 90);
	while (!p.h[0].tokens)
		assert_true(receive(&p));
	must(frame_send_cancel(p.link, 1, &err), &err);
	await_end(&p, 1);
	assert_int_equal(p.h[0].last.end, ENGINE_END_CANCELLED);
	assert_int_equal(p.h[0].tokens, 1);
	released = true;
	peer_close(&p, STATUS_OK);
}

/* A share of the predicted time without two milliseconds, and no longer after slow steps. */
static void test_loop__how_long_a_plan_can_wait(void **state)
{
	const struct step_prediction fixed = {.fixed_ns = 20e6}, rows = {.rows_ns = 20e6};
	const struct step_prediction both = {.fixed_ns = 400e6, .rows_ns = 20e6}, few = {.fixed_ns = 1e3};
	struct step_cost c = {.fixed = 0.8, .rows = 0.8};

	(void)state;
	assert_int_equal(step_cost_hold_ns(&c, &fixed, 0.5), 8000000);
	assert_int_equal(step_cost_hold_ns(&c, &rows, 0.5), 8000000);
	assert_int_equal(step_cost_hold_ns(&c, &fixed, 0), 0);
	assert_int_equal(step_cost_hold_ns(&c, &few, 0.5), 0);
	c.fixed = 40;
	assert_int_equal(step_cost_hold_ns(&c, &both, 0.5), 13000000);
	c.rows = 20;
	assert_int_equal(step_cost_hold_ns(&c, &both, 0.5), 3500000);
}

/* A step with prompts corrects the factor of rows, if these take most of the time. One step counts for a tenth, and
 * as ten times too slow at most. */
static void test_loop__measured_steps_correct_predictions(void **state)
{
	struct step_cost c = {.base = {.step_ns = 4, .row_ns = 1}, .fixed = 1, .rows = 1};
	struct step_prediction p = step_cost_parts(&c, 14, true);

	(void)state;
	assert_true(p.fixed_ns == 4 && p.rows_ns == 10);
	step_cost_measured(&c, &p, 9);
	assert_true(c.fixed == 1 && fabs(c.rows - 0.95) < 1e-12);
	p = step_cost_parts(&c, 6, true);
	assert_true(p.fixed_ns == 4 && p.rows_ns == 2);
	step_cost_measured(&c, &p, 10);
	assert_true(fabs(c.fixed - 1.1) < 1e-12 && fabs(c.rows - 0.95) < 1e-12);
	c.fixed = c.rows = 1;
	p = step_cost_parts(&c, 14, false);
	step_cost_measured(&c, &p, 12); /* only rows that decode */
	assert_true(fabs(c.fixed - 0.95) < 1e-12 && c.rows == 1);
	c.fixed = 1, c.rows = 0.95;
	p = step_cost_parts(&c, 6, true);
	step_cost_measured(&c, &p, 1e6);
	assert_true(fabs(c.fixed - 1.9) < 1e-12);
	c.fixed = 1;
	step_cost_measured(&c, &p, 0.5); /* less than the rows by themselves */
	assert_true(fabs(c.fixed - 0.91) < 1e-12);
	assert_true(fabs(step_cost_now(&c).step_ns - 3.64) < 1e-12);
	assert_true(fabs(step_cost_now(&c).row_ns - 0.95) < 1e-12);
}

static void test_loop__steps_of_two_slices_are_cut(void **state)
{
	(void)state;
	assert_int_equal(step_cost_slice(49e6, 25e6, 28), 28);
	assert_int_equal(step_cost_slice(50e6, 25e6, 28), 14);
	assert_int_equal(step_cost_slice(60e6, 25e6, 28), 9);
	assert_int_equal(step_cost_slice(150e6, 25e6, 28), 4);
	assert_int_equal(step_cost_slice(1e12, 25e6, 28), 1);
	assert_int_equal(step_cost_slice(1e12, 1e-9, 1), 1);
}

/* The device keeps two slices while layers are left. An eighth of the step remains when the next one is due. */
static void test_loop__when_the_next_work_is_due(void **state)
{
	(void)state;
	assert_true(step_cost_share(28, 28, 28) == 0.875);
	assert_true(step_cost_share(20, 5, 5) == 0);
	assert_true(step_cost_share(20, 10, 5) == 0);
	assert_true(step_cost_share(20, 15, 5) == 0.25);
	assert_true(step_cost_share(20, 20, 5) == 0.875);
	assert_true(step_cost_share(40, 36, 4) == 0.7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop__answers_cancels_and_drains),
		cmocka_unit_test(test_loop__long_steps_are_announced),
		cmocka_unit_test(test_loop__an_idle_engine_has_a_heartbeat),
		cmocka_unit_test(test_loop__a_front_end_that_is_gone_ends_it),
		cmocka_unit_test(test_loop__a_wrong_frame_ends_it),
		cmocka_unit_test(test_loop__a_request_that_comes_during_a_step_joins_the_next),
		cmocka_unit_test(test_loop__a_front_end_that_is_gone_ends_a_wait),
		cmocka_unit_test(test_loop__a_request_that_is_cancelled_during_a_wait_ends),
		cmocka_unit_test(test_loop__how_long_a_plan_can_wait),
		cmocka_unit_test(test_loop__measured_steps_correct_predictions),
		cmocka_unit_test(test_loop__steps_of_two_slices_are_cut),
		cmocka_unit_test(test_loop__when_the_next_work_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
