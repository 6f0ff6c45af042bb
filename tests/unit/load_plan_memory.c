/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of plans and contents fails once. */
#include "scratch.h"

#include "core/file/file.h"
#include "load/content/content.h"
#include "load/plan/trace.h"
#include "failing_memory.h"

/* Runs `work` until no allocation fails. Returns the number of failures. */
static int64_t each_failure(enum status (*work)(void *arg, struct error *err), void *arg)
{
	enum status st = STATUS_NO_RESOURCE;
	int64_t count = 0;

	for (; st; count++) {
		struct error err = {0};

		left = count;
		st = work(arg, &err);
		left = -1;
		if (st && st != STATUS_NO_RESOURCE)
			fail_msg("failure %lld: %s", (long long)count, err.text);
		assert_true(count < 10000);
	}
	return count - 1;
}

static enum status make_plan(void *arg, struct error *err)
{
	struct load_plan p;
	enum status st = load_plan_make(&p, arg, err);

	assert_true(!st == (p.request != NULL));
	load_plan_release(&p);
	return st;
}

static void test_load_plan_memory__plans(void **state)
{
	struct load_plan_spec spec = {.arrival = LOAD_POISSON,
				      .rate = 100,
				      .duration_s = 50,
				      .requests_most = 10000,
				      .turns = 2,
				      .users = 3,
				      .trace_speed = 1,
				      .input = {.mean = 100, .min = 1, .max = 100},
				      .output = {.mean = 10, .min = 1, .max = 10}};
	static const char trace[] =
		"{\"timestamp\":1,\"input_length\":600,\"output_length\":5,\"hash_ids\":[1,2]}\n";
	struct error err = {0};
	char path[PATH_MAX];

	assert_true(each_failure(make_plan, &spec) >= 4); /* the list grows */
	spec.arrival = LOAD_CLOSED;
	assert_true(each_failure(make_plan, &spec) >= 3);
	snprintf(path, sizeof(path), "%s/trace", (char *)*state);
	assert_int_equal(file_write(path, trace, strlen(trace), &err), STATUS_OK);
	spec.arrival = LOAD_TRACE;
	spec.turns = 1;
	spec.trace = path;
	assert_true(each_failure(make_plan, &spec) >= 3);
}

/* Opens contents, and makes the bodies of two turns. */
static enum status talk(void *arg, struct error *err)
{
	struct load_request r = {.prompt_tokens = 200, .output_tokens = 3};
	struct load_content *c = NULL;
	struct load_worker *w = NULL;
	struct load_dialogue *d = NULL;
	struct load_asked asked;
	struct text body = {0};
	enum status st = load_content_open(&c, arg, err);

	if (!st)
		st = load_worker_create(&w, c, err);
	if (!st)
		st = load_worker_body(w, &r, 0, NULL, &body, &asked, err);
	if (!st)
		st = load_dialogue_create(&d, err);
	for (; !st && r.turn < 2; r.turn++) {
		st = load_worker_body(w, &r, r.turn, d, &body, &asked, err);
		if (!st)
			st = load_dialogue_answer(d, "yes", 3, err);
	}
	load_dialogue_destroy(&d);
	load_worker_destroy(&w);
	load_content_close(&c);
	text_release(&body);
	return st;
}

static void test_load_plan_memory__contents(void **state)
{
	static const char row[] =
		"{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"},"
		"{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[{\"name\":\"f\"}]}]}\n";
	struct load_content_spec spec = {.salt = "s", .model = "m", .seed = -1, .extra = "{\"a\":1}"};
	struct error err = {0};
	char path[PATH_MAX];

	each_failure(talk, &spec);
	snprintf(path, sizeof(path), "%s/rows", (char *)*state);
	assert_int_equal(file_write(path, row, strlen(row), &err), STATUS_OK);
	spec.dataset = path;
	each_failure(talk, &spec);
	spec.completion = true;
	assert_true(each_failure(talk, &spec) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_load_plan_memory__plans),
		scratch_test(test_load_plan_memory__contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
