/* SPDX-License-Identifier: Apache-2.0 */
/* The front end's side of the engine, and the supervisor's messages: loss, hang, cancellation, a full list,
 * damaged messages. */
#include "serve_bed.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/frame/frame.h"
#include "serve/link/link.h"
#include "serve/link/supervisor.h"

static struct serve_bed bed;

struct seen {
	int events, steps, readies, losses;
};

static void on_event(void *arg, struct choice *c, const struct engine_event *e)
{
	struct seen *s = arg;

	(void)c, (void)e;
	s->events++;
}

static void on_step(void *arg, const struct engine_facts *f)
{
	struct seen *s = arg;

	(void)f;
	s->steps++;
}

static void on_ready(void *arg, const struct engine_ready *r)
{
	struct seen *s = arg;

	(void)r;
	s->readies++;
}

static void on_lost(void *arg)
{
	struct seen *s = arg;

	s->losses++;
}

struct world {
	struct link *link;
	struct frame_link *engine;
	struct answer *answer;
	struct seen seen;
};

/* A link that runs `most` choices at a time, and an answer with the choices of `body`. */
static void world_begin_with(struct world *w, size_t most, const char *body)
{
	const struct link_limits limits = {.choices = most, .hang_ns = 1000};
	const struct link_hooks hooks = {
		.arg = &w->seen, .event = on_event, .step = on_step, .ready = on_ready, .lost = on_lost};
	const struct engine_ready ready = {.device = "made up", .vocab = 900, .context = 64};
	struct error err = {0};
	int fds[2];

	*w = (struct world){0};
	serve_bed_open(&bed, "qwen2.5");
	assert_int_equal(link_create(&w->link, &limits, &hooks, &err), STATUS_OK);
	assert_int_equal(link_state(w->link), LINK_ABSENT);
	assert_string_equal(link_cause(w->link), "the engine has not started yet");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	link_attach(w->link, fds[0], 7, 100);
	assert_int_equal(link_state(w->link), LINK_LOADING);
	assert_int_equal(frame_link_create(&w->engine, fds[1], 7, 0, &err), STATUS_OK);
	assert_int_equal(frame_send_ready(w->engine, &ready, &err), STATUS_OK);
	link_receive(w->link, 200);
	assert_int_equal(link_state(w->link), LINK_READY);
	assert_int_equal(link_ready(w->link)->context, 64);
	assert_int_equal(w->seen.readies, 1);
	assert_int_equal(answer_create(&w->answer, serve_bed_good(&bed, PROTOCOL_COMPLETION, body),
				       bed.prompter, 1, &err),
			 STATUS_OK);
}

static void world_begin(struct world *w)
{
	world_begin_with(w, 2, "{\"prompt\":\"a\",\"n\":3}");
}

static void world_end(struct world *w)
{
	answer_destroy(&w->answer);
	link_destroy(&w->link);
	frame_link_destroy(&w->engine);
	serve_bed_close(&bed);
}

/* The engine's next message. */
static struct frame_message next(struct world *w)
{
	struct frame_message m;
	struct error err = {0};
	bool got;

	assert_int_equal(frame_receive(w->engine, &m, &got, &err), STATUS_OK);
	assert_true(got);
	return m;
}

static void send_end(struct world *w, uint64_t id)
{
	const struct engine_event e = {.kind = ENGINE_EVENT_END, .id = id, .end = ENGINE_END_STOP};
	struct error err = {0};

	assert_int_equal(frame_send_step(w->engine, &(struct engine_facts){0}, &e, 1, &err), STATUS_OK);
}

