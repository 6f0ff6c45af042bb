/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "engine/pages/pages.h"
#include "engine/pages/pool.h"

enum { P = 16 };

static struct pages *pool_of(int64_t pages)
{
	const struct pages_options o = {pages + 1, P, 3};
	struct pages *pool;
	struct error err = {0};

	if (pages_create(&pool, &o, &err))
		fail_msg("%s", err.text);
	return pool;
}

static void check(struct pages *pool)
{
	struct error err = {0};

	if (pages_check(pool, &err))
		fail_msg("%s", err.text);
}

/* free, used, cached, draining */
static void counts(struct pages *pool, int64_t free, int64_t used, int64_t cached, int64_t draining)
{
	struct pages_counts c = pages_counts(pool);

	check(pool);
	assert_int_equal(c.free, free);
	assert_int_equal(c.used, used);
	assert_int_equal(c.cached, cached);
	assert_int_equal(c.draining, draining);
}

/* Tokens of `count` pages: token i is `from` + i. */
static const int32_t *text(int32_t from, int32_t count)
{
	static int32_t tokens[64 * P];

	for (int32_t i = 0; i < count * P; i++)
		tokens[i] = from + i;
	return tokens;
}

static const struct pages_key base;

/* Computes and registers a chain of pages, and holds it. */
static void fill(struct pages *pool, const int32_t *tokens, int32_t count, uint32_t *table)
{
	for (int32_t i = 0; i < count; i++) {
		table[i] = pages_take(pool);
		assert_int_not_equal(table[i], 0);
		table[i] = pages_register(pool, table[i], i ? table[i - 1] : 0, &base, tokens + i * P, 0);
	}
}

static void drop(struct pages *pool, const uint32_t *table, int32_t count)
{
	while (count-- > 0)
		pages_release(pool, table[count], 0);
}

static int32_t find(struct pages *pool, const struct pages_key *key, const int32_t *tokens, int32_t count)
{
	uint32_t table[64];
	struct pages_next next;
	int32_t found = pages_find(pool, key, tokens, count, table, &next);

	drop(pool, table, found);
	return found;
}

