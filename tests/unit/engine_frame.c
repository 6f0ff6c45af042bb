/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between front end and engine. Every field returns as it was sent, in any pieces. Damage is refused. Nothing blocks. */
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/frame/frame.h"

struct pair {
	struct frame_link *front, *engine;
};

static struct pair pair_with(uint32_t front_epoch, uint32_t engine_epoch, size_t queue)
{
	struct pair p = {0};
	struct error err = {0};
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(frame_link_create(&p.front, fds[0], front_epoch, queue, &err), STATUS_OK);
	assert_int_equal(frame_link_create(&p.engine, fds[1], engine_epoch, queue, &err), STATUS_OK);
	return p;
}

static void pair_end(struct pair *p)
{
	frame_link_destroy(&p->front);
	frame_link_destroy(&p->engine);
}

static struct frame_message take(struct frame_link *to, struct frame_link *from)
{
	struct frame_message m;
	struct error err = {0};
	bool got = false;

	for (int i = 0; i < 10000 && !got; i++) {
		if (frame_receive(to, &m, &got, &err))
			fail_msg("%s", err.text);
		assert_int_equal(frame_flush(from, &err), STATUS_OK);
	}
	assert_true(got);
	return m;
}

static void test_frame__a_request_returns_as_it_was(void **state)
{
	struct pair p = pair_with(3, 3, 0);
	int32_t prompt[1000], stop[2] = {7, 900};
	const struct engine_bias bias[2] = {{5, -INFINITY}, {6, 1.5f}};
	const struct engine_request r = {
		.id = UINT64_MAX, .client = 1, .priority = -5, .adapter = -1, .prompt = prompt, .prompt_count = 1000,
		.max_tokens = -1, .min_tokens = 2, .stop = stop, .stops = 2, .bias = bias, .biases = 2,
		.sampling = {.temperature = 0.5f, .top_p = 0.25f, .min_p = 0.125f, .repetition = 1.25f, .presence = -1,
			     .frequency = 2, .top_k = 40, .seed = UINT64_MAX - 1},
		.logprobs = 20, .prompt_logprobs = -1, .cache_salt = 8, .deadline_ns = 9, .grammar = "{\"a\":1}",
		.grammar_size = 7};
	struct frame_message m;
	struct error err = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		prompt[i] = i * 1000003;
	assert_int_equal(frame_send_request(p.front, &r, &err), STATUS_OK);
	m = take(p.engine, p.front);
	assert_int_equal(m.kind, FRAME_REQUEST);
	assert_true(m.request.id == r.id && m.request.client == 1 && m.request.priority == -5 && m.request.adapter == -1);
	assert_true(m.request.max_tokens == -1 && m.request.min_tokens == 2 && m.request.cache_salt == 8);
	assert_true(m.request.logprobs == 20 && m.request.prompt_logprobs == -1 && m.request.deadline_ns == 9);
	/* without the padding before the seed */
	assert_memory_equal(&m.request.sampling, &r.sampling, offsetof(struct engine_sampling, top_k) + sizeof(int32_t));
	assert_true(m.request.sampling.seed == r.sampling.seed);
	assert_int_equal(m.request.prompt_count, 1000);
	assert_memory_equal(m.request.prompt, prompt, sizeof(prompt));
	assert_int_equal(m.request.stops, 2);
	assert_memory_equal(m.request.stop, stop, sizeof(stop));
	assert_int_equal(m.request.biases, 2);
	assert_memory_equal(m.request.bias, bias, sizeof(bias));
	assert_int_equal(m.request.grammar_size, 7);
	assert_memory_equal(m.request.grammar, "{\"a\":1}", 7);
	pair_end(&p);
}

