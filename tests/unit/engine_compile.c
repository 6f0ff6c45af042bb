/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose grammar waits for the compiler: deadlines, cancels, turns of clients. The test holds the
 * compiler at each grammar, so nothing depends on time. */
#include "engine_bed.h"
#include <semaphore.h>
#include "core/clock.h"

enum { TEXT = 20, COMPILED_MOST = 16 };
static const int32_t text[TEXT] = {7, 23, 16, 36, 5, 30, 21, 13, 37, 2, 9, 11, 20, 8, 3, 1, 22, 14, 29, 31};

static sem_t begun, may_go;
static char compiled[COMPILED_MOST]; /* the letter of each grammar */
static int compiles;

enum status __real_grammar_compile(struct grammar **out, const struct grammar_vocab *vocab, const char *source,
				   size_t size, const struct grammar_limits *limits, struct error *err);
enum status __wrap_grammar_compile(struct grammar **out, const struct grammar_vocab *vocab, const char *source,
				   size_t size, const struct grammar_limits *limits, struct error *err);
enum status __wrap_grammar_compile(struct grammar **out, const struct grammar_vocab *vocab, const char *source,
				   size_t size, const struct grammar_limits *limits, struct error *err)
{
	compiled[compiles++ % COMPILED_MOST] = source[size - 3]; /* in front of "} */
	sem_post(&begun);
	while (sem_wait(&may_go))
		;
	return __real_grammar_compile(out, vocab, source, size, limits, err);
}

static void open_held(struct bed *b)
{
	sem_init(&begun, 0, 0);
	sem_init(&may_go, 0, 0);
	compiles = 0;
	memset(compiled, 0, sizeof(compiled));
	bed_open(b, 0);
}

static void let_go(int count)
{
	while (count--)
		sem_post(&may_go);
}

static void await_begin(void)
{
	while (sem_wait(&begun))
		;
}

/* A request whose text is one letter. Letters are a to z. */
static void ask_letter(struct bed *b, uint64_t id, uint64_t client, char letter, uint64_t deadline_ns)
{
	char source[64];
	struct engine_request r = bed_request(id, text, TEXT, 4);

	snprintf(source, sizeof(source), "{\"type\": \"regex\", \"pattern\": \"%c\"}", letter);
	r.client = client;
	r.deadline_ns = deadline_ns;
	r.grammar = source;
	r.grammar_size = strlen(source);
	ask(b, &r);
}

static void test_compile__a_deadline_ends_a_request_whose_grammar_waits(void **state)
{
	const uint64_t later = clock_now_ns(clock_monotonic()) + 3600000000000u;
	struct bed b;

	(void)state;
	open_held(&b);
	ask_letter(&b, 1, 1, 'a', 1); /* long ago */
	await_begin();
	ask_letter(&b, 2, 1, 'b', later);
	ask_letter(&b, 3, 1, 'c', 2);
	ask_letter(&b, 4, 4, 'd', 0);
	assert_true(engine_wake(b.e) == 1);
	step(&b);
	for (int i = 0; i < 4; i++)
		assert_int_equal(b.h[i].ends, i == 0 || i == 2);
	assert_int_equal(b.h[0].last.end, ENGINE_END_DEADLINE);
	assert_int_equal(b.h[2].last.end, ENGINE_END_DEADLINE);
	assert_int_equal(b.h[2].last.prompt_tokens, TEXT);
	assert_true(engine_wake(b.e) == later);
	bed_cancel(b.e, 3); /* after its end */
	step(&b);
	let_go(3);
	bed_run(b.e, b.h, 4);
	assert_int_equal(b.h[1].last.end, ENGINE_END_STOP);
	assert_int_equal(b.h[3].last.end, ENGINE_END_STOP);
	assert_int_equal(compiles, 3); /* not c */
	bed_close(&b);
}

static void test_compile__a_cancelled_grammar_is_not_compiled(void **state)
{
	struct bed b;

	(void)state;
	open_held(&b);
	ask_letter(&b, 1, 1, 'a', 0);
	await_begin();
	for (uint64_t id = 2; id <= 4; id++)
		ask_letter(&b, id, 1, (char)('a' + id - 1), 0);
	bed_cancel(b.e, 1);
	bed_cancel(b.e, 3);
	bed_cancel(b.e, 4);
	assert_int_equal(engine_facts(b.e).waiting, 2); /* a, which is being compiled, and b */
	let_go(2);
	bed_run(b.e, b.h, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(b.h[i].last.end, i == 1 ? ENGINE_END_STOP : ENGINE_END_CANCELLED);
	assert_string_equal(compiled, "ab");
	bed_close(&b);
}

static void test_compile__clients_take_turns(void **state)
{
	static const struct {
		uint64_t client;
		char letter;
	} asked[] = {{1, 'b'}, {1, 'c'}, {1, 'd'}, {2, 'e'}, {2, 'f'}, {3, 'g'}};
	struct bed b;

	(void)state;
	open_held(&b);
	ask_letter(&b, 1, 1, 'a', 0);
	await_begin();
	for (uint64_t i = 0; i < 6; i++)
		ask_letter(&b, i + 2, asked[i].client, asked[i].letter, 0);
	let_go(7);
	bed_run(b.e, b.h, 7);
	assert_string_equal(compiled, "abegcfd");
	bed_close(&b);
}

static void test_compile__a_refused_grammar_is_compiled_once(void **state)
{
	struct bed b;

	(void)state;
	open_held(&b);
	for (uint64_t id = 1; id <= 3; id++)
		ask_letter(&b, id, id, '(', 0);
	let_go(3);
	bed_run(b.e, b.h, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b.h[i].last.end, ENGINE_END_REFUSED);
		assert_true(b.h[i].last.bad_grammar);
		assert_string_equal(b.h[i].last.text, b.h[0].last.text);
	}
	assert_int_equal(compiles, 1);
	bed_close(&b);
}

static void test_compile__an_engine_that_ends_frees_what_waits(void **state)
{
	struct bed b;

	(void)state;
	open_held(&b);
	ask_letter(&b, 1, 1, 'a', 0);
	await_begin();
	for (uint64_t id = 2; id <= 9; id++)
		ask_letter(&b, id, id / 2, 'b', id);
	let_go(9);
	engine_destroy(&b.e);
	grammar_vocab_destroy(&b.vocab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compile__a_deadline_ends_a_request_whose_grammar_waits),
		cmocka_unit_test(test_compile__a_cancelled_grammar_is_not_compiled),
		cmocka_unit_test(test_compile__clients_take_turns),
		cmocka_unit_test(test_compile__a_refused_grammar_is_compiled_once),
		cmocka_unit_test(test_compile__an_engine_that_ends_frees_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
