/* SPDX-License-Identifier: Apache-2.0 */
/* Probe attention on its CPU engine: every mask, type and shape against sums by hand, and engines that err. */
#include "attention_words.h"

#include <math.h>
#include "core/clock.h"
#include "probe/attention/attention.h"
#include "probe/attention/element_types.h"
#include "unit/cpu_bench.h"

struct bed {
	struct cpu_bench bench;
	struct attention_opts opts;
	struct attention *state; /* the engine's, its first member */
	struct error err;
};

static void begin(struct bed *b, const char *words)
{
	cpu_bench_make(&b->bench);
	assert_int_equal(attention_words(&b->opts, words, &b->err), STATUS_OK);
	assert_int_equal(attention_cpu_engine.supports(&b->bench.machine, &b->bench.target, &b->opts, &b->err),
			 STATUS_OK);
	b->state = calloc(1, attention_cpu_engine.state_size);
	assert_non_null(b->state);
	assert_int_equal(attention_cpu_engine.prepare(b->state, &b->bench.bench, &b->opts, &b->err), STATUS_OK);
}

static void end(struct bed *b)
{
	attention_cpu_engine.release(b->state);
	free(b->state);
}

/* -- by hand -- */

static bool listed(const uint32_t *list, uint32_t count, uint32_t block)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == block)
			return true;
	return false;
}

static bool keeps(const struct attention_case *c, uint32_t b, uint32_t h, uint32_t i, uint32_t j)
{
	const struct attention_problem *p = &c->problem;
	int64_t keys = attention_kv_len(p, b), own = (int64_t)i + keys - attention_q_len(p, b);
	bool seen = p->mask == ATTENTION_CAUSAL	  ? j <= own
		    : p->mask == ATTENTION_WINDOW ? j >= own - (int64_t)p->window_left &&
							    j <= own + (int64_t)p->window_right
						  : true;
	struct attention_row row;

	if (!c->blocks)
		return seen;
	row = attention_blocks_row(c->blocks, b, h, i / c->blocks->q_block);
	return listed(row.full, row.full_count, j / c->blocks->k_block) ||
	       (seen && listed(row.partial, row.partial_count, j / c->blocks->k_block));
}

static float keys_of[256][256], values_of[256][256]; /* of one sequence and key head */

static void load_head(const struct attention *a, uint32_t b, uint32_t g)
{
	assert_true(attention_kv_len(&a->c.problem, b) <= 256);
	for (uint32_t j = 0; j < attention_kv_len(&a->c.problem, b); j++) {
		attention_row_values(a, a->data, ATTENTION_K, b, g, j, keys_of[j]);
		attention_row_values(a, a->data, ATTENTION_V, b, g, j, values_of[j]);
	}
}

/* One row of O and its log-sum-exp. */
static double by_hand(const struct attention *a, uint32_t b, uint32_t h, uint32_t i, double *o)
{
	const struct attention_problem *p = &a->c.problem;
	uint32_t keys = attention_kv_len(p, b), d = p->head_dim;
	float q[256];
	double logit[256], most = -INFINITY, sum = 0;

	if (!i)
		load_head(a, b, h * p->kv_heads / p->heads);
	attention_row_values(a, a->data, ATTENTION_Q, b, h, i, q);
	for (uint32_t j = 0; j < keys; j++) {
		logit[j] = 0;
		for (uint32_t x = 0; x < d; x++)
			logit[j] += (double)q[x] * (double)keys_of[j][x] / sqrt(d);
		if (keeps(&a->c, b, h, i, j))
			most = fmax(most, logit[j]);
	}
	memset(o, 0, d * sizeof(*o));
	for (uint32_t j = 0; j < keys; j++) {
		double weight = keeps(&a->c, b, h, i, j) ? exp(logit[j] - most) : 0;

		sum += weight;
		for (uint32_t x = 0; x < d; x++)
			o[x] += weight * (double)values_of[j][x];
	}
	for (uint32_t x = 0; x < d && sum > 0; x++)
		o[x] /= sum;
	return sum > 0 ? most + log(sum) : -INFINITY;
}

