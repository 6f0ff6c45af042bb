/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the rows of a step with a KV cache in pages, against their definitions in double. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/backend/cost.h"
#include "model/backend/plan_backend.h"
#include "model/cpu/cpu.h"
#include "model/tensor/matrix.h"
#include "unit/model_bed.h"
#include "unit/must.h"

enum { HEADS = 6, KV = 2, DIM = 16, WIDTH = (HEADS + 2 * KV) * DIM, POSITIONS = 400, PLACES = 4 };
enum { ROWS = 64, SEQUENCES = 8, PAGES = 200 };

/* Rows of one sequence in a step. */
struct part {
	int first, rows;
};

struct step_bed {
	struct arena arena;
	struct backend back;
	struct paged_room room;
	struct paged_layer cache;
	struct mat q_norm, k_norm, cos_sin;
	int32_t page_tokens;
	bool wide;
};

static enum dtype real_type(const struct step_bed *b)
{
	return b->wide ? DTYPE_F64 : DTYPE_F32;
}

static struct mat place(struct step_bed *b, int64_t rows, int64_t cols, enum dtype dtype)
{
	struct mat m = {.rows = rows, .cols = cols, .dtype = dtype};
	struct error err = {0};

	must(arena_mat(&b->arena, MEM_SCRATCH, &m, "operand", &err), &err);
	return m;
}

static void set(const struct mat *m, int64_t row, int64_t col, double value)
{
	if (m->dtype == DTYPE_F64)
		((double *)m->data)[row * m->ld + col] = value;
	else
		((float *)m->data)[row * m->ld + col] = (float)value;
}

static double get(const struct mat *m, int64_t row, int64_t col)
{
	return m->dtype == DTYPE_F64 ? ((double *)m->data)[row * m->ld + col]
				     : (double)((float *)m->data)[row * m->ld + col];
}

static void open_bed(struct step_bed *b, int32_t page_tokens, bool e4m3, bool wide, unsigned threads)
{
	const struct cpu_options options = {.threads = threads, .own_gemm = true};
	const struct attention at = {.heads = HEADS, .kv_heads = KV, .head_dim = DIM};
	const struct paged_limits most = {.rows = ROWS,
					  .outputs = SEQUENCES,
					  .sequences = SEQUENCES,
					  .pages = POSITIONS / page_tokens,
					  .vocab = 64,
					  .page_tokens = page_tokens};
	struct error err = {0};

	*b = (struct step_bed){.page_tokens = page_tokens, .wide = wide};
	must(cpu_backend_create(&b->back, &options, &b->arena, &err), &err);
	if (wide) {
		b->back.ops = &cpu_ops_f64;
		b->back.dtype = b->back.stat = DTYPE_F64;
	}
	b->arena.size = 16u << 20;
	b->arena.base = aligned_alloc(ARENA_ALIGN, b->arena.size);
	assert_non_null(b->arena.base);
	must(workspace_paged(&b->back, &at, &most, &b->room, &err), &err);
	b->cache.kv = place(b, PAGES * page_tokens, 2 * KV * DIM, e4m3 ? DTYPE_E4M3 : real_type(b));
	if (e4m3)
		b->cache.scale = place(b, PAGES * page_tokens, 2 * KV, DTYPE_F32);
	/* 0xff is NaN in every type, so that a read of an unused place shows */
	memset(b->cache.kv.data, 0xff,
	       dtype_bytes(b->cache.kv.dtype, (uint64_t)(b->cache.kv.rows * b->cache.kv.cols)));
	if (e4m3)
		memset(b->cache.scale.data, 0xff, (size_t)(b->cache.scale.rows * b->cache.scale.cols) * 4);
	b->q_norm = place(b, 1, DIM, real_type(b));
	b->k_norm = place(b, 1, DIM, real_type(b));
	b->cos_sin = place(b, POSITIONS, DIM, real_type(b));
	for (int i = 0; i < DIM; i++) {
		set(&b->q_norm, 0, i, 1 + 0.5 * (double)random_f32(7, 1, (uint64_t)i));
		set(&b->k_norm, 0, i, 1 + 0.5 * (double)random_f32(7, 2, (uint64_t)i));
	}
	for (int p = 0; p < POSITIONS; p++)
		for (int i = 0; i < DIM / 2; i++) {
			const double angle = p * pow(100, -2.0 * i / DIM);

			set(&b->cos_sin, p, i, cos(angle));
			set(&b->cos_sin, p, DIM / 2 + i, sin(angle));
		}
}

