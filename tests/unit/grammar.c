/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary, masks, states, limits and cache of grammars. */
#include <pthread.h>

#include "grammar_bed.h"

enum { WORDS = (BED_COUNT + 31) / 32 };

static bool bit(const uint32_t *mask, int32_t id)
{
	return mask[id / 32] >> id % 32 & 1;
}

static uint32_t next_random(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33);
}

static void test_vocab__refusals(void **state)
{
	static const char long_token[GRAMMAR_TOKEN_BYTES_MOST + 1];
	struct grammar_token tokens[2] = {{"a", 1, GRAMMAR_TOKEN_TEXT}, {"b", 1, GRAMMAR_TOKEN_CONTROL}};
	struct grammar_vocab *v = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_vocab_create(&v, tokens, 2, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "no token that ends"));
	error_clear(&err);
	assert_int_equal(grammar_vocab_create(&v, tokens, 0, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "expected 1 to"));
	error_clear(&err);
	tokens[1] = (struct grammar_token){long_token, sizeof(long_token), GRAMMAR_TOKEN_END};
	assert_int_equal(grammar_vocab_create(&v, tokens, 2, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "token 1 has 1025 bytes"));
	assert_null(v);
	grammar_vocab_destroy(&v);
	tokens[1] = (struct grammar_token){NULL, 0, GRAMMAR_TOKEN_END};
	assert_int_equal(grammar_vocab_create(&v, tokens, 2, &err), STATUS_OK);
	assert_int_equal(grammar_vocab_words(v), 1);
	grammar_vocab_destroy(&v);
	assert_null(v);
}

/* Each bit of the mask is what accepting the token on a copy says. */
static void check_mask(struct grammar_state *s, const uint32_t *mask)
{
	struct error err = {0};

	for (int32_t id = 0; id < BED_COUNT; id++) {
		struct grammar_state *copy = NULL;
		enum grammar_accepted a;

		assert_int_equal(grammar_state_copy(&copy, s, &err), STATUS_OK);
		a = grammar_accept(copy, id);
		if (bit(mask, id) != (a == GRAMMAR_ACCEPTED || a == GRAMMAR_ENDED))
			fail_msg("token %d: the mask says %d, accept says %d", id, bit(mask, id), a);
		grammar_state_destroy(&copy);
	}
}

static const char *const sources[] = {
	"{\"type\":\"json_object\"}",
	"{\"type\":\"json_object\",\"whitespace\":\"compact\"}",
	"{\"type\":\"json_schema\",\"schema\":{\"type\":\"string\",\"minLength\":3,\"maxLength\":45}}",
	"{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"name\":"
	"{\"type\":\"string\",\"pattern\":\"^[a-z ]{2,40}$\"},\"n\":{\"type\":\"number\",\"minimum\":0.5}},\"required\":[\"name\"],"
	"\"additionalProperties\":{\"type\":\"boolean\"}},\"minItems\":1,\"maxItems\":3}}",
	"{\"type\":\"json_schema\",\"schema\":{\"$defs\":{\"t\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"array\","
	"\"items\":{\"$ref\":\"#/$defs/t\"}}]}},\"$ref\":\"#/$defs/t\"}}",
	"{\"type\":\"regex\",\"pattern\":\"(a|b|\xc3\xa9|hello)*[0-9]{1,100}\"}",
	"{\"type\":\"choice\",\"choices\":[\"hello world\",\"hello\",\"abc\"]}",
	"{\"type\":\"grammar\",\"grammar\":\"root ::= \\\"(\\\" root \\\")\\\" | [a-z]* \"}",
	"{\"type\":\"tool_calls\",\"format\":\"chatml\",\"mode\":\"auto\",\"parallel\":true,\"tools\":[{\"name\":\"ab\"}]}",
	"{\"type\":\"json_object\",\"after\":\"</tool_call>\"}",
	"{\"type\":\"json_object\",\"opening\":\"<tool_call>\",\"after\":\"</tool_call>\"}",
};

