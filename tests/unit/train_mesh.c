/* SPDX-License-Identifier: Apache-2.0 */
/* How the packs of a step are divided among ranks, and the fixed order in which their gradients are added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "model/backend/comm.h"
#include "train/data/deal.h"
#include "train/mesh/gradient_tree.h"
#include "train/mesh/mesh.h"
#include "train/mesh/tree_sum.h"

enum { PACKS = 37, WIDTH = 5, RANKS_MOST = 8 };

static uint64_t length_of(uint64_t pack)
{
	return 1 + random_u32(3, 1, pack) % 100;
}

/* The order of PACKS packs, and their tokens in that order. */
static void dealt(uint32_t pack[PACKS], uint64_t tokens[PACKS])
{
	struct error err = {0};

	for (uint32_t i = 0; i < PACKS; i++) {
		pack[i] = i;
		tokens[i] = length_of(i);
	}
	assert_int_equal(deal_order(pack, tokens, PACKS, &err), STATUS_OK);
	for (uint32_t i = 0; i < PACKS; i++)
		tokens[i] = length_of(pack[i]);
}

static void test_deal__each_pack_is_dealt_once(void **state)
{
	uint32_t pack[PACKS];
	uint64_t tokens[PACKS];
	uint8_t seen[PACKS] = {0};

	(void)state;
	dealt(pack, tokens);
	for (int i = 0; i < PACKS; i++)
		seen[pack[i]]++;
	for (int i = 0; i < PACKS; i++)
		assert_int_equal(seen[i], 1);
}

static void test_deal__halves_have_nearly_equal_tokens(void **state)
{
	uint32_t pack[PACKS];
	uint64_t tokens[PACKS];

	(void)state;
	dealt(pack, tokens);
	for (uint64_t world = 2; world <= RANKS_MOST; world *= 2) {
		uint64_t least = UINT64_MAX, most = 0, largest = 0;

		for (uint64_t r = 0; r < world; r++) {
			const struct deal_range own = deal_range_of(PACKS, world, r);
			uint64_t sum = 0;

			for (uint64_t i = own.first; i < own.last; i++) {
				sum += tokens[i];
				largest = tokens[i] > largest ? tokens[i] : largest;
			}
			/* one rank may have a pack more than another */
			least = sum < least ? sum : least;
			most = sum > most ? sum : most;
		}
		assert_true(most - least <= largest);
	}
}

static void test_deal__ranges_follow_each_other(void **state)
{
	(void)state;
	for (uint64_t count = 0; count < 40; count++)
		for (uint64_t world = 1; world < 12; world++) {
			uint64_t end = 0, most = (count + world - 1) / world;

			for (uint64_t r = 0; r < world; r++) {
				const struct deal_range own = deal_range_of(count, world, r);

				assert_int_equal(own.first, end);
				assert_true(own.last >= own.first && own.last - own.first <= most + 1);
				if (count % world == 0)
					assert_int_equal(own.last - own.first, most);
				end = own.last;
			}
			assert_int_equal(end, count);
		}
}

/* The sum of numbers [first, last) along the tree, by its definition. */
static float sum_of(const float *x, uint64_t first, uint64_t last)
{
	const uint64_t middle = first + (last - first + 1) / 2;

	if (last - first == 1)
		return x[first];
	return sum_of(x, first, middle) + sum_of(x, middle, last);
}

static float gradient_of(uint64_t pack, uint64_t element)
{
	const float small = (float)random_u32(5, 2, pack * WIDTH + element) * 0x1p-31f - 1;

	return small * (pack % 3 ? 1 : 1e4f); /* sums round differently in another order */
}

/* The gradient of the packs of one rank, as the stepper makes it. */
static void rank_sum(struct gradient_tree *t, struct deal_range own, float out[WIDTH])
{
	struct mat grad = {.data = out, .rows = 1, .cols = WIDTH, .ld = WIDTH, .dtype = DTYPE_F32};

	memset(out, 0, WIDTH * sizeof(*out));
	gradient_tree_begin(t, own.last - own.first);
	for (uint64_t p = own.first; p < own.last; p++) {
		for (uint64_t i = 0; i < WIDTH; i++)
			out[i] += gradient_of(p, i);
		gradient_tree_add(t, &grad, (double)p);
		assert_true(t->held <= t->levels);
	}
}