static void close_bed(struct step_bed *b)
{
	cpu_backend_release(&b->back);
	free(b->arena.base);
}

/* Element of q, k, v of a sequence before the norm, and of a row of the cache. */
static double number(int sequence, int position, int col)
{
	return 2 * (double)random_f32(11, (uint32_t)sequence, (uint64_t)(position * WIDTH + col));
}

/* Every page belongs to one sequence, in no order. Page 0 is nobody's. */
static int32_t page_of(int sequence, int index)
{
	return 1 + (sequence + SEQUENCES * index) * 7 % (PAGES - 1);
}

struct lists {
	int32_t token[ROWS], position[ROWS], slot[ROWS], begin[SEQUENCES + 1], keys[SEQUENCES];
	int32_t page[SEQUENCES * POSITIONS / 16], output[SEQUENCES];
	int sequence[ROWS];
	struct paged_rows rows;
};

/* Rows of sequences 0, 1, .. of the parts (rows 0: none of this one), then padding. */
static void make_lists(const struct step_bed *b, const struct part *part, int parts, int padding,
		       struct lists *l)
{
	const int32_t tokens = b->page_tokens;
	int row = 0, count = 0;

	memset(l, 0, sizeof(*l));
	l->rows.page_ld = POSITIONS / tokens;
	for (int s = 0; s < parts; s++) {
		if (!part[s].rows)
			continue;
		for (int i = 0; i < part[s].rows; i++, row++) {
			const int position = part[s].first + i;

			l->sequence[row] = s;
			l->position[row] = position;
			l->slot[row] = page_of(s, position / tokens) * tokens + position % tokens;
		}
		for (int p = 0; p < l->rows.page_ld; p++)
			l->page[count * l->rows.page_ld + p] = page_of(s, p);
		l->keys[count++] = part[s].first + part[s].rows;
		l->begin[count] = row;
		if (l->keys[count - 1] > l->rows.keys_most)
			l->rows.keys_most = l->keys[count - 1];
	}
	l->rows.token = l->token;
	l->rows.position = l->position;
	l->rows.slot = l->slot;
	l->rows.begin = l->begin;
	l->rows.keys = l->keys;
	l->rows.page = l->page;
	l->rows.output = l->output;
	l->rows.rows = row + padding;
	l->rows.sequences = count;
	l->rows.page_tokens = tokens;
}

static const struct attention attention = {.heads = HEADS, .kv_heads = KV, .head_dim = DIM, .scale = 0.25f};

/* Runs both operations; o [rows, HEADS * DIM] is from the arena. */
static struct mat run(struct step_bed *b, const struct part *part, int parts, int padding, bool norms)
{
	static struct lists l;
	const struct mat none = {0};
	struct paged_rows rows;
	struct error err = {0};
	struct mat qkv, o;

	make_lists(b, part, parts, padding, &l);
	qkv = place(b, l.rows.rows, WIDTH, real_type(b));
	o = place(b, l.rows.rows, HEADS * DIM, real_type(b));
	for (int t = 0; t < l.rows.rows; t++)
		for (int i = 0; i < WIDTH; i++)
			set(&qkv, t, i,
			    t < l.begin[l.rows.sequences] ? number(l.sequence[t], l.position[t], i) : 1);
	must(b->back.ops->paged_put(&b->back, &l.rows, &b->room, &rows, &err), &err);
	must(b->back.ops->paged_rope(&b->back, &rows, &attention, qkv, norms ? b->q_norm : none,
				     norms ? b->k_norm : none, 1e-5f, b->cos_sin, &b->cache, &err),
	     &err);
	must(b->back.ops->paged_attention(&b->back, &rows, &attention, qkv, &b->cache, o, &err), &err);
	return o;
}

/* Norm and rotation of head `head` of q, k (and v, which stays) by definition. */
static void head_of(const struct step_bed *b, int sequence, int position, int head, bool norms, double *out)
{
	const struct mat *w = head < HEADS ? &b->q_norm : &b->k_norm;
	double x[DIM], squares = 0;

	for (int i = 0; i < DIM; i++) {
		x[i] = number(sequence, position, head * DIM + i);
		squares += x[i] * x[i];
	}
	for (int i = 0; norms && head < HEADS + KV && i < DIM; i++)
		x[i] *= get(w, 0, i) / sqrt(squares / DIM + 1e-5);
	memcpy(out, x, sizeof(x));
	for (int i = 0; head < HEADS + KV && i < DIM / 2; i++) {
		const double angle = position * pow(100, -2.0 * i / DIM);

		out[i] = x[i] * cos(angle) - x[DIM / 2 + i] * sin(angle);
		out[DIM / 2 + i] = x[DIM / 2 + i] * cos(angle) + x[i] * sin(angle);
	}
}

