/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes of tensor x shard on ranks that are threads (ZeRO-2 and 3 of full fine-tuning): the own range of
 * every gradient beside one rank, in double, and a fault in each collective that the comparison finds. */
#include "unit/test.h"
#include <math.h>
#include "model/decoder/layer_tensors.h"
#include "unit/must.h"
#include "unit/rank_threads.h"
#include "unit/split_bed.h"

enum { COPIES_MOST = 2 };
static const double exact = 1e-9;

/* Copies have other documents. */
static const int docs[COPIES_MOST][5] = {{1, 9, 30, 2, 0}, {17, 3, 0}};

struct rank {
	struct bed bed;
	pthread_t thread;
	bool idle; /* it has no rows */
	enum status st;
	struct error err;
	double loss;
};

struct mesh_bed {
	struct bed one;
	double *expected; /* gradient of all copies' rows; of one rank */
	double loss[COPIES_MOST];
	unsigned tensor, copies;
	bool idle;							 /* the last copy has no rows */
	struct rank_threads share[COPIES_MOST], data[RANK_THREADS_MOST]; /* groups of each axis */
	struct rank rank[COPIES_MOST][RANK_THREADS_MOST];
};

static enum status passes(struct rank *r)
{
	struct bed *b = &r->bed;
	const struct arena_mark mark = arena_mark(&b->arena);
	enum status st = divided_gather(b->model, &b->back, &r->err);

	r->loss = 0;
	if (!st)
		st = b->back.ops->zero(&b->back, b->model->params.grad, &r->err);
	if (r->idle) {
		if (!st)
			st = divided_empty_forward(b->model, &b->back, &r->err);
		return st ? st : divided_empty_backward(b->model, &b->back, &r->err);
	}
	if (!st)
		st = model_forward(&b->pass, &r->err);
	if (!st)
		st = model_backward(&b->pass, 0.5f, &r->loss, &r->err);
	arena_reset(&b->arena, &mark);
	return st;
}

static void *thread(void *arg)
{
	struct rank *r = arg;

	error_clear(&r->err);
	r->st = passes(r);
	if (!r->st)
		r->st = split_sum_gradient(r->bed.model, &r->bed.back, &r->err);
	return NULL;
}

static void run(struct mesh_bed *m)
{
	for (unsigned c = 0; c < m->copies; c++)
		for (unsigned t = 0; t < m->tensor; t++) {
			memset(m->share[c].rank[t].count, 0, sizeof(m->share[c].rank[t].count));
			memset(m->data[t].rank[c].count, 0, sizeof(m->data[t].rank[c].count));
		}
	for (unsigned c = 0; c < m->copies; c++)
		for (unsigned t = 0; t < m->tensor; t++)
			assert_int_equal(pthread_create(&m->rank[c][t].thread, NULL, thread, &m->rank[c][t]),
					 0);
	for (unsigned c = 0; c < m->copies; c++)
		for (unsigned t = 0; t < m->tensor; t++)
			pthread_join(m->rank[c][t].thread, NULL);
	for (unsigned c = 0; c < m->copies; c++)
		for (unsigned t = 0; t < m->tensor; t++)
			must(m->rank[c][t].st, &m->rank[c][t].err);
}

/* Element of the whole vector behind element `at` of a rank's; -1: a row beyond the vocabulary. */
static int64_t place_of(const struct bed *b, size_t at)
{
	const struct params *p = &b->model->params, *whole = &b->model->whole->params;
	int i = 0;

	while (i + 1 < p->count && p->table[i + 1].offset <= at)
		i++;
	{
		const struct split_part part = split_place(b, i);
		const int64_t into = (int64_t)(at - p->table[i].offset), cols = p->table[i].cols;
		const int64_t row = into / cols, col = into % cols;

		return row < part.rows ? (int64_t)whole->table[i].offset + (part.row + row) * part.all_cols +
						 part.col + col
				       : -1;
	}
}

static void load(struct bed *b, const struct bed *one)
{
	const struct params *p = &b->model->params;
	const bool whole = !p->shards.master;
	const size_t begin = whole ? 0 : params_begin(p), end = whole ? p->length : params_end(p);

	for (size_t at = begin; at < end; at++) {
		const int64_t place = place_of(b, at);
		const struct mat to = params_cut(p, &p->master, at, 1);

		bed_set(&to, 0, place < 0 ? 0 : bed_get(&one->model->params.master, (size_t)place));
	}
}

/* The gradient of all copies that have rows. */
static void expect(struct mesh_bed *m)
{
	const size_t length = m->one.model->params.length;

	m->expected = calloc(length, sizeof(*m->expected));
	assert_non_null(m->expected);
	for (unsigned c = 0; c < m->copies - m->idle; c++) {
		bed_batch(&m->one, docs[c]);
		m->loss[c] = bed_loss(&m->one, true);
		for (size_t i = 0; i < length; i++)
			m->expected[i] += bed_get(&m->one.model->params.grad, i);
	}
}