static void test_frame__a_step_returns_as_it_was(void **state)
{
	struct pair p = pair_with(1, 1, 0);
	const struct engine_facts facts = {.steps = 1, .tokens = 2, .prompt_tokens = 3, .cached_tokens = 4,
					   .preemptions = 5, .ended = 6, .running = 7, .waiting = 8, .pages = 9,
					   .pages_used = 10, .pages_cached = 11, .step_s = 0.5, .busy_s = 1.25};
	const struct engine_event events[] = {
		{.kind = ENGINE_EVENT_BEGUN, .id = 1},
		{.kind = ENGINE_EVENT_PROMPT, .id = 1, .token = 4, .logprob = -1, .tops = 1, .top = {{4, -1}}},
		{.kind = ENGINE_EVENT_TOKEN, .id = 1, .token = 5, .logprob = -2, .tops = 2, .top = {{5, -2}, {6, -3}}},
		{.kind = ENGINE_EVENT_END, .id = 1, .end = ENGINE_END_FAILED, .prompt_tokens = 3, .cached_tokens = 2,
		 .tokens = 1, .text = "NaN"},
	};
	const struct engine_ready ready = {.device = "a GPU", .vocab = 10, .context = 20, .pages = 30, .page_tokens = 32,
					   .sequences = 40, .weight_bytes = 1e9, .cache_bytes = 2e9, .load_s = 0.5, .shared = true, .measured_rows = 64,
					   .deterministic_s = 0.01, .ordinary_s = 0.005};
	const struct frame_heartbeat beat = {.step = 12, .expected_ns = 13};
	struct frame_message m;
	struct error err = {0};

	(void)state;
	assert_int_equal(frame_send_ready(p.engine, &ready, &err), STATUS_OK);
	assert_int_equal(frame_send_step(p.engine, &facts, events, 4, &err), STATUS_OK);
	assert_int_equal(frame_send_heartbeat(p.engine, &beat, &err), STATUS_OK);
	m = take(p.front, p.engine);
	assert_int_equal(m.kind, FRAME_READY);
	assert_string_equal(m.ready.device, "a GPU");
	assert_true(m.ready.vocab == 10 && m.ready.sequences == 40 && m.ready.load_s == 0.5 && m.ready.shared);
	assert_true(m.ready.measured_rows == 64 && m.ready.deterministic_s == 0.01 && m.ready.ordinary_s == 0.005);
	m = take(p.front, p.engine);
	assert_int_equal(m.kind, FRAME_STEP);
	assert_int_equal(m.step.count, 4);
	assert_true(m.step.facts.steps == 1 && m.step.facts.pages_cached == 11 && m.step.facts.busy_s == 1.25);
	assert_int_equal(m.step.events[0].kind, ENGINE_EVENT_BEGUN);
	assert_true(m.step.events[1].token == 4 && m.step.events[1].tops == 1);
	assert_true(m.step.events[2].logprob == -2 && m.step.events[2].top[1].id == 6 &&
		    m.step.events[2].top[1].logprob == -3);
	assert_true(m.step.events[3].end == ENGINE_END_FAILED && m.step.events[3].prompt_tokens == 3);
	assert_string_equal(m.step.events[3].text, "NaN");
	m = take(p.front, p.engine);
	assert_true(m.kind == FRAME_HEARTBEAT && m.heartbeat.step == 12 && m.heartbeat.expected_ns == 13);
	assert_int_equal(frame_send_cancel(p.front, 77, &err), STATUS_OK);
	assert_int_equal(frame_send_drain(p.front, &err), STATUS_OK);
	m = take(p.engine, p.front);
	assert_true(m.kind == FRAME_CANCEL && m.cancel == 77);
	assert_int_equal(take(p.engine, p.front).kind, FRAME_DRAIN);
	pair_end(&p);
}

/* The bytes of one frame, as they are on the socket. */
static size_t frame_bytes(unsigned char *out, size_t room, uint32_t epoch)
{
	const struct engine_facts facts = {.steps = 3};
	const struct engine_event e = {.kind = ENGINE_EVENT_TOKEN, .id = 9, .token = 5, .tops = 1, .top = {{5, -2}}};
	struct frame_link *link;
	struct error err = {0};
	int fds[2];
	ssize_t size;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(frame_link_create(&link, fds[0], epoch, 0, &err), STATUS_OK);
	assert_int_equal(frame_send_step(link, &facts, &e, 1, &err), STATUS_OK);
	size = read(fds[1], out, room);
	assert_true(size > 16);
	frame_link_destroy(&link);
	close(fds[1]);
	return (size_t)size;
}

static void test_frame__bytes_come_one_by_one(void **state)
{
	unsigned char bytes[512];
	size_t size = frame_bytes(bytes, sizeof(bytes), 4);
	struct frame_link *link;
	struct frame_message m;
	struct error err = {0};
	bool got;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(frame_link_create(&link, fds[0], 4, 0, &err), STATUS_OK);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(frame_receive(link, &m, &got, &err), STATUS_OK);
		assert_false(got);
		assert_int_equal(write(fds[1], &bytes[i], 1), 1);
	}
	assert_int_equal(frame_receive(link, &m, &got, &err), STATUS_OK);
	assert_true(got && m.step.count == 1 && m.step.events[0].token == 5);
	close(fds[1]);
	assert_int_equal(frame_receive(link, &m, &got, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_CRASHED);
	frame_link_destroy(&link);
}