static void expected(const struct step_bed *b, int sequence, int position, int head, bool norms, double *out)
{
	double q[DIM], k[DIM], v[DIM], sum = 0;

	head_of(b, sequence, position, head, norms, q);
	memset(out, 0, DIM * sizeof(*out));
	for (int j = 0; j <= position; j++) {
		double score = 0, weight;

		head_of(b, sequence, j, HEADS + head / (HEADS / KV), norms, k);
		head_of(b, sequence, j, HEADS + KV + head / (HEADS / KV), norms, v);
		for (int i = 0; i < DIM; i++)
			score += q[i] * k[i];
		weight = exp(0.25 * score);
		sum += weight;
		for (int i = 0; i < DIM; i++)
			out[i] += weight * v[i];
	}
	for (int i = 0; i < DIM; i++)
		out[i] /= sum;
}

static void check_rows(const struct step_bed *b, const struct part *part, int parts, const struct mat *o,
		       bool norms, double tolerance)
{
	int row = 0;

	for (int s = 0; s < parts; s++)
		for (int i = 0; i < part[s].rows; i++, row++)
			for (int h = 0; h < HEADS; h++) {
				double out[DIM];

				expected(b, s, part[s].first + i, h, norms, out);
				for (int d = 0; d < DIM; d++)
					assert_true(fabs(out[d] - get(o, row, h * DIM + d)) < tolerance);
			}
}

/* Chunks of several sequences, with borders inside pages and tiles; then decode rows. */
static void check_steps(int32_t page_tokens, bool e4m3, bool wide, bool norms, double tolerance)
{
	static const struct part steps[][4] = {
		{{0, 1}, {0, 40}, {0, 17}, {0, 0}}, {{1, 1}, {40, 30}, {0, 0}, {0, 5}},
		{{2, 1}, {70, 1}, {17, 1}, {5, 1}}, {{3, 1}, {71, 60}, {0, 0}, {6, 1}},
		{{4, 1}, {131, 1}, {0, 0}, {0, 0}},
	};
	struct step_bed b;

	open_bed(&b, page_tokens, e4m3, wide, 2);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct arena_mark mark = arena_mark(&b.arena);
		const struct mat o = run(&b, steps[i], 4, i % 3, norms);

		check_rows(&b, steps[i], 4, &o, norms, tolerance);
		for (int64_t t = o.rows - (int64_t)(i % 3); t < o.rows; t++)
			assert_true(get(&o, t, 0) == 0); /* padding */
		arena_reset(&b.arena, &mark);
	}
	close_bed(&b);
}

static void test_paged__rows_attend_to_the_keys_of_their_sequence(void **state)
{
	(void)state;
	for (int32_t page_tokens = 16; page_tokens <= 64; page_tokens *= 2) {
		check_steps(page_tokens, false, false, page_tokens != 32, 3e-5);
		check_steps(page_tokens, false, true, page_tokens == 32, 1e-6); /* scale is a float */
		check_steps(page_tokens, true, false, page_tokens != 32, 0.2);
	}
}

/* Bits of the last row of 150 positions, fed in chunks of `chunk` rows. With `others`, for which chunk is 1,
 * another sequence is before it and a third one after it. */
static void last_row(bool e4m3, int chunk, bool others, unsigned threads, float out[HEADS * DIM])
{
	struct step_bed b;

	open_bed(&b, 16, e4m3, false, threads);
	for (int first = 0; first < 150; first += chunk) {
		const struct arena_mark mark = arena_mark(&b.arena);
		const int rows = 150 - first < chunk ? 150 - first : chunk;
		const struct part part[3] = {{first, others ? 1 : 0}, {first, rows}, {0, others ? 9 : 0}};
		const struct mat o = run(&b, part, 3, 0, true);

		memcpy(out, (float *)o.data + (rows - 1 + part[0].rows) * o.ld, HEADS * DIM * sizeof(*out));
		arena_reset(&b.arena, &mark);
	}
	close_bed(&b);
}

static void test_paged__bits_do_not_depend_on_chunks_threads_and_other_sequences(void **state)
{
	static const int chunks[] = {1, 7, 8, 50};
	float first[HEADS * DIM], again[HEADS * DIM];

	(void)state;
	for (int e4m3 = 0; e4m3 < 2; e4m3++) {
		last_row(e4m3, 54, false, 1, first);
		for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
			last_row(e4m3, chunks[i], chunks[i] == 1, 1 + (unsigned)i % 3, again);
			assert_memory_equal(first, again, sizeof(first));
		}
	}
}

