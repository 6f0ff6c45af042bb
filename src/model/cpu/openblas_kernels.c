/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpu/openblas_kernels.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/process/cpu_pool.h"
#include "core/process/process.h"
#include "core/text/text.h"
#include "vendor/cpu/openblas.h"
#include "vendor/cpu/openblas_kernels.h"

enum {
	SIZE = 256,	/* size of the matrices: larger than the first cache, below a millisecond */
	TIMES_MOST = 8, /* GEMMs per trial */
	TIMES_LEAST = 2,
	CHECKED = 97,	  /* every CHECKED-th element is compared with the right result */
	LIMIT_MS = 30000, /* limit of a trial process */
	CANDIDATES = 8,
	OUTPUT_MOST = 4200 /* bytes of its output: a name, a rate and a path */
};
#define TRIAL_NS 40000000u /* enough timing for one trial */
/* Of the kernel sets above this share of the fastest rate, the first in the table is used, so that
 * repetitions agree. */
#define ALIKE 0.95

/* ---- the trial process ---- */

struct test_gemm {
	struct blas blas;
	float *a, *b, *c; /* c: one per thread */
};

static void multiply(void *arg, unsigned thread)
{
	const struct test_gemm *l = arg;

	blas_sgemm(&l->blas, CblasNoTrans, CblasTrans, SIZE, SIZE, SIZE, 1, l->a, SIZE, l->b, SIZE, 0,
		   l->c + (size_t)thread * SIZE * SIZE, SIZE);
}

/* Small integers, so that every sum is exact. */
static void fill(struct test_gemm *l)
{
	for (size_t i = 0; i < SIZE * SIZE; i++) {
		l->a[i] = (float)(i % 7) - 3;
		l->b[i] = (float)(i % 5) - 2;
	}
}

static bool is_right(const struct test_gemm *l, unsigned threads)
{
	for (size_t i = 0; i < (size_t)threads * SIZE * SIZE; i += CHECKED) {
		size_t row = i / SIZE % SIZE, column = i % SIZE;
		float sum = 0;

		for (size_t k = 0; k < SIZE; k++)
			sum += l->a[row * SIZE + k] * l->b[column * SIZE + k];
		if (!(l->c[i] == sum)) /* true for NaN as well */
			return false;
	}
	return true;
}

/* FLOP/s of all threads together; 0: a result was wrong. */
static double rate_of(struct test_gemm *l, struct cpu_pool *pool)
{
	const unsigned threads = cpu_pool_count(pool);
	uint64_t least = UINT64_MAX, all = 0;

	cpu_pool_run(pool, multiply, l); /* the first call maps the library's memory */
	for (unsigned i = 0; i < TIMES_MOST && (i < TIMES_LEAST || all < TRIAL_NS); i++) {
		uint64_t began = clock_now_ns(clock_monotonic()), took;

		cpu_pool_run(pool, multiply, l);
		took = clock_now_ns(clock_monotonic()) - began;
		all += took;
		if (took < least)
			least = took;
	}
	if (!is_right(l, threads) || !least)
		return 0;
	return 2e9 * threads * SIZE * SIZE * SIZE / (double)least;
}

int cpu_kernels_main(bool timed)
{
	struct test_gemm l = {0};
	struct lib_fact fact = {0};
	struct error err = {0};
	struct cpu_pool *pool = NULL;
	double rate = 0;
	int code = 2;

	if (blas_open_alone(&l.blas, &fact, &err) || !l.blas.get_corename)
		goto out;
	if (timed && !cpu_pool_usable(&pool, &err)) {
		const size_t bytes = sizeof(float) * SIZE * SIZE;

		l.a = malloc(bytes);
		l.b = malloc(bytes);
		l.c = calloc(cpu_pool_count(pool), bytes);
		if (!l.a || !l.b || !l.c || blas_check_buffers(cpu_pool_count(pool), &err))
			goto out;
		fill(&l);
		rate = rate_of(&l, pool);
	}
	printf("%s %.6e %s\n", l.blas.get_corename(), rate, fact.path ? fact.path : "");
	code = fflush(stdout) ? 2 : 0;
out:
	cpu_pool_destroy(&pool);
	free(l.a);
	free(l.b);
	free(l.c);
	lib_fact_release(&fact);
	return code;
}

/* ---- the process that starts trials ---- */

/* Output of a trial process. */
struct trial {
	char name[32], library[4096];
	double rate;
};

/* Runs a trial with this kernel set; NULL: the library's own choice. False: no output, a crash or a wrong
 * result. */
static bool run_trial(struct trial *t, const char *kernels, bool timed, const volatile sig_atomic_t *stop)
{
	const char *const argv[] = {NULL, "__kernels", timed ? "time" : NULL, NULL};
	char variable[64];
	const char *const env[] = {variable, NULL};
	const struct process_spec spec = {
		.argv = argv, .env = kernels ? env : NULL, .cpu_numa = -1, .stop = stop};
	struct error ignored = {0};
	char *out = NULL;
	size_t size = 0;
	int code = 0;
	bool printed;

	snprintf(variable, sizeof(variable), BLAS_KERNELS_VARIABLE "=%.31s", kernels ? kernels : "");
	*t = (struct trial){0};
	printed = !process_run(&spec, LIMIT_MS, OUTPUT_MOST, &out, &size, &code, &ignored) && !code && out &&
		  sscanf(out, "%31s %lf %4095[^\n]", t->name, &t->rate, t->library) >= 2;
	free(out);
	return printed && (!timed || t->rate > 0);
}