/* Every row of the engine's result. Its probabilities are FP32: only O is rounded to the type. */
static void check_by_hand(struct bed *b)
{
	const struct attention_problem *p = &b->state->c.problem;
	void *out = malloc(attention_tensor_bytes(p, ATTENTION_O));
	float *lse = malloc(attention_tensor_bytes(p, ATTENTION_LSE)), found[256];
	double o[256], share = attention_roundoff(p->out_type), least = attention_underflow(p->out_type);

	assert_true(out && lse);
	assert_int_equal(attention_fill(b->state, b->state->data, &b->err), STATUS_OK);
	assert_int_equal(b->state->access->run(b->state, 0, &b->err), STATUS_OK);
	assert_int_equal(b->state->access->read(b->state, 0, ATTENTION_O, out, &b->err), STATUS_OK);
	assert_int_equal(b->state->access->read(b->state, 0, ATTENTION_LSE, lse, &b->err), STATUS_OK);
	for (uint32_t s = 0; s < p->batch; s++)
		for (uint32_t h = 0; h < p->heads; h++)
			for (uint32_t i = 0; i < attention_q_len(p, s); i++) {
				double sum = by_hand(b->state, s, h, i, o);
				double its = (double)lse[attention_tensor_at(p, ATTENTION_LSE, s, h, i)];

				attention_load(p->out_type, found,
					       (char *)out + attention_tensor_at(p, ATTENTION_O, s, h, i) *
								     attention_type_bytes(p->out_type),
					       p->head_dim);
				for (uint32_t x = 0; x < p->head_dim; x++)
					assert_true(fabs((double)found[x] - o[x]) <= share * fabs(o[x]) + least + 2e-5);
				assert_true(isinf(sum) ? isinf(its) && its < 0 : fabs(its - sum) <= 1e-5 * (1 + fabs(sum)));
			}
	free(out);
	free(lse);
}

static const char *const cases[] = {
	"batch=1 heads=1 seq=1 head_dim=8",
	"batch=2 heads=2 seq=64",
	"batch=1 heads=2 seq=130 head_dim=40 type=bf16",
	"batch=1 heads=2 seq=100 head_dim=128 type=e4m3",
	"batch=1 heads=1 seq=70 type=e4m3 out=same",
	"batch=1 heads=4 kv_heads=2 seq=65 mask=causal",
	"batch=2 heads=6 kv_heads=1 seq=33 kv_seq=97 mask=causal layout=bshd",
	"batch=1 heads=2 seq=97 kv_seq=33 mask=causal",
	"batch=1 heads=2 seq=150 mask=window left=20 right=5",
	"batch=1 heads=1 seq=90 kv_seq=200 mask=window right=3 head_dim=256",
	"batch=3 heads=2 seq=80 lengths=7+80+0 mask=causal",
	"batch=4 heads=2 seq=80 lengths=random layout=bshd seed=3",
	"batch=1 heads=2 seq=100 data=large",
	"batch=1 heads=2 seq=100 data=large mask=causal type=bf16 head_dim=128",
	"batch=1 heads=2 seq=200 pattern=mask block_q=32 block_k=16 mask=causal",
	"batch=1 heads=2 seq=200 pattern=mask block_q=16 block_k=32 mask=window left=40",
	"batch=2 heads=4 kv_heads=2 seq=160 pattern=random density=0.2 block_q=32 block_k=16",
	"batch=1 heads=2 seq=170 pattern=random density=0.3 block_q=16 block_k=16 mask=causal",
	"batch=1 heads=2 seq=256 pattern=strided density=0.25 block_q=16 block_k=16",
	"batch=3 heads=2 seq=90 lengths=30+90+64 pattern=random density=0.5 block_q=16 block_k=16 mask=causal",
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* The engine is right by hand, and verification says so: before, and of what timing leaves. */
static void test_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct bed b;
		struct wrong wrong;

		begin(&b, cases[i]);
		if (attention_verify(b.state, &wrong, &b.err))
			fail_msg("%s: %s", cases[i], b.err.text);
		assert_true(wrong.checked && wrong.checked <= wrong.total);
		for (uint64_t n = 0; n < 4; n++)
			assert_int_equal(attention_cpu_engine.enqueue(b.state, n, &b.err), STATUS_OK);
		assert_int_equal(b.state->written, 7);
		assert_int_equal(attention_verify(b.state, &wrong, &b.err), STATUS_OK);
		assert_true(wrong.checked == wrong.total && b.state->exact_done);
		check_by_hand(&b);
		end(&b);
	}
}

/* -- engines that err: what the engine is given or gives is changed on the way -- */