static void all_ranks_sum(uint64_t count, unsigned world, float out[WIDTH])
{
	_Alignas(ARENA_ALIGN) static uint8_t memory[1 << 16];
	float block[RANKS_MOST * WIDTH];

	for (unsigned r = 0; r < world; r++) {
		const struct deal_range own = deal_range_of(count, world, r);
		struct arena a = {.base = memory, .size = sizeof(memory)};
		struct gradient_tree t;
		struct error err = {0};

		assert_int_equal(gradient_tree_create(&t, &a, own.last - own.first, WIDTH, &err), STATUS_OK);
		rank_sum(&t, own, block + (size_t)r * WIDTH);
		for (uint64_t i = 0; i < own.last - own.first; i++)
			assert_true(t.loss[i] == (double)(own.first + i));
		gradient_tree_release(&t);
	}
	tree_sum_blocks(block, world, WIDTH);
	memcpy(out, block, WIDTH * sizeof(*out));
}

static void test_tree__any_power_of_two_of_ranks_gives_the_same_bits(void **state)
{
	bool order_matters = false;

	(void)state;
	for (uint64_t count = 1; count <= PACKS; count++) {
		float whole[WIDTH], again[WIDTH], one[PACKS], straight = 0;

		all_ranks_sum(count, 1, whole);
		for (uint64_t p = 0; p < count; p++)
			straight += one[p] = gradient_of(p, 1);
		assert_true(whole[1] == sum_of(one, 0, count));
		order_matters = order_matters || straight != whole[1];
		for (unsigned world = 2; world <= RANKS_MOST; world *= 2) {
			all_ranks_sum(count, world, again);
			assert_memory_equal(whole, again, sizeof(whole));
		}
	}
	assert_true(order_matters); /* otherwise this test could not fail */
}

static struct config config_of(uint32_t micro, uint32_t accumulation, uint64_t global, unsigned ranks)
{
	return (struct config){.training = {.per_device_train_batch_size = micro,
					    .gradient_accumulation_steps = accumulation,
					    .global_batch_size = global,
					    .device = CONFIG_DEVICE_CPU},
			       .place = {.ranks = ranks}};
}

static void test_mesh__a_step_is_divided_as_the_settings_say(void **state)
{
	struct config c = config_of(2, 3, 0, 4);
	struct error err = {0};
	struct mesh m;

	(void)state;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	assert_true(m.size == 4 && m.packs == 24 && m.micros == 3 && m.packs_per_micro == 2);
	c = config_of(2, 3, 16, 4);
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	assert_true(m.packs == 16 && m.micros == 2);
	c.training.deterministic = true; /* one pack at a time */
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	assert_true(m.each_pack && m.micros == 4 && m.packs_per_micro == 1);
	c.place.step_packs = 8; /* a resumed run */
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	assert_int_equal(m.packs, 8);
}

static void test_mesh__what_does_not_divide_is_refused(void **state)
{
	struct config c = config_of(2, 1, 12, 4);
	struct error err = {0};
	struct mesh m;

	(void)state;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "a step has 12 packs (training: global_batch_size), which 4 ranks"));
	error_clear(&err);
	c = config_of(1, 1, 0, 3);
	c.place.step_packs = 4;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "a step has 4 packs (as in the run so far), which 3 ranks"));
}

static void test_mesh__gradients_travel_as_the_settings_allow(void **state)
{
	struct config c = config_of(1, 1, 4, 2);
	struct error err = {0};
	struct mesh m;

	(void)state;
	assert_int_equal(mesh_travels(&c), DTYPE_F32);
	c.training.communication_data_type = CONFIG_COMMUNICATION_BF16;
	assert_int_equal(mesh_travels(&c), DTYPE_BF16);
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	c.training.deterministic = true;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "communication_data_type: bf16 rounds the gradients"));
	error_clear(&err);
	c.training.device = CONFIG_DEVICE_GPU;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	c.training.master_weights = CONFIG_MASTER_SPLIT;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	c.training.communication_data_type = CONFIG_COMMUNICATION_FP32;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "use communication_data_type: bf16"));
}

