/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/lib.h"
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vendor/cpu/openblas.h"
#include "vendor/cpu/openblas_kernels.h"
#include "vendor/cuda.h"
#include "vendor/lib_path.h"
#include "vendor/nvml.h"

#define FAKE FAKE_DIR "/libnvidia-ml.so.1"

struct one {
	nvmlReturn_t (*init)(void);
	void (*absent)(void);
};

static const char *const sonames[] = {"libnvidia-ml.so.1", NULL};
static const char *const no_sonames[] = {"libassay-no-such.so.7", "libassay-no-such.so.6", NULL};

static const struct lib_symbol optional[] = {
	{"nvmlInit_v2", offsetof(struct one, init), LIB_NEED_REQUIRED},
	{"nvmlNoSuchFunction", offsetof(struct one, absent), LIB_NEED_OPTIONAL},
};
static const struct lib_symbol required[] = {
	{"nvmlInit_v2", offsetof(struct one, init), LIB_NEED_REQUIRED},
	{"nvmlNoSuchFunction", offsetof(struct one, absent), LIB_NEED_REQUIRED},
};

static struct lib_spec spec_of(const char *const *names, const struct lib_symbol *rows)
{
	return (struct lib_spec){.name = "one",
				 .sonames = names,
				 .symbols = rows,
				 .symbol_count = 2,
				 .table_size = sizeof(struct one)};
}

static void test_vendor_lib__a_named_file_is_opened_and_named(void **state)
{
	struct lib_spec spec = spec_of(sonames, optional);
	struct lib_fact fact;
	struct error err = {0};
	struct one table;

	(void)state;
	assert_int_equal(lib_open(&table, &spec, FAKE, &fact, &err), STATUS_OK);
	assert_non_null(table.init);
	assert_null(table.absent);
	assert_non_null(strstr(fact.path, "libnvidia-ml.so.1"));
	assert_int_equal(err.status, STATUS_OK);
	lib_fact_release(&fact);
}

static void test_vendor_lib__a_named_folder_is_searched(void **state)
{
	struct lib_spec spec = spec_of(sonames, optional);
	struct lib_fact fact;
	struct one table;

	(void)state;
	assert_int_equal(lib_open(&table, &spec, FAKE_DIR, &fact, NULL), STATUS_OK);
	lib_fact_release(&fact);
}

static void test_vendor_lib__the_environment_names_a_file(void **state)
{
	struct lib_spec spec = spec_of(no_sonames, optional);
	struct one table;

	(void)state;
	setenv("ASSAY_LIB_ONE", FAKE, 1);
	assert_int_equal(lib_open(&table, &spec, NULL, NULL, NULL), STATUS_OK);
	unsetenv("ASSAY_LIB_ONE");
}

static void test_vendor_lib__a_missing_required_symbol_leaves_nothing(void **state)
{
	struct lib_spec spec = spec_of(sonames, required);
	struct lib_fact fact;
	struct error err = {0};
	struct one table;

	(void)state;
	assert_int_equal(lib_open(&table, &spec, FAKE, &fact, &err), STATUS_UNAVAILABLE);
	assert_null(table.init);
	assert_int_equal(fact.cause, CAUSE_LIBRARY_MISSING);
	assert_int_equal(strncmp(fact.missing, "no symbol nvmlNoSuchFunction in ", 32),
			 0); /* before a long path */
	assert_non_null(strstr(err.text, "nvmlNoSuchFunction"));
	lib_fact_release(&fact);
}