static struct {
	const struct attention_access *real;
	enum { LAZY, WIDER, OFF_SCALE, SWAPPED_KEYS, ONE_ELEMENT, NO_LSE, NAN_ROWS, LATE } how;
	uint64_t at;
	unsigned runs;
} fault;

static enum status faulty_run(void *state, unsigned set, struct error *err)
{
	struct attention *a = state;
	struct attention_problem keep = a->c.problem;
	enum status st;

	fault.runs++;
	if (fault.how == LAZY)
		return STATUS_OK;
	if (fault.how == WIDER)
		a->c.problem.window_left++;
	if (fault.how == OFF_SCALE)
		a->c.problem.scale = attention_scale(&keep) * 1.01;
	st = fault.real->run(state, set, err);
	a->c.problem = keep;
	return st;
}

static enum status faulty_write(void *state, enum attention_tensor t, const void *data, struct error *err)
{
	const struct attention_problem *p = &((struct attention *)state)->c.problem;
	uint64_t bytes = attention_tensor_bytes(p, t), row = (uint64_t)p->head_dim * attention_type_bytes(p->type);
	char *changed = malloc(bytes);
	enum status st;

	assert_non_null(changed);
	memcpy(changed, data, bytes);
	if (fault.how == SWAPPED_KEYS && t == ATTENTION_K) {
		memcpy(changed + 5 * row, (const char *)data + 6 * row, row);
		memcpy(changed + 6 * row, (const char *)data + 5 * row, row);
	}
	st = fault.real->write(state, t, changed, err);
	free(changed);
	return st;
}

static enum status faulty_read(void *state, unsigned set, enum attention_tensor t, void *data, struct error *err)
{
	const struct attention_problem *p = &((struct attention *)state)->c.problem;
	enum status st = fault.real->read(state, set, t, data, err);
	bool late = fault.how == LATE && set == 2;

	if (t == ATTENTION_O && (fault.how == ONE_ELEMENT || late))
		((uint16_t *)data)[fault.at] ^= 1 << 9;
	if (t == ATTENTION_LSE && fault.how == NO_LSE)
		memset(data, 0, attention_tensor_bytes(p, t));
	for (uint64_t i = 0; t == ATTENTION_LSE && fault.how == NAN_ROWS && i < attention_lse_count(p); i++)
		if (isinf(((float *)data)[i]))
			((float *)data)[i] = NAN;
	return st;
}

/* The status of the first verify, or of the second after timing. */
static struct wrong verify_faulty(const char *words, int how, uint64_t at, bool timed, struct error *err)
{
	struct attention_access access;
	struct wrong wrong;
	struct bed b;

	begin(&b, words);
	fault.real = b.state->access;
	fault.how = how;
	fault.at = at;
	fault.runs = 0;
	access = (struct attention_access){
		.write = faulty_write, .poison = fault.real->poison, .run = faulty_run, .read = faulty_read};
	b.state->access = &access;
	attention_verify(b.state, &wrong, &b.err);
	if (timed) {
		assert_int_equal(b.err.status, STATUS_OK);
		for (uint64_t n = 0; n < 3; n++)
			assert_int_equal(attention_cpu_engine.enqueue(b.state, n, &b.err), STATUS_OK);
		attention_verify(b.state, &wrong, &b.err);
	}
	b.state->access = fault.real;
	assert_true(fault.runs > 0);
	end(&b);
	*err = b.err;
	return wrong;
}

