/* SPDX-License-Identifier: Apache-2.0 */
/* Packs, their order, and the micro-batches made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/math/random.h"
#include "train/data/prefetch.c" /* the test waits for its thread */

enum { ROWS = 300, ROOM = 64, VOCAB = 1000 };

/* Rows of 1 to ROOM tokens; of each, the last third is trained. */
static struct tokenised made_rows(void)
{
	struct tokenised t = {.token = calloc(ROWS * ROOM, sizeof(*t.token)),
			      .begin = calloc(ROWS + 1, sizeof(*t.begin)),
			      .rows = ROWS};

	assert_true(t.token && t.begin);
	for (uint64_t i = 0; i < ROWS; i++) {
		uint64_t length = i < 3 ? 1 + i : 1 + random_u32(7, 1, i) % ROOM;

		for (uint64_t k = 0; k < length; k++)
			t.token[t.tokens + k] = (int32_t)(random_u32(7, 2, i * ROOM + k) % VOCAB) |
						(k >= length - (length + 2) / 3 ? TOKENISED_TRAINED : 0);
		t.tokens += length;
		t.begin[i + 1] = t.tokens;
	}
	return t;
}

static const struct sampler usual = {
	.seed = 42, .shuffle = true, .room = ROOM, .packs_per_micro = 3, .micros = 5, .world = 1};

static struct sampler_epoch made_epoch(const struct sampler *s, uint64_t number, const struct tokenised *t)
{
	struct sampler_epoch e;
	struct error err = {0};

	if (sampler_epoch_make(&e, s, number, t->begin, t->rows, &err))
		fail_msg("%s", err.text);
	return e;
}

static void test_sampler__packs_hold_each_row_once_and_no_more_than_their_room(void **state)
{
	struct tokenised t = made_rows();
	struct sampler_epoch e = made_epoch(&usual, 0, &t);
	uint8_t seen[ROWS] = {0};

	(void)state;
	assert_true(e.packs.count <= (t.tokens + ROOM - 1) / ROOM + ROWS / 10);
	for (uint64_t p = 0; p < e.packs.count; p++) {
		uint64_t tokens = 0;

		assert_true(e.packs.begin[p] < e.packs.begin[p + 1]);
		for (uint64_t i = e.packs.begin[p]; i < e.packs.begin[p + 1]; i++) {
			seen[e.packs.row[i]]++;
			tokens += t.begin[e.packs.row[i] + 1] - t.begin[e.packs.row[i]];
		}
		assert_true(tokens <= ROOM);
	}
	for (size_t i = 0; i < ROWS; i++)
		assert_int_equal(seen[i], 1);
	sampler_epoch_release(&e);
	tokenised_release(&t);
}

/* First fit, the longest first, by the plainest means. */
static void test_sampler__packs_are_first_fit(void **state)
{
	struct tokenised t = made_rows();
	struct sampler plain = usual;
	struct sampler_epoch e;
	uint64_t left[ROWS], count = 0;

	(void)state;
	plain.shuffle = false;
	e = made_epoch(&plain, 0, &t);
	for (uint64_t length = ROOM; length; length--)
		for (uint32_t row = 0; row < ROWS; row++) {
			uint64_t p = 0, i;

			if (t.begin[row + 1] - t.begin[row] != length)
				continue;
			while (p < count && left[p] < length)
				p++;
			if (p == count)
				left[count++] = ROOM;
			left[p] -= length;
			for (i = e.packs.begin[p]; i < e.packs.begin[p + 1] && e.packs.row[i] != row;)
				i++;
			assert_true(i < e.packs.begin[p + 1]);
		}
	assert_int_equal(count, e.packs.count);
	sampler_epoch_release(&e);
	tokenised_release(&t);
}

static void test_sampler__an_epoch_is_a_pure_function_of_seed_and_number(void **state)
{
	struct tokenised t = made_rows();
	struct sampler other = usual;
	struct sampler_epoch a = made_epoch(&usual, 3, &t), b = made_epoch(&usual, 3, &t),
			     c = made_epoch(&usual, 4, &t), d;

	(void)state;
	other.seed++;
	d = made_epoch(&other, 3, &t);
	assert_memory_equal(a.order, b.order, a.packs.count * sizeof(*a.order));
	assert_memory_equal(a.packs.row, b.packs.row, ROWS * sizeof(*a.packs.row));
	assert_int_equal(a.packs.count, c.packs.count);
	assert_memory_not_equal(a.order, c.order, a.packs.count * sizeof(*a.order));
	assert_memory_not_equal(a.order, d.order, a.packs.count * sizeof(*a.order));
	sampler_epoch_release(&a);
	sampler_epoch_release(&b);
	sampler_epoch_release(&c);
	sampler_epoch_release(&d);
	tokenised_release(&t);
}