static void test_link__requests_end_once_and_are_forgotten(void **state)
{
	struct api_error e = {0};
	struct world w;
	uint64_t first, second;

	(void)state;
	world_begin(&w);
	assert_true(link_submit(w.link, &w.answer->choices[0], 5, &e));
	assert_true(link_submit(w.link, &w.answer->choices[1], 5, &e));
	assert_false(link_submit(w.link, &w.answer->choices[2], 5, &e)); /* two at most */
	assert_int_equal(e.http, 429);
	first = next(&w).request.id;
	second = next(&w).request.id;
	assert_true(first == w.answer->choices[0].id && second == w.answer->choices[1].id && first != second);
	link_cancel(w.link, &w.answer->choices[0]);
	link_cancel(w.link, &w.answer->choices[0]); /* once is enough */
	assert_true(next(&w).cancel == first);
	link_forget(w.link, &w.answer->choices[1]);
	assert_true(next(&w).cancel == second);
	assert_int_equal(link_running(w.link), 2);
	send_end(&w, first);
	send_end(&w, first); /* the id is nobody's now */
	send_end(&w, second);
	send_end(&w, 12345);
	link_receive(w.link, 300);
	assert_int_equal(w.seen.events, 1);
	assert_int_equal(w.seen.steps, 4);
	assert_int_equal(link_running(w.link), 0);
	world_end(&w);
}

/* Submits choices until the queue has no room for a frame, however short its prompt. Returns how many were
 * taken. */
static size_t fill_queue(struct world *w)
{
	enum { LONGEST = 1 << 20 };
	struct prompt_ids *prompt = &w->answer->request->prompts[0], before = *prompt;
	struct api_error e = {0};
	size_t taken = 0;

	prompt->ids = calloc(LONGEST, sizeof(*prompt->ids));
	assert_non_null(prompt->ids);
	for (prompt->count = LONGEST; prompt->count;) {
		assert_true(taken < w->answer->count);
		if (link_submit(w->link, &w->answer->choices[taken], 5, &e))
			taken++;
		else
			prompt->count /= 2;
	}
	assert_int_equal(e.http, 429);
	free(prompt->ids);
	*prompt = before;
	return taken;
}

/* The engine reads all that waits for it. Counts its cancels; each must be of another request. */
static size_t read_cancels(struct world *w, uint64_t *ids)
{
	struct frame_message m;
	struct error err = {0};
	size_t count = 0;
	bool got = true;

	while (got || link_wants_write(w->link)) {
		link_flush(w->link);
		assert_int_equal(frame_receive(w->engine, &m, &got, &err), STATUS_OK);
		if (!got || m.kind != FRAME_CANCEL)
			continue;
		for (size_t i = 0; i < count; i++)
			assert_true(ids[i] != m.cancel);
		ids[count++] = m.cancel;
	}
	return count;
}

static void test_link__cancels_are_sent_once_the_queue_has_room(void **state)
{
	enum { CHOICES = 64 };
	uint64_t ids[2 * CHOICES];
	struct world w;
	size_t taken, count;

	(void)state;
	world_begin_with(&w, CHOICES, "{\"prompt\":\"a\",\"n\":64}");
	taken = fill_queue(&w);
	link_cancel(w.link, &w.answer->choices[0]);
	for (size_t i = 0; i < taken; i++)
		link_forget(w.link, &w.answer->choices[i]);
	assert_false(link_drain(w.link)); /* no room for it either */
	count = read_cancels(&w, ids);
	assert_int_equal(count, taken);
	assert_true(link_drain(w.link));
	assert_int_equal(next(&w).kind, FRAME_DRAIN);
	for (size_t i = 0; i < count; i++)
		send_end(&w, ids[i]);
	for (size_t i = 0; i < count; i++)
		link_receive(w.link, 300);
	assert_int_equal(link_running(w.link), 0);
	assert_int_equal(w.seen.events, 0);
	world_end(&w);
}

static void test_link__loss_has_a_cause(void **state)
{
	struct api_error e = {0};
	struct world w;

	(void)state;
	world_begin(&w);
	assert_true(link_submit(w.link, &w.answer->choices[0], 5, &e));
	frame_link_destroy(&w.engine);
	link_receive(w.link, 300);
	assert_int_equal(w.seen.losses, 1);
	assert_int_equal(link_running(w.link), 0);
	assert_true(w.answer->choices[0].id == 0);
	link_lose(w.link, 6, "of another start");
	assert_string_equal(link_cause(w.link), "the engine process ended");
	link_lose(w.link, 7, "signal 11");
	assert_string_equal(link_cause(w.link), "signal 11");
	assert_int_equal(w.seen.losses, 1);
	assert_false(link_submit(w.link, &w.answer->choices[0], 5, &e));
	assert_int_equal(e.http, 503);
	assert_string_equal(e.message, "signal 11");
	assert_true(e.retry_s > 0);
	world_end(&w);
}

