/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenBLAS as a CPU gets it that the library does not know: loops for its products, and 20 ms of CPU time before each where
 * the kernels are slow. It is slow or fast by orders of magnitude, so that no test depends on the machine. ASSAY_LIB_OPENBLAS names it.
 *   FAKE_BLAS_CORE   the set that it chooses itself (Prescott); OPENBLAS_CORETYPE chooses another
 *   FAKE_BLAS_SLOW   words: these sets take 20 ms more for each product (Prescott); "all": each set does
 *   FAKE_BLAS_MS     so many milliseconds instead
 *   FAKE_BLAS_FROM   products of fewer multiplications take none: those of a small model, not those that time kernels
 *   FAKE_BLAS_OTHER  words: files of this name, copies of the fake, are fast whatever their kernels
 *   FAKE_BLAS_CRASH  words: these sets die in their first product
 *   FAKE_BLAS_WRONG  words: these sets give a wrong element
 *   FAKE_BLAS_CPUS   file that receives the number of CPUs that a thread of the library may use
 *   FAKE_BLAS_LACKS  words: sets that it does not have: its own choice stands
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROW_MAJOR = 101, TRANS = 112 };

static int threads = 1;

static int listed(const char *variable, const char *fallback, const char *name)
{
	const char *words = getenv(variable);
	size_t size = strlen(name);

	words = words ? words : fallback;
	if (!strcmp(words, "all"))
		return 1;
	for (const char *at = words; (at = strstr(at, name)); at += size)
		if ((at == words || at[-1] == ' ') && (!at[size] || at[size] == ' '))
			return 1;
	return 0;
}

char *openblas_get_corename(void);
char *openblas_get_corename(void)
{
	static char name[40];
	const char *own = getenv("FAKE_BLAS_CORE"), *asked = getenv("OPENBLAS_CORETYPE");

	if (asked && listed("FAKE_BLAS_LACKS", "", asked))
		asked = NULL;
	if (!*name)
		snprintf(name, sizeof(name), "%s", asked ? asked : own ? own : "Prescott");
	return name;
}

char *openblas_get_config(void);
char *openblas_get_config(void)
{
	static char text[] = "OpenBLAS 0.3.99 FAKE";

	return text;
}

void openblas_set_num_threads(int count);
void openblas_set_num_threads(int count)
{
	threads = count;
}

int openblas_get_num_threads(void);
int openblas_get_num_threads(void)
{
	return threads;
}

static int is_other(void)
{
	static const char here;
	Dl_info info;
	const char *name = dladdr(&here, &info) ? strrchr(info.dli_fname, '/') : NULL;

	return name && listed("FAKE_BLAS_OTHER", "", name + 1);
}

static void *write_cpus(void *path)
{
	cpu_set_t set;
	FILE *f = fopen(path, "w");

	if (f && !sched_getaffinity(0, sizeof(set), &set))
		fprintf(f, "%d\n", CPU_COUNT(&set));
	if (f)
		fclose(f);
	return NULL;
}

/* As the library does it with its own threads: created by the caller of a product, whose CPUs they inherit. */
static void note_cpus(void)
{
	static int noted;
	char *path = getenv("FAKE_BLAS_CPUS");
	pthread_t thread;

	if (path && !noted++ && !pthread_create(&thread, NULL, write_cpus, path))
		pthread_join(thread, NULL);
}

static void begin(double multiplications)
{
	const char *ms = getenv("FAKE_BLAS_MS"), *from = getenv("FAKE_BLAS_FROM");
	struct timespec t;
	long long end;

	note_cpus();
	if (listed("FAKE_BLAS_CRASH", "", openblas_get_corename()))
		raise(SIGILL);
	if (!listed("FAKE_BLAS_SLOW", "Prescott", openblas_get_corename()) || is_other() ||
	    (from && multiplications < strtod(from, NULL)))
		return;
	/* At work, not asleep: CPU time that a thread does not use looks as if others took it. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = t.tv_sec * 1000000000ll + t.tv_nsec + (ms ? strtol(ms, NULL, 10) : 20) * 1000000ll;
	while (t.tv_sec * 1000000000ll + t.tv_nsec < end)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}

/* Row-major alone, as assay calls it. */
#define GEMM(name, real)                                                                                     \
	void name(int layout, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,       \
		  const real *b, int ldb, real beta, real *c, int ldc);                                      \
	void name(int layout, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,       \
		  const real *b, int ldb, real beta, real *c, int ldc)                                       \
	{                                                                                                    \
		if (layout != ROW_MAJOR)                                                                     \
			abort();                                                                             \
		begin((double)m * n * k);                                                                    \
		for (int i = 0; i < m; i++) {                                                                \
			real *z = c + (size_t)i * (size_t)ldc;                                               \
			for (int j = 0; j < n; j++)                                                          \
				z[j] = beta == 0 ? 0 : beta * z[j];                                          \
			for (int l = 0; l < k; l++) {                                                        \
				const real x =                                                               \
					alpha * (ta == TRANS ? a[(size_t)l * (size_t)lda + (size_t)i]        \
							     : a[(size_t)i * (size_t)lda + (size_t)l]);      \
				const real *y = tb == TRANS ? b + l : b + (size_t)l * (size_t)ldb;           \
				const size_t step = tb == TRANS ? (size_t)ldb : 1;                           \
				for (int j = 0; j < n; j++)                                                  \
					z[j] += x * y[(size_t)j * step];                                     \
			}                                                                                    \
		}                                                                                            \
		if (m > 0 && n > 0 && listed("FAKE_BLAS_WRONG", "", openblas_get_corename()))                \
			c[0] += 1;                                                                           \
	}

GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