static void test_sampler__without_shuffling_rows_come_in_order(void **state)
{
	const struct sampler s = {.packs_per_micro = 2, .micros = 1, .world = 1};
	struct tokenised t = made_rows();
	struct sampler_epoch e = made_epoch(&s, 5, &t);

	(void)state;
	assert_int_equal(e.packs.count, ROWS);
	for (uint32_t i = 0; i < ROWS; i++)
		assert_int_equal(e.packs.row[e.packs.begin[e.order[i]]], i);
	sampler_epoch_release(&e);
	tokenised_release(&t);
}

/* The same rows make a step for any number of ranks, and each row comes once an epoch. */
static void test_sampler__the_world_size_enters_last(void **state)
{
	static const uint64_t worlds[] = {1, 2, 3, 4, 8};
	struct tokenised t = made_rows();
	struct sampler_epoch e = made_epoch(&usual, 0, &t);

	(void)state;
	for (size_t w = 0; w < 5; w++) {
		struct sampler s = usual;
		uint8_t seen[ROWS] = {0};

		s.world = worlds[w];
		s.packs_per_micro = 24 / worlds[w];
		s.micros = 2;
		for (uint64_t step = 0; step < sampler_steps(&s, &e); step++) {
			struct sampler_span all = sampler_step(&s, &e, step);

			assert_int_equal(all.first, step * 48);
			for (s.rank = 0; s.rank < s.world; s.rank++)
				for (uint64_t m = 0; m < sampler_micros(&s, all); m++) {
					struct sampler_span mine = sampler_micro(&s, all, m);

					assert_true(mine.first >= all.first && mine.last <= all.last);
					assert_true(mine.first < mine.last);
					for (uint64_t p = mine.first; p < mine.last; p++)
						seen[e.order[p]]++;
				}
		}
		for (uint64_t p = 0; p < e.packs.count; p++)
			assert_int_equal(seen[p], 1);
	}
	sampler_epoch_release(&e);
	tokenised_release(&t);
}

static void test_sampler__a_batch_keeps_its_documents_apart(void **state)
{
	struct tokenised t = made_rows();
	struct sampler_epoch e = made_epoch(&usual, 0, &t);
	struct error err = {0};
	struct pack_batch f = {0};

	(void)state;
	for (uint64_t p = 0; p + 4 <= e.packs.count; p += 4) {
		const struct sampler_span span = {p, p + 4};
		const struct pack_batch_size size = pack_batch_size(&t, &e, span);
		const struct batch *b = &f.batch;
		uint64_t targets = 0;

		assert_int_equal(pack_batch_make(&f, &t, &e, span, 17, &err), STATUS_OK);
		if (batch_check(b, VOCAB, &err))
			fail_msg("%s", err.text);
		assert_int_equal(b->tokens, size.tokens);
		assert_int_equal(b->docs, size.rows);
		assert_int_equal(b->targets, size.targets);
		assert_int_equal(b->row_begin, 17);
		for (int64_t d = 0; d < b->docs; d++) {
			uint64_t length = (uint64_t)(b->doc_start[d + 1] - b->doc_start[d]);
			uint64_t trained = (length + 2) / 3; /* the first token of a row is no target */

			targets += trained == length ? length - 1 : trained;
			assert_int_equal(b->target[b->doc_start[d + 1] - 1], BATCH_UNTRAINED);
		}
		assert_int_equal(targets, size.targets);
	}
	pack_batch_release(&f);
	sampler_epoch_release(&e);
	tokenised_release(&t);
}

static uint64_t sum_of(const struct batch *b)
{
	uint64_t sum = b->row_begin + 1;

	for (int64_t i = 0; i < b->tokens; i++)
		sum = (sum ^ (uint64_t)b->token[i] ^ (uint64_t)b->target[i] << 20) * 0x100000001b3u;
	return sum;
}

