/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/gemm/host.h"
#include <math.h>
#include "core/math/random.h"
#include "probe/shared/hash.h"

enum { GRAIN = 4096 }; /* elements: a multiple of 32, so that no two threads share a Philox call */

static uint64_t set_bytes(const struct gemm_opts *o)
{
	uint64_t in = gemm_in_bytes(o->type), out = gemm_out_bytes(o->type);

	return o->batch * (in * o->k * ((uint64_t)o->m + o->n) + out * o->m * o->n);
}

enum status gemm_host_fits(const struct machine *m, const struct target *t, const struct gemm_opts *o,
			   struct error *err)
{
	return cpu_memory_check(m, t, "gemm: A, B and C", (double)set_bytes(o), err);
}

enum status gemm_host_check_options(const struct gemm_opts *o, const char *library, struct error *err)
{
	const char *what = o->search != GEMM_SEARCH_FIRST
				   ? "has one algorithm, so it supports only search=first"
			   : o->accumulate != GEMM_ACCUMULATE_FAST ? "supports only accumulate=fast"
			   : o->scale != GEMM_SCALE_TENSOR	   ? "supports only scale=tensor"
								   : NULL;

	if (!what)
		return STATUS_OK;
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "gemm: %s %s", library, what);
}

enum status gemm_host_library(const struct machine *m, const struct lib_spec *spec, const char *shown,
			      struct error *err)
{
	const struct lib_found *lib = machine_lib(m, spec->name);

	if (!lib || !lib->status)
		return STATUS_OK;
	return error_set_cause(err, lib->status, lib->cause ? lib->cause : CAUSE_LIBRARY_MISSING,
			       "gemm: %s: %s%s", shown, lib->missing[0] ? lib->missing : spec->sonames[0],
			       lib->missing[0] ? "" : " not found");
}

/* -- filling: inputs rounded to their type, 4 or 32 elements per Philox call -- */

static uint16_t bf16_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	/* for finite x: to nearest, ties to even */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void put(enum gemm_type type, void *p, uint64_t i, float value)
{
	switch (type) {
	case GEMM_FP64:
		((double *)p)[i] = (double)value;
		break;
	case GEMM_BF16:
		((uint16_t *)p)[i] = bf16_bits(value);
		break;
	case GEMM_INT8:
		((int8_t *)p)[i] = (int8_t)value;
		break;
	default:
		((float *)p)[i] = value;
	}
}

static void fill_range(const struct gemm *g, void *p, enum gemm_stream stream, enum gemm_data data,
		       uint64_t first, uint64_t last)
{
	const uint32_t key[2] = {(uint32_t)g->seed, (uint32_t)(g->seed >> 32)};
	unsigned each = data == GEMM_DATA_INTEGER ? 32 : 4;
	uint32_t word[4] = {0};

	for (uint64_t i = first; i < last; i += each) {
		uint64_t block = i / each, end = last - i < each ? last - i : each;

		if (data != GEMM_DATA_ZEROS)
			philox4x32(word,
				   (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), stream, 0},
				   key);
		for (uint64_t j = 0; j < end; j++) {
			uint32_t nibble = word[j / 8 & 3] >> (j % 8 * 4) & 15;
			float value = 0;

			if (data == GEMM_DATA_INTEGER)
				value = nibble == 0 ? 1 : nibble == 1 ? -1 : 0;
			else if (data == GEMM_DATA_RANDOM)
				value = g->opts.type == GEMM_INT8
						? (int8_t)(word[j & 3] >> 24)
						: (float)(((double)word[j & 3] + 0.5) * 0x1p-31 - 1.0);
			put(g->opts.type, p, i + j, value);
		}
	}
}

struct job { /* argument of the pool's work functions */
	struct gemm_host *h;
	enum gemm_data data;
	unsigned set;
	uint64_t hash[64];
};

