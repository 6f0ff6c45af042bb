/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of CPU ranks' collectives and the thread that owns MPI, with an MPI of this test: a second rank
 * that sends the same numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "core/math/random.h"
#include "team/links/links.h"
#include "train/mesh/comm_mpi.c" /* with the functions below in place of those of MPI */

enum { RANKS = 2, NUMBERS = 3 * PIECE / 2 + 5 /* two pieces, the last one not whole */ };

static struct {
	pthread_t thread;
	unsigned calls, closed, fails_at;
	const float *other; /* numbers of the other rank, of which it sends the first half of each piece */
	size_t sent, bytes; /* bytes: of all calls */
	struct team_mpi mpi;
	struct mpi_plugin_call broadcast[8];
	unsigned broadcasts;
	unsigned groups, left; /* groups made and left */
	unsigned members[RANKS], group_calls, gathers;
} fake;

static void close_fake(struct team *t)
{
	(void)t;
	fake.closed++;
	assert_true(pthread_equal(pthread_self(), fake.thread)); /* one thread makes all calls */
}

enum status team_mpi_join(struct team *t, struct error *err)
{
	fake.thread = pthread_self();
	t->mpi = &fake.mpi;
	t->close = close_fake;
	snprintf(fake.mpi.version, sizeof(fake.mpi.version), "MPI of a test");
	return fake.fails_at == 1 ? error_set(err, STATUS_UNAVAILABLE, "no MPI") : STATUS_OK;
}

/* What the other rank sends in an all-to-all: `other`, if it is set, else the same as this one. Rounded to
 * BF16 if the call has bytes. */
static void other_block(void *to, const struct mpi_plugin_call *c, size_t bytes)
{
	const size_t at = fake.sent;

	if (!fake.other || c->what != MPI_PLUGIN_ALL_TO_ALL) {
		memcpy(to, c->send, bytes);
		return;
	}
	fake.sent += bytes / (c->type == MPI_PLUGIN_F32 ? sizeof(float) : sizeof(uint16_t));
	if (c->type == MPI_PLUGIN_F32)
		memcpy(to, fake.other + at, bytes);
	else
		dtype_pack(DTYPE_BF16, fake.other + at, to, bytes / sizeof(uint16_t));
}

/* This is rank 0. In an all-gather the other rank's block is a copy of this one's. */
enum status team_mpi_call(struct team *t, const struct mpi_plugin_call *c, struct error *err)
{
	const size_t bytes = c->count * (c->type == MPI_PLUGIN_F32 ? sizeof(float) : 1);

	(void)t;
	fake.bytes += bytes;
	if (!pthread_equal(pthread_self(), fake.thread) || ++fake.calls == fake.fails_at)
		return error_set(err, STATUS_VENDOR, "MPI_Alltoall: failed");
	if (c->what == MPI_PLUGIN_BROADCAST)
		fake.broadcast[fake.broadcasts++ % 8] = *c;
	if (c->what == MPI_PLUGIN_ALL_TO_ALL || c->what == MPI_PLUGIN_ALL_GATHER) {
		memcpy(c->receive, c->send, bytes);
		other_block((char *)c->receive + bytes, c, bytes);
	}
	return STATUS_OK;
}

enum status team_mpi_group(struct team *t, const unsigned *ranks, unsigned count, void **group,
			   struct error *err)
{
	(void)t;
	if (!pthread_equal(pthread_self(), fake.thread) || ++fake.calls == fake.fails_at)
		return error_set(err, STATUS_VENDOR, "MPI_Comm_create_group: failed");
	assert_true(count <= RANKS);
	memcpy(fake.members, ranks, count * sizeof(*ranks));
	fake.groups++;
	*group = &fake.groups;
	return STATUS_OK;
}

/* An all-gather in place finds this rank's block at its place. The other's is a copy. */
enum status team_mpi_group_call(struct team *t, void *group, const struct mpi_plugin_call *c,
				struct error *err)
{
	assert_ptr_equal(group, &fake.groups);
	fake.group_calls++;
	if (c->what != MPI_PLUGIN_ALL_GATHER || !c->in_place)
		return team_mpi_call(t, c, err);
	fake.gathers++;
	memcpy((char *)c->receive + c->count, c->receive, c->count);
	return STATUS_OK;
}

void team_mpi_group_leave(struct team *t, void *group)
{
	(void)t;
	assert_ptr_equal(group, &fake.groups);
	assert_true(pthread_equal(pthread_self(), fake.thread));
	fake.left++;
}