struct candidate {
	const char *name;
	double rate;
};

/* The fastest kernel set of the widest vectors that this CPU supports; NULL: every trial failed. */
static const char *fastest(unsigned has, const volatile sig_atomic_t *stop, double *rate)
{
	const unsigned bits = blas_kernels_bits_most(has);
	struct candidate found[CANDIDATES];
	unsigned count = 0;
	double most = 0;

	for (const struct blas_kernels *k = blas_kernels; k->name && count < CANDIDATES; k++) {
		struct trial t;

		if (k->bits < bits || !blas_kernels_fit(k, has))
			continue;
		/* a library without this kernel set silently uses another */
		if (!run_trial(&t, k->name, true, stop) || strcasecmp(t.name, k->name))
			continue;
		found[count].rate = t.rate;
		found[count].name = k->name;
		if (found[count++].rate > most)
			most = found[count - 1].rate;
	}
	for (unsigned i = 0; i < count; i++)
		if (found[i].rate >= ALIKE * most) {
			*rate = found[i].rate;
			return found[i].name;
		}
	return NULL;
}

static void use(struct cpu_kernels *out, const char *name)
{
	text_copy(out->used, sizeof(out->used), name);
	setenv(BLAS_KERNELS_VARIABLE, name, 1);
}

/* Compares twice with the library's own choice, because other work on the machine may disturb one trial. */
static void compare(struct cpu_kernels *out, unsigned has, const volatile sig_atomic_t *stop)
{
	struct trial own[2], other;
	double rate, gain;
	const char *best;

	out->measured = true;
	if (!run_trial(&own[0], NULL, true, stop))
		return;
	best = fastest(has, stop, &rate);
	if (!best || rate < CPU_KERNELS_GAIN * own[0].rate)
		return;
	if (!run_trial(&own[1], NULL, true, stop) || !run_trial(&other, best, true, stop) ||
	    other.rate < CPU_KERNELS_GAIN * own[1].rate)
		return;
	gain = rate / own[0].rate;
	out->gain = other.rate / own[1].rate < gain ? other.rate / own[1].rate : gain;
	use(out, best);
}

/* Uses the kernel set of an earlier part of the work, if this CPU supports it. */
static bool use_kept(struct cpu_kernels *out, const char *kept, unsigned has)
{
	for (const struct blas_kernels *k = blas_kernels; k->name && kept; k++)
		if (!strcasecmp(k->name, kept) && blas_kernels_fit(k, has)) {
			use(out, k->name);
			return true;
		}
	return false;
}

/* Uses what an earlier process found for this library, if it is faster and this CPU supports it. */
static bool use_cached(struct cpu_kernels *out, const struct trial *own, unsigned has,
		       const struct cpu_kernels_memory *memory)
{
	char name[32];
	double gain = 0;

	if (!memory || !memory->find(memory->arg, own->library, own->name, name, &gain) ||
	    gain < CPU_KERNELS_GAIN || !use_kept(out, name, has))
		return false;
	out->cached = true;
	out->gain = gain;
	return true;
}

/* Chooses by time: now, or as an earlier process did. */
static void choose(struct cpu_kernels *out, const struct trial *own, unsigned has,
		   const struct cpu_kernels_memory *memory, const volatile sig_atomic_t *stop)
{
	if (use_cached(out, own, has, memory))
		return;
	compare(out, has, stop);
	if (memory && out->gain > 0)
		memory->keep(memory->arg, own->library, own->name, out->used, out->gain);
}

void cpu_kernels_settle(struct cpu_kernels *out, const char *kept, const struct cpu_kernels_memory *memory,
			const volatile sig_atomic_t *stop)
{
	const uint64_t began = clock_now_ns(clock_monotonic());
	const unsigned has = blas_cpu_has();
	struct trial own;

	*out = (struct cpu_kernels){0};
	if (getenv(BLAS_KERNELS_VARIABLE) || use_kept(out, kept, has))
		return;
	if (!run_trial(&own, NULL, false, stop))
		own.name[0] = '\0';
	text_copy(out->chosen, sizeof(out->chosen), own.name);
	text_copy(out->used, sizeof(out->used), out->chosen);
	if (!(kept && *kept) && blas_kernels_bits(out->chosen) &&
	    blas_kernels_bits(out->chosen) < blas_kernels_bits_most(has))
		choose(out, &own, has, memory, stop);
	out->took_s = (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
}

void cpu_kernels_text(const struct cpu_kernels *k, char *out, size_t size)
{
	*out = '\0';
	if (k->cached)
		snprintf(
			out, size,
			"OpenBLAS selected its %s kernels for this CPU; an earlier run found %s x %.1f as fast here (" BLAS_KERNELS_VARIABLE
			"=%s, from the cache; --no-cache times them again)",
			k->chosen, k->used, k->gain, k->used);
	else if (k->gain > 0)
		snprintf(
			out, size,
			"OpenBLAS selected its %s kernels for this CPU; %s is x %.1f as fast here and is used (" BLAS_KERNELS_VARIABLE
			"=%s; timed in %.1f s)",
			k->chosen, k->used, k->gain, k->used, k->took_s);
}