static void test_vendor_lib__absent_names_the_newest_soname_and_the_places(void **state)
{
	struct lib_spec spec = spec_of(no_sonames, optional);
	struct lib_fact fact;
	struct error err = {0};
	struct one table;

	(void)state;
	assert_int_equal(lib_open(&table, &spec, NULL, &fact, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(fact.missing, "libassay-no-such.so.7"));
	assert_non_null(strstr(fact.missing, "/usr/local/cuda"));
	lib_fact_release(&fact);
}

/* The folder of the program itself is not searched, so the message must not name it as a place. */
static void test_vendor_lib__an_absent_module_names_the_folders_searched(void **state)
{
	struct lib_spec spec = spec_of(no_sonames, optional);
	struct error err = {0};
	struct one table;

	(void)state;
	spec.module = true;
	assert_int_equal(lib_open(&table, &spec, NULL, NULL, &err), STATUS_UNAVAILABLE);
	assert_non_null(strstr(err.text, "libassay-no-such.so.7 is not in "));
	assert_non_null(strstr(err.text, "(its lib, ../lib/assay,"));
	assert_non_null(strstr(err.text, "set ASSAY_MODULE_DIR"));
}

static void test_vendor_lib__a_named_path_is_obeyed_or_refused(void **state)
{
	struct lib_spec spec = spec_of(sonames, optional);
	struct lib_fact fact;
	struct one table;

	(void)state;
	assert_int_equal(lib_open(&table, &spec, "/nonexistent/lib.so", &fact, NULL), STATUS_UNAVAILABLE);
	assert_non_null(strstr(fact.missing, "/nonexistent/lib.so"));
	lib_fact_release(&fact);
}

static void test_vendor_lib__a_broken_file_says_what_the_loader_said(void **state)
{
	struct lib_spec spec = spec_of(sonames, optional);
	char path[] = "/tmp/assay-lib-XXXXXX";
	struct lib_fact fact;
	struct one table;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "not a library", 13), 13);
	close(fd);
	assert_int_equal(lib_open(&table, &spec, path, &fact, NULL), STATUS_UNAVAILABLE);
	assert_non_null(strstr(fact.missing, path));
	assert_true(strstr(fact.missing, path) > fact.missing); /* the reason comes first */
	lib_fact_release(&fact);
	unlink(path);
}

static bool has_dir(const struct lib_dirs *d, const char *path)
{
	for (size_t i = 0; i < d->count; i++) {
		if (!strcmp(d->dir[i], path))
			return true;
	}
	return false;
}

static void make_dirs(const char *path)
{
	char part[512];

	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		mkdir(part, 0755);
	}
	mkdir(path, 0755);
}

/* A folder of its own with: a Python on PATH behind a link, a virtual environment, a pyenv shim, a user site.
 */
static void test_vendor_lib__wheels_are_found_without_running_python(void **state)
{
	char root[] = "/tmp/assay-wheel-XXXXXX", path[512], line[1024], old[4096];
	struct lib_dirs d;
	FILE *f;
	static const char *const below[] = {
		"real/bin",
		"link/bin",
		"real/lib/python3.11/site-packages/nvidia/cu13/lib",
		"real/lib/python3.11/site-packages/nvidia/cudnn/lib",
		"env/lib/python3.12/site-packages/nvidia/cu13/lib",
		"home/.local/lib/python3.9/site-packages/nvidia/cu13/lib",
		"pyenv/shims",
		"pyenv/versions/3.13.1/lib/python3.13/site-packages/nvidia/cu13/lib",
		"data/assay/wheels/nvidia/cu13/lib",
	};

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, below[i]);
		make_dirs(path);
	}
	snprintf(path, sizeof(path), "%s/real/bin/python3", root);
	f = fopen(path, "w");
	fclose(f);
	chmod(path, 0755);
	snprintf(line, sizeof(line), "%s/link/bin/python3", root);
	assert_int_equal(symlink(path, line), 0);
	snprintf(path, sizeof(path), "%s/pyenv/shims/python3", root);
	f = fopen(path, "w");
	fclose(f);
	chmod(path, 0755);
	snprintf(path, sizeof(path), "%s/pyenv/version", root);
	f = fopen(path, "w");
	fputs("3.13.1\n", f);
	fclose(f);

	snprintf(old, sizeof(old), "%s", getenv("PATH"));
	snprintf(line, sizeof(line), "%s/link/bin:%s/pyenv/shims", root, root);
	setenv("PATH", line, 1);
	snprintf(line, sizeof(line), "%s/env", root);
	setenv("VIRTUAL_ENV", line, 1);
	snprintf(line, sizeof(line), "%s/home", root);
	setenv("HOME", line, 1);
	snprintf(line, sizeof(line), "%s/data", root);
	setenv("XDG_DATA_HOME", line, 1);
	unsetenv("PYENV_VERSION");
	lib_dirs_find(&d, "nvidia/cu13/lib");
	setenv("PATH", old, 1);
	for (size_t i = 2; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, below[i]);
		if (strstr(path, "/lib") && !has_dir(&d, path))
			fail_msg("%s was not found", path);
	}
	lib_dirs_release(&d);
	assert_int_equal(d.count, 0);
	snprintf(line, sizeof(line), "rm -r %s", root);
	assert_int_equal(system(line), 0);
}