static void test_mask__equals_brute_force(void **state)
{
	struct grammar_vocab *v = bed_vocab();
	struct error err = {0};
	uint64_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct grammar *g = bed_compile(v, sources[i]);

		for (int round = 0; round < 8; round++) {
			struct grammar_state *s = bed_state(g);
			uint32_t mask[WORDS];

			for (int token = 0; token < 40; token++) {
				int32_t id = 0, allowed[BED_COUNT], count = 0;
				enum grammar_accepted a;

				assert_int_equal(grammar_mask(s, mask, &err), STATUS_OK);
				assert_int_equal(bit(mask, BED_END), grammar_is_complete(s));
				assert_false(bit(mask, BED_CONTROL));
				check_mask(s, mask);
				for (id = 0; id < BED_COUNT; id++)
					if (bit(mask, id))
						allowed[count++] = id;
				assert_true(count > 0);
				/* Longer tokens half of the time */
				id = allowed[next_random(&random) % (uint32_t)count];
				if (next_random(&random) % 2)
					id = allowed[(uint32_t)count - 1 -
						     next_random(&random) %
							     (uint32_t)(count > 30 ? 30 : count)];
				a = grammar_accept(s, id);
				assert_int_equal(a, id == BED_END ? GRAMMAR_ENDED : GRAMMAR_ACCEPTED);
				if (a == GRAMMAR_ENDED)
					break;
			}
			grammar_state_destroy(&s);
		}
		grammar_release(&g);
	}
	grammar_vocab_destroy(&v);
}

static void test_state__end(void **state)
{
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = bed_compile(v, "{\"type\":\"regex\",\"pattern\":\"a{0,200}\"}");
	struct grammar_state *s = bed_state(g), *copy = NULL;
	uint32_t mask[WORDS];
	struct error err = {0};

	(void)state;
	grammar_release(&g); /* the state keeps it */
	assert_int_equal(grammar_accept(s, -1), GRAMMAR_REFUSED);
	assert_int_equal(grammar_accept(s, BED_COUNT), GRAMMAR_REFUSED);
	assert_int_equal(grammar_accept(s, BED_CONTROL), GRAMMAR_REFUSED);
	assert_int_equal(grammar_accept(s, 'b'), GRAMMAR_REFUSED);
	assert_int_equal(grammar_accept(s, 'a'), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_state_copy(&copy, s, &err), STATUS_OK);
	assert_int_equal(grammar_accept(s, 'a'), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_accept(s, BED_END), GRAMMAR_ENDED);
	assert_int_equal(grammar_accept(s, 'a'), GRAMMAR_REFUSED);
	assert_int_equal(grammar_accept(s, BED_END), GRAMMAR_REFUSED);
	assert_int_equal(grammar_accept_bytes(s, "a", 1), GRAMMAR_REFUSED);
	assert_true(grammar_is_complete(s));
	assert_int_equal(grammar_mask(s, mask, &err), STATUS_OK);
	for (int32_t id = 0; id < BED_COUNT; id++)
		assert_int_equal(bit(mask, id), id == BED_END);
	grammar_state_destroy(&s);
	grammar_state_destroy(&s);
	for (int i = 0; i < 199; i++)
		assert_int_equal(grammar_accept(copy, 'a'), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_accept(copy, 'a'), GRAMMAR_REFUSED);
	grammar_state_destroy(&copy);
	grammar_vocab_destroy(&v);
}

/* A text whose states are all different: the budget forces sweeps, and the answers stay right. */
static void test_state__memory_is_bounded(void **state)
{
	static const char source[] =
		"{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
		"\"maxLength\":200000}}}";
	struct grammar_limits limits = {.cache_bytes = 1 << 20};
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = NULL;
	struct grammar_state *s, *other;
	uint32_t mask[WORDS];
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_compile(&g, v, source, strlen(source), &limits, &err), STATUS_OK);
	s = bed_state(g);
	other = bed_state(g);
	assert_int_equal(grammar_accept_bytes(s, "[\"", 2), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_accept_bytes(other, "[\"a\",", 5), GRAMMAR_ACCEPTED);
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(grammar_accept(s, 'x'), GRAMMAR_ACCEPTED);
		if (i % 1000 == 0)
			assert_int_equal(grammar_mask(s, mask, &err), STATUS_OK);
		assert_true(grammar_bytes(g) < 3 << 20);
	}
	check_mask(s, (grammar_mask(s, mask, &err), mask));
	assert_int_equal(grammar_accept_bytes(s, "\"]", 2), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_accept_bytes(other, "\"b\"]", 4), GRAMMAR_ACCEPTED);
	assert_true(grammar_is_complete(s) && grammar_is_complete(other));
	grammar_state_destroy(&s);
	grammar_state_destroy(&other);
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}

