/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "probe/peak/cpu_state.h"
#include "unit/cpu_bench.h"

extern const struct probe probe_peak;

static struct peak_cpu *prepared(struct cpu_bench *b, const struct peak_opts *o)
{
	struct peak_cpu *s = calloc(1, peak_cpu_engine.state_size);
	struct error err = {0};

	assert_non_null(s);
	assert_int_equal(peak_cpu_engine.prepare(s, &b->bench, o, &err), STATUS_OK);
	return s;
}

static void dispose(struct peak_cpu *s)
{
	peak_cpu_engine.release(s);
	free(s);
}

static void every_loop_is_right(void **state)
{
	struct cpu_bench b;
	unsigned ran = 0;

	(void)state;
	cpu_bench_make(&b);
	for (uint32_t unit = PEAK_FMA; unit < PEAK_UNIT_COUNT; unit++)
		for (uint32_t isa = 0; isa < PEAK_ISA_COUNT; isa++)
			for (uint32_t type = 0; type < PEAK_TYPE_COUNT; type++) {
				const struct peak_opts o = {.unit = unit, .isa = isa, .type = type};
				struct error err = {0};
				struct wrong wrong;
				struct peak_cpu *s;

				/* of adds and streams there is one loop, whatever set and type say */
				if ((unit != PEAK_FMA && (isa || type)) ||
				    peak_cpu_engine.supports(&b.machine, &b.target, &o, NULL))
					continue;
				s = prepared(&b, &o);
				assert_int_equal(probe_peak.verify(s, &wrong, &err), STATUS_OK);
				assert_true(wrong.checked > 0 && wrong.checked == wrong.total);
				assert_int_equal(peak_cpu_engine.enqueue(s, 0, &err), STATUS_OK);
				assert_int_equal(probe_peak.verify(s, &wrong, &err), STATUS_OK);
				dispose(s);
				ran++;
			}
	assert_true(ran >= 4);
}

/* The loop that `auto` means for a type, by what the CPU has: never a slower one than a library would take.
 */
static void narrow_types_have_loops_of_their_own(void **state)
{
	static const struct {
		uint32_t isa, type;
		enum peak_isa loop;
	} rows[] = {
		{1u << CPU_ISA_avx512f, PEAK_INT8, PEAK_ISA_AUTO},
		{1u << CPU_ISA_avx512f | 1u << CPU_ISA_avx512_vnni, PEAK_INT8, PEAK_ISA_AVX512_VNNI},
		{1u << CPU_ISA_avx_vnni, PEAK_INT8, PEAK_ISA_AVX_VNNI},
		{1u << CPU_ISA_avx512_vnni | 1u << CPU_ISA_amx_int8, PEAK_INT8, PEAK_ISA_AUTO},
		{1u << CPU_ISA_avx512f, PEAK_BF16, PEAK_ISA_AUTO},
		{1u << CPU_ISA_avx512_bf16, PEAK_BF16, PEAK_ISA_AVX512_BF16},
		{1u << CPU_ISA_avx512_bf16 | 1u << CPU_ISA_amx_bf16, PEAK_BF16, PEAK_ISA_AUTO},
	};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peak_opts o = {.unit = PEAK_FMA, .type = rows[i].type, .threads = 1};
		bool some = rows[i].loop != PEAK_ISA_AUTO;

		b.machine.cpu.isa = rows[i].isa;
		assert_int_equal(peak_isa(&b.machine, &o), rows[i].loop);
		assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &o, NULL),
				 some ? STATUS_OK : STATUS_UNSUPPORTED);
		/* 64 bytes hold 64 INT8 or 32 BF16 operands, each a product and a sum */
		assert_true(
			probe_peak.work(&b.machine, &b.target, &o).flop ==
			(some ? 2.0 * PEAK_FMA_LOOPS * 12 * (rows[i].loop == PEAK_ISA_AVX512_VNNI ? 64 : 32)
			      : 0));
	}
}

static void return_at_once(void *end)
{
	(void)end;
}

static void half_the_work(void *end)
{
	float *x = end;

	for (unsigned i = 0; i < PEAK_END_BYTES / sizeof(*x); i++)
		x[i] = 1;
}