/* Both ranks ask for the same collectives. */
static enum status meet(struct team *t, enum team_meeting kind, const void *mine, size_t size, void *all,
			struct error *err)
{
	(void)err;
	assert_int_equal(kind, TEAM_MEET_GATHER);
	for (unsigned r = 0; r < t->size; r++)
		memcpy((char *)all + r * size, mine, size);
	return STATUS_OK;
}

static const struct team_links_ops links_ops = {.meet = meet};
static struct team_links links = {.ops = &links_ops};

static struct comm *opened(struct team *team)
{
	struct comm *c;
	struct error err = {0};

	*team = (struct team){.size = RANKS, .links = &links};
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(comm_mpi_open(&c, team, &err), STATUS_OK);
	assert_string_equal(c->library, "MPI of a test");
	return c;
}

static struct mat row(float *x, size_t count)
{
	return (struct mat){
		.data = x, .rows = 1, .cols = (int64_t)count, .ld = (int64_t)count, .dtype = DTYPE_F32};
}

static void test_comm_mpi__sums_end_before_the_wait_does(void **state)
{
	float *x = calloc(NUMBERS, sizeof(*x));
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	assert_non_null(x);
	for (size_t i = 0; i < NUMBERS; i++)
		x[i] = 1;
	/* more parts than the queue has room for */
	for (size_t part = 0; part < 2 * QUEUE; part++)
		assert_int_equal(c->ops->all_reduce(c, row(x + part, 1), &err), STATUS_OK);
	assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
	for (size_t part = 0; part < 2 * QUEUE; part++)
		assert_true(x[part] == 2);
	assert_true(x[2 * QUEUE] == 1);
	assert_int_equal(c->ops->all_reduce(c, row(x, NUMBERS), &err), STATUS_OK);
	assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
	assert_true(c->count.calls == 2 * QUEUE + 1 &&
		    c->count.bytes == (2 * QUEUE + NUMBERS) * sizeof(float));
	c->ops->close(c);
	assert_int_equal(fake.closed, 1);
	free(x);
}

/* The other rank has the same numbers. This is rank 0. */
static void test_comm_mpi__a_range_has_its_sum(void **state)
{
	static const size_t equal[] = {0, NUMBERS / 2, NUMBERS}, unequal[] = {0, NUMBERS, NUMBERS},
			    none[] = {0, 0, NUMBERS};
	const size_t *const borders[] = {equal, unequal, none};
	float *x = calloc(NUMBERS, sizeof(*x));
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	assert_non_null(x);
	for (size_t i = 0; i < 3; i++) {
		const size_t own = borders[i][1];
		const unsigned calls = fake.calls;

		for (size_t j = 0; j < NUMBERS; j++)
			x[j] = (float)(j % 1000);
		c->count.bytes = 0;
		assert_int_equal(c->ops->reduce_scatter(c, row(x, NUMBERS), borders[i], &err), STATUS_OK);
		assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
		for (size_t j = 0; j < own; j++)
			assert_true(x[j] == (float)(2 * (j % 1000)));
		assert_true(c->count.bytes == NUMBERS * sizeof(float));
		/* equal ranges need no all-gather of the sums */
		assert_true((fake.calls - calls == 2) == (borders[i] == equal));
	}
	free(x);
	c->ops->close(c);
}

/* Both ranks send the same numbers, so a sum is twice the rounded number. For half the bytes of F32. */
static void test_comm_mpi__a_range_travels_in_bf16(void **state)
{
	static const size_t equal[] = {0, NUMBERS / 2, NUMBERS}, unequal[] = {0, PIECE / 2, NUMBERS};
	float *x = calloc(NUMBERS, sizeof(*x));
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	assert_non_null(x);
	c->travels = DTYPE_BF16;
	for (int i = 0; i < 2; i++) {
		const size_t *border = i ? unequal : equal;
		size_t wrong = 0;

		for (size_t j = 0; j < NUMBERS; j++)
			x[j] = random_f32(5, 0, j) - 0.5f;
		c->count.bytes = 0;
		assert_int_equal(c->ops->reduce_scatter(c, row(x, NUMBERS), border, &err), STATUS_OK);
		assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
		for (size_t j = 0; j < border[1]; j++) {
			const float number = random_f32(5, 0, j) - 0.5f;
			uint16_t half;
			float rounded;

			dtype_pack(DTYPE_BF16, &number, &half, 1);
			dtype_unpack(DTYPE_BF16, &half, &rounded, 1);
			wrong += x[j] != 2 * rounded;
		}
		assert_int_equal(wrong, 0);
		assert_true(c->count.bytes == NUMBERS * sizeof(uint16_t));
	}
	free(x);
	c->ops->close(c);
}

