/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "core/math/random.h"
#include "probe/memory/cpu_loops.h"
#include "probe/memory/memory.h"
#include "probe/peak/peak.h"
#include "unit/cpu_bench.h"

extern const struct probe probe_memory;

static void *prepared(struct cpu_bench *b, const struct memory_opts *o)
{
	void *state = calloc(1, memory_cpu_engine.state_size);
	struct error err = {0};

	assert_non_null(state);
	assert_int_equal(memory_cpu_engine.supports(&b->machine, &b->target, o, &err), STATUS_OK);
	assert_int_equal(memory_cpu_engine.prepare(state, &b->bench, o, &err), STATUS_OK);
	return state;
}

static void dispose(void *state)
{
	memory_cpu_engine.release(state);
	free(state);
}

static void run_case(struct cpu_bench *b, const struct memory_opts *o)
{
	void *state = prepared(b, o);
	struct error err = {0};
	struct wrong wrong;

	assert_int_equal(memory_verify(state, &wrong, &err), STATUS_OK);
	assert_int_equal(wrong.count, 0);
	assert_int_equal(wrong.checked, wrong.total);
	assert_true(wrong.checked > 0);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(memory_cpu_engine.enqueue(state, i, &err), STATUS_OK);
	assert_int_equal(memory_verify(state, &wrong, &err), STATUS_OK);
	assert_int_equal(wrong.count, 0);
	assert_true(memory_cpu_engine.cpu_time_ns(state) > 0);
	dispose(state);
}

static void every_operation_is_right_with_every_isa_and_store(void **state)
{
	static const uint64_t sizes[] = {192, 100 << 10, 2200 << 10};
	static const uint32_t isas[] = {0, 1u << CPU_ISA_sse2, 1u << CPU_ISA_avx2, 1u << CPU_ISA_avx512f};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	uint32_t have = b.machine.cpu.isa;

	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++) {
		if ((isas[i] & have) != isas[i])
			continue;
		b.machine.cpu.isa = isas[i];
		for (uint32_t op = 0; op < MEMORY_OP_COUNT; op++)
			for (uint32_t store = MEMORY_STORE_AUTO; store <= MEMORY_STORE_MEMCPY; store++)
				for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
					const struct memory_opts o = {
						.op = op, .store = store, .size = sizes[s]};

					if (probe_memory.check(&o, NULL))
						continue;
					if (memory_cpu_engine.supports(&b.machine, &b.target, &o, NULL))
						continue;
					run_case(&b, &o);
				}
	}
}

/* An engine of arrays whose output the test may spoil. */
struct fake {
	struct memory common;
	double out[1000], sum;
	bool lazy; /* returns at once */
	int64_t spoil;
	double spoilt;
};

static enum status fake_poison(void *state, struct error *err)
{
	struct fake *f = state;

	(void)err;
	for (size_t i = 0; i < 1000; i++)
		f->out[i] = (double)NAN;
	f->sum = (double)NAN;
	return STATUS_OK;
}

static enum status fake_run(void *state, struct error *err)
{
	struct fake *f = state;

	(void)err;
	if (f->lazy)
		return STATUS_OK;
	f->sum = 0;
	for (size_t i = 0; i < 1000; i++) {
		int a = memory_element(f->common.seed, MEMORY_STREAM_A, i);
		int b = memory_element(f->common.seed, MEMORY_STREAM_B, i);
		int c = memory_element(f->common.seed, MEMORY_STREAM_C, i);

		f->out[i] = f->common.opts.op == MEMORY_COPY	? a
			    : f->common.opts.op == MEMORY_SCALE ? 3 * c
			    : f->common.opts.op == MEMORY_ADD	? a + b
								: b + 3 * c;
		f->sum += f->common.opts.op == MEMORY_DOT ? a * b : a;
	}
	if (f->spoil >= 0)
		f->out[f->spoil] = f->sum = f->spoilt;
	return STATUS_OK;
}

static enum status fake_fetch(void *state, uint64_t first, size_t count, double *out, struct error *err)
{
	(void)err;
	memcpy(out, ((struct fake *)state)->out + first, count * sizeof(*out));
	return STATUS_OK;
}

static enum status fake_sum(void *state, double *out, struct error *err)
{
	(void)err;
	*out = ((struct fake *)state)->sum;
	return STATUS_OK;
}

static const struct memory_access fake_access = {
	.poison = fake_poison, .run = fake_run, .fetch = fake_fetch, .sum = fake_sum};

static void fake_make(struct fake *f, enum memory_op op)
{
	struct cpu_bench b;
	const struct memory_opts o = {.op = op, .size = 8000};

	cpu_bench_make(&b);
	*f = (struct fake){.spoil = -1};
	memory_begin(&f->common, &b.bench, &o, &fake_access);
	f->common.count = 1000;
}