/* The micro-batch as it is made alone. */
static uint64_t sum_alone(const struct tokenised *t, uint64_t epoch, uint64_t step, uint64_t micro)
{
	struct sampler_epoch e = made_epoch(&usual, epoch, t);
	struct sampler_span all = sampler_step(&usual, &e, step), mine = sampler_micro(&usual, all, micro);
	struct error err = {0};
	struct pack_batch f = {0};
	uint64_t sum;

	assert_int_equal(
		pack_batch_make(&f, t, &e, mine,
				pack_batch_size(t, &e, (struct sampler_span){all.first, mine.first}).tokens,
				&err),
		STATUS_OK);
	sum = sum_of(&f.batch);
	pack_batch_release(&f);
	sampler_epoch_release(&e);
	return sum;
}

/* Until the thread has made all it was asked for: what it may write beside the caller, it has written. */
static void let_it_fill(struct prefetch *f)
{
	pthread_mutex_lock(&f->lock);
	while (f->slot[0].state == SLOT_ASKED || f->slot[1].state == SLOT_ASKED)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

/* A slow consumer reads what it was lent, however far the thread is; across the border of an epoch too. */
static void read_two_epochs(bool ahead)
{
	struct tokenised t = made_rows();
	struct error err = {0};
	struct prefetch *f = NULL;
	uint64_t tokens = 0, targets = 0, rows = 0, least = usual.micros;

	assert_int_equal(prefetch_open(&f, &usual, &t, ahead, &err), STATUS_OK);
	for (uint64_t step = 0; step < 2 * prefetch_steps(f); step++) {
		struct prefetch_step size;
		uint64_t of_step = targets;

		assert_int_equal(prefetch_step(f, step, &size, &err), STATUS_OK);
		for (uint64_t micro = 0; micro < size.micro_batches; micro++) {
			const struct batch *b;
			double wait_s = -1;
			uint64_t sum;

			assert_int_equal(prefetch_next(f, step, micro, &b, &wait_s, &err), STATUS_OK);
			assert_true(wait_s >= 0);
			sum = sum_of(b);
			let_it_fill(f);
			assert_int_equal(sum, sum_of(b));
			assert_int_equal(sum, sum_alone(&t, step / prefetch_steps(f),
							step % prefetch_steps(f), micro));
			tokens += (uint64_t)b->tokens;
			targets += (uint64_t)b->targets;
			rows += (uint64_t)b->docs;
		}
		assert_int_equal(targets - of_step, size.size.targets);
		least = size.micro_batches < least ? size.micro_batches : least;
	}
	assert_true(least < usual.micros); /* an epoch's last step is a short one */
	assert_int_equal(tokens, 2 * t.tokens);
	assert_int_equal(rows, 2 * ROWS);
	assert_true(targets > 0 && targets < tokens);
	prefetch_close(&f);
	tokenised_release(&t);
}

static void test_feed__what_is_lent_is_not_overwritten(void **state)
{
	(void)state;
	read_two_epochs(true);
}

/* Without a thread the same micro-batches come, and none is made before it is wanted. */
static void test_feed__without_a_thread_the_same_comes(void **state)
{
	(void)state;
	read_two_epochs(false);
}

static void ask_for_steps(bool ahead)
{
	static const uint64_t steps[] = {9, 2, 2, 30, 0, 1, 9};
	struct tokenised t = made_rows();
	struct error err = {0};
	struct prefetch *f = NULL;

	assert_int_equal(prefetch_open(&f, &usual, &t, ahead, &err), STATUS_OK);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct batch *b;
		double wait_s;

		assert_int_equal(prefetch_next(f, steps[i], 1, &b, &wait_s, &err), STATUS_OK);
		assert_int_equal(sum_of(b), sum_alone(&t, steps[i] / prefetch_steps(f),
						      steps[i] % prefetch_steps(f), 1));
	}
	prefetch_close(&f);
	tokenised_release(&t);
}

static void test_feed__any_step_can_be_asked_for(void **state)
{
	(void)state;
	ask_for_steps(true);
	ask_for_steps(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sampler__packs_hold_each_row_once_and_no_more_than_their_room),
		cmocka_unit_test(test_sampler__packs_are_first_fit),
		cmocka_unit_test(test_sampler__an_epoch_is_a_pure_function_of_seed_and_number),
		cmocka_unit_test(test_sampler__without_shuffling_rows_come_in_order),
		cmocka_unit_test(test_sampler__the_world_size_enters_last),
		cmocka_unit_test(test_sampler__a_batch_keeps_its_documents_apart),
		cmocka_unit_test(test_feed__what_is_lent_is_not_overwritten),
		cmocka_unit_test(test_feed__without_a_thread_the_same_comes),
		cmocka_unit_test(test_feed__any_step_can_be_asked_for),
	};

	return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