static void test_comm_mpi__ranges_come_from_their_ranks(void **state)
{
	static const size_t border[] = {0, 3, 8};
	uint16_t halves[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct mat x = {.data = halves, .rows = 1, .cols = 8, .ld = 8, .dtype = DTYPE_BF16};
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	assert_int_equal(c->ops->all_gather(c, x, border, &err), STATUS_OK);
	assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
	/* the second range is rank 1's, at its place */
	assert_int_equal(fake.calls, 2);
	assert_true(fake.broadcast[0].count == 6 && fake.broadcast[0].root == 0 &&
		    fake.broadcast[0].receive == halves);
	assert_true(fake.broadcast[1].count == 10 && fake.broadcast[1].root == 1 &&
		    fake.broadcast[1].receive == halves + 3);
	assert_true(c->count.bytes == sizeof(halves));
	c->ops->close(c);
}

static void test_comm_mpi__bytes_are_collected(void **state)
{
	enum { OWN = COMM_GATHER_MAX + 9 };
	static const size_t border[] = {0, OWN, 2 * OWN - 20};
	char *mine = malloc(OWN), *all = calloc(1, 2 * OWN);
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	for (size_t i = 0; i < OWN; i++)
		mine[i] = (char)(i % 101);
	assert_int_equal(comm_collect(c, mine, all, border, &err), STATUS_OK);
	assert_memory_equal(all, mine, OWN);
	assert_memory_equal(all + OWN, mine, OWN - 20);
	assert_true(!all[2 * OWN - 20]);
	assert_int_equal(fake.calls, 2);
	c->ops->close(c);
	free(mine);
	free(all);
}

static void test_comm_mpi__host_numbers_come_back_at_once(void **state)
{
	double mine = 7, all[RANKS] = {0};
	char bytes[] = "state";
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	assert_int_equal(c->ops->gather(c, &mine, sizeof(mine), all, &err), STATUS_OK);
	assert_true(all[0] == 7 && all[1] == 7);
	assert_int_equal(c->ops->share(c, bytes, sizeof(bytes), &err), STATUS_OK);
	assert_int_equal(c->ops->gather(c, &mine, COMM_GATHER_MAX + 1, all, &err), STATUS_BUG);
	c->ops->close(c);
}

static void test_comm_mpi__after_a_failure_nothing_is_called(void **state)
{
	float x[4] = {1, 1, 1, 1};
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	fake.fails_at = 1;
	assert_int_equal(c->ops->all_reduce(c, row(x, 4), &err), STATUS_OK);
	assert_int_equal(c->ops->wait(c, &err), STATUS_VENDOR);
	assert_string_equal(err.text, "MPI_Alltoall: failed");
	assert_int_equal(c->ops->all_reduce(c, row(x, 4), &err), STATUS_VENDOR);
	assert_int_equal(fake.calls, 1);
	c->ops->close(c);
	assert_int_equal(fake.closed, 0); /* the other ranks may never come to MPI_Finalize */
}

/* u (|a| + |b| + |a + b|): the roundings of what both ranks send, and of the sum. */
static double bf16_bound(double a, double b)
{
	return (fabs(a) + fabs(b) + fabs(a + b)) * 0x1p-8 * (1 + 0x1p-7);
}

static void test_comm_mpi__bf16_halves_the_bytes_and_rounds_as_stated(void **state)
{
	enum { COUNT = 2 * PIECE / 4 };
	float *mine = malloc(COUNT * sizeof(*mine)), *other = malloc(COUNT * sizeof(*other));
	double worst = 0;
	size_t bytes[2], rounded = 0;
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team);

	(void)state;
	assert_non_null(mine);
	assert_non_null(other);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < COUNT; i++) {
			const float scale = i % 7 ? 1 : 1e-6f;

			mine[i] = ((float)random_u32(7, 1, i) * 0x1p-31f - 1) * scale;
			other[i] = ((float)random_u32(7, 2, i) * 0x1p-31f - 1) * scale;
		}
		fake.other = other;
		fake.sent = fake.bytes = 0;
		c->travels = pass ? DTYPE_BF16 : DTYPE_F32;
		c->count = (struct comm_count){0};
		assert_int_equal(c->ops->all_reduce(c, row(mine, COUNT), &err), STATUS_OK);
		assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
		bytes[pass] = fake.bytes;
		assert_true(c->count.bytes == COUNT * (pass ? 2.0 : 4.0));
	}
	assert_int_equal(bytes[0], 2 * bytes[1]);
	/* rank 0 adds the first half, whose sums this test can know */
	for (size_t i = 0; i < COUNT / 2; i++) {
		const float scale = i % 7 ? 1 : 1e-6f,
			    own = ((float)random_u32(7, 1, i) * 0x1p-31f - 1) * scale;
		const double error = fabs((double)mine[i] - ((double)own + other[i]));
		const double share = error / bf16_bound(own, other[i]);

		worst = share > worst ? share : worst;
		rounded += error > 0;
	}
	assert_true(worst <= 1);
	assert_true(worst > 0.5); /* the bound is nearly reached, so it says something */
	assert_true(rounded > COUNT / 4);
	c->ops->close(c);
	free(mine);
	free(other);
}