static void a_wrong_element_is_found_with_its_place(void **state)
{
	static const enum memory_op ops[] = {MEMORY_COPY, MEMORY_SCALE, MEMORY_ADD, MEMORY_TRIAD};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (int64_t at = 0; at < 1000; at += 333) {
			struct fake f;
			struct wrong wrong;
			struct error err = {0};
			char place[32];

			fake_make(&f, ops[i]);
			assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_OK);
			f.spoil = at;
			f.spoilt = 1000.5;
			f.common.ready = false;
			assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_MISMATCH);
			assert_int_equal(err.cause, CAUSE_WRONG_RESULT);
			assert_int_equal(wrong.count, 1);
			assert_int_equal(wrong.first_index, at);
			assert_true(wrong.found == 1000.5);
			snprintf(place, sizeof(place), "element %d", (int)at);
			assert_string_equal(wrong.place, place);
		}
}

static void nan_and_a_wrong_sum_are_found(void **state)
{
	struct fake f;
	struct wrong wrong;
	struct error err = {0};

	(void)state;
	fake_make(&f, MEMORY_ADD);
	f.spoil = 77;
	f.spoilt = (double)NAN;
	assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(err.cause, CAUSE_NAN);
	assert_true(wrong.nan);
	assert_int_equal(wrong.first_index, 77);
	error_clear(&err);
	fake_make(&f, MEMORY_DOT);
	assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_OK);
	f.spoil = 0;
	f.spoilt = 1;
	f.common.ready = false;
	assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(wrong.count, 1);
}

static void returning_at_once_is_a_wrong_result(void **state)
{
	struct fake f;
	struct wrong wrong;
	struct error err = {0};

	(void)state;
	fake_make(&f, MEMORY_COPY);
	f.lazy = true;
	assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(wrong.count, 1000);
	error_clear(&err);
	/* right before timing, lazy in it: what verification left is poison */
	fake_make(&f, MEMORY_COPY);
	assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_OK);
	f.lazy = true;
	f.common.iterations = 10;
	assert_int_equal(memory_verify(&f, &wrong, &err), STATUS_MISMATCH);
	assert_int_equal(wrong.count, 1000);
}

static void elements_come_in_blocks_as_one_by_one(void **state)
{
	int8_t block[100];

	(void)state;
	for (uint64_t first = 0; first < 40; first++) {
		memory_elements(9, MEMORY_STREAM_B, first, 100, block);
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(block[i], memory_element(9, MEMORY_STREAM_B, first + i));
	}
}

static void work_counts_the_algorithms_bytes(void **state)
{
	static const struct {
		enum memory_op op;
		double read, written, flop;
	} rows[] = {
		{MEMORY_READ, 1, 0, 1. / 8},  {MEMORY_WRITE, 0, 1, 0},	       {MEMORY_COPY, 1, 1, 0},
		{MEMORY_SCALE, 1, 1, 1. / 8}, {MEMORY_ADD, 2, 1, 1. / 8},      {MEMORY_TRIAD, 2, 1, 2. / 8},
		{MEMORY_DOT, 2, 0, 2. / 8},   {MEMORY_GATHER, 1.5, 0, 1. / 8}, {MEMORY_SET, 0, 1, 0},
	};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct memory_opts o = {.op = rows[i].op, .size = 16 << 20};
		struct work w = probe_memory.work(&b.machine, &b.target, &o);
		double size = 16 << 20;

		assert_true(w.read_bytes == rows[i].read * size);
		assert_true(w.write_bytes == rows[i].written * size);
		assert_true(w.flop == rows[i].flop * size);
		assert_string_equal(w.limit, "memory");
	}
	const struct memory_opts chase = {.op = MEMORY_CHASE, .size = 16 << 20};
	const struct memory_opts small = {.op = MEMORY_READ, .size = 4096};
	struct work w = probe_memory.work(&b.machine, &b.target, &chase);

	assert_true(w.messages == MEMORY_HOPS && w.read_bytes == 0);
	assert_string_equal(w.limit, "latency");
	w = probe_memory.work(&b.machine, &b.target, &small);
	assert_string_equal(w.limit, "cache");
	assert_true(w.read_bytes == 8 << 20); /* as many passes as make 8 MiB */
}

static void size_follows_the_machine(void **state)
{
	struct cpu_bench b;
	struct memory_opts o = {0};

	(void)state;
	cpu_bench_make(&b);
	b.machine.cpu.memory_bytes = (uint64_t)8 << 30;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 64 << 20);
	b.machine.cpu.l3_bytes = 36 << 20;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 144 << 20);
	b.machine.cpu.sockets = 2;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 288 << 20);
	b.machine.cpu.memory_limit_bytes = (uint64_t)600 << 20;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 100 << 20);
	b.machine.cpu.memory_available_bytes = (uint64_t)240 << 20; /* others hold the rest */
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 70 << 20); /* an eighth of it stays free */
	o.size = 5000;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 4096);
	o.size = 3000;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 2944);
	o.size = 1;
	assert_int_equal(memory_size(&b.machine, &b.target, &o), 64);
}