/* numpy's OpenBLAS: a hash in its name, in a folder that is named by either of two words; oneDNN's in the
 * prefix. */
static void test_vendor_lib__wheels_with_a_hash_are_found_by_pattern(void **state)
{
	static const char *const pattern[] = {"libassay_pattern*.so", NULL}, *const plain[] = {
										     "libassay_plain.so.1",
										     NULL};
	static const char *const places[] = {
		"lib/python3.12/site-packages/scipy.libs/libassay_pattern64_-32a4b2a6.so",
		"lib/libassay_plain.so.1"};
	char root[] = "/tmp/assay-hash-XXXXXX", path[512];
	struct lib_fact fact;
	struct one table;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/lib/python3.12/site-packages/scipy.libs", root);
	make_dirs(path);
	for (unsigned i = 0; i < 2; i++) {
		struct lib_spec spec = spec_of(i ? plain : pattern, optional);

		spec.wheel = i ? LIB_WHEEL_PREFIX : "{numpy.libs,scipy.libs}";
		snprintf(path, sizeof(path), "%s/%s", root, places[i]);
		setenv("VIRTUAL_ENV", root, 1);
		assert_int_equal(lib_open(&table, &spec, NULL, &fact, NULL), STATUS_UNAVAILABLE);
		lib_fact_release(&fact);
		assert_int_equal(symlink(FAKE, path), 0);
		assert_int_equal(lib_open(&table, &spec, NULL, &fact, NULL), STATUS_OK);
		assert_non_null(table.init);
		lib_fact_release(&fact);
		unsetenv("VIRTUAL_ENV");
		assert_int_equal(lib_open(&table, &spec, NULL, &fact, NULL), STATUS_UNAVAILABLE);
		lib_fact_release(&fact);
	}
	snprintf(path, sizeof(path), "rm -r %s", root);
	assert_int_equal(system(path), 0);
}

static int called; /* 1: 32-bit integers, 2: 64-bit */

static void narrow(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
		   float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c,
		   int ldc)
{
	(void)layout, (void)ta, (void)tb, (void)alpha, (void)a, (void)b, (void)beta, (void)c;
	called = m == 2 && n == 3 && k == 4 && lda == 5 && ldb == 6 && ldc == 7 ? 1 : 0;
}

static void wide(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k,
		 float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
		 int64_t ldc)
{
	(void)layout, (void)ta, (void)tb, (void)alpha, (void)a, (void)b, (void)beta, (void)c;
	called = m == 2 && n == 3 && k == 4 && lda == 5 && ldb == 6 && ldc == 7 ? 2 : 0;
}

static void wide_twice(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n,
		       int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
		       double beta, double *c, int64_t ldc)
{
	(void)layout, (void)ta, (void)tb, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)lda,
		(void)ldb, (void)ldc;
	called = m == 2 && n == 3 && k == 4 ? 3 : 0;
}

static void narrow_twice(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
			 double alpha, const double *a, int lda, const double *b, int ldb, double beta,
			 double *c, int ldc)
{
	(void)layout, (void)ta, (void)tb, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)lda,
		(void)ldb, (void)ldc;
	called = m == 2 && n == 3 && k == 4 ? 4 : 0;
}

static void threads(int count)
{
	(void)count;
}