/* (a|a)(a|a).. in nested optional parts: the set of places in the automaton grows until the limit. */
static void test_state__too_ambiguous(void **state)
{
	static const char source[] =
		"{\"type\":\"grammar\",\"grammar\":\"root ::= x{1,900}\\nx ::= y{1,900}\\ny ::= "
		"z{1,900}\\nz ::= [a]{1,900}\"}";
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = bed_compile(v, source);
	struct grammar_state *s = bed_state(g);
	enum grammar_accepted a = GRAMMAR_ACCEPTED;
	uint32_t mask[WORDS];
	struct error err = {0};

	(void)state;
	for (int i = 0; i < 200 && a == GRAMMAR_ACCEPTED; i++)
		a = grammar_accept(s, 'a');
	assert_int_equal(a, GRAMMAR_FAILED);
	assert_int_equal(grammar_mask(s, mask, &err), STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "cache_bytes"));
	grammar_state_destroy(&s);
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}

/* One call may do only so much work, so that a hostile grammar cannot stop the others. */
static void test_state__work_is_bounded(void **state)
{
	static const char source[] =
		"{\"type\":\"regex\",\"pattern\":\"([a-z]{1,60}[a-y]{1,60}[a-x]{1,60}-?)*\"}";
	struct grammar_limits limits = {.mask_steps = 500};
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = NULL;
	struct grammar_state *s;
	uint32_t mask[WORDS];
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_compile(&g, v, source, strlen(source), &limits, &err), STATUS_OK);
	s = bed_state(g);
	for (int i = 0; i < 30; i++)
		assert_int_equal(grammar_accept(s, 'a'), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_mask(s, mask, &err), STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "500 steps (limit: mask_steps)"));
	grammar_state_destroy(&s);
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}

static void test_state__nesting_is_bounded(void **state)
{
	struct grammar_limits limits = {.depth = 20};
	struct grammar_vocab *v = bed_vocab();
	struct grammar *g = NULL;
	struct grammar_state *s;
	struct error err = {0};
	int depth = 0;

	(void)state;
	assert_int_equal(grammar_compile(&g, v, sources[0], strlen(sources[0]), &limits, &err), STATUS_OK);
	s = bed_state(g);
	assert_int_equal(grammar_accept_bytes(s, "{\"a\":", 5), GRAMMAR_ACCEPTED);
	while (grammar_accept(s, '[') == GRAMMAR_ACCEPTED)
		depth++;
	assert_in_range(depth, 5, 20);
	assert_int_equal(grammar_accept(s, '1'), GRAMMAR_ACCEPTED);
	for (; depth; depth--)
		assert_int_equal(grammar_accept(s, ']'), GRAMMAR_ACCEPTED);
	assert_int_equal(grammar_accept(s, '}'), GRAMMAR_ACCEPTED);
	assert_true(grammar_is_complete(s));
	grammar_state_destroy(&s);
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}

