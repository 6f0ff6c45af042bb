/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `openblas`: OpenBLAS computes the GEMMs; pinned threads walk the memory; plain C code checks every
 * result. */
#include <math.h>
#include "probe/shared/cpu.h"
#include "probe/gemm/gemm.h"
#include "probe/stress/stress.h"
#include "vendor/cpu/openblas.h"

struct walk_share { /* one thread's findings, on a cache line of their own */
	uint64_t wrong, first, odd;
	char rest[40];
};

struct stress_cpu {
	struct stress common;
	struct blas blas;
	struct lib_fact fact;
	struct cpu_pool *pool;
	struct cpu_confined before;
	unsigned threads;
	void *a, *g[STRESS_SETS], *c; /* (n x n), float or double */
	struct stress_sums expected[STRESS_SETS];
	int64_t *row_sum, *column_sum; /* (2 n), and per thread (2 n): sums of C under the two weights */
	uint64_t *words, *pass;	       /* the memory; passes done, per slice */
	uint64_t slice, slices, at;    /* at: slice that the threads walk now */
	struct walk_share *share;      /* (threads) */
	struct stress_found found;
	uint64_t pending_set;
	bool pending;
};

static bool wide(const struct stress_cpu *s)
{
	return s->common.opts.type == STRESS_FP64;
}

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct stress_opts *o = opts;
	const struct lib_found *lib = machine_lib(m, "openblas");
	double n = stress_n(t, o), need = (double)stress_bytes(t, o) + 4 * n * n * 8;

	if (o->type != STRESS_FP32 && o->type != STRESS_FP64)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "stress: a CPU supports only type=fp32 and type=fp64, not %s",
				       stress_type_name((enum stress_type)o->type));
	if (stress_has(o, STRESS_TENSOR) && lib && lib->status)
		return error_set_cause(err, lib->status, lib->cause, "stress: OpenBLAS: %s", lib->missing);
	return cpu_memory_check(m, t, "stress: its matrices and streams", need, err);
}

static double element_of(const struct stress_cpu *s, uint64_t i)
{
	return wide(s) ? ((const double *)s->c)[i] : (double)((const float *)s->c)[i];
}

/* -- one iteration -- */

static void note(uint64_t *count, uint64_t *first, uint64_t i)
{
	++*count;
	if (i < *first)
		*first = i;
}

/* Adds up a thread's rows of C: the row sums, and their contribution to the column sums, in an array of the
 * thread (two weights of n). An element that is not an integer below 2^53 enters no sum; it makes its row and
 * its column wrong. */
static void sum_work(void *arg, unsigned thread)
{
	struct stress_cpu *s = arg;
	uint32_t n = s->common.n;
	int64_t *column = s->column_sum + (size_t)thread * 2 * n;
	uint64_t first, last;

	cpu_share(n, 1, thread, s->threads, &first, &last);
	memset(column, 0, 2 * (size_t)n * sizeof(*column));
	for (uint64_t i = first; i < last; i++) {
		s->row_sum[i] = s->row_sum[n + i] = 0;
		for (uint32_t j = 0; j < n; j++) {
			double v = element_of(s, i * n + j);

			if (!(fabs(v) < 0x1p53 && v == trunc(v))) {
				s->share[thread].odd++;
				/* less than any change of a whole element moves the two weighted sums */
				s->row_sum[i]++;
				column[j]++;
				continue;
			}
			for (unsigned w = 0; w < 2; w++) {
				s->row_sum[w * n + i] += (int64_t)v * gemm_weight(w, j);
				column[w * n + j] += (int64_t)v * gemm_weight(w, i);
			}
		}
	}
}

static void sum_product(struct stress_cpu *s)
{
	uint32_t n = s->common.n;

	cpu_pool_run(s->pool, sum_work, s);
	for (unsigned t = 1; t < s->threads; t++)
		for (uint32_t j = 0; j < 2 * n; j++)
			s->column_sum[j] += s->column_sum[(size_t)t * 2 * n + j];
}

static void check_product(struct stress_cpu *s)
{
	const struct stress_sums *e = &s->expected[s->pending_set];
	uint32_t n = s->common.n;

	if (!s->pending)
		return;
	sum_product(s);
	for (uint32_t i = 0; i < n; i++) {
		if (s->row_sum[i] != e->cw[0][i] || s->row_sum[n + i] != e->cw[1][i])
			note(&s->found.rows, &s->found.first_row, i);
		if (s->column_sum[i] != e->wc[0][i] || s->column_sum[n + i] != e->wc[1][i])
			note(&s->found.columns, &s->found.first_column, i);
	}
	s->found.products++;
	s->pending = false;
}

static void multiply(struct stress_cpu *s, uint64_t i)
{
	int n = (int)s->common.n;

	check_product(s); /* nobody has collected the result of the last GEMM: it is checked all the same */
	if (wide(s))
		blas_dgemm(&s->blas, CblasNoTrans, CblasTrans, n, n, n, 1, s->a, n, s->g[i % STRESS_SETS], n,
			   0, s->c, n);
	else
		blas_sgemm(&s->blas, CblasNoTrans, CblasTrans, n, n, n, 1, s->a, n, s->g[i % STRESS_SETS], n,
			   0, s->c, n);
	s->pending = true;
	s->pending_set = i % STRESS_SETS;
}

static void walk_work(void *arg, unsigned thread)
{
	struct stress_cpu *s = arg;
	struct walk_share *share = &s->share[thread];
	uint64_t first, last, base = s->at * s->slice / 8, pass = s->pass[s->at];

	cpu_share(s->slice / 8, 512, thread, s->threads, &first, &last);
	for (uint64_t i = first; i < last; i++) {
		if (pass && s->words[base + i] != stress_pattern(base + i, pass))
			note(&share->wrong, &share->first, base + i);
		s->words[base + i] = stress_pattern(base + i, pass + 1);
	}
}