static void test_comm_mpi__a_group_has_its_own_sums(void **state)
{
	const struct comm_members both = {.first = 0, .stride = 1, .count = RANKS};
	float x[3] = {1, 1, 1};
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team), *group;

	(void)state;
	assert_int_equal(comm_mpi_group(&group, c, &both, &err), STATUS_OK);
	assert_true(group->rank == 0 && group->size == RANKS);
	assert_true(fake.members[0] == 0 && fake.members[1] == 1);
	assert_int_equal(group->ops->all_reduce(group, row(x, 3), &err), STATUS_OK);
	assert_int_equal(group->ops->wait(group, &err), STATUS_OK);
	assert_true(x[0] == 2 && x[1] == 2 && x[2] == 2);
	group->ops->close(group);
	assert_int_equal(fake.left, 1);
	c->ops->close(c);
	assert_int_equal(fake.closed, 1);
}

static void test_comm_mpi__a_group_that_mpi_refuses(void **state)
{
	const struct comm_members both = {.first = 0, .stride = 1, .count = RANKS};
	struct error err = {0};
	struct team team;
	struct comm *c = opened(&team), *group;

	(void)state;
	fake.fails_at = fake.calls + 1;
	assert_int_equal(comm_mpi_group(&group, c, &both, &err), STATUS_VENDOR);
	assert_null(group);
	assert_non_null(strstr(err.text, "MPI_Comm_create_group"));
	c->ops->close(c);
	assert_int_equal(fake.left, 0);
}

static void test_comm_mpi__ranges_within_a_group(void **state)
{
	static const size_t equal[] = {0, 4, 8}, unequal[] = {0, 3, 8};
	const struct comm_members both = {.first = 0, .stride = 1, .count = RANKS};
	float x[8] = {1, 2, 3, 4, 0, 0, 0, 0};
	double sum = 3;
	struct error err = {0};
	struct team team;
	struct comm *all = opened(&team), *c;

	(void)state;
	assert_int_equal(comm_mpi_group(&c, all, &both, &err), STATUS_OK);
	/* equal ranges are one call, others a broadcast each */
	assert_int_equal(c->ops->all_gather(c, row(x, 8), equal, &err), STATUS_OK);
	assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
	assert_true(fake.gathers == 1 && fake.broadcasts == 0 && x[4] == 1 && x[7] == 4);
	assert_int_equal(c->ops->all_gather(c, row(x, 8), unequal, &err), STATUS_OK);
	assert_int_equal(c->ops->reduce_scatter(c, row(x, 8), equal, &err), STATUS_OK);
	assert_int_equal(c->ops->wait(c, &err), STATUS_OK);
	assert_true(fake.gathers == 1 && fake.broadcasts == 2 && x[0] == 2 && x[3] == 8);
	assert_int_equal(comm_sum(c, &sum, 1, &err), STATUS_OK);
	assert_true(sum == 6);
	assert_int_equal(fake.group_calls, 5);
	c->ops->close(c);
	all->ops->close(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comm_mpi__sums_end_before_the_wait_does),
		cmocka_unit_test(test_comm_mpi__a_range_has_its_sum),
		cmocka_unit_test(test_comm_mpi__a_range_travels_in_bf16),
		cmocka_unit_test(test_comm_mpi__ranges_come_from_their_ranks),
		cmocka_unit_test(test_comm_mpi__bytes_are_collected),
		cmocka_unit_test(test_comm_mpi__host_numbers_come_back_at_once),
		cmocka_unit_test(test_comm_mpi__bf16_halves_the_bytes_and_rounds_as_stated),
		cmocka_unit_test(test_comm_mpi__ranges_within_a_group),
		cmocka_unit_test(test_comm_mpi__after_a_failure_nothing_is_called),
		cmocka_unit_test(test_comm_mpi__a_group_has_its_own_sums),
		cmocka_unit_test(test_comm_mpi__a_group_that_mpi_refuses),
	};

	return cmocka_run_group_tests_name("train_comm_mpi", tests, NULL, NULL);
}