static void open_mesh(struct mesh_bed *m, const struct bed_options *options, unsigned tensor, unsigned stage,
		      bool idle)
{
	*m = (struct mesh_bed){.tensor = tensor, .copies = COPIES_MOST, .idle = idle};
	bed_open(&m->one, options);
	expect(m);
	for (unsigned c = 0; c < m->copies; c++)
		rank_threads_open(&m->share[c], tensor);
	for (unsigned t = 0; t < tensor; t++)
		rank_threads_open(&m->data[t], m->copies);
	for (unsigned c = 0; c < m->copies; c++)
		for (unsigned t = 0; t < tensor; t++) {
			struct rank *r = &m->rank[c][t];
			struct bed_options o = *options;

			o.split = (struct model_split){.rank = t, .ranks = tensor};
			o.shards = (struct model_shards){.rank = c, .ranks = m->copies, .stage = stage};
			o.threads = 1;
			o.docs = docs[c];
			bed_open(&r->bed, &o);
			load(&r->bed, &m->one);
			r->idle = idle && c + 1 == m->copies;
			r->bed.model->split.comm = &m->share[c].rank[t].comm;
			r->bed.model->divided.comm = &m->data[t].rank[c].comm;
		}
}

static void close_mesh(struct mesh_bed *m)
{
	for (unsigned c = 0; c < m->copies; c++) {
		for (unsigned t = 0; t < m->tensor; t++)
			bed_close(&m->rank[c][t].bed);
		rank_threads_close(&m->share[c]);
	}
	for (unsigned t = 0; t < m->tensor; t++)
		rank_threads_close(&m->data[t]);
	free(m->expected);
	bed_close(&m->one);
}

/* The largest difference, as a share of the largest gradient. *compared: elements that ranks own. */
static double worst_of(const struct mesh_bed *m, size_t *compared)
{
	double most = 0, worst = 0;

	*compared = 0;
	for (size_t i = 0; i < m->one.model->params.length; i++)
		most = fmax(most, fabs(m->expected[i]));
	assert_true(most > 0);
	for (unsigned c = 0; c < m->copies; c++)
		for (unsigned t = 0; t < m->tensor; t++) {
			const struct bed *b = &m->rank[c][t].bed;
			const struct params *p = &b->model->params;
			const double loss = m->loss[c], apart = m->rank[c][t].loss - loss;

			for (size_t at = params_begin(p); at < params_end(p); at++, ++*compared) {
				const int64_t place = place_of(b, at);
				const struct mat is = params_cut(p, &p->grad, at, 1);
				const double d =
					fabs(bed_get(&is, 0) - (place < 0 ? 0 : m->expected[place])) / most;

				worst = !(d <= worst) ? d : worst;
			}
			worst = !(fabs(apart) <= worst * loss) && loss > 0 ? fabs(apart) / loss : worst;
		}
	return worst;
}

static void check(const struct bed_options *options, unsigned tensor, unsigned stage, bool idle)
{
	struct mesh_bed m;
	size_t compared;
	double worst;

	open_mesh(&m, options, tensor, stage, idle);
	for (int again = 0; again < 2; again++) { /* slots and buffers have another content then */
		run(&m);
		worst = worst_of(&m, &compared);
		assert_int_equal(compared, tensor * m.rank[0][0].bed.model->params.length);
		if (!(worst <= exact))
			fail_msg("%u x %u ranks in stage %u differ from one by a share of %g", tensor,
				 m.copies, stage, worst);
	}
	close_mesh(&m);
}

/* 8 heads with 2 key-value heads, which four ranks share; 57 ids are not divisible. */
static struct bed_options options_of(enum family family)
{
	return (struct bed_options){.family = family,
				    .full = true,
				    .heads = 8,
				    .kv_heads = 2,
				    .vocab = 57,
				    .wide = true,
				    .head_chunk = 7,
				    .docs = docs[0]};
}

static void test_mesh__every_gradient_is_that_of_one_rank(void **state)
{
	(void)state;
	for (int family = 0; family < FAMILY_COUNT; family++)
		for (unsigned tensor = 2; tensor <= 4; tensor += 2)
			for (unsigned stage = 2; stage <= 3; stage++) {
				struct bed_options o = options_of((enum family)family);

				o.tied = family % 2;
				o.mode = tensor == 4 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
				check(&o, tensor, stage, false);
			}
}