static void a_loop_that_does_not_work_is_wrong(void **state)
{
	static peak_fma_loop *const broken[] = {return_at_once, half_the_work};
	struct cpu_bench b;
	const struct peak_opts o = {.unit = PEAK_FMA, .type = PEAK_FP32};

	(void)state;
	cpu_bench_make(&b);
	for (unsigned i = 0; i < 2; i++) {
		struct peak_cpu *s = prepared(&b, &o);
		struct error err = {0};
		struct wrong wrong;

		s->fma = broken[i];
		assert_int_equal(probe_peak.verify(s, &wrong, &err), STATUS_MISMATCH);
		assert_int_equal(err.cause, i ? CAUSE_WRONG_RESULT : CAUSE_NAN);
		assert_true(wrong.count > 0);
		assert_non_null(strstr(wrong.place, "thread 0"));
		dispose(s);
	}
}

static void the_clock_comes_from_the_chain(void **state)
{
	struct cpu_bench b;
	const struct peak_opts o = {.unit = PEAK_ADD};
	struct result *r = result_create();
	struct peak_cpu *s;
	double hz;

	(void)state;
	cpu_bench_make(&b);
	s = prepared(&b, &o);
	assert_int_equal(probe_peak.finish(s, r, NULL), STATUS_OK);
	assert_false(result_has(r, &field_clock_hz)); /* nothing ran: absent, not zero */
	assert_int_equal(peak_cpu_engine.enqueue(s, 0, NULL), STATUS_OK);
	assert_int_equal(probe_peak.finish(s, r, NULL), STATUS_OK);
	hz = result_get(r, &field_clock_hz, 0);
	assert_true(hz > 0 && isfinite(hz));
	result_destroy(r);
	dispose(s);
}

static void work_follows_isa_and_threads(void **state)
{
	struct cpu_bench b;
	struct peak_opts o = {.unit = PEAK_FMA, .isa = PEAK_ISA_AVX2, .type = PEAK_FP32};
	struct work w;

	(void)state;
	cpu_bench_make(&b);
	w = probe_peak.work(&b.machine, &b.target, &o);
	assert_true(w.flop == 2.0 * 2 * PEAK_FMA_LOOPS * 12 * 8);
	assert_string_equal(w.limit, "compute.fp32");
	o.threads = 1;
	o.type = PEAK_FP64;
	w = probe_peak.work(&b.machine, &b.target, &o);
	assert_true(w.flop == 2.0 * PEAK_FMA_LOOPS * 12 * 4);
	assert_string_equal(w.limit, "compute.fp64");
	o.unit = PEAK_ADD;
	assert_true(probe_peak.work(&b.machine, &b.target, &o).messages == PEAK_ADDS);
	o = (struct peak_opts){.type = PEAK_FP16};
	assert_int_equal(probe_peak.check(&o, NULL), STATUS_BAD_INPUT);
}

/* Every mix moves about as much in an iteration, and its streams outgrow the caches. */
static void a_mix_counts_what_it_moves(void **state)
{
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	for (uint32_t unit = PEAK_READ; unit < PEAK_UNIT_COUNT; unit++) {
		const struct peak_opts o = {.unit = unit};
		struct peak_mix mix = peak_mix(unit);
		struct work w = probe_peak.work(&b.machine, &b.target, &o);
		struct need need = {0};
		double all = w.read_bytes + w.write_bytes;

		probe_peak.need(&b.machine, &b.target, &o, &need);
		assert_string_equal(w.limit, "memory");
		assert_true(w.read_bytes * (mix.put != PEAK_PUT_NONE) == w.write_bytes * mix.reads ||
			    !mix.reads);
		assert_true(all * peak_stream_count(unit) == need.host_bytes);
		assert_true(all >= 5e6 && all <= 11.2e6); /* a third of half of 64 MiB; an eighth of them */
		assert_true(need.host_bytes <= 0x1p24);	  /* a quarter of the memory */
	}
}

static uint64_t stream_at_once(const uint64_t *a, const uint64_t *b, uint64_t *c, uint64_t n)
{
	(void)a, (void)b, (void)c, (void)n;
	return 0;
}

/* Loops of all the work but one word. */
static uint64_t reads_less(const uint64_t *a, const uint64_t *b, uint64_t *c, uint64_t n)
{
	uint64_t sum = 0;

	(void)b, (void)c;
	for (uint64_t i = 1; i < n; i++)
		sum += a[i];
	return sum;
}