static char *config(void)
{
	static char text[] = "OpenBLAS 0.3.29 USE64BITINT DYNAMIC_ARCH";

	return text;
}

/* Whatever a library calls its products, they are called with integers of its width. */
static void test_vendor_lib__products_are_called_by_their_integers(void **state)
{
	const struct blas narrow_names = {
		.wheel_sgemm = narrow, .wheel_dgemm = narrow_twice, .wheel_set_num_threads = threads};
	const struct blas wide_names = {
		.wide_sgemm = wide, .wide_dgemm = wide_twice, .wide_set_num_threads = threads};
	struct blas plain_wide = {.set_num_threads = threads, .get_config = config};
	void (*const wide_functions[])(void) = {(void (*)(void))wide, (void (*)(void))wide_twice};
	const struct blas half = {.sgemm = narrow, .set_num_threads = threads};
	struct blas b[3];
	struct error err = {0};

	(void)state;
	memcpy(&plain_wide.sgemm, &wide_functions[0], sizeof(plain_wide.sgemm));
	memcpy(&plain_wide.dgemm, &wide_functions[1], sizeof(plain_wide.dgemm));
	b[0] = narrow_names, b[1] = wide_names, b[2] = plain_wide;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(blas_settle(&b[i], NULL, &err), STATUS_OK);
		assert_true(b[i].set_num_threads == threads);
		blas_sgemm(&b[i], CblasNoTrans, CblasTrans, 2, 3, 4, 1, NULL, 5, NULL, 6, 0, NULL, 7);
		assert_int_equal(called, i ? 2 : 1);
		blas_dgemm(&b[i], CblasNoTrans, CblasTrans, 2, 3, 4, 1, NULL, 5, NULL, 6, 0, NULL, 7);
		assert_int_equal(called, i ? 3 : 4);
	}
	b[0] = half;
	assert_int_equal(blas_settle(&b[0], NULL, &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
}

static int64_t wide_count;

static void wide_threads(int64_t count)
{
	wide_count = count;
}

/* MKL and BLIS have the products under their plain names, and threads under their own. */
static void test_vendor_lib__other_libraries_set_threads_their_own_way(void **state)
{
	struct blas mkl = {.sgemm = narrow, .dgemm = narrow_twice, .mkl_set_num_threads = threads};
	struct blas blis = {.sgemm = narrow, .dgemm = narrow_twice, .blis_set_num_threads = wide_threads};
	struct blas none = {.sgemm = narrow, .dgemm = narrow_twice};
	struct error err = {0};

	(void)state;
	assert_int_equal(blas_settle(&mkl, NULL, &err), STATUS_OK);
	assert_true(mkl.set_num_threads == threads);
	assert_int_equal(blas_settle(&blis, NULL, &err), STATUS_OK);
	blis.set_num_threads(3);
	assert_int_equal(wide_count, 3);
	assert_int_equal(blas_settle(&none, NULL, &err), STATUS_UNAVAILABLE);
}

/* The sets that a CPU can run, and the width of a set by its name. */
static void test_vendor_lib__kernels_fit_a_cpu_by_its_instructions(void **state)
{
	const unsigned avx2 = BLAS_NEED_AVX2 | BLAS_NEED_FMA, avx512 = avx2 | BLAS_NEED_AVX512;
	unsigned fit = 0;

	(void)state;
	assert_int_equal(blas_kernels_bits("SkylakeX"), 512);
	assert_int_equal(blas_kernels_bits("SKYLAKEX"), 512);
	assert_int_equal(blas_kernels_bits("Haswell"), 256);
	assert_int_equal(blas_kernels_bits("Nehalem"), 128);
	assert_int_equal(blas_kernels_bits("neoversen1"), 0);
	assert_int_equal(blas_kernels_bits(""), 0);
	assert_int_equal(blas_kernels_bits_most(0), 0);
	assert_int_equal(blas_kernels_bits_most(avx2), 256);
	assert_int_equal(blas_kernels_bits_most(avx512), 512);
	for (const struct blas_kernels *k = blas_kernels; k->name; k++)
		fit += (unsigned)blas_kernels_fit(k, avx512);
	assert_int_equal(fit, 3); /* SkylakeX, Haswell, Zen */
}

static void test_vendor_lib__the_drivers_cache_is_left_alone_where_the_user_named_one(void **state)
{
	(void)state;
	unsetenv("CUDA_CACHE_DISABLE");
	setenv("CUDA_CACHE_PATH", "/somewhere", 1);
	cuda_keep_no_cache();
	assert_null(getenv("CUDA_CACHE_DISABLE"));
	unsetenv("CUDA_CACHE_PATH");
	cuda_keep_no_cache();
	assert_string_equal(getenv("CUDA_CACHE_DISABLE"), "1");
	setenv("CUDA_CACHE_DISABLE", "0", 1);
	cuda_keep_no_cache();
	assert_string_equal(getenv("CUDA_CACHE_DISABLE"), "0");
	unsetenv("CUDA_CACHE_DISABLE");
}

static unsigned threads_here(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	assert_non_null(tasks);
	for (struct dirent *e; (e = readdir(tasks));)
		count += *e->d_name != '.';
	closedir(tasks);
	return count;
}

static void test_vendor_lib__openblas_makes_no_threads_where_it_is_opened_alone(void **state)
{
	static const char variable[] = "OPENBLAS_NUM_THREADS";
	unsigned before = threads_here();
	struct error err = {0};
	struct blas blas;

	(void)state;
	setenv(variable, "3", 1);
	if (blas_open_alone(&blas, NULL, &err))
		skip(); /* it is not here */
	assert_int_equal(threads_here(), before);
	assert_string_equal(getenv(variable), "3");
	unsetenv(variable);
}

/* Products would try for ever to map what the limit does not let them. */
static void test_vendor_lib__too_little_address_space_is_told_before_a_product(void **state)
{
	struct error err = {0};
	struct rlimit was, little;

	(void)state;
	assert_int_equal(blas_check_buffers(2, &err), STATUS_OK);
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	little = (struct rlimit){.rlim_cur = 64 << 20, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
	blas_check_buffers(2, &err);
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
	assert_int_equal(err.status, STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_LIMIT_LOW);
	assert_non_null(strstr(err.text, "2 threads, but has room for only 0: raise the limit (ulimit -v)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vendor_lib__openblas_makes_no_threads_where_it_is_opened_alone),
		cmocka_unit_test(test_vendor_lib__too_little_address_space_is_told_before_a_product),
		cmocka_unit_test(test_vendor_lib__a_named_file_is_opened_and_named),
		cmocka_unit_test(test_vendor_lib__a_named_folder_is_searched),
		cmocka_unit_test(test_vendor_lib__the_environment_names_a_file),
		cmocka_unit_test(test_vendor_lib__a_missing_required_symbol_leaves_nothing),
		cmocka_unit_test(test_vendor_lib__absent_names_the_newest_soname_and_the_places),
		cmocka_unit_test(test_vendor_lib__an_absent_module_names_the_folders_searched),
		cmocka_unit_test(test_vendor_lib__a_named_path_is_obeyed_or_refused),
		cmocka_unit_test(test_vendor_lib__a_broken_file_says_what_the_loader_said),
		cmocka_unit_test(test_vendor_lib__the_drivers_cache_is_left_alone_where_the_user_named_one),
		cmocka_unit_test(test_vendor_lib__wheels_with_a_hash_are_found_by_pattern),
		cmocka_unit_test(test_vendor_lib__products_are_called_by_their_integers),
		cmocka_unit_test(test_vendor_lib__other_libraries_set_threads_their_own_way),
		cmocka_unit_test(test_vendor_lib__kernels_fit_a_cpu_by_its_instructions),
		cmocka_unit_test(test_vendor_lib__wheels_are_found_without_running_python),
	};

	return cmocka_run_group_tests_name("vendor_lib", tests, NULL, NULL);
}
