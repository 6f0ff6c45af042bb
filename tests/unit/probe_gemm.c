/* SPDX-License-Identifier: Apache-2.0 */
/* CPU engines of probe gemm on the machine's own libraries; skipped where those are not installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "probe/gemm/host.h"
#include "unit/cpu_bench.h"
#include "vendor/cpu/openblas.h"
#include "vendor/cpu/onednn.h"

extern const struct probe probe_gemm;

static const struct gemm_opts shapes[] = {
	{.m = 64, .n = 48, .k = 80, .batch = 1},
	{.m = 1, .n = 1, .k = 1, .batch = 1},
	{.m = 33, .n = 65, .k = 127, .batch = 3},
	{.m = 129, .n = 17, .k = 31, .batch = 1, .data = GEMM_DATA_ZEROS},
};

static bool have(const struct lib_spec *spec)
{
	void *table = calloc(1, spec->table_size);
	struct lib_fact fact = {0};
	bool yes = !lib_open(table, spec, NULL, &fact, NULL);

	lib_fact_release(&fact);
	free(table);
	return yes;
}

static void run_case(const struct engine *e, const struct gemm_opts *o)
{
	void *s = calloc(1, e->state_size);
	struct gemm *g = s;
	struct result *out = result_create();
	struct error err = {0};
	struct wrong wrong;
	struct cpu_bench b;

	cpu_bench_make(&b);
	b.bench.out = out;
	assert_int_equal(e->prepare(s, &b.bench, o, &err), STATUS_OK);
	assert_int_equal(probe_gemm.verify(s, &wrong, &err), STATUS_OK);
	assert_int_equal(wrong.count, 0);
	assert_int_equal(wrong.checked, wrong.total);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(e->enqueue(s, i, &err), STATUS_OK);
	assert_int_equal(g->written, (1u << g->sets) - 1);
	assert_int_equal(probe_gemm.verify(s, &wrong, &err), STATUS_OK);
	assert_int_equal(wrong.checked, wrong.total);
	assert_true(result_has(out, &gemm_fields[GEMM_FIELD_library]));
	assert_true(result_get(out, &field_threads, 0) == 2);
	e->release(s);
	free(s);
	result_destroy(out);
}

static void run_shapes(const struct engine *e, enum gemm_type type, bool bias)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (unsigned trans = 0; trans < 4; trans++) {
			struct gemm_opts o = shapes[i];

			o.type = type;
			o.ta = trans & 1;
			o.tb = trans >> 1;
			o.bias = bias;
			run_case(e, &o);
		}
}

static void openblas_is_right(void **state)
{
	(void)state;
	if (!have(&openblas_lib))
		skip();
	run_shapes(&gemm_openblas_engine, GEMM_FP32, false);
	run_shapes(&gemm_openblas_engine, GEMM_FP64, false);
}

static void onednn_is_right(void **state)
{
	(void)state;
	if (!have(&onednn_lib) || !(cpu_bench_isa() & 1u << CPU_ISA_avx512_vnni))
		skip();
	run_shapes(&gemm_onednn_engine, GEMM_INT8, false);
	run_shapes(&gemm_onednn_engine, GEMM_INT8, true);
	run_shapes(&gemm_onednn_engine, GEMM_BF16, false); /* emulated where the CPU has no BF16 */
	run_shapes(&gemm_onednn_engine, GEMM_BF16, true);
}

static void onednn_is_right_in_fp32(void **state)
{
	(void)state;
	if (!have(&onednn_lib))
		skip();
	run_shapes(&gemm_onednn_engine, GEMM_FP32, false);
	run_shapes(&gemm_onednn_engine, GEMM_FP32, true);
}