static void fill_work(void *arg, unsigned thread)
{
	struct job *j = arg;
	struct gemm_host *h = j->h;
	unsigned threads = cpu_pool_count(h->pool), in = gemm_in_bytes(h->common.opts.type);
	uint64_t first, last;

	cpu_share(h->a_count, GRAIN, thread, threads, &first, &last);
	fill_range(&h->common, h->a[0], GEMM_STREAM_A, j->data, first, last);
	for (unsigned set = 1; set < h->common.sets; set++)
		memcpy((char *)h->a[set] + first * in, (char *)h->a[0] + first * in, (last - first) * in);
	cpu_share(h->b_count, GRAIN, thread, threads, &first, &last);
	fill_range(&h->common, h->b[0], GEMM_STREAM_B, j->data, first, last);
	for (unsigned set = 1; set < h->common.sets; set++)
		memcpy((char *)h->b[set] + first * in, (char *)h->b[0] + first * in, (last - first) * in);
}

static void fill_bias(struct gemm_host *h, enum gemm_data data)
{
	enum gemm_type type = h->common.opts.type;

	for (uint32_t j = 0; h->bias && j < h->common.opts.n; j++) {
		double value = gemm_element(h->common.seed, GEMM_STREAM_BIAS, data, type, j);

		if (type == GEMM_INT8)
			((int32_t *)h->bias)[j] = (int32_t)value;
		else
			put(type, h->bias, j, (float)value);
	}
}

static enum status fill(void *state, enum gemm_data data, struct error *err)
{
	struct gemm_host *h = state;

	(void)err;
	cpu_pool_run(h->pool, fill_work, &(struct job){.h = h, .data = data});
	fill_bias(h, data);
	return STATUS_OK;
}

static void poison_work(void *arg, unsigned thread)
{
	struct gemm_host *h = ((struct job *)arg)->h;
	unsigned out = gemm_out_bytes(h->common.opts.type);
	uint64_t first, last;

	cpu_share(h->c_count, GRAIN, thread, cpu_pool_count(h->pool), &first, &last);
	for (unsigned set = 0; set < h->common.sets; set++) {
		if (h->common.opts.type != GEMM_INT8)
			memset((char *)h->c[set] + first * out, 0xff,
			       (last - first) * out); /* NaN in each type */
		else
			for (uint64_t i = first; i < last; i++)
				((int32_t *)h->c[set])[i] = INT32_MIN;
	}
}

static enum status poison(void *state, struct error *err)
{
	struct gemm_host *h = state;

	(void)err;
	cpu_pool_run(h->pool, poison_work, &(struct job){.h = h});
	return STATUS_OK;
}

/* -- reading C -- */

static enum status run(void *state, unsigned set, struct error *err)
{
	struct gemm_host *h = state;

	return h->multiply(h, set, err);
}

static enum status products(void *state, unsigned set, uint32_t b, struct gemm_products *out,
			    struct error *err)
{
	struct gemm_host *h = state;
	uint64_t each = (uint64_t)h->common.opts.m * h->common.opts.n;

	return gemm_products_host(
		&h->common, (char *)h->c[set] + b * each * gemm_out_bytes(h->common.opts.type), out, err);
}

static enum status elements(void *state, unsigned set, const uint64_t *index, size_t count, double *out,
			    struct error *err)
{
	struct gemm_host *h = state;

	(void)err;
	for (size_t i = 0; i < count; i++)
		out[i] = gemm_value_out(h->common.opts.type, h->c[set], index[i]);
	return STATUS_OK;
}

static void hash_work(void *arg, unsigned thread)
{
	struct job *j = arg;
	struct gemm_host *h = j->h;
	unsigned out = gemm_out_bytes(h->common.opts.type);
	const unsigned char *p = h->c[j->set];
	uint64_t first, last, word, hash = thread + 1;

	cpu_share(h->c_count, GRAIN, thread, cpu_pool_count(h->pool), &first, &last);
	p += first * out;
	for (uint64_t bytes = (last - first) * out; bytes; p += sizeof(word)) {
		uint64_t step = bytes < sizeof(word) ? bytes : sizeof(word);

		word = 0;
		memcpy(&word, p, step);
		hash = hash_word(hash, word);
		bytes -= step;
	}
	j->hash[thread] = hash;
}

static enum status hash(void *state, unsigned set, uint64_t *out, struct error *err)
{
	struct gemm_host *h = state;
	struct job j = {.h = h, .set = set};

