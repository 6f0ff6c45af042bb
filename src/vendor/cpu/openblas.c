/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include "vendor/cpu/openblas.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct blas, field), LIB_NEED_##need},
	BLAS_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libopenblas.so.0", "libopenblas.so", NULL};

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH .." gives 321. */
static int version(const void *table)
{
	const struct blas *blas = table;
	char *(*config)(void) = blas->get_config	 ? blas->get_config
				: blas->wheel_get_config ? blas->wheel_get_config
							 : blas->wide_get_config;
	const char *text = config ? config() : NULL;
	int major, minor, patch;

	if (!text || sscanf(text, "OpenBLAS %d.%d.%d", &major, &minor, &patch) != 3)
		return 0;
	return major * 10000 + minor * 100 + patch;
}

/* Name of the first symbol that no set of names has. */
static const char *missing_symbol(const struct blas *b)
{
	if (!b->set_num_threads)
		return "openblas_set_num_threads";
	return b->sgemm || b->wide_sgemm ? "cblas_dgemm" : "cblas_sgemm";
}

const struct lib_spec openblas_lib = {
	.name = "openblas",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct blas),
	.version = version,
};

static void (*blis_set_threads)(int64_t count);

static void blis_threads(int count)
{
	blis_set_threads(count);
}

/* Stores the thread functions of MKL or BLIS under OpenBLAS' name. */
static void settle_threads(struct blas *b)
{
	if (b->set_num_threads || !b->sgemm)
		return;
	if (b->mkl_set_num_threads) {
		b->set_num_threads = b->mkl_set_num_threads;
	} else if (b->blis_set_num_threads) {
		blis_set_threads = b->blis_set_num_threads;
		b->set_num_threads = blis_threads;
	}
}

enum status blas_settle(struct blas *b, const struct lib_fact *fact, struct error *err)
{
	settle_threads(b);
	if (!b->sgemm && b->wheel_sgemm) {
		b->sgemm = b->wheel_sgemm;
		b->dgemm = b->wheel_dgemm;
		b->set_num_threads = b->wheel_set_num_threads;
		b->get_config = b->wheel_get_config;
		b->get_corename = b->wheel_get_corename;
	} else if (!b->sgemm && b->wide_sgemm) {
		b->set_num_threads = b->wide_set_num_threads;
		b->get_config = b->wide_get_config;
		b->get_corename = b->wide_get_corename;
	} else if (b->sgemm && b->dgemm && b->get_config && strstr(b->get_config(), "USE64BITINT")) {
		/* Plain names with 64-bit integers: the same functions with other parameters. */
		memcpy(&b->wide_sgemm, &b->sgemm, sizeof(b->sgemm));
		memcpy(&b->wide_dgemm, &b->dgemm, sizeof(b->dgemm));
		b->sgemm = NULL;
		b->dgemm = NULL;
	}
	if (b->set_num_threads && ((b->sgemm && b->dgemm) || (!b->sgemm && b->wide_sgemm && b->wide_dgemm)))
		return STATUS_OK;
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
			       "library openblas: no symbol %s, nor its name in Python's wheels, in %s",
			       missing_symbol(b), fact && fact->path ? fact->path : "OpenBLAS");
}

enum status blas_open_alone(struct blas *b, struct lib_fact *fact, struct error *err)
{
	static const char variable[] = "OPENBLAS_NUM_THREADS"; /* read once, when the library is loaded */
	const char *set = getenv(variable);
	char *was = set ? strdup(set) : NULL;
	enum status st;

	setenv(variable, "1", 1);
	st = lib_open(b, &openblas_lib, NULL, fact, err);
	if (was)
		setenv(variable, was, 1);
	else
		unsetenv(variable);
	free(was);
	if (!st)
		st = blas_settle(b, fact, err);
	if (!st)
		b->set_num_threads(1);
	return st;
}

enum status blas_check_buffers(unsigned threads, struct error *err)
{
	const size_t size = (size_t)BLAS_BUFFER_MB << 20;
	void **last = NULL;
	enum status st = STATUS_OK;

	/* Maps one buffer at a time, as the library does. A kernel may decide differently about all of them
	 * at once. */
	for (unsigned i = 0; i < threads && !st; i++) {
		void **map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED) {
			st = error_set_cause(
				err, STATUS_NO_RESOURCE, CAUSE_LIMIT_LOW,
				"OpenBLAS needs %d MB of address space for each of %u threads, but has room "
				"for only %u: raise the limit (ulimit -v), or use fewer CPUs (taskset)",
				BLAS_BUFFER_MB, threads, i);
		} else {
			*map = last;
			last = map;
		}
	}
	while (last) {
		void *map = last;

		last = *last;
		munmap(map, size);
	}
	return st;
}

void blas_sgemm(const struct blas *b, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
		float alpha, const float *x, int ldx, const float *y, int ldy, float beta, float *z, int ldz)
{
	if (b->sgemm)
		b->sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, x, ldx, y, ldy, beta, z, ldz);
	else
		b->wide_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, x, ldx, y, ldy, beta, z, ldz);
}

void blas_dgemm(const struct blas *b, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
		double alpha, const double *x, int ldx, const double *y, int ldy, double beta, double *z,
		int ldz)
{
	if (b->dgemm)
		b->dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, x, ldx, y, ldy, beta, z, ldz);
	else
		b->wide_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, x, ldx, y, ldy, beta, z, ldz);
}
