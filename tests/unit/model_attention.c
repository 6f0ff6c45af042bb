/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of packed documents against its definition in double, at lengths around the tiles' borders. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/cpu/cpu.h"

enum { HEADS = 6, KV = 2, DIM = 8, WIDTH = (HEADS + 2 * KV) * DIM };

struct bed {
	struct arena arena;
	struct backend back;
	struct batch batch;
	int32_t start[16];
	struct mat qkv, o, lse, d_o, dqkv;
};

static void fill(const struct mat *m, uint32_t stream)
{
	for (int64_t i = 0; i < m->rows * m->cols; i++)
		((float *)m->data)[i] = random_f32(5, stream, (uint64_t)i);
}

static void open_bed(struct bed *b, const int *lengths)
{
	const struct cpu_options options = {.threads = 2};
	struct error err = {0};
	int32_t row = 0;

	memset(b, 0, sizeof(*b));
	assert_int_equal(cpu_backend_create(&b->back, &options, &b->arena, &err), STATUS_OK);
	for (int i = 0; lengths[i]; i++) {
		row += lengths[i];
		b->start[i + 1] = row;
		b->batch.docs++;
		if (lengths[i] > b->batch.doc_len_max)
			b->batch.doc_len_max = lengths[i];
	}
	b->batch.tokens = row;
	b->batch.doc_start = b->start;
	b->arena.size = 32u << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	b->qkv = b->dqkv = (struct mat){.rows = row, .cols = WIDTH, .dtype = DTYPE_F32};
	b->o = b->d_o = (struct mat){.rows = row, .cols = HEADS * DIM, .dtype = DTYPE_F32};
	b->lse = (struct mat){.rows = row, .cols = HEADS, .dtype = DTYPE_F32};
	struct mat *all[] = {&b->qkv, &b->dqkv, &b->o, &b->d_o, &b->lse};

	for (int i = 0; i < 5; i++)
		assert_int_equal(arena_mat(&b->arena, MEM_SAVED, all[i], "operand", &err), STATUS_OK);
	fill(&b->qkv, 1);
	fill(&b->d_o, 2);
}

static void close_bed(struct bed *b)
{
	cpu_backend_release(&b->back);
	free(b->arena.base);
}

static double at(const struct mat *m, int64_t row, int64_t col)
{
	return (double)((const float *)m->data)[row * m->ld + col];
}

/* Row t of a document that begins at `first`: probabilities of its keys. Returns log(sum(exp)). */
static double probabilities(const struct bed *b, int64_t first, int64_t t, int head, double *p)
{
	const int64_t k = (HEADS + head / (HEADS / KV)) * DIM;
	double sum = 0;

	for (int64_t j = first; j <= t; j++) {
		double s = 0;

		for (int i = 0; i < DIM; i++)
			s += at(&b->qkv, t, head * DIM + i) * at(&b->qkv, j, k + i);
		p[j - first] = exp(s / sqrt(DIM));
		sum += p[j - first];
	}
	for (int64_t j = first; j <= t; j++)
		p[j - first] /= sum;
	return log(sum);
}

/* One row's share of the gradient, by the definition. */
static void add_gradient(const struct bed *b, int64_t first, int64_t t, int head, const double *p,
			 double *want)
{
	const int64_t group = head / (HEADS / KV), k = (HEADS + group) * DIM, v = (HEADS + KV + group) * DIM;
	double mean = 0;

	for (int64_t j = first; j <= t; j++)
		for (int i = 0; i < DIM; i++)
			mean += p[j - first] * at(&b->d_o, t, head * DIM + i) * at(&b->qkv, j, v + i);
	for (int64_t j = first; j <= t; j++) {
		double ds = 0;

		for (int i = 0; i < DIM; i++) {
			ds += at(&b->d_o, t, head * DIM + i) * at(&b->qkv, j, v + i);
			want[j * WIDTH + v + i] += p[j - first] * at(&b->d_o, t, head * DIM + i);
		}
		ds = p[j - first] * (ds - mean) / sqrt(DIM);
		for (int i = 0; i < DIM; i++) {
			want[t * WIDTH + head * DIM + i] += ds * at(&b->qkv, j, k + i);
			want[j * WIDTH + k + i] += ds * at(&b->qkv, t, head * DIM + i);
		}
	}
}

static void check(const struct bed *b, int64_t first, int64_t last, double *want)
{
	double *p = calloc((size_t)(last - first), sizeof(*p));

	assert_non_null(p);
	for (int64_t t = first; t < last; t++)
		for (int head = 0; head < HEADS; head++) {
			double lse = probabilities(b, first, t, head, p);

			assert_true(fabs(lse - at(&b->lse, t, head)) < 1e-5);
			for (int i = 0; i < DIM; i++) {
				double o = 0;

				for (int64_t j = first; j <= t; j++)
					o += p[j - first] *
					     at(&b->qkv, j, (HEADS + KV + head / (HEADS / KV)) * DIM + i);
				assert_true(fabs(o - at(&b->o, t, head * DIM + i)) < 1e-5);
			}
			add_gradient(b, first, t, head, p, want);
		}
	free(p);
}

static void test_attention__is_its_definition_at_every_length(void **state)
{
	static const int lengths[][8] = {{1, 63, 64, 65, 0}, {127, 128, 129, 0}, {192, 1, 2, 0}, {2112, 0}};

	(void)state;
	for (size_t c = 0; c < sizeof(lengths) / sizeof(lengths[0]); c++) {
		const struct attention at_ = {
			.heads = HEADS, .kv_heads = KV, .head_dim = DIM, .scale = (float)(1 / sqrt(DIM))};
		struct error err = {0};
		struct bed b;
		double *want;

		open_bed(&b, lengths[c]);
		want = calloc((size_t)(b.batch.tokens * WIDTH), sizeof(*want));
		assert_non_null(want);
		assert_int_equal(b.back.ops->attention(&b.back, &at_, &b.batch, b.qkv, b.o, b.lse, &err),
				 STATUS_OK);
		assert_int_equal(b.back.ops->attention_bwd(&b.back, &at_, &b.batch, b.qkv, b.o, b.lse, b.d_o,
							   b.dqkv, &err),
				 STATUS_OK);
		for (int64_t d = 0; d < b.batch.docs; d++)
			check(&b, b.start[d], b.start[d + 1], want);
		for (int64_t i = 0; i < b.batch.tokens * WIDTH; i++)
			assert_true(fabs(want[i] - at(&b.dqkv, i / WIDTH, i % WIDTH)) < 2e-5);
		free(want);
		close_bed(&b);
	}
}

static void test_attention__probabilities_hold_where_scores_are_large(void **state)
{
	static const int lengths[] = {70, 0};
	const struct attention at_ = {.heads = HEADS, .kv_heads = KV, .head_dim = DIM, .scale = 1};
	struct error err = {0};
	struct bed b;

	(void)state;
	open_bed(&b, lengths);
	for (int64_t i = 0; i < b.qkv.rows * b.qkv.cols; i++)
		((float *)b.qkv.data)[i] *= 40;
	assert_int_equal(b.back.ops->attention(&b.back, &at_, &b.batch, b.qkv, b.o, b.lse, &err), STATUS_OK);
	for (int64_t i = 0; i < b.o.rows * b.o.cols; i++)
		assert_true(isfinite(((float *)b.o.data)[i]) && fabsf(((float *)b.o.data)[i]) <= 40.001f);
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attention__is_its_definition_at_every_length),
		cmocka_unit_test(test_attention__probabilities_hold_where_scores_are_large),
	};

	return cmocka_run_group_tests_name("model attention", tests, NULL, NULL);
}