	(void)err;
	cpu_pool_run(h->pool, hash_work, &j);
	*out = 0;
	for (unsigned i = 0; i < cpu_pool_count(h->pool); i++)
		*out = hash_word(*out, j.hash[i]);
	return STATUS_OK;
}

static enum status differences(void *state, unsigned set, double tolerance, uint64_t *count, uint64_t *first,
			       struct error *err)
{
	struct gemm_host *h = state;
	enum gemm_type type = h->common.opts.type;

	(void)err;
	*count = 0;
	for (uint64_t i = 0; i < h->c_count; i++)
		if (!(fabs(gemm_value_out(type, h->c[0], i) - gemm_value_out(type, h->c[set], i)) <=
		      tolerance) &&
		    !(*count)++)
			*first = i;
	return STATUS_OK;
}

static const struct gemm_access gemm_host_access = {
	.fill = fill,
	.poison = poison,
	.run = run,
	.products = products,
	.elements = elements,
	.hash = hash,
	.differences = differences,
};

/* -- begin and end -- */

static enum status sets_alloc(struct gemm_host *h, struct error *err)
{
	const struct gemm_opts *o = &h->common.opts;
	unsigned in = gemm_in_bytes(o->type), out = gemm_out_bytes(o->type);
	enum status st = STATUS_OK;

	for (unsigned set = 0; !st && set < h->common.sets; set++) {
		st = cpu_pages_alloc(&h->a[set], h->a_count * in, err);
		if (!st)
			st = cpu_pages_alloc(&h->b[set], h->b_count * in, err);
		if (!st)
			st = cpu_pages_alloc(&h->c[set], h->c_count * out, err);
	}
	if (!st && o->bias) {
		h->bias = malloc((size_t)o->n * (out < 4 ? 4 : out));
		if (!h->bias)
			st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					     "gemm: not enough memory for the bias");
	}
	return st;
}

enum status gemm_host_begin(struct gemm_host *h, const struct bench *b, const struct gemm_opts *o,
			    enum status (*multiply)(struct gemm_host *h, unsigned set, struct error *err),
			    struct error *err)
{
	uint64_t fit = set_bytes(o) ? cpu_memory_bytes(b->machine, b->target) / set_bytes(o) : GEMM_HOST_SETS;
	unsigned workers;
	enum status st;

	gemm_begin(&h->common, b, o, &gemm_host_access,
		   fit < 1		  ? 1
		   : fit > GEMM_HOST_SETS ? GEMM_HOST_SETS
					  : (unsigned)fit);
	h->multiply = multiply;
	h->a_count = (uint64_t)o->batch * o->m * o->k;
	h->b_count = (uint64_t)o->batch * o->k * o->n;
	h->c_count = (uint64_t)o->batch * o->m * o->n;
	st = cpu_bench_threads(b, o->threads, &h->threads, err);
	if (!st)
		st = cpu_bench_confine(b, h->threads, &h->before, err);
	workers = h->threads < 64 ? h->threads : 64;
	if (!st)
		st = cpu_pool_create(&h->pool, NULL, workers, err);
	h->common.pool = h->pool;
	if (!st)
		st = sets_alloc(h, err);
	if (!st)
		st = fill(h, o->data, err);
	if (!st && b->out) {
		result_u64(b->out, &field_threads, h->threads);
		result_u64(b->out, &gemm_fields[GEMM_FIELD_rotated_sets], h->common.sets);
	}
	return st;
}

void gemm_host_end(struct gemm_host *h)
{
	unsigned in = gemm_in_bytes(h->common.opts.type), out = gemm_out_bytes(h->common.opts.type);

	gemm_end(&h->common);
	cpu_pool_destroy(&h->pool);
	for (unsigned set = 0; set < GEMM_HOST_SETS; set++) {
		cpu_pages_free(&h->a[set], h->a_count * in);
		cpu_pages_free(&h->b[set], h->b_count * in);
		cpu_pages_free(&h->c[set], h->c_count * out);
	}
	free(h->bias);
	cpu_bench_unconfine(&h->before);
}

enum status gemm_host_enqueue(void *state, uint64_t i, struct error *err)
{
	struct gemm_host *h = state;
	unsigned set = (unsigned)(i % h->common.sets);

	h->common.written |= 1u << set;
	return h->multiply(h, set, err);
}
