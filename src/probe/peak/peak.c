/* SPDX-License-Identifier: Apache-2.0 */
/* Probe peak: options, fields, work and descriptor (at the end). peak.h defines the work of one iteration,
 * cpu_loops.c has the CPU's loops. */
#include "probe/peak/peak.h"
#include "probe/shared/cpu.h"
#include "probe/memory/memory.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define X(id, text, reads, put) text,
static const char *const units[] = {"fma", "add", "mma", PEAK_STREAMS(X) NULL};
#undef X
#define X(id, text) text,
static const char *const isas[] = {PEAK_ISAS(X) NULL};
static const char *const types[] = {PEAK_TYPES(X) NULL};
#undef X
#define X(id, text) "compute." text,
static const char *const limits[] = {PEAK_TYPES(X)};
#undef X

static const struct opt opt_rows[] = {
	OPT_ROW(struct peak_opts, unit, .name = "unit", .preset = "fma", .choices = units,
		.help = "fma: multiply-adds in registers; add: chain of dependent adds (measures the clock); read .. read2_write_nt: memory traffic "
			"(nt: non-temporal stores, past the caches); mma: matrix instructions of a GPU"),
	OPT_ROW(struct peak_opts, isa, .name = "isa", .preset = "auto", .choices = isas,
		.help = "CPU instruction set; auto: the widest that the CPU has"),
	OPT_ROW(struct peak_opts, type, .name = "type", .preset = "fp32", .choices = types,
		.help = "type of the operands"),
	OPT_ROW(struct peak_opts, threads, .name = "threads", .preset = "0", .max = 4096,
		.help = "CPU threads; 0: all usable CPUs"),
};

const struct field peak_fields[] = {PEAK_FIELDS(FIELD_ROW)};

const char *peak_type_name(enum peak_type type)
{
	return types[type];
}

const char *peak_isa_name(enum peak_isa isa)
{
	return isas[isa];
}

static enum peak_isa peak_isa_narrow(uint32_t isa, enum peak_type type)
{
	if (type == PEAK_BF16)
		return isa & 1u << CPU_ISA_avx512_bf16 && !(isa & 1u << CPU_ISA_amx_bf16)
			       ? PEAK_ISA_AVX512_BF16
			       : PEAK_ISA_AUTO;
	if (isa & 1u << CPU_ISA_amx_int8)
		return PEAK_ISA_AUTO;
	if (isa & 1u << CPU_ISA_avx512_vnni)
		return PEAK_ISA_AVX512_VNNI;
	return isa & 1u << CPU_ISA_avx_vnni ? PEAK_ISA_AVX_VNNI : PEAK_ISA_AUTO;
}

enum peak_isa peak_isa(const struct machine *m, const struct peak_opts *o)
{
	uint32_t isa = machine_cpu(m)->isa;

	if (o->isa != PEAK_ISA_AUTO)
		return o->isa;
	if (o->type == PEAK_BF16 || o->type == PEAK_INT8)
		return peak_isa_narrow(isa, o->type);
	if (isa & 1u << CPU_ISA_avx512f)
		return PEAK_ISA_AVX512F;
	if (isa & 1u << CPU_ISA_avx2 && isa & 1u << CPU_ISA_fma)
		return PEAK_ISA_AVX2;
	if (isa & 1u << CPU_ISA_sse2)
		return PEAK_ISA_SSE2;
	return isa & 1u << CPU_ISA_neon ? PEAK_ISA_NEON : PEAK_ISA_AUTO;
}

unsigned peak_lanes(enum peak_isa isa, enum peak_type type)
{
	static const unsigned bytes[] = {
		[PEAK_ISA_AUTO] = 0,	  [PEAK_ISA_SSE2] = 16,	       [PEAK_ISA_AVX2] = 32,
		[PEAK_ISA_AVX512F] = 64,  [PEAK_ISA_AVX512_BF16] = 64, [PEAK_ISA_AVX512_VNNI] = 64,
		[PEAK_ISA_AVX_VNNI] = 32, [PEAK_ISA_NEON] = 16};

	return bytes[isa] / (type == PEAK_FP64 ? 8 : 4);
}