static void test_paged__e4m3_rounds_to_the_nearest(void **state)
{
	(void)state;
	for (int code = 0; code < 256; code++) {
		const float f = e4m3_to_f32((uint8_t)code);

		if ((code & 0x7f) == 0x7f)
			assert_true(isnan(f) && (e4m3_of_f32(f) & 0x7f) == 0x7f);
		else
			assert_int_equal(e4m3_of_f32(f), code);
	}
	assert_true(e4m3_to_f32(0x7e) == 448 && e4m3_to_f32(1) == 0x1p-9f && e4m3_to_f32(8) == 0x1p-6f);
	for (int code = 0; code < 0x7e; code++) {
		const float low = e4m3_to_f32((uint8_t)code), high = e4m3_to_f32((uint8_t)(code + 1));
		const float middle = (low + high) / 2;

		assert_int_equal(e4m3_of_f32(nextafterf(middle, low)), code);
		assert_int_equal(e4m3_of_f32(nextafterf(middle, high)), code + 1);
		assert_int_equal(e4m3_of_f32(middle), code % 2 ? code + 1 : code);
		assert_int_equal(e4m3_of_f32(-middle), 0x80 | (code % 2 ? code + 1 : code));
	}
	assert_int_equal(e4m3_of_f32(1e30f), 0x7e);
	assert_int_equal(e4m3_of_f32(-INFINITY), 0xfe);
}

static void test_paged__rows_get_their_embedding_or_that_of_a_sampled_id(void **state)
{
	static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8_0};
	static const int32_t token[] = {5, -1, -3, 0};
	static const int32_t id[] = {5, 9, 2, 0};
	struct paged_rows rows = {.token = token, .rows = 4};
	struct error err = {0};
	struct step_bed b;
	struct mat last, x;

	(void)state;
	open_bed(&b, 16, false, false, 1);
	last = place(&b, 1, PLACES, DTYPE_I32);
	memcpy(last.data, (const int32_t[]){9, 1, 2, 3}, 4 * sizeof(int32_t));
	x = place(&b, 4, 32, DTYPE_F32);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		const struct mat table = place(&b, 10, 32, types[t]);
		float row[32];

		for (size_t i = 0; i < dtype_bytes(types[t], 320); i++)
			((uint8_t *)table.data)[i] = (uint8_t)(random_u32(3, 0, i) & 0x3f);
		must(b.back.ops->paged_embed(&b.back, &rows, table, last, x, &err), &err);
		for (int i = 0; i < 4; i++) {
			const struct mat from = mat_rows(&table, id[i], 1);

			dtype_unpack(types[t], from.data, row, 32);
			assert_memory_equal((float *)x.data + i * x.ld, row, sizeof(row));
		}
	}
	x.dtype = DTYPE_BF16;
	assert_int_equal(b.back.ops->paged_embed(&b.back, &rows, x, last, x, &err), STATUS_BUG);
	close_bed(&b);
}

static void test_paged__a_cache_of_another_type_is_refused(void **state)
{
	static struct lists l;
	const struct part part = {0, 1};
	struct paged_rows rows;
	struct error err = {0};
	struct step_bed b;
	struct mat qkv;

	(void)state;
	open_bed(&b, 16, false, false, 1);
	make_lists(&b, &part, 1, 0, &l);
	qkv = place(&b, 1, WIDTH, DTYPE_F32);
	must(b.back.ops->paged_put(&b.back, &l.rows, &b.room, &rows, &err), &err);
	b.cache.kv.dtype = DTYPE_BF16;
	assert_int_equal(b.back.ops->paged_rope(&b.back, &rows, &attention, qkv, (struct mat){0},
						(struct mat){0}, 1e-5f, b.cos_sin, &b.cache, &err),
			 STATUS_BUG);
	error_clear(&err);
	assert_int_equal(b.back.ops->paged_attention(&b.back, &rows, &attention, qkv, &b.cache, qkv, &err),
			 STATUS_BUG);
	close_bed(&b);
}

static enum status count_run(void *arg, struct error *err)
{
	(void)err;
	++*(int *)arg;
	return STATUS_CANCELLED;
}