static void wrong_multiply_runs(const struct engine *e, enum gemm_type type)
{
	const struct gemm_opts o = {.type = type, .m = 40, .n = 30, .k = 50, .batch = 1};
	struct gemm_host *h = calloc(1, e->state_size);
	struct error err = {0};
	struct wrong wrong;
	struct cpu_bench b;

	cpu_bench_make(&b);
	assert_int_equal(e->prepare(h, &b.bench, &o, &err), STATUS_OK);
	assert_int_equal(probe_gemm.verify(h, &wrong, &err), STATUS_OK);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(e->enqueue(h, i, &err), STATUS_OK);
	if (type == GEMM_INT8)
		((int32_t *)h->c[2])[12 * 30 + 7] += 1;
	else
		((float *)h->c[2])[12 * 30 + 7] += 1;
	assert_int_equal(probe_gemm.verify(h, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(wrong.count, 1);
	assert_string_equal(wrong.place, "row 12 column 7");
	e->release(h);
	free(h);
}

static void an_element_spoilt_in_timing_is_found(void **state)
{
	(void)state;
	if (!have(&openblas_lib))
		skip();
	wrong_multiply_runs(&gemm_openblas_engine, GEMM_FP32);
	if (have(&onednn_lib) && cpu_bench_isa() & 1u << CPU_ISA_avx512_vnni)
		wrong_multiply_runs(&gemm_onednn_engine, GEMM_INT8);
}

static void a_missing_library_is_unavailable(void **state)
{
	static const struct engine *const engines[] = {&gemm_openblas_engine, &gemm_onednn_engine};
	static const enum gemm_type types[] = {GEMM_FP64, GEMM_INT8};
	static const char *const variables[] = {"ASSAY_LIB_OPENBLAS", "ASSAY_LIB_ONEDNN"};
	static const char *const names[] = {"openblas", "onednn"}, *const shown[] = {"OpenBLAS", "oneDNN"};
	static const char *const sonames[] = {"libopenblas.so.0", "libdnnl.so.3"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct gemm_opts o = {.type = types[i], .m = 4, .n = 4, .k = 4, .batch = 1};
		void *s = calloc(1, engines[i]->state_size);
		struct error err = {0};
		struct cpu_bench b;

		cpu_bench_make(&b);
		setenv(variables[i], "/nowhere/lib.so", 1);
		assert_int_equal(engines[i]->prepare(s, &b.bench, &o, &err), STATUS_UNAVAILABLE);
		assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
		assert_non_null(strstr(err.text, "/nowhere/lib.so"));
		unsetenv(variables[i]);
		engines[i]->release(s);
		free(s);

		error_clear(&err);
		b.machine.cpu.isa |= 1u << CPU_ISA_avx512_vnni;
		snprintf(b.machine.lib.name, sizeof(b.machine.lib.name), "%s", names[i]);
		snprintf(b.machine.lib.missing, sizeof(b.machine.lib.missing), "no such soname");
		b.machine.lib.status = STATUS_UNAVAILABLE;
		b.machine.lib.cause = CAUSE_LIBRARY_MISSING;
		assert_int_equal(engines[i]->supports(&b.machine, &b.target, &o, &err), STATUS_UNAVAILABLE);
		assert_non_null(strstr(err.text, "no such soname"));
		assert_non_null(strstr(err.text, shown[i]));

		/* a record that does not say what was looked for: the soname */
		error_clear(&err);
		b.machine.lib.missing[0] = '\0';
		assert_int_equal(engines[i]->supports(&b.machine, &b.target, &o, &err), STATUS_UNAVAILABLE);
		assert_non_null(strstr(err.text, shown[i]));
		assert_non_null(strstr(err.text, sonames[i]));
	}
}

static void what_an_engine_cannot_do_is_unsupported(void **state)
{
	struct gemm_opts o = {.type = GEMM_BF16, .m = 4, .n = 4, .k = 4, .batch = 1};
	struct error err = {0};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	b.machine.cpu.isa = 0;
	assert_int_equal(gemm_openblas_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_UNSUPPORTED);
	assert_int_equal(gemm_onednn_engine.supports(&b.machine, &b.target, &o, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "bf16"));
	b.machine.cpu.isa = 1u << CPU_ISA_amx_bf16;
	assert_int_equal(gemm_onednn_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_OK);
	o.type = GEMM_FP64;
	assert_int_equal(gemm_onednn_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_UNSUPPORTED);
	o.type = GEMM_FP32;
	assert_int_equal(gemm_onednn_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_OK);
	assert_int_equal(gemm_openblas_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_OK);
	o.bias = true;
	assert_int_equal(gemm_openblas_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_UNSUPPORTED);
	o.bias = false;
	o.search = GEMM_SEARCH_EXHAUSTIVE; /* it would try nothing and say it had searched */
	error_clear(&err);
	assert_int_equal(gemm_openblas_engine.supports(&b.machine, &b.target, &o, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "supports only search=first"));
	o.search = GEMM_SEARCH_FIRST;
	o.m = o.n = 1 << 18;
	error_clear(&err);
	assert_int_equal(gemm_openblas_engine.supports(&b.machine, &b.target, &o, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
}

/* Of FP8 alone sizes are asked before the library is: those of which a row would begin between 16 bytes. */
static void fp8_is_refused_for_its_rows_alone(void **state)
{
	struct gemm_opts o = {.type = GEMM_E4M3, .n = 64, .k = 48, .tb = GEMM_T, .batch = 1};
	struct error err = {0};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	b.target = (struct target){.kind = TARGET_GPU, .gpu_count = 1};
	for (o.m = 1; o.m <= 128; o.m++)
		if (gemm_cublaslt_engine.supports(&b.machine, &b.target, &o, &err))
			fail_msg("m=%u: %s", o.m, err.text);
	o.m = 3;
	o.k = 40;
	assert_int_equal(gemm_cublaslt_engine.supports(&b.machine, &b.target, &o, &err), STATUS_UNSUPPORTED);
	assert_string_equal(err.text, "gemm: FP8 rows must start at multiples of 16 bytes, but k=40 of A is not a "
				      "multiple of 16");
	error_clear(&err);
	o.k = 48;
	o.n = 60;
	assert_int_equal(gemm_cublaslt_engine.supports(&b.machine, &b.target, &o, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "n=60 of C is not a multiple of 8"));
	error_clear(&err);
	o.n = 72; /* the library's own answer is asked for */
	assert_int_equal(gemm_cublaslt_engine.supports(&b.machine, &b.target, &o, &err), STATUS_OK);
	o.ta = GEMM_T; /* from sm_100 on */
	assert_int_equal(gemm_cublaslt_engine.supports(&b.machine, &b.target, &o, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "m=3 of A is not a multiple of 16"));
	for (o.type = GEMM_FP64, o.ta = GEMM_N; o.type < GEMM_TYPE_COUNT; o.type++) {
		o.m = o.n = o.k = 7;
		if (o.type != GEMM_E4M3 && o.type != GEMM_E5M2)
			assert_int_equal(gemm_cublaslt_engine.supports(&b.machine, &b.target, &o, NULL), STATUS_OK);
	}
}

static void one_set_is_rotated_where_three_do_not_fit(void **state)
{
	const struct gemm_opts o = {.type = GEMM_FP64, .m = 512, .n = 512, .k = 512, .batch = 1};
	struct gemm_host *h = calloc(1, gemm_openblas_engine.state_size);
	struct error err = {0};
	struct cpu_bench b;

	(void)state;
	if (!have(&openblas_lib))
		skip();
	cpu_bench_make(&b);
	b.machine.cpu.memory_bytes = 16 << 20; /* half of it holds one set of 6 MiB */
	assert_int_equal(gemm_openblas_engine.prepare(h, &b.bench, &o, &err), STATUS_OK);
	assert_int_equal(h->common.sets, 1);
	gemm_openblas_engine.release(h);
	free(h);
	/* A control group's, or what others leave. An eighth of it stays free: 7190234 leave a byte too few. */
	b.machine.cpu.memory_available_bytes = 7190234;
	assert_int_equal(gemm_openblas_engine.supports(&b.machine, &b.target, &o, &err), STATUS_NO_RESOURCE);
	assert_string_equal(err.text,
			    "gemm: A, B and C need 6291456 bytes, but only 6291455 bytes are available (7/8 of the free memory)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openblas_is_right),
		cmocka_unit_test(onednn_is_right),
		cmocka_unit_test(onednn_is_right_in_fp32),
		cmocka_unit_test(an_element_spoilt_in_timing_is_found),
		cmocka_unit_test(a_missing_library_is_unavailable),
		cmocka_unit_test(what_an_engine_cannot_do_is_unsupported),
		cmocka_unit_test(fp8_is_refused_for_its_rows_alone),
		cmocka_unit_test(one_set_is_rotated_where_three_do_not_fit),
	};

	return cmocka_run_group_tests_name("probe_gemm", tests, NULL, NULL);
}
