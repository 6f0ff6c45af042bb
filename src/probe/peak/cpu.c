/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `cpu` of probe peak: every thread runs the same loop. A scalar computation with library functions
 * checks the result. */
#include <math.h>
#include <time.h>
#include "core/math/add_chain.h"
#include "probe/peak/cpu_state.h"

/* A traffic mix needs its kind of stores, and streams larger than the caches. */
static enum status supports_streams(const struct machine *m, const struct target *t, enum peak_unit unit,
				    struct error *err)
{
	uint64_t bytes = 8 * peak_stream_words(m, t, unit) * peak_stream_count(unit);
	const char *isa;

	if (!peak_stream_loop_for(machine_cpu(m)->isa, unit, &isa))
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "peak: the instruction set %s has no stores past the caches", isa);
	if (bytes < 4 * cpu_cache_bytes(m, t))
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_NO_MEMORY,
			"peak: streams of 4 x the caches need more than a quarter of the memory");
	return STATUS_OK;
}

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	static const uint32_t needs[] = {
		[PEAK_ISA_AUTO] = 0,
		[PEAK_ISA_SSE2] = 1u << CPU_ISA_sse2,
		[PEAK_ISA_AVX2] = 1u << CPU_ISA_avx2 | 1u << CPU_ISA_fma,
		[PEAK_ISA_AVX512F] = 1u << CPU_ISA_avx512f,
		[PEAK_ISA_AVX512_BF16] = 1u << CPU_ISA_avx512_bf16,
		[PEAK_ISA_AVX512_VNNI] = 1u << CPU_ISA_avx512_vnni,
		[PEAK_ISA_AVX_VNNI] = 1u << CPU_ISA_avx_vnni,
		[PEAK_ISA_NEON] = 1u << CPU_ISA_neon,
	};
	const struct peak_opts *o = opts;
	enum peak_isa isa = peak_isa(m, o);

	if (o->unit == PEAK_MMA)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "peak: unit=mma needs a GPU");
	if (peak_stream_count(o->unit))
		return supports_streams(m, t, o->unit, err);
	if (o->unit != PEAK_FMA)
		return STATUS_OK;
	if ((machine_cpu(m)->isa & needs[isa]) != needs[isa])
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "peak: this CPU has no %s",
				       peak_isa_name(isa));
	if (!peak_fma_loop_for(isa, o->type))
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "peak: this build has no %s loop for %s", peak_isa_name(isa),
				       peak_type_name(o->type));
	return STATUS_OK;
}

/* -- one iteration -- */

static uint64_t thread_cpu_ns(void)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void iterate(void *arg, unsigned thread)
{
	struct peak_cpu *s = arg;
	struct peak_slot *slot = &s->slot[thread];
	uint64_t before;

	if (s->common.opts.unit == PEAK_FMA) {
		s->fma(slot->end);
		return;
	}
	/* CLOCK_THREAD_CPUTIME_ID: it does not advance while the thread waits for a CPU */
	before = thread_cpu_ns();
	slot->x = add_chain(thread, PEAK_ADD_STEP, PEAK_ADDS);
	slot->adds_cpu_ns += thread_cpu_ns() - before;
	slot->adds += PEAK_ADDS;
}

static void run(struct peak_cpu *s)
{
	if (s->stream.parts)
		peak_stream_run(s);
	else
		cpu_pool_run(s->pool, iterate, s);
	s->ran = true;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct peak_cpu *s = state;

	(void)i, (void)err;
	run(s);
	return STATUS_OK;
}

/* -- verification -- */

static void poison(struct peak_cpu *s)
{
	s->ran = false;
	for (unsigned i = 0; i < s->threads; i++) {
		memset(s->slot[i].end, 0xff, sizeof(s->slot[i].end)); /* NaN in every lane */
		s->slot[i].x = UINT64_MAX;
	}
	if (s->stream.parts)
		peak_stream_poison(s);
}

static double fma_reference(const struct peak_cpu *s, unsigned chain)
{
	bool fused = peak_is_fused(s->isa);

	if (s->common.opts.type == PEAK_INT8)
		return chain + 4.0 * PEAK_INT8_A * PEAK_INT8_B * PEAK_FMA_LOOPS;
	if (s->common.opts.type == PEAK_BF16)
		return PEAK_FMA_START(chain) + 2 * PEAK_BF16_STEP * PEAK_FMA_LOOPS;
	if (s->common.opts.type == PEAK_FP64) {
		double x = PEAK_FMA_START(chain);

		for (unsigned i = 0; i < PEAK_FMA_LOOPS; i++)
			x = fused ? fma(x, PEAK_FMA_A, PEAK_FMA_B) : x * PEAK_FMA_A + PEAK_FMA_B;
		return x;
	}
	float x = (float)PEAK_FMA_START(chain);

	for (unsigned i = 0; i < PEAK_FMA_LOOPS; i++)
		x = fused ? fmaf(x, (float)PEAK_FMA_A, (float)PEAK_FMA_B)
			  : x * (float)PEAK_FMA_A + (float)PEAK_FMA_B;
	return (double)x;
}