static void test_mesh__a_copy_without_rows_takes_part(void **state)
{
	(void)state;
	for (unsigned stage = 2; stage <= 3; stage++) {
		const struct bed_options o = options_of(FAMILY_QWEN2);

		check(&o, 2, stage, true);
	}
}

/* A fault in call number `at` of a group: one of its ranks gives zeros. A rank whose range is empty gives
 * nothing. */
static bool is_found(struct mesh_bed *m, struct rank_threads *group, enum rank_collective kind, unsigned at)
{
	bool found = false;
	size_t compared;

	for (unsigned r = 0; r < group->size; r++) {
		group->fault_kind = kind;
		group->fault_rank = r;
		group->fault_at = at;
		run(m);
		found = found || !(worst_of(m, &compared) <= exact);
	}
	group->fault_kind = RANK_COLLECTIVES;
	return found;
}

/* *calls: how many there were. */
static void faults_of(struct mesh_bed *m, struct rank_threads *group, unsigned *calls)
{
	size_t compared;

	*calls = 0;
	for (int kind = RANK_ALL_REDUCE; kind <= RANK_ALL_GATHER; kind++) {
		unsigned count;

		run(m);
		assert_true(worst_of(m, &compared) <= exact);
		count = group->rank[0].count[kind];
		for (unsigned at = 0; at < count; at++)
			if (!is_found(m, group, (enum rank_collective)kind, at))
				fail_msg("a fault in call %u of kind %d is not found", at, kind);
		*calls += count;
	}
}

static void test_mesh__a_fault_in_each_collective_is_found(void **state)
{
	struct bed_options o = options_of(FAMILY_QWEN2);
	struct mesh_bed m;
	unsigned share, data;

	(void)state;
	o.mode = RECOMPUTE_FULL;
	open_mesh(&m, &o, 2, 3, false);
	faults_of(&m, &m.share[0], &share);
	faults_of(&m, &m.data[1], &data);
	/* in each layer; and of layers and ends, gradients and weights */
	assert_true(share > 16 && data >= 6);
	close_mesh(&m);
}

/* -- order -- */

/* The collectives of the first rank in their order. Within its copy, a is a gather and s is a sum. Between
 * copies, W is a gather of weights and G is the sum of a gradient. */
static struct {
	const struct comm_ops *share, *data;
	char text[256];
	size_t used;
} asked;

static void note(char what)
{
	assert_true(asked.used + 1 < sizeof(asked.text));
	asked.text[asked.used++] = what;
	asked.text[asked.used] = '\0';
}

static enum status note_a(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	note('a');
	return asked.share->all_gather(c, x, border, err);
}

static enum status note_s(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	note('s');
	return asked.share->reduce_scatter(c, x, border, err);
}

static enum status note_w(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	note('W');
	return asked.data->all_gather(c, x, border, err);
}

static enum status note_g(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	note('G');
	return asked.data->reduce_scatter(c, x, border, err);
}

static void note_all(struct bed *b, struct comm_ops ops[2])
{
	struct comm *share = b->model->split.comm, *data = b->model->divided.comm;

	asked.used = 0;
	asked.share = share->ops;
	asked.data = data->ops;
	ops[0] = *share->ops;
	ops[1] = *data->ops;
	ops[0].all_gather = note_a;
	ops[0].reduce_scatter = note_s;
	ops[1].all_gather = note_w;
	ops[1].reduce_scatter = note_g;
	share->ops = &ops[0];
	data->ops = &ops[1];
}

static void test_mesh__weights_come_after_the_first_collective_of_a_layer(void **state)
{
	struct bed_options o = options_of(FAMILY_QWEN2);
	struct comm_ops ops[2];
	struct mesh_bed m;

	(void)state;
	o.mode = RECOMPUTE_NONE;
	open_mesh(&m, &o, 2, 3, false);
	note_all(&m.rank[0][0].bed, ops);
	run(&m);
	assert_int_equal(m.one.model->shape.layers, 2);
	if (!strstr(asked.text,
		    "sWaWs")) /* embedding, weights of layer 0, its first gather, weights of layer 1 */
		fail_msg("forward pass: %s", asked.text);
	if (!strstr(asked.text, "saGs") ||
	    strstr(asked.text, "sGa")) /* the gradient of layer 1, within layer 0 */
		fail_msg("backward pass: %s", asked.text);
	close_mesh(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mesh__every_gradient_is_that_of_one_rank),
		cmocka_unit_test(test_mesh__a_copy_without_rows_takes_part),
		cmocka_unit_test(test_mesh__a_fault_in_each_collective_is_found),
		cmocka_unit_test(test_mesh__weights_come_after_the_first_collective_of_a_layer),
	};

	return cmocka_run_group_tests_name("mesh", tests, NULL, NULL);
}