static void test_compile__refusals(void **state)
{
	(void)state;
	bed_refused("{", NULL, STATUS_BAD_INPUT, "not valid JSON: line 1");
	bed_refused("[]", NULL, STATUS_BAD_INPUT, "not a JSON object");
	bed_refused("{\"type\":\"x\"}", NULL, STATUS_BAD_INPUT, "\"type\" is not json_object");
	bed_refused("{\"type\":\"regex\",\"type\":\"regex\"}", NULL, STATUS_BAD_INPUT, "duplicate");
	bed_refused("{\"type\":\"regex\"}", NULL, STATUS_BAD_INPUT, "\"pattern\" is missing");
	bed_refused("{\"type\":\"json_schema\"}", NULL, STATUS_BAD_INPUT, "\"schema\" is missing");
	bed_refused("{\"type\":\"json_object\",\"whitespace\":1}", NULL, STATUS_BAD_INPUT,
		    "\"whitespace\" is not");
	bed_refused("{\"type\":\"json_object\",\"after\":1}", NULL, STATUS_BAD_INPUT,
		    "\"after\" is not a text");
	bed_refused("{\"type\":\"json_object\",\"after\":\"\"}", NULL, STATUS_BAD_INPUT,
		    "a mark has 0 bytes");
	bed_refused("{\"type\":\"json_object\",\"after\":\"b\",\"opening\":1}", NULL, STATUS_BAD_INPUT,
		    "\"opening\" is not a text");
	bed_refused("{\"type\":\"json_object\",\"opening\":\"a\"}", NULL, STATUS_BAD_INPUT,
		    "\"opening\" is given without \"after\"");
}

static void test_compile__limits(void **state)
{
	static const char source[] = "{\"type\":\"json_object\"}";

	(void)state;
	bed_refused(source, &(struct grammar_limits){.source_bytes = 10}, STATUS_NO_RESOURCE,
		    "limit: source_bytes");
	bed_refused(source, &(struct grammar_limits){.nodes = 10}, STATUS_NO_RESOURCE, "limit: nodes");
	bed_refused("{\"type\":\"regex\",\"pattern\":\"[acegikmoqsuwy02468]{20}\"}",
		    &(struct grammar_limits){.nodes = 30}, STATUS_NO_RESOURCE, "more than 240 edges");
	bed_refused(source, &(struct grammar_limits){.steps = 10}, STATUS_NO_RESOURCE, "limit: steps");
}