/* Status of receiving these bytes. */
static enum status receive(const unsigned char *bytes, size_t size, uint32_t epoch, struct error *err)
{
	struct frame_link *link;
	struct frame_message m;
	enum status st;
	bool got;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(frame_link_create(&link, fds[0], epoch, 0, err), STATUS_OK);
	assert_int_equal(write(fds[1], bytes, size), (ssize_t)size);
	st = frame_receive(link, &m, &got, err);
	frame_link_destroy(&link);
	close(fds[1]);
	return st;
}

static void test_frame__damage_is_refused(void **state)
{
	static const struct {
		size_t at;
		unsigned char value;
		const char *says;
	} cases[] = {
		{3, 0xff, "is damaged"},   /* size */
		{4, 77, "of kind 77"},	   /* kind */
		{6, 9, "of one build"},	   /* layout */
		{8, 5, "of start 5"},	   /* epoch */
		{16 + 84, 9, "is damaged"}, /* number of events */
		{16 + 88, 44, "event 0"},   /* kind of an event */
		{16 + 89, 99, "event 0"},   /* alternatives */
		{16 + 84, 0, "too many"},
	};
	unsigned char bytes[512];
	size_t size = frame_bytes(bytes, sizeof(bytes), 4);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned char before = bytes[cases[i].at];
		struct error err = {0};

		bytes[cases[i].at] = cases[i].value;
		assert_int_equal(receive(bytes, size, 4, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, cases[i].says))
			fail_msg("case %zu: %s", i, err.text);
		bytes[cases[i].at] = before;
	}
}

static void test_frame__a_peer_that_does_not_read_fills_the_queue(void **state)
{
	struct pair p = pair_with(1, 1, 1 << 20);
	static int32_t prompt[50000];
	const struct engine_request r = {.id = 1, .prompt = prompt, .prompt_count = 50000, .logprobs = -1,
					 .prompt_logprobs = -1};
	enum status st = STATUS_OK;
	struct error err = {0};
	int sent = 0;

	(void)state;
	for (; !st && sent < 1000; sent++)
		st = frame_send_request(p.front, &r, &err);
	assert_int_equal(st, STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "does not read"));
	assert_true(frame_link_waits(p.front));
	/* what was accepted arrives whole */
	for (int i = 0; i < sent - 1; i++)
		assert_int_equal(take(p.engine, p.front).request.prompt_count, 50000);
	assert_false(frame_link_waits(p.front));
	pair_end(&p);
}

static void test_frame__sizes_are_bounded_and_a_lost_peer_is_named(void **state)
{
	struct pair p = pair_with(1, 1, 0);
	int32_t one = 1;
	struct engine_request r = {.id = 1, .prompt = &one, .prompt_count = 0};
	struct error err = {0};

	(void)state;
	assert_int_equal(frame_send_request(p.front, &r, &err), STATUS_BAD_INPUT);
	r.prompt_count = 1;
	r.stops = ENGINE_STOPS_MOST + 1;
	err = (struct error){0};
	assert_int_equal(frame_send_request(p.front, &r, &err), STATUS_BAD_INPUT);
	err = (struct error){0};
	assert_int_equal(frame_send_step(p.engine, &(struct engine_facts){0}, NULL, FRAME_EVENTS_MOST + 1, &err),
			 STATUS_BAD_INPUT);
	frame_link_destroy(&p.engine);
	r.stops = 0;
	err = (struct error){0};
	assert_int_equal(frame_send_request(p.front, &r, &err), STATUS_UNAVAILABLE);
	pair_end(&p);
	err = (struct error){0};
	assert_int_not_equal(frame_link_create(&p.front, -1, 1, 0, &err), STATUS_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame__a_request_returns_as_it_was),
		cmocka_unit_test(test_frame__a_step_returns_as_it_was),
		cmocka_unit_test(test_frame__bytes_come_one_by_one),
		cmocka_unit_test(test_frame__damage_is_refused),
		cmocka_unit_test(test_frame__a_peer_that_does_not_read_fills_the_queue),
		cmocka_unit_test(test_frame__sizes_are_bounded_and_a_lost_peer_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