static void note(struct wrong *w, double expected, double found, const char *what, unsigned thread,
		 unsigned chain)
{
	w->checked++;
	if (found == expected)
		return;
	if (!isfinite(found))
		w->nan = true;
	if (w->count++)
		return;
	w->expected = expected;
	w->found = found;
	snprintf(w->place, sizeof(w->place), "thread %u, %s %u", thread, what, chain);
}

/* One lane of a loop's result. */
static double lane_of(enum peak_type type, const void *end, size_t at)
{
	if (type == PEAK_FP64)
		return ((const double *)end)[at];
	if (type == PEAK_INT8)
		return ((const int32_t *)end)[at];
	return (double)((const float *)end)[at];
}

static void check_fma(const struct peak_cpu *s, struct wrong *w)
{
	unsigned lanes = peak_lanes(s->isa, s->common.opts.type);

	for (unsigned chain = 0; chain < peak_chains(s->isa); chain++) {
		double right = fma_reference(s, chain);

		for (unsigned i = 0; i < s->threads; i++)
			for (unsigned lane = 0; lane < lanes; lane++) {
				size_t at = (size_t)chain * lanes + lane;

				note(w, right, lane_of(s->common.opts.type, s->slot[i].end, at), "chain", i,
				     chain);
			}
	}
}

static enum status check(void *state, struct wrong *w, struct error *err)
{
	struct peak_cpu *s = state;

	if (!s->ran)
		for (unsigned i = 0; i < (s->stream.parts ? s->stream.parts : 1); i++)
			run(s);
	if (s->stream.parts)
		peak_stream_check(s, w);
	else if (s->common.opts.unit == PEAK_FMA)
		check_fma(s, w);
	else
		for (unsigned i = 0; i < s->threads; i++)
			note(w, (double)(i + (uint64_t)PEAK_ADDS * PEAK_ADD_STEP), (double)s->slot[i].x,
			     "its sum", i, 0);
	w->total = w->checked;
	poison(s);
	if (w->count)
		return error_set_cause(
			err, STATUS_MISMATCH, w->nan ? CAUSE_NAN : CAUSE_WRONG_RESULT,
			"peak: %llu of %llu values are wrong, the first at %s: expected %.9g, found %.9g",
			(unsigned long long)w->count, (unsigned long long)w->checked, w->place, w->expected,
			w->found);
	return STATUS_OK;
}

/* The clock from the add chain: one add per cycle, divided by the threads' CPU time. */
static enum status finish(void *state, struct result *out, struct error *err)
{
	struct peak_cpu *s = state;
	double adds = 0, ns = 0;

	(void)err;
	for (unsigned i = 0; i < s->threads; i++) {
		adds += (double)s->slot[i].adds;
		ns += (double)s->slot[i].adds_cpu_ns;
	}
	if (s->common.opts.unit == PEAK_ADD && ns > 0)
		result_f64(out, &field_clock_hz, adds / ns * 1e9);
	return STATUS_OK;
}

/* -- begin and end -- */

static void report(const struct peak_cpu *s, const struct bench *b)
{
	enum peak_unit unit = s->common.opts.unit;

	if (!b->out)
		return;
	result_u64(b->out, &field_threads, s->threads);
	if (unit == PEAK_FMA) {
		result_text(b->out, &peak_fields[PEAK_FIELD_instruction_set], peak_isa_name(s->isa));
		result_u64(b->out, &peak_fields[PEAK_FIELD_chains], peak_chains(s->isa));
	}
	if (s->stream.parts) {
		result_text(b->out, &peak_fields[PEAK_FIELD_instruction_set], s->stream.isa);
		result_u64(b->out, &peak_fields[PEAK_FIELD_stream_bytes], s->stream.words * sizeof(uint64_t));
	}
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct peak_cpu *s = state;
	enum status st;

	s->common = (struct peak){.opts = *(const struct peak_opts *)opts, .check = check, .finish = finish};
	s->isa = peak_isa(b->machine, opts);
	s->fma = peak_fma_loop_for(s->isa, s->common.opts.type);
	s->seed = b->seed;
	st = cpu_bench_threads(b, s->common.opts.threads, &s->threads, err);
	if (!st)
		st = cpu_pool_create(&s->pool, b->cpus, s->threads, err);
	if (st)
		return st;
	s->slot = aligned_alloc(64, s->threads * sizeof(*s->slot));
	if (!s->slot)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "peak: not enough memory for %u threads", s->threads);
	memset(s->slot, 0, s->threads * sizeof(*s->slot));
	if (peak_stream_count(s->common.opts.unit))
		st = peak_stream_begin(s, b->machine, b->target, err);
	if (!st) {
		poison(s);
		report(s, b);
	}
	return st;
}

static uint64_t cpu_time(void *state)
{
	return cpu_pool_time_ns(((struct peak_cpu *)state)->pool);
}

static void release(void *state)
{
	struct peak_cpu *s = state;

	cpu_pool_destroy(&s->pool);
	peak_stream_end(s);
	free(s->slot);
	*s = (struct peak_cpu){0};
}

const struct engine peak_cpu_engine = {
	.name = "cpu",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct peak_cpu),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.cpu_time_ns = cpu_time,
	.release = release,
};