static void test_pages__options_out_of_range_are_refused(void **state)
{
	static const struct {
		struct pages_options o;
		const char *says;
	} bad[] = {
		{{1, 32, 0}, "a KV cache of 1 pages is not possible"},
		{{(int64_t)PAGES_MOST + 1, 32, 0}, "pages is not possible"},
		{{100, 8, 0}, "a page of 8 tokens is not possible: use 16, 32 or 64"},
		{{100, 128, 0}, "a page of 128 tokens"},
		{{100, 24, 0}, "a page of 24 tokens"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct pages *pool = (void *)&bad;
		struct error err = {0};

		assert_int_equal(pages_create(&pool, &bad[i].o, &err), STATUS_BAD_INPUT);
		assert_null(pool);
		assert_non_null(strstr(err.text, bad[i].says));
		pages_free(&pool);
	}
}

static void test_pages__every_page_but_0_is_given_out_once(void **state)
{
	struct pages *pool = pool_of(5);
	bool given[6] = {0};

	(void)state;
	for (int i = 0; i < 5; i++) {
		uint32_t page = pages_take(pool);

		assert_in_range(page, 1, 5);
		assert_false(given[page]);
		given[page] = true;
	}
	assert_int_equal(pages_take(pool), 0);
	counts(pool, 0, 5, 0, 0);
	pages_free(&pool);
}

static void test_pages__a_released_page_is_kept_and_found(void **state)
{
	struct pages *pool = pool_of(8);
	uint32_t a[3], b[3];
	struct pages_next next;

	(void)state;
	fill(pool, text(0, 3), 3, a);
	counts(pool, 5, 3, 0, 0);
	drop(pool, a, 3);
	counts(pool, 5, 0, 3, 0);
	assert_int_equal(pages_find(pool, &base, text(0, 3), 3, b, &next), 3);
	assert_memory_equal(a, b, sizeof a);
	counts(pool, 5, 3, 0, 0);
	assert_int_equal(pages_references(pool, b[0]), 1);
	assert_int_equal(next.page, 0);
	drop(pool, b, 3);
	pages_free(&pool);
}

static void test_pages__a_lookup_compares_tokens_salt_adapter_and_parent(void **state)
{
	const struct pages_key salted = {.salt = 1}, adapted = {.adapter = 1};
	struct pages *pool = pool_of(8);
	int32_t changed[3 * P];
	uint32_t a[3];

	(void)state;
	fill(pool, text(0, 3), 3, a);
	assert_int_equal(find(pool, &base, text(0, 3), 3), 3);
	assert_int_equal(find(pool, &base, text(0, 3), 2), 2);
	assert_int_equal(find(pool, &salted, text(0, 3), 3), 0);
	assert_int_equal(find(pool, &adapted, text(0, 3), 3), 0);
	memcpy(changed, text(0, 3), sizeof changed);
	changed[2 * P - 1]++;
	assert_int_equal(find(pool, &base, changed, 3), 1);
	/* The second page's tokens behind no parent. */
	assert_int_equal(find(pool, &base, text(P, 2), 2), 0);
	drop(pool, a, 3);
	pages_free(&pool);
}

/* A page is given the hash of another one, in the same bucket: only the comparison tells them apart. */
static void test_pages__equal_hashes_are_told_apart(void **state)
{
	static const struct pages_key keys[] = {{0, 0}, {1, 0}, {0, 1}};
	struct pages *pool = pool_of(3);
	uint32_t parent[1], a, b;

	(void)state;
	pool->bucket_mask = 0;
	fill(pool, text(900, 1), 1, parent);
	for (int i = 0; i < 4; i++) { /* other tokens, salt, adapter, parent */
		const struct pages_key *key = keys + i % 3;
		int32_t from = i ? 0 : 500;

		b = pages_register(pool, pages_take(pool), i == 3 ? parent[0] : 0, key, text(from, 1), 0);
		a = pages_register(pool, pages_take(pool), 0, &base, text(0, 1), 0);
		assert_int_not_equal(a, b);
		assert_int_not_equal(pool->pages[a].hash, pool->pages[b].hash);
		pool->pages[a].hash = pool->pages[b].hash;
		pages_discard(pool, b, 0);
		assert_int_equal(pages_lookup(pool, i == 3 ? parent[0] : 0, key, text(from, 1)), 0);
		pages_discard(pool, a, 0);
	}
	pages_free(&pool);
}

static void test_pages__leaves_are_evicted_least_recently_used_first(void **state)
{
	struct pages *pool = pool_of(6);
	uint32_t a[3], b[3];

	(void)state;
	fill(pool, text(0, 3), 3, a);
	fill(pool, text(1000, 3), 3, b);
	drop(pool, a, 3);
	drop(pool, b, 3);
	counts(pool, 0, 0, 6, 0);
	assert_int_equal(pages_take(pool), a[2]);
	assert_int_equal(pages_take(pool), a[1]);
	counts(pool, 0, 2, 4, 0);
	assert_int_equal(find(pool, &base, text(0, 3), 3), 1); /* a[0] is now the most recent one */
	assert_int_equal(pages_take(pool), b[2]);
	assert_int_equal(pages_take(pool), b[1]);
	assert_int_equal(pages_take(pool), b[0]);
	assert_int_equal(pages_take(pool), a[0]);
	assert_int_equal(pages_take(pool), 0);
	assert_int_equal(pages_counts(pool).evicted, 6);
	counts(pool, 0, 6, 0, 0);
	pages_free(&pool);
}

static void test_pages__a_parent_with_children_is_not_evicted(void **state)
{
	struct pages *pool = pool_of(4);
	uint32_t a[2], b[3];
	struct pages_next next;

	(void)state;
	fill(pool, text(0, 2), 2, a);
	/* A second sequence behind the first page. */
	assert_int_equal(pages_find(pool, &base, text(0, 2), 1, b, &next), 1);
	b[1] = pages_take(pool);
	b[1] = pages_register(pool, b[1], b[0], &base, text(500, 1), 0);
	assert_int_equal(pages_references(pool, a[0]), 2);
	drop(pool, a, 2);
	counts(pool, 1, 2, 1, 0);
	assert_int_equal(pages_take(pool) != 0, 1);
	assert_int_equal(pages_take(pool), a[1]);
	assert_int_equal(pages_take(pool), 0); /* the other leaf is held, and so is its parent */
	drop(pool, b, 2);
	assert_int_equal(pages_take(pool), b[1]);
	assert_int_equal(pages_take(pool), b[0]);
	counts(pool, 0, 4, 0, 0);
	pages_free(&pool);
}

static void test_pages__of_two_equal_pages_one_remains(void **state)
{
	struct pages *pool = pool_of(4);
	uint32_t a[1], own = 0, now;

	(void)state;
	fill(pool, text(0, 1), 1, a);
	own = pages_take(pool);
	now = pages_register(pool, own, 0, &base, text(0, 1), 5);
	assert_int_equal(now, a[0]);
	assert_int_equal(pages_references(pool, now), 2);
	counts(pool, 2, 1, 0, 1); /* a step in flight may still write to the other */
	pages_ended(pool, 5);
	counts(pool, 3, 1, 0, 0);
	pages_free(&pool);
}

static void test_pages__a_page_drains_until_its_step_has_ended(void **state)
{
	struct pages *pool = pool_of(3);
	uint32_t a = pages_take(pool), b = pages_take(pool), c = pages_take(pool);

	(void)state;
	pages_release(pool, a, 2);
	pages_release(pool, b, 1); /* not before those that were released earlier */
	pages_release(pool, c, 0);
	counts(pool, 1, 0, 0, 2);
	assert_int_equal(pages_available(pool), 1);
	pages_ended(pool, 1);
	counts(pool, 1, 0, 0, 2);
	pages_ended(pool, 2);
	counts(pool, 3, 0, 0, 0);
	a = pages_take(pool);
	pages_release(pool, a, 2); /* has ended already */
	counts(pool, 3, 0, 0, 0);
	pages_free(&pool);
}

static void test_pages__announced_pages_are_found_but_not_taken(void **state)
{
	struct pages *pool = pool_of(8);
	uint32_t a[3], table[3];
	struct pages_next next;
	const int32_t *tokens = text(0, 3);

	(void)state;
	fill(pool, tokens, 1, a);
	for (int32_t i = 1; i < 3; i++) {
		a[i] = pages_take(pool);
		pages_announce(pool, a[i], a[i - 1], &base, tokens + i * P, 77);
	}
	check(pool);
	assert_int_equal(pages_find(pool, &base, tokens, 3, table, &next), 1);
	assert_int_equal(next.page, a[2]);
	assert_int_equal(next.owner, 77);
	drop(pool, table, 1);
	assert_int_equal(pages_find(pool, &base, tokens, 2, table, &next), 1);
	assert_int_equal(next.page, a[1]);
	drop(pool, table, 1);
	assert_int_equal(pages_register(pool, a[1], a[0], &base, tokens + P, 0), a[1]);
	assert_int_equal(find(pool, &base, tokens, 3), 2);
	/* The owner leaves: nothing is announced any more. */
	drop(pool, a, 3);
	assert_int_equal(pages_find(pool, &base, tokens, 3, table, &next), 2);
	assert_int_equal(next.page, 0);
	drop(pool, table, 2);
	counts(pool, 6, 0, 2, 0);
	pages_free(&pool);
}

static void test_pages__who_computes_an_announced_page_first_registers_it(void **state)
{
	struct pages *pool = pool_of(8);
	uint32_t slow = pages_take(pool), fast = pages_take(pool);

	(void)state;
	pages_announce(pool, slow, 0, &base, text(0, 1), 1);
	pages_announce(pool, fast, 0, &base, text(0, 1), 2); /* there already: not announced */
	assert_int_equal(pages_register(pool, fast, 0, &base, text(0, 1), 0), fast);
	check(pool);
	assert_int_equal(pages_register(pool, slow, 0, &base, text(0, 1), 0), fast);
	counts(pool, 7, 1, 0, 0);
	pages_free(&pool);
}

static void test_pages__a_second_announcement_replaces_the_first(void **state)
{
	struct pages *pool = pool_of(8);
	uint32_t page = pages_take(pool), table[1];
	struct pages_next next;

	(void)state;
	pages_announce(pool, page, 0, &base, text(0, 1), 1);
	pages_announce(pool, page, 0, &base, text(9, 1), 1);
	check(pool);
	pages_find(pool, &base, text(0, 1), 1, table, &next);
	assert_int_equal(next.page, 0);
	pages_find(pool, &base, text(9, 1), 1, table, &next);
	assert_int_equal(next.page, page);
	pages_free(&pool);
}

static void test_pages__discarded_pages_are_not_cached(void **state)
{
	struct pages *pool = pool_of(8);
	uint32_t a[3], b[1];
	struct pages_next next;

	(void)state;
	fill(pool, text(0, 3), 3, a);
	assert_int_equal(pages_find(pool, &base, text(0, 1), 1, b, &next), 1);
	for (int32_t i = 3; i-- > 0;)
		pages_discard(pool, a[i], 4);
	counts(pool, 5, 1, 0, 2); /* the first one is held by another sequence */
	pages_ended(pool, 4);
	assert_int_equal(find(pool, &base, text(0, 3), 3), 1);
	pages_discard(pool, b[0], 0);
	counts(pool, 8, 0, 0, 0);
	pages_free(&pool);
}

/* Each kind of defect that pages_check is for. */
static void test_pages__the_check_finds_defects(void **state)
{
	struct pages *pool = pool_of(8);
	struct error err = {0};
	uint32_t a[3];

	(void)state;
	fill(pool, text(0, 3), 3, a);
	drop(pool, a, 3);
	check(pool);
#define BREAKS(change, undo)                                                                                 \
	do {                                                                                                 \
		error_clear(&err);                                                                           \
		change;                                                                                      \
		assert_int_equal(pages_check(pool, &err), STATUS_MISMATCH);                                  \
		undo;                                                                                        \
		check(pool);                                                                                 \
	} while (0)
	BREAKS(pool->pages[a[0]].references++, pool->pages[a[0]].references--);
	BREAKS(pool->pages[a[0]].children++, pool->pages[a[0]].children--);
	BREAKS(pool->pages[a[2]].parent = a[0], pool->pages[a[2]].parent = a[1]);
	BREAKS(pool->tokens[a[1] * P]++, pool->tokens[a[1] * P]--);
	BREAKS(pool->pages[a[1]].key.salt++, pool->pages[a[1]].key.salt--);
	BREAKS(pool->pages[a[2]].state = PAGE_PRIVATE, pool->pages[a[2]].state = PAGE_REGISTERED);
	BREAKS(pool->counts.free++, pool->counts.free--);
	BREAKS(pool->counts.cached--, pool->counts.cached++);
	BREAKS(pool->counts.draining++, pool->counts.draining--);
	BREAKS(pool->leaves.places[a[2]] = 0, pool->leaves.places[a[2]] = 1);
	BREAKS(pool->draining_last = a[0], pool->draining_last = 0);
#undef BREAKS
	pages_free(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages__options_out_of_range_are_refused),
		cmocka_unit_test(test_pages__every_page_but_0_is_given_out_once),
		cmocka_unit_test(test_pages__a_released_page_is_kept_and_found),
		cmocka_unit_test(test_pages__a_lookup_compares_tokens_salt_adapter_and_parent),
		cmocka_unit_test(test_pages__equal_hashes_are_told_apart),
		cmocka_unit_test(test_pages__leaves_are_evicted_least_recently_used_first),
		cmocka_unit_test(test_pages__a_parent_with_children_is_not_evicted),
		cmocka_unit_test(test_pages__of_two_equal_pages_one_remains),
		cmocka_unit_test(test_pages__a_page_drains_until_its_step_has_ended),
		cmocka_unit_test(test_pages__announced_pages_are_found_but_not_taken),
		cmocka_unit_test(test_pages__who_computes_an_announced_page_first_registers_it),
		cmocka_unit_test(test_pages__a_second_announcement_replaces_the_first),
		cmocka_unit_test(test_pages__discarded_pages_are_not_cached),
		cmocka_unit_test(test_pages__the_check_finds_defects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