/* Products per instruction and lane: 4 for INT8, 2 for BF16, else 1. */
static unsigned products(enum peak_type type)
{
	return type == PEAK_INT8 ? 4 : type == PEAK_BF16 ? 2 : 1;
}

struct peak_mix peak_mix(enum peak_unit unit)
{
#define X(id, text, reads_, put_) [PEAK_##id] = {.reads = (reads_), .put = (put_)},
	static const struct peak_mix mix[PEAK_UNIT_COUNT] = {PEAK_STREAMS(X)};
#undef X

	return mix[unit];
}

unsigned peak_stream_count(enum peak_unit unit)
{
	struct peak_mix mix = peak_mix(unit);

	return mix.reads + (mix.put != PEAK_PUT_NONE);
}

/* The case whose ceiling this is may already hold half of the memory (cpu_memory_bytes). */
uint64_t peak_stream_words(const struct machine *m, const struct target *t, enum peak_unit unit)
{
	uint64_t streams = peak_stream_count(unit), room = cpu_memory_bytes(m, t) / 2;
	uint64_t size = memory_size(m, t, &(struct memory_opts){0}), step = 512 * streams;

	if (!streams)
		return 0;
	if (room && size * streams > room)
		size = room / streams;
	return size / sizeof(uint64_t) / step * step;
}

static unsigned thread_count(const struct machine *m, const struct target *t, const struct peak_opts *o)
{
	return cpu_threads(m, t, o->threads);
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct peak_opts *o = opts;
	double threads = t->kind == TARGET_GPU ? 0 : thread_count(m, t, o);
	struct peak_mix mix = peak_mix(o->unit);
	double part;
	const struct gpu *g;

	switch ((enum peak_unit)o->unit) {
	case PEAK_FMA:
		return (struct work){.flop = threads * 2.0 * PEAK_FMA_LOOPS * peak_chains(peak_isa(m, o)) *
					     peak_lanes(peak_isa(m, o), o->type) * products(o->type),
				     .limit = limits[o->type]};
	case PEAK_ADD:
		return (struct work){.messages = PEAK_ADDS, .limit = "clock"};
	case PEAK_MMA:
		g = t->kind == TARGET_GPU ? machine_gpu(m, t->gpu[0]) : NULL;
		return (struct work){.flop = g ? PEAK_MMA_SM_FLOP * gpu_get(g, GPU_FACT_sm_count, 0) : 0,
				     .limit = limits[o->type]};
	default: /* an iteration covers one part of each stream, so that iterations of all mixes take about as
		    long */
		part = 8.0 * (double)(peak_stream_words(m, t, o->unit) / peak_stream_count(o->unit));
		return (struct work){.read_bytes = mix.reads * part,
				     .write_bytes = mix.put == PEAK_PUT_NONE ? 0 : part,
				     .limit = "memory"};
	}
}

/* Only streams need memory; the other units use registers and caches. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	const struct peak_opts *o = opts;

	if (peak_stream_count(o->unit))
		out->host_bytes = 8.0 * (double)peak_stream_words(m, t, o->unit) * peak_stream_count(o->unit);
}

static enum status check(const void *opts, struct error *err)
{
	const struct peak_opts *o = opts;

	if (o->unit == PEAK_FMA && o->type != PEAK_FP64 && o->type != PEAK_FP32 && o->type != PEAK_BF16 &&
	    o->type != PEAK_INT8)
		return error_set(err, STATUS_BAD_INPUT,
				 "peak: unit=fma supports fp64, fp32, bf16 and int8, not %s", types[o->type]);
	return STATUS_OK;
}

static enum status verify(void *state, struct wrong *wrong, struct error *err)
{
	struct peak *p = state;

	*wrong = (struct wrong){0};
	return p->check(state, wrong, err);
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	struct peak *p = state;

	return p->finish ? p->finish(state, out, err) : STATUS_OK;
}

static const struct engine *const engines[] = {
	&peak_cpu_engine,
	&peak_gpu_engine,
	NULL,
};

const struct probe probe_peak = {
	.name = "peak",
	.summary =
		"highest rates of multiply-adds, memory traffic and matrix instructions, and the actual CPU clock",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct peak_opts)},
	.fields = peak_fields,
	.field_count = PEAK_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = verify,
	.finish = finish,
};