static void test_mesh__divided_states_may_be_on_the_host_and_travel_in_bf16(void **state)
{
	struct config c = config_of(1, 1, 4, 2);
	struct error err = {0};
	struct mesh m;

	(void)state;
	c.training.offload = CONFIG_OFFLOAD_OPTIMIZER;
	assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	for (c.training.zero_stage = 1; c.training.zero_stage <= 3; c.training.zero_stage++) {
		c.training.communication_data_type = CONFIG_COMMUNICATION_FP32;
		c.training.master_weights = CONFIG_MASTER_FP32;
		assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
		c.training.master_weights = CONFIG_MASTER_SPLIT; /* has gradients in BF16 */
		assert_int_equal(mesh_of(&m, &c, &err), STATUS_BAD_INPUT);
		error_clear(&err);
		c.training.communication_data_type = CONFIG_COMMUNICATION_BF16;
		assert_int_equal(mesh_of(&m, &c, &err), STATUS_OK);
	}
}

static void test_mesh__too_few_rows_are_refused(void **state)
{
	const struct mesh m = {.size = 4};
	struct error err = {0};

	(void)state;
	assert_int_equal(mesh_check_rows(&m, 4, 9, &err), STATUS_OK);
	assert_int_equal(mesh_check_rows(&m, 3, 9, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "9 rows make 3 packs, which is too few for 4 ranks"));
}

/* -- sums and agreements over a table of operations -- */

struct others { /* a test double: it answers for two other ranks */
	struct comm comm;
	const void *sent;
	enum status st;
};

static enum status others_gather(struct comm *c, const void *mine, size_t size, void *all, struct error *err)
{
	const struct others *o = (const struct others *)c;

	if (o->st)
		return error_set(err, o->st, "the connection is closed");
	memcpy((char *)all, mine, size);
	memcpy((char *)all + size, o->sent, 2 * size);
	return STATUS_OK;
}

static const struct comm_ops others_ops = {.name = "test", .gather = others_gather};

static void test_comm__host_numbers_are_added_in_the_order_of_ranks(void **state)
{
	const double sent[] = {1e16, 2, -1e16, 3};
	struct others o = {.comm = {.ops = &others_ops, .size = 3}, .sent = sent};
	double values[2] = {1, 10};
	struct error err = {0};

	(void)state;
	assert_int_equal(comm_sum(&o.comm, values, 2, &err), STATUS_OK);
	assert_true(values[0] == (1 + 1e16) - 1e16 && values[1] == 15);
	assert_int_equal(comm_sum(NULL, values, 2, &err), STATUS_OK);
	assert_true(values[1] == 15);
	o.st = STATUS_LOST;
	assert_int_equal(comm_sum(&o.comm, values, 2, &err), STATUS_LOST);
}

static void test_comm__the_worst_status_is_that_of_all(void **state)
{
	struct {
		uint32_t status, cause;
		char text[400];
	} sent[2] = {{0}, {.status = STATUS_BAD_INPUT, .text = "no such file"}};
	struct others o = {.comm = {.ops = &others_ops, .size = 3}, .sent = sent};
	struct error err = {0};

	(void)state;
	assert_int_equal(comm_agree(&o.comm, STATUS_OK, &err), STATUS_BAD_INPUT);
	assert_string_equal(err.text, "rank 2: no such file");
	sent[1].status = 0;
	error_clear(&err);
	assert_int_equal(comm_agree(&o.comm, STATUS_OK, &err), STATUS_OK);
	error_set(&err, STATUS_VENDOR, "own");
	o.st = STATUS_LOST; /* its own error says more than the lost connection */
	assert_int_equal(comm_agree(&o.comm, STATUS_VENDOR, &err), STATUS_VENDOR);
	assert_string_equal(err.text, "own");
	assert_int_equal(comm_agree(NULL, STATUS_VENDOR, &err), STATUS_VENDOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deal__each_pack_is_dealt_once),
		cmocka_unit_test(test_deal__halves_have_nearly_equal_tokens),
		cmocka_unit_test(test_deal__ranges_follow_each_other),
		cmocka_unit_test(test_tree__any_power_of_two_of_ranks_gives_the_same_bits),
		cmocka_unit_test(test_mesh__a_step_is_divided_as_the_settings_say),
		cmocka_unit_test(test_mesh__what_does_not_divide_is_refused),
		cmocka_unit_test(test_mesh__gradients_travel_as_the_settings_allow),
		cmocka_unit_test(test_mesh__divided_states_may_be_on_the_host_and_travel_in_bf16),
		cmocka_unit_test(test_mesh__too_few_rows_are_refused),
		cmocka_unit_test(test_comm__host_numbers_are_added_in_the_order_of_ranks),
		cmocka_unit_test(test_comm__the_worst_status_is_that_of_all),
	};

	return cmocka_run_group_tests_name("train_mesh", tests, NULL, NULL);
}