static void what_cannot_be_is_refused(void **state)
{
	struct cpu_bench b;
	struct error err = {0};
	const struct memory_opts no_store = {.op = MEMORY_READ, .store = MEMORY_STORE_NONTEMPORAL};
	const struct memory_opts no_libc = {.op = MEMORY_TRIAD, .store = MEMORY_STORE_MEMCPY};
	const struct memory_opts far = {.op = MEMORY_GATHER, .size = (uint64_t)1 << 40};
	const struct memory_opts big = {.op = MEMORY_COPY, .size = (uint64_t)1 << 40};
	const struct memory_opts past = {.op = MEMORY_COPY, .size = 4096, .store = MEMORY_STORE_NONTEMPORAL};

	(void)state;
	cpu_bench_make(&b);
	assert_int_equal(probe_memory.check(&no_store, &err), STATUS_BAD_INPUT);
	assert_int_equal(probe_memory.check(&no_libc, NULL), STATUS_BAD_INPUT);
	assert_int_equal(probe_memory.check(&far, NULL), STATUS_BAD_INPUT);
	error_clear(&err);
	assert_int_equal(memory_cpu_engine.supports(&b.machine, &b.target, &big, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
	error_clear(&err);
	b.machine.cpu.isa = 0;
	assert_int_equal(memory_cpu_engine.supports(&b.machine, &b.target, &past, &err), STATUS_UNSUPPORTED);
}

static void options_have_sound_presets(void **state)
{
	struct memory_opts o;
	char key[256] = "";

	(void)state;
	assert_int_equal(opt_defaults(&probe_memory.opts, &o, NULL), STATUS_OK);
	assert_int_equal(opt_canonical(&probe_memory.opts, &o, key, sizeof(key), NULL), STATUS_OK);
	assert_string_equal(key, " op=copy search=top size=0 store=auto threads=0");
}

/* What limits a case is the loop of its own traffic and stores; nothing where there is no such loop. */
static void a_ceiling_moves_the_same_traffic(void **state)
{
	static const struct {
		enum memory_op op;
		enum memory_store store;
		enum peak_unit unit; /* PEAK_FMA: none */
	} rows[] = {
		{MEMORY_READ, MEMORY_STORE_AUTO, PEAK_READ},
		{MEMORY_DOT, MEMORY_STORE_AUTO, PEAK_READ2},
		{MEMORY_WRITE, MEMORY_STORE_REGULAR, PEAK_WRITE},
		{MEMORY_COPY, MEMORY_STORE_REGULAR, PEAK_READ_WRITE},
		{MEMORY_TRIAD, MEMORY_STORE_REGULAR, PEAK_READ2_WRITE},
#if defined(__x86_64__)
		{MEMORY_WRITE, MEMORY_STORE_AUTO, PEAK_WRITE_NT},
		{MEMORY_SCALE, MEMORY_STORE_AUTO, PEAK_READ_WRITE_NT},
		{MEMORY_ADD, MEMORY_STORE_NONTEMPORAL, PEAK_READ2_WRITE_NT},
#endif
		{MEMORY_COPY, MEMORY_STORE_MEMCPY, PEAK_FMA},
		{MEMORY_SET, MEMORY_STORE_AUTO, PEAK_FMA},
		{MEMORY_GATHER, MEMORY_STORE_AUTO, PEAK_FMA},
		{MEMORY_CHASE, MEMORY_STORE_AUTO, PEAK_FMA},
	};
	struct cpu_bench b;

	(void)state;
	cpu_bench_make(&b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct memory_opts o = {.op = rows[i].op, .store = rows[i].store, .threads = 1};
		struct ceiling found = {0};
		const struct peak_opts *peak = (const struct peak_opts *)found.opts;
		bool some = rows[i].unit != PEAK_FMA;

		assert_int_equal(probe_memory.ceiling(&b.machine, &b.target, &o, &found), some);
		if (some) {
			assert_int_equal(peak->unit, rows[i].unit);
			assert_int_equal(peak->threads, 1);
		}
		o.size = 8 << 10; /* a cache's rate */
		assert_false(probe_memory.ceiling(&b.machine, &b.target, &o, &found));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ceiling_moves_the_same_traffic),
		cmocka_unit_test(every_operation_is_right_with_every_isa_and_store),
		cmocka_unit_test(a_wrong_element_is_found_with_its_place),
		cmocka_unit_test(nan_and_a_wrong_sum_are_found),
		cmocka_unit_test(returning_at_once_is_a_wrong_result),
		cmocka_unit_test(elements_come_in_blocks_as_one_by_one),
		cmocka_unit_test(work_counts_the_algorithms_bytes),
		cmocka_unit_test(size_follows_the_machine),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(options_have_sound_presets),
	};

	return cmocka_run_group_tests_name("probe_memory", tests, NULL, NULL);
}