static uint64_t writes_less(const uint64_t *a, const uint64_t *b, uint64_t *c, uint64_t n)
{
	(void)a, (void)b;
	for (uint64_t i = 0; i + 1 < n; i++)
		c[i] = PEAK_WORD_WRITTEN;
	return 0;
}

static void a_stream_that_is_not_moved_is_wrong(void **state)
{
	static const struct {
		enum peak_unit unit;
		peak_stream_loop *loop;
		const char *place;
	} rows[] = {
		{PEAK_READ, stream_at_once, "thread 0, its sum of part"},
		{PEAK_READ, reads_less, "thread 0, its sum of part"},
		{PEAK_WRITE, stream_at_once, "thread 0, word"},
		{PEAK_WRITE, writes_less, "thread 0, word"},
		{PEAK_READ2_WRITE, stream_at_once, "thread 0"},
	};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct peak_opts o = {.unit = rows[i].unit};
		struct peak_cpu *s = prepared(&b, &o);
		struct error err = {0};
		struct wrong wrong;

		s->stream.loop = rows[i].loop;
		assert_int_equal(probe_peak.verify(s, &wrong, &err), STATUS_MISMATCH);
		assert_int_equal(err.cause, CAUSE_WRONG_RESULT);
		assert_non_null(strstr(wrong.place, rows[i].place));
		dispose(s);
	}
}

/* Places have words of their own; the closed form is the sum, over odd and even numbers of them. */
static void the_sum_of_words_has_a_closed_form(void **state)
{
	(void)state;
	assert_true(peak_words_sum(7, 0, 5, 5) == 0);
	assert_true(peak_word(7, 0, 1) != peak_word(7, 1, 1));
	for (unsigned stream = 0; stream < 2; stream++)
		for (uint64_t last = 1; last < 300; last += 7) {
			uint64_t sum = 0;

			for (uint64_t i = last / 3; i < last; i++)
				sum += peak_word(UINT64_MAX - 3, stream, i);
			assert_true(peak_words_sum(UINT64_MAX - 3, stream, last / 3, last) == sum);
		}
}

/* Stores past the caches where there are none; memory that holds no streams beyond the caches. */
static void a_mix_that_cannot_be_moved_here_is_unsupported(void **state)
{
	const struct peak_opts past = {.unit = PEAK_WRITE_NT}, through = {.unit = PEAK_WRITE};
	struct cpu_bench b;
	struct error err = {0};

	(void)state;
	cpu_bench_make(&b);
	b.machine.cpu.isa = 0;
	assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &past, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "no stores past the caches"));
	assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &through, &err), STATUS_OK);
	err = (struct error){0};
	b.machine.cpu.l3_bytes = 32 << 20;
	assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &through, &err), STATUS_UNSUPPORTED);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
}

static void missing_instructions_are_unsupported(void **state)
{
	struct cpu_bench b;
	struct error err = {0};
	const struct peak_opts wide = {.unit = PEAK_FMA, .isa = PEAK_ISA_AVX512F, .type = PEAK_FP32};
	const struct peak_opts any = {.unit = PEAK_FMA, .type = PEAK_FP32};
	const struct peak_opts mma = {.unit = PEAK_MMA};

	(void)state;
	cpu_bench_make(&b);
	b.machine.cpu.isa = 0;
	assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &wide, &err), STATUS_UNSUPPORTED);
	assert_non_null(strstr(err.text, "avx512f"));
	assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &any, NULL), STATUS_UNSUPPORTED);
	assert_int_equal(peak_cpu_engine.supports(&b.machine, &b.target, &mma, NULL), STATUS_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_loop_is_right),
		cmocka_unit_test(narrow_types_have_loops_of_their_own),
		cmocka_unit_test(a_loop_that_does_not_work_is_wrong),
		cmocka_unit_test(the_clock_comes_from_the_chain),
		cmocka_unit_test(work_follows_isa_and_threads),
		cmocka_unit_test(a_mix_counts_what_it_moves),
		cmocka_unit_test(a_stream_that_is_not_moved_is_wrong),
		cmocka_unit_test(the_sum_of_words_has_a_closed_form),
		cmocka_unit_test(a_mix_that_cannot_be_moved_here_is_unsupported),
		cmocka_unit_test(missing_instructions_are_unsupported),
	};

	return cmocka_run_group_tests_name("probe_peak", tests, NULL, NULL);
}