/* Each hostile source ends within the compiler's limits. */
static void test_compile__hostile(void **state)
{
	struct text source = {0};

	(void)state;
	text_add(&source, "{\"type\":\"json_schema\",\"schema\":");
	for (int i = 0; i < 1000; i++)
		text_add(&source, "{\"items\":");
	text_add(&source, "{}");
	for (int i = 0; i < 1000; i++)
		text_add(&source, "}");
	text_add(&source, "}");
	bed_refused(text_str(&source), NULL, STATUS_NO_RESOURCE, "nested more than 100");
	text_release(&source);

	/* allOf of alternatives: 2^20 combinations */
	text_add(&source, "{\"type\":\"json_schema\",\"schema\":{\"allOf\":[{}");
	for (int i = 0; i < 20; i++)
		text_addf(&source, ",{\"anyOf\":[{\"minimum\":%d},{\"maximum\":%d}]}", i, -i);
	text_add(&source, "]}}");
	bed_refused(text_str(&source), NULL, STATUS_NO_RESOURCE, "more than 256 combinations");
	text_release(&source);

	/* definitions that double at each level */
	text_add(&source, "{\"type\":\"json_schema\",\"schema\":{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
	for (int i = 0; i < 60; i++)
		text_addf(
			&source,
			"\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"},{\"title\":\"%d\"}]},",
			i, i + 1, i + 1, i);
	text_add(&source, "\"d60\":{}}}}");
	bed_refused(text_str(&source), NULL, STATUS_NO_RESOURCE, "");
	text_release(&source);

	text_add(
		&source,
		"{\"type\":\"regex\",\"pattern\":\"((((((((((a{0,99}){99}){99}){99}){99}){99}){99}){99}){99})*)*\"}");
	bed_refused(text_str(&source), NULL, STATUS_NO_RESOURCE, "limit: nodes");
	text_release(&source);
}

static void test_compile__large_enum(void **state)
{
	struct grammar_vocab *v = bed_vocab();
	struct text source = {0};
	struct grammar *g;

	(void)state;
	text_add(&source, "{\"type\":\"json_schema\",\"schema\":{\"enum\":[0");
	for (int i = 0; i < 20000; i++)
		text_addf(&source, ",\"value %d\"", i);
	text_add(&source, "]}}");
	g = bed_compile(v, text_str(&source));
	assert_true(bed_takes(g, "\"value 19999\"", 13));
	assert_false(bed_takes(g, "\"value 20000\"", 13));
	grammar_release(&g);
	text_release(&source);
	grammar_vocab_destroy(&v);
}

static void test_cache(void **state)
{
	static const char bad[] = "{\"type\":\"x\"}";
	struct grammar_vocab *v = bed_vocab();
	struct grammar_cache *c = NULL;
	struct grammar *g = NULL, *again = NULL, *first = NULL;
	struct grammar_cache_counts counts;
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_cache_create(&c, v, 200000, NULL, &err), STATUS_OK);
	assert_int_equal(grammar_cache_get(c, &g, sources[0], strlen(sources[0]), &err), STATUS_OK);
	assert_int_equal(grammar_cache_get(c, &again, sources[0], strlen(sources[0]), &err), STATUS_OK);
	assert_ptr_equal(g, again);
	grammar_release(&again);
	assert_int_equal(grammar_cache_get(c, &again, bad, strlen(bad), &err), STATUS_BAD_INPUT);
	assert_null(again);
	counts = grammar_cache_counts(c);
	assert_int_equal(counts.hits, 1);
	assert_int_equal(counts.misses, 2);
	assert_int_equal(counts.grammars, 1);
	assert_int_equal(counts.refusals, 1);
	first = grammar_retain(g);
	for (int i = 0; i < 50; i++) {
		struct text source = {0};
		struct grammar *one = NULL;

		text_addf(&source, "{\"type\":\"regex\",\"pattern\":\"a{%d}b{50}c{50}d{50}\"}", i);
		assert_int_equal(grammar_cache_get(c, &one, text_str(&source), source.size, &err), STATUS_OK);
		grammar_release(&one);
		text_release(&source);
	}
	counts = grammar_cache_counts(c);
	assert_true(counts.evicted > 0 && counts.bytes <= 200000);
	/* The first grammar left the cache, but lives on. */
	assert_int_equal(grammar_cache_get(c, &again, sources[0], strlen(sources[0]), &err), STATUS_OK);
	assert_ptr_not_equal(again, first);
	grammar_cache_destroy(&c);
	grammar_cache_destroy(&c);
	assert_true(bed_takes(first, "{}", 2));
	grammar_release(&again);
	grammar_release(&first);
	grammar_release(&g);
	grammar_vocab_destroy(&v);
}

#define DEEP "((((((((((((((" /* 14 of at most 64 */
/* Each refusal is compiled once, and reported in the same words each time. */
static void test_cache__refusals(void **state)
{
	static const char *const refused[] = {
		"{\"type\":\"x\"}",
		"{\"type\":\"json_schema\",\"strict\":true,\"schema\":{\"type\":\"array\",\"contains\":{}}}",
		"{\"type\":\"regex\",\"pattern\":\"" DEEP DEEP DEEP DEEP DEEP "a\"}",
	};
	static const enum status why[] = {STATUS_BAD_INPUT, STATUS_UNSUPPORTED, STATUS_NO_RESOURCE};
	struct grammar_vocab *v = bed_vocab();
	struct grammar_cache *c = NULL;
	struct grammar *g = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_cache_create(&c, v, 200000, NULL, &err), STATUS_OK);
	for (int i = 0; i < 3; i++) {
		struct error first = {0}, again = {0};

		assert_int_equal(grammar_cache_get(c, &g, refused[i], strlen(refused[i]), &first), why[i]);
		assert_int_equal(grammar_cache_get(c, &g, refused[i], strlen(refused[i]), &again), why[i]);
		assert_null(g);
		assert_string_equal(again.text, first.text);
		assert_int_equal(again.cause, first.cause);
		assert_int_equal(grammar_cache_counts(c).hits, i + 1);
		assert_int_equal(grammar_cache_counts(c).refusals, i + 1);
	}
	grammar_cache_destroy(&c);
	grammar_vocab_destroy(&v);
}