static void test_link__an_engine_that_says_nothing_hangs(void **state)
{
	const struct frame_heartbeat beat = {.step = 1, .expected_ns = 5000};
	struct error err = {0};
	struct world w;

	(void)state;
	world_begin(&w);
	assert_false(link_tick(w.link, 1199));
	assert_int_equal(frame_send_heartbeat(w.engine, &beat, &err), STATUS_OK);
	link_receive(w.link, 1200);
	for (uint64_t now = 1500; now <= 7000; now += 500)
		assert_false(link_tick(w.link, now)); /* a step of 5000 was announced */
	assert_true(link_tick(w.link, 7200));
	assert_int_equal(link_state(w.link), LINK_ABSENT);
	assert_non_null(strstr(link_cause(w.link), "has not answered for"));
	assert_false(link_tick(w.link, 9000));
	world_end(&w);
}

/* Nobody called link_tick: this process was stopped, and the engine perhaps too. */
static void test_link__a_pause_of_all_processes_is_no_hang(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w);
	assert_false(link_tick(w.link, 300));
	assert_false(link_tick(w.link, 90000));
	assert_int_equal(link_state(w.link), LINK_READY);
	assert_false(link_tick(w.link, 90400));
	assert_false(link_tick(w.link, 90800));
	assert_true(link_tick(w.link, 91200));
	world_end(&w);
}

static void test_link__a_wrong_message_ends_it(void **state)
{
	struct error err = {0};
	struct world w;

	(void)state;
	world_begin(&w);
	assert_int_equal(frame_send_drain(w.engine, &err), STATUS_OK);
	link_receive(w.link, 300);
	assert_int_equal(w.seen.losses, 1);
	assert_string_equal(link_cause(w.link), "the engine sent a message of a wrong kind");
	world_end(&w);
}

static void test_supervisor__messages(void **state)
{
	struct supervisor_message m = {.kind = SUPERVISOR_ENGINE, .epoch = 3}, out;
	struct error err = {0};
	bool got;
	int pair[2], file = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_OK);
	assert_false(got);
	m.fd = file;
	assert_int_equal(supervisor_send(pair[0], &m, &err), STATUS_OK);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_OK);
	assert_true(got && out.kind == SUPERVISOR_ENGINE && out.epoch == 3 && out.fd >= 0 && out.fd != file);
	assert_int_equal(close(out.fd), 0);
	m = (struct supervisor_message){.kind = SUPERVISOR_ENDED, .epoch = 4, .fd = -1, .cause = "signal 9"};
	assert_int_equal(supervisor_send(pair[0], &m, &err), STATUS_OK);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_OK);
	assert_string_equal(out.cause, "signal 9");
	m.kind = SUPERVISOR_DONE;
	assert_int_equal(supervisor_send(pair[0], &m, &err), STATUS_OK);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_OK);
	assert_true(got && out.kind == SUPERVISOR_DONE);
	m.kind = (enum supervisor_kind)(SUPERVISOR_DONE + 1);
	assert_int_equal(supervisor_send(pair[0], &m, &err), STATUS_OK);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_BAD_INPUT);
	err = (struct error){0};
	assert_int_equal(write(pair[0], "short", 5), 5);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_BAD_INPUT);
	err = (struct error){0};
	close(pair[0]);
	assert_int_equal(supervisor_receive(pair[1], &out, &got, &err), STATUS_UNAVAILABLE);
	err = (struct error){0};
	assert_int_equal(supervisor_send(pair[1], &m, &err), STATUS_UNAVAILABLE);
	close(pair[1]);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link__requests_end_once_and_are_forgotten),
		cmocka_unit_test(test_link__cancels_are_sent_once_the_queue_has_room),
		cmocka_unit_test(test_link__loss_has_a_cause),
		cmocka_unit_test(test_link__an_engine_that_says_nothing_hangs),
		cmocka_unit_test(test_link__a_pause_of_all_processes_is_no_hang),
		cmocka_unit_test(test_link__a_wrong_message_ends_it),
		cmocka_unit_test(test_supervisor__messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
