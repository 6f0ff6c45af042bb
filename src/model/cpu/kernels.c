/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpu/kernels.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/cpu_pool.h"
#include "core/process.h"
#include "core/text.h"
#include "vendor/blas.h"
#include "vendor/blas_kernels.h"

enum {
	SIZE = 256,	/* of the matrices: past the first cache, below a millisecond */
	TIMES_MOST = 8, /* products of one look */
	TIMES_LEAST = 2,
	CHECKED = 97,	  /* each so many-th element is held against what is right */
	LIMIT_MS = 30000, /* of a process that looks */
	CANDIDATES = 8
};
#define LOOK_NS 40000000u /* enough of timing for one look */
#define ALIKE                                                                                                \
	0.95 /* of the fastest: the first in the table is taken, so that a repetition takes the same         \
	      */

/* ---- the process that looks ---- */

struct look {
	struct blas blas;
	float *a, *b, *c; /* c: one a thread */
};

static void multiply(void *arg, unsigned thread)
{
	const struct look *l = arg;

	blas_sgemm(&l->blas, CblasNoTrans, CblasTrans, SIZE, SIZE, SIZE, 1, l->a, SIZE, l->b, SIZE, 0,
		   l->c + (size_t)thread * SIZE * SIZE, SIZE);
}

/* Small whole numbers, so that every sum is exact. */
static void fill(struct look *l)
{
	for (size_t i = 0; i < SIZE * SIZE; i++) {
		l->a[i] = (float)(i % 7) - 3;
		l->b[i] = (float)(i % 5) - 2;
	}
}

static bool is_right(const struct look *l, unsigned threads)
{
	for (size_t i = 0; i < (size_t)threads * SIZE * SIZE; i += CHECKED) {
		size_t row = i / SIZE % SIZE, column = i % SIZE;
		float sum = 0;

		for (size_t k = 0; k < SIZE; k++)
			sum += l->a[row * SIZE + k] * l->b[column * SIZE + k];
		if (!(l->c[i] == sum)) /* NaN as well */
			return false;
	}
	return true;
}

/* FLOP a second of all threads at once; 0: what came of it is wrong. */
static double rate_of(struct look *l, struct cpu_pool *pool)
{
	const unsigned threads = cpu_pool_count(pool);
	uint64_t least = UINT64_MAX, all = 0;

	cpu_pool_run(pool, multiply, l); /* the first maps its memory */
	for (unsigned i = 0; i < TIMES_MOST && (i < TIMES_LEAST || all < LOOK_NS); i++) {
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
	struct look l = {0};
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
	printf("%s %.6e\n", l.blas.get_corename(), rate);
	code = fflush(stdout) ? 2 : 0;
out:
	cpu_pool_destroy(&pool);
	free(l.a);
	free(l.b);
	free(l.c);
	lib_fact_release(&fact);
	return code;
}

/* ---- who asks it ---- */

/* Under this choice of kernels, NULL: the library's own. False: it told nothing, crashed or was wrong. */
static bool ask(const char *kernels, bool timed, const volatile sig_atomic_t *stop, char name[32],
		double *rate)
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
	bool told;

	snprintf(variable, sizeof(variable), BLAS_KERNELS_VARIABLE "=%.31s", kernels ? kernels : "");
	told = !process_run(&spec, LIMIT_MS, 256, &out, &size, &code, &ignored) && !code && out &&
	       sscanf(out, "%31s %lf", name, rate) == 2;
	free(out);
	return told && (!timed || *rate > 0);
}

struct candidate {
	const char *name;
	double rate;
};

/* The fastest of those that are as wide as this CPU allows; NULL: none told anything. */
static const char *fastest(unsigned has, const volatile sig_atomic_t *stop, double *rate)
{
	const unsigned bits = blas_kernels_bits_most(has);
	struct candidate found[CANDIDATES];
	unsigned count = 0;
	double most = 0;

	for (const struct blas_kernels *k = blas_kernels; k->name && count < CANDIDATES; k++) {
		char name[32];

		if (k->bits < bits || !blas_kernels_fit(k, has))
			continue;
		/* A library that does not have them takes others in silence. */
		if (!ask(k->name, true, stop, name, &found[count].rate) || strcasecmp(name, k->name))
			continue;
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

/* Twice, each beside the library's own choice: what else the machine does may disturb one look. */
static void compare(struct cpu_kernels *out, unsigned has, const volatile sig_atomic_t *stop)
{
	double own[2], other[2], gain;
	char name[32];
	const char *best;

	out->measured = true;
	if (!ask(NULL, true, stop, name, &own[0]))
		return;
	best = fastest(has, stop, &other[0]);
	if (!best || other[0] < CPU_KERNELS_GAIN * own[0])
		return;
	if (!ask(NULL, true, stop, name, &own[1]) || !ask(best, true, stop, name, &other[1]) ||
	    other[1] < CPU_KERNELS_GAIN * own[1])
		return;
	gain = other[0] / own[0];
	out->gain = other[1] / own[1] < gain ? other[1] / own[1] : gain;
	use(out, best);
}

/* What the earlier part of the work used, where this CPU runs it. */
static bool use_kept(struct cpu_kernels *out, const char *kept, unsigned has)
{
	for (const struct blas_kernels *k = blas_kernels; k->name && kept; k++)
		if (!strcasecmp(k->name, kept) && blas_kernels_fit(k, has)) {
			use(out, k->name);
			return true;
		}
	return false;
}

void cpu_kernels_settle(struct cpu_kernels *out, const char *kept, const volatile sig_atomic_t *stop)
{
	const uint64_t began = clock_now_ns(clock_monotonic());
	const unsigned has = blas_cpu_has();
	double rate;

	*out = (struct cpu_kernels){0};
	if (getenv(BLAS_KERNELS_VARIABLE) || use_kept(out, kept, has))
		return;
	if (!ask(NULL, false, stop, out->chosen, &rate))
		out->chosen[0] = '\0';
	text_copy(out->used, sizeof(out->used), out->chosen);
	if (!(kept && *kept) && blas_kernels_bits(out->chosen) &&
	    blas_kernels_bits(out->chosen) < blas_kernels_bits_most(has))
		compare(out, has, stop);
	out->took_s = (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
}

void cpu_kernels_text(const struct cpu_kernels *k, char *out, size_t size)
{
	*out = '\0';
	if (k->gain > 0)
		snprintf(out, size,
			 "OpenBLAS chose its %s kernels for this CPU; %s is x %.1f as fast here and is used "
			 "(" BLAS_KERNELS_VARIABLE "=%s; timed in %.1f s)",
			 k->chosen, k->used, k->gain, k->used, k->took_s);
}