static void test_paged__the_plan_counts_the_same_cost_and_memory(void **state)
{
	static struct lists l;
	const struct part part[] = {{7, 1}, {0, 30}};
	struct arena arena = {0};
	struct paged_rows rows;
	struct error err = {0};
	struct backend plan;
	struct step_bed b;
	const void *out;
	int runs = 0;
	const struct replay work = {.run = count_run, .arg = &runs};
	struct mat qkv = {.cols = WIDTH, .dtype = DTYPE_F32};
	const struct mat none = {0};
	struct paged_room room;

	(void)state;
	open_bed(&b, 16, false, false, 2);
	run(&b, part, 2, 1, false);
	plan_backend_cpu(&plan, 2, &arena);
	must(workspace_paged(&plan, &attention, &b.room.limits, &room, &err), &err);
	assert_true(arena.peak == b.arena.kind_used[MEM_WORKSPACE] && arena.peak > 0);
	make_lists(&b, part, 2, 1, &l);
	qkv.rows = l.rows.rows;
	must(plan.ops->paged_put(&plan, &l.rows, &room, &rows, &err), &err);
	must(plan.ops->paged_rope(&plan, &rows, &attention, qkv, none, none, 1e-5f, none, &b.cache, &err),
	     &err);
	must(plan.ops->paged_attention(&plan, &rows, &attention, qkv, &b.cache, none, &err), &err);
	assert_true(plan.cost.flop == b.back.cost.flop && plan.cost.bytes == b.back.cost.bytes);
	assert_true(plan.cost.flop == 4. * (8 + 30 * 31 / 2) * HEADS * DIM);
	must(plan.ops->paged_embed(&plan, &rows, none, none, qkv, &err), &err);
	must(plan.ops->fetch_begin(&plan, b.cache.kv, 0, &err), &err);
	must(plan.ops->fetch_wait(&plan, 0, &out, &err), &err);
	assert_null(out);
	assert_int_equal(plan.ops->replay(&plan, &work, &err), STATUS_CANCELLED);
	assert_int_equal(b.back.ops->replay(&b.back, &work, &err), STATUS_CANCELLED);
	assert_int_equal(runs, 2);
	close_bed(&b);
}

static void test_paged__each_turn_holds_a_copy(void **state)
{
	struct error err = {0};
	struct step_bed b;
	const void *out;
	struct mat m;

	(void)state;
	open_bed(&b, 16, false, false, 1);
	m = place(&b, 3, 4, DTYPE_I32);
	m.cols = 2; /* a view, so that rows are packed */
	for (int turn = 0; turn < FETCHES; turn++) {
		for (int i = 0; i < 12; i++)
			((int32_t *)m.data)[i] = 100 * turn + i;
		must(b.back.ops->fetch_begin(&b.back, m, turn, &err), &err);
	}
	for (int turn = 0; turn < FETCHES; turn++) {
		const int32_t *row;

		must(b.back.ops->fetch_wait(&b.back, turn, &out, &err), &err);
		row = out;
		for (int i = 0; i < 6; i++)
			assert_int_equal(row[i], 100 * turn + i / 2 * 4 + i % 2);
	}
	m.rows = 1;
	must(b.back.ops->fetch_begin(&b.back, m, 0, &err), &err);
	assert_int_equal(b.back.ops->fetch_begin(&b.back, m, FETCHES, &err), STATUS_BUG);
	error_clear(&err);
	assert_int_equal(b.back.ops->fetch_wait(&b.back, -1, &out, &err), STATUS_BUG);
	close_bed(&b);
	error_clear(&err);
	open_bed(&b, 16, false, false, 1);
	assert_int_equal(b.back.ops->fetch_wait(&b.back, 0, &out, &err), STATUS_BUG);
	error_clear(&err);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they abort */
	m.rows = (int64_t)1 << 50;				    /* more than a process can have */
	m.cols = m.ld = 1;
	assert_int_equal(b.back.ops->fetch_begin(&b.back, m, 0, &err), STATUS_NO_RESOURCE);
#endif
	close_bed(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paged__rows_attend_to_the_keys_of_their_sequence),
		cmocka_unit_test(test_paged__bits_do_not_depend_on_chunks_threads_and_other_sequences),
		cmocka_unit_test(test_paged__e4m3_rounds_to_the_nearest),
		cmocka_unit_test(test_paged__rows_get_their_embedding_or_that_of_a_sampled_id),
		cmocka_unit_test(test_paged__a_cache_of_another_type_is_refused),
		cmocka_unit_test(test_paged__the_plan_counts_the_same_cost_and_memory),
		cmocka_unit_test(test_paged__each_turn_holds_a_copy),
	};

	return cmocka_run_group_tests_name("paged", tests, NULL, NULL);
}