static void test_cache__refusals_are_bounded(void **state)
{
	struct grammar_vocab *v = bed_vocab();
	struct grammar_cache *c = NULL;
	struct grammar *g = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_cache_create(&c, v, 50000, NULL, &err), STATUS_OK);
	for (int i = 0; i < 3000; i++) {
		struct error why = {0};
		char source[32];

		snprintf(source, sizeof(source), "{\"type\":\"%d\"}", i);
		assert_int_equal(grammar_cache_get(c, &g, source, strlen(source), &why), STATUS_BAD_INPUT);
	}
	assert_true(grammar_cache_counts(c).evicted > 0);
	assert_true(grammar_cache_counts(c).refusals > 1 && grammar_cache_counts(c).bytes <= 50000);
	grammar_cache_destroy(&c);
	assert_int_equal(grammar_cache_create(&c, v, 1 << 30, NULL, &err), STATUS_OK);
	for (int i = 0; i < 3000; i++) {
		struct error why = {0};
		char source[32];

		snprintf(source, sizeof(source), "{\"type\":\"%d\"}", i);
		grammar_cache_get(c, &g, source, strlen(source), &why);
	}
	assert_int_equal(grammar_cache_counts(c).refusals, 1024);
	grammar_cache_destroy(&c);
	grammar_vocab_destroy(&v);
}

struct shared {
	struct grammar_cache *cache;
	const struct grammar_vocab *vocab;
	uint64_t seed;
	unsigned wrong;
};

/* Compiles and walks while other threads do the same. */
static void *walk(void *arg)
{
	struct shared *shared = arg;
	struct error err = {0};
	uint32_t mask[WORDS];

	for (int round = 0; round < 30; round++) {
		const char *source =
			sources[next_random(&shared->seed) % (sizeof(sources) / sizeof(sources[0]))];
		struct grammar_state *s = NULL;
		struct grammar *g = NULL;

		if (grammar_cache_get(shared->cache, &g, source, strlen(source), &err) ||
		    grammar_state_create(&s, g, &err)) {
			shared->wrong++;
			return NULL;
		}
		for (int token = 0; token < 50; token++) {
			int32_t id = 0;

			shared->wrong += grammar_mask(s, mask, &err) != STATUS_OK;
			do
				id = (int32_t)(next_random(&shared->seed) % BED_COUNT);
			while (!bit(mask, id));
			if (grammar_accept(s, id) != GRAMMAR_ACCEPTED)
				break;
		}
		grammar_state_destroy(&s);
		grammar_release(&g);
	}
	return NULL;
}

static void test_cache__threads(void **state)
{
	struct grammar_vocab *v = bed_vocab();
	struct grammar_cache *c = NULL;
	struct shared shared[4];
	pthread_t threads[4];
	struct error err = {0};

	(void)state;
	assert_int_equal(grammar_cache_create(&c, v, 1 << 20, NULL, &err), STATUS_OK);
	for (unsigned i = 0; i < 4; i++) {
		shared[i] = (struct shared){c, v, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, walk, &shared[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(shared[i].wrong, 0);
	}
	grammar_cache_destroy(&c);
	grammar_vocab_destroy(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vocab__refusals),
		cmocka_unit_test(test_mask__equals_brute_force),
		cmocka_unit_test(test_state__end),
		cmocka_unit_test(test_state__memory_is_bounded),
		cmocka_unit_test(test_state__too_ambiguous),
		cmocka_unit_test(test_state__work_is_bounded),
		cmocka_unit_test(test_state__nesting_is_bounded),
		cmocka_unit_test(test_compile__refusals),
		cmocka_unit_test(test_compile__limits),
		cmocka_unit_test(test_compile__hostile),
		cmocka_unit_test(test_compile__large_enum),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache__refusals),
		cmocka_unit_test(test_cache__refusals_are_bounded),
		cmocka_unit_test(test_cache__threads),
	};

	return cmocka_run_group_tests_name("grammar", tests, NULL, NULL);
}