static void walk(struct stress_cpu *s, uint64_t i)
{
	s->at = i % s->slices;
	cpu_pool_run(s->pool, walk_work, s);
	s->pass[s->at]++;
	s->found.passes++;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct stress_cpu *s = state;

	(void)err;
	s->common.iterations++;
	if (s->a)
		multiply(s, i);
	if (s->words)
		walk(s, i);
	return STATUS_OK;
}

static enum status enqueue_check(void *state, uint64_t i, struct error *err)
{
	(void)i, (void)err;
	check_product(state);
	return STATUS_OK;
}

static enum status one(void *state, struct error *err)
{
	return enqueue(state, 0, err);
}

static enum status collect(void *state, struct stress_found *out, struct error *err)
{
	struct stress_cpu *s = state;

	(void)err;
	check_product(s);
	*out = s->found;
	for (unsigned t = 0; s->share && t < s->threads; t++) {
		out->words += s->share[t].wrong;
		out->nan += s->share[t].odd;
		if (s->share[t].first < out->first_word)
			out->first_word = s->share[t].first;
	}
	return STATUS_OK;
}

/* -- begin and end -- */

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "stress: not enough memory for the buffers");
}

static void fill(struct stress_cpu *s, void *to, uint64_t seed, uint32_t stream)
{
	uint64_t count = (uint64_t)s->common.n * s->common.n;
	unsigned bits = stress_bits((enum stress_type)s->common.opts.type);

	for (uint64_t i = 0; i < count; i++) {
		int v = stress_element(seed, stream, bits, i);

		if (wide(s))
			((double *)to)[i] = v;
		else
			((float *)to)[i] = (float)v;
	}
}

static enum status prepare_tensor(struct stress_cpu *s, uint64_t seed, struct error *err)
{
	uint64_t n = s->common.n, size = n * n * (wide(s) ? 8 : 4);
	enum status st = lib_open(&s->blas, &openblas_lib, NULL, &s->fact, err);

	if (!st)
		st = blas_settle(&s->blas, &s->fact, err);
	if (st)
		return st;
	s->blas.set_num_threads((int)s->threads);
	s->row_sum = calloc(2 * n, sizeof(*s->row_sum));
	s->column_sum = calloc(2 * n * s->threads, sizeof(*s->column_sum));
	s->a = malloc(size);
	s->c = malloc(size);
	if (!s->row_sum || !s->column_sum || !s->a || !s->c)
		return no_memory(err);
	fill(s, s->a, seed, STRESS_STREAM_A);
	for (unsigned set = 0; !st && set < STRESS_SETS; set++) {
		s->g[set] = malloc(size);
		if (!s->g[set])
			return no_memory(err);
		fill(s, s->g[set], seed, set ? STRESS_STREAM_G2 : STRESS_STREAM_G);
		st = stress_expect(&s->expected[set], seed, set,
				   stress_bits((enum stress_type)s->common.opts.type), s->common.n, err);
	}
	return st;
}

static enum status prepare_memory(struct stress_cpu *s, struct error *err)
{
	s->pass = calloc(s->slices, sizeof(*s->pass));
	if (!s->pass)
		return no_memory(err);
	return cpu_pages_alloc((void **)&s->words, s->slices * s->slice, err);
}

static enum status prepare_threads(struct stress_cpu *s, const struct bench *b, struct error *err)
{
	enum status st = cpu_bench_threads(b, s->common.opts.threads, &s->threads, err);

	if (!st)
		st = cpu_pool_create(&s->pool, b->cpus, s->threads, err);
	if (!st)
		st = cpu_bench_confine(b, s->threads, &s->before, err);
	if (st)
		return st;
	s->share = calloc(s->threads, sizeof(*s->share));
	if (!s->share)
		return no_memory(err);
	for (unsigned t = 0; t < s->threads; t++)
		s->share[t].first = UINT64_MAX;
	return STATUS_OK;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	const struct target cpu = {.kind = TARGET_CPU};
	struct stress_cpu *s = state;
	enum status st;

	s->common =
		(struct stress){.opts = *(const struct stress_opts *)opts, .collect = collect, .one = one};
	s->common.n = stress_n(&cpu, opts);
	s->slice = stress_slice(&cpu, opts);
	s->slices = stress_bytes(&cpu, opts) / s->slice;
	s->found = (struct stress_found){
		.first_row = UINT64_MAX, .first_column = UINT64_MAX, .first_word = UINT64_MAX};
	st = prepare_threads(s, b, err);
	if (!st && stress_has(&s->common.opts, STRESS_TENSOR))
		st = prepare_tensor(s, b->seed, err);
	if (!st && stress_has(&s->common.opts, STRESS_MEMORY))
		st = prepare_memory(s, err);
	if (!st && b->out)
		result_u64(b->out, &field_threads, s->threads);
	return st;
}

static void release(void *state)
{
	struct stress_cpu *s = state;

	cpu_bench_unconfine(&s->before);
	cpu_pool_destroy(&s->pool);
	cpu_pages_free((void **)&s->words, s->slices * s->slice);
	for (unsigned set = 0; set < STRESS_SETS; set++) {
		free(s->g[set]);
		stress_sums_free(&s->expected[set]);
	}
	free(s->a);
	free(s->c);
	free(s->row_sum);
	free(s->column_sum);
	free(s->pass);
	free(s->share);
	lib_fact_release(&s->fact);
	*s = (struct stress_cpu){0};
}

const struct engine stress_cpu_engine = {
	.name = "openblas",
	.libs = "openblas",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct stress_cpu),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.enqueue_check = enqueue_check,
	.release = release,
};