static void test_wrong(void **state)
{
	static const struct {
		const char *words;
		int how;
		uint64_t at;
		const char *says;
	} faults[] = {
		{"batch=1 heads=2 seq=64", LAZY, 0, "exact pass with means of V: 8320 of 8192"},
		{"batch=1 heads=2 seq=100 mask=window left=30", WIDER, 0, "exact pass with means of V"},
		{"batch=1 heads=2 seq=100", OFF_SCALE, 0, "exact pass with one key per query"},
		{"batch=1 heads=2 seq=100", SWAPPED_KEYS, 0, "exact pass with one key per query"},
		{"batch=2 heads=3 seq=64", ONE_ELEMENT, (4 * 64 + 17) * 64 + 9, "batch 1 head 1 row 17 column 9: expected"},
		{"batch=2 heads=3 seq=64 layout=bshd", ONE_ELEMENT, ((64 + 17) * 3 + 1) * 64 + 9, "batch 1 head 1 row 17 column 9: expected"},
		{"batch=1 heads=1 seq=64", NO_LSE, 0, "row 0, its log-sum-exp: expected 4.15888"},
		{"batch=1 heads=1 seq=64 kv_seq=32 mask=causal", NAN_ROWS, 0, "row 0, its log-sum-exp: expected -inf, found nan"},
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct wrong w = verify_faulty(faults[i].words, faults[i].how, faults[i].at, false, &err);

		assert_int_equal(err.status, STATUS_MISMATCH);
		assert_true(w.count > 0);
		if (!strstr(err.text, faults[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err.text, faults[i].says);
		assert_int_equal(err.cause, faults[i].how == LAZY || faults[i].how == NAN_ROWS ? CAUSE_NAN : CAUSE_WRONG_RESULT);
	}
	/* Of one set alone, after timing: an element of a row that is sampled, and of one that is not. */
	assert_int_equal(verify_faulty("batch=2 heads=3 seq=64", LATE, 3, true, &err).first_index, 3);
	assert_non_null(strstr(err.text, "after timing"));
	for (uint64_t row = 100; row < 200; row += 9) {
		verify_faulty("batch=2 heads=3 seq=64", LATE, row * 64 + 9, true, &err);
		assert_int_equal(err.status, STATUS_MISMATCH);
		assert_non_null(strstr(err.text, "after timing"));
	}
}

/* -- options -- */

static void test_bad_options(void **state)
{
	static const struct {
		const char *words, *says;
	} bad[] = {
		{"head_dim=264", "head_dim"},
		{"head_dim=20", "head dimension of 20"},
		{"heads=6 kv_heads=4", "6 query heads are not a multiple of 4"},
		{"left=3", "left and right need mask=window, not mask=none"},
		{"mask=causal right=3", "left and right need mask=window, not mask=causal"},
		{"out=same", "out needs type=e4m3; with type=fp16, O has"},
		{"density=0.5", "density needs pattern=strided or pattern=random"},
		{"pattern=mask density=0.5", "density needs pattern"},
		{"pattern=file", "pattern=file needs file=PATH"},
		{"file=a.blocks", "pattern=file needs file=PATH"},
		{"pattern=file file=/nowhere/a.blocks", "/nowhere/a.blocks"},
		{"pattern=random density=0.0001 batch=1 heads=1",
		 "density=0.0001 of 4 x 4 blocks keeps no pair of query and key"},
		{"pattern=random density=0.5 seq=1048576 block_q=16 block_k=16", " keys, more than"},
		{"batch=2 lengths=512", "gives only 1 of the 2 lengths"},
		{"batch=2 lengths=512+3+4", "gives more lengths than the 2 sequences"},
		{"batch=2 lengths=512+513", "513 is longer than seq=512"},
		{"batch=2 lengths=5+6", "the longest sequence has 6 tokens and must equal seq=512"},
		{"batch=2 lengths=a+b", "neither \"random\" nor one number per sequence"},
		{"batch=2 lengths=512+", "gives only 1 of the 2 lengths"},
		{"batch=2 lengths=random kv_seq=600", "kv_seq=600 must equal seq=512"},
		{"batch=65536 seq=1048576 lengths=random", "tokens in total"},
		{"batch=65536 heads=65536", "more than 2^40"},
		{"mask=diagonal", "diagonal"},
		{"type=fp64", "fp64"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct attention_opts o;
		struct error err = {0};

		assert_int_not_equal(attention_words(&o, bad[i].words, &err), STATUS_OK);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: \"%s\" lacks \"%s\"", bad[i].words, err.text, bad[i].says);
	}
}

static void test_work(void **state)
{
	static const struct {
		const char *words;
		double flop, bytes;
	} works[] = {
		{"heads=96", 4.0 * 16 * 96 * 512 * 512 * 64, 16.0 * 96 * 512 * (64 * 4 * 2 + 4)},
		{"mask=causal", 4.0 * 16 * 8 * 512 * 513 / 2 * 64, 16.0 * 8 * 512 * (64 * 4 * 2 + 4)},
		{"kv_heads=2 type=e4m3", 4.0 * 16 * 8 * 512 * 512 * 64, 16.0 * 512 * (8 * (64 * 3 + 4) + 2 * 2 * 64)},
		{"mask=window left=1", 4.0 * 16 * 8 * (2 * 512 - 1) * 64, 16.0 * 8 * 512 * (64 * 4 * 2 + 4)},
		{"batch=1 seq=1024 pattern=strided density=0.5", 4.0 * 8 * 1024 * 512 * 64, 8.0 * 1024 * (64 * 4 * 2 + 4)},
		{"batch=1 seq=1024 pattern=mask mask=causal", 4.0 * 8 * 1024 * 1025 / 2 * 64, 8.0 * 1024 * (64 * 4 * 2 + 4)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		struct attention_opts o;
		struct error err = {0};
		struct cpu_bench b;
		struct work w;

		cpu_bench_make(&b);
		assert_int_equal(attention_words(&o, works[i].words, &err), STATUS_OK);
		w = probe_attention.work(&b.machine, &b.target, &o);
		if (!(w.flop == works[i].flop) || !(w.read_bytes + w.write_bytes == works[i].bytes))
			fail_msg("%s: %.17g FLOP, %.17g B", works[i].words, w.flop, w.read_bytes + w.write_bytes);
	}
}

static uint32_t encode(enum attention_type type, float x)
{
	_Alignas(2) uint8_t one[2] = {0};

	attention_store(type, one, &x, 1);
	return one[0] | (uint32_t)one[1] << 8;
}

static float decode(enum attention_type type, uint32_t bits)
{
	_Alignas(2) const uint8_t one[2] = {(uint8_t)bits, (uint8_t)(bits >> 8)};
	float x;

	attention_load(type, &x, one, 1);
	return x;
}

/* Every number of the small types comes back, and halves go to the even neighbour. */
static void test_numbers(void **state)
{
	static const struct {
		enum attention_type type;
		float x;
		uint32_t bits;
	} known[] = {
		{ATTENTION_F16, 1.0f, 0x3c00}, {ATTENTION_F16, -2.0f, 0xc000}, {ATTENTION_F16, 65504, 0x7bff},
		{ATTENTION_F16, 1e6f, 0x7bff}, {ATTENTION_F16, 0x1p-24f, 1}, {ATTENTION_F16, 0x1p-25f, 0},
		{ATTENTION_F16, 0x1.8p-24f, 2}, {ATTENTION_F16, 0x1.002p0f, 0x3c00}, {ATTENTION_F16, 0x1.006p0f, 0x3c02},
		{ATTENTION_BF16, 1.0f, 0x3f80}, {ATTENTION_BF16, 0x1.01p0f, 0x3f80}, {ATTENTION_BF16, 0x1.03p0f, 0x3f82},
		{ATTENTION_E4M3, 448, 0x7e}, {ATTENTION_E4M3, -1e9f, 0xfe}, {ATTENTION_E4M3, 0x1p-9f, 1},
		{ATTENTION_E4M3, 0x1p-6f, 8}, {ATTENTION_E4M3, 1.0f, 0x38}, {ATTENTION_E4M3, 1.0625f, 0x38},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(encode(known[i].type, known[i].x), known[i].bits);
	/* Rounding in place is storing and loading: exponents of every size, halves, the largest, what is beyond. */
	for (int type = 0; type < ATTENTION_TYPE_COUNT; type++)
		for (uint32_t i = 0; i < 1u << 18; i++) {
			uint32_t bits = i * 0x4001u ^ i << 31, same;
			float x, r;

			memcpy(&x, &bits, sizeof(x));
			r = x;
			attention_round((enum attention_type)type, &r, 1);
			x = decode((enum attention_type)type, encode((enum attention_type)type, x));
			same = !memcmp(&r, &x, sizeof(x)) || (isnan(r) && isnan(x));
			if (!same)
				fail_msg("%s of 0x%08x: %a is not %a", attention_type_name((enum attention_type)type), bits,
					 (double)r, (double)x);
		}
	for (int type = 0; type < ATTENTION_TYPE_COUNT; type++)
		for (uint32_t bits = 0; bits < 1u << 8 * attention_type_bytes((enum attention_type)type); bits++) {
			float x = decode((enum attention_type)type, bits);

			if (isfinite(x))
				assert_int_equal(encode((enum attention_type)type, x), bits);
			else if (isnan(x))
				assert_true(isnan(decode((enum attention_type)type,
								   encode((enum attention_type)type, x))));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right), cmocka_unit_test(test_wrong), cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_work), cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
