/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `peak`: the highest rates of this machine's units, measured by loops that use one unit each. It is
 * the bound if facts are hidden (a VM's CPU), and it calibrates the tensor signal on a GPU.
 *
 *   fma    CPU: independent chains of fused multiply-adds in registers, FLOP           limit compute.TYPE
 *   add    CPU: one chain of dependent integer adds, one per cycle: the actual clock     limit clock
 *   mma    GPU: matrix instructions of one type from registers, on every SM            limit compute.TYPE
 *   read .. read2_write_nt   CPU: one mix of memory traffic, streams of 4 x the last-level cache   limit
 * memory 0 to 2 streams are read and 0 or 1 is written, by stores through the caches or (nt) past them
 */
#ifndef PROBE_PEAK_PEAK_H
#define PROBE_PEAK_PEAK_H
#include <stdint.h>
#include "run/probe.h"

/* Kind of stores in a traffic mix. */
enum peak_put { PEAK_PUT_NONE, PEAK_PUT_CACHED, PEAK_PUT_PAST };
/* name, text, streams read, kind of stores. The second list needs an instruction set with stores past the
 * caches. */
#define PEAK_CACHED_STREAMS(X)                                                                               \
	X(READ, "read", 1, PEAK_PUT_NONE)                                                                    \
	X(READ2, "read2", 2, PEAK_PUT_NONE)                                                                  \
	X(WRITE, "write", 0, PEAK_PUT_CACHED)                                                                \
	X(READ_WRITE, "read_write", 1, PEAK_PUT_CACHED)                                                      \
	X(READ2_WRITE, "read2_write", 2, PEAK_PUT_CACHED)
#define PEAK_PAST_STREAMS(X)                                                                                 \
	X(WRITE_NT, "write_nt", 0, PEAK_PUT_PAST)                                                            \
	X(READ_WRITE_NT, "read_write_nt", 1, PEAK_PUT_PAST)                                                  \
	X(READ2_WRITE_NT, "read2_write_nt", 2, PEAK_PUT_PAST)
#define PEAK_STREAMS(X) PEAK_CACHED_STREAMS(X) PEAK_PAST_STREAMS(X)
#define X(name, ...) PEAK_##name,
enum peak_unit { PEAK_FMA, PEAK_ADD, PEAK_MMA, PEAK_STREAMS(X) PEAK_UNIT_COUNT };
#undef X

#define PEAK_ISAS(X)                                                                                         \
	X(AUTO, "auto")                                                                                      \
	X(SSE2, "sse2")                                                                                      \
	X(AVX2, "avx2")                                                                                      \
	X(AVX512F, "avx512f")                                                                                \
	X(AVX512_BF16, "avx512_bf16")                                                                        \
	X(AVX512_VNNI, "avx512_vnni")                                                                        \
	X(AVX_VNNI, "avx_vnni")                                                                              \
	X(NEON, "neon")
#define X(name, text) PEAK_ISA_##name,
enum peak_isa { PEAK_ISAS(X) PEAK_ISA_COUNT };
#undef X

/* The types of probe gemm, in the same order. */
#define PEAK_TYPES(X)                                                                                        \
	X(FP64, "fp64")                                                                                      \
	X(FP32, "fp32")                                                                                      \
	X(TF32, "tf32")                                                                                      \
	X(FP16, "fp16")                                                                                      \
	X(BF16, "bf16")                                                                                      \
	X(E4M3, "e4m3")                                                                                      \
	X(E5M2, "e5m2")                                                                                      \
	X(INT8, "int8")
#define X(name, text) PEAK_##name,
enum peak_type { PEAK_TYPES(X) PEAK_TYPE_COUNT };
#undef X

struct peak_opts {
	uint32_t unit, isa, type, threads;
};

/* Work of one iteration: of one thread on a CPU; of one SM on a GPU, the same for every type. */
enum {
	PEAK_FMA_LOOPS = 1 << 16, /* passes over the chains */
	PEAK_CHAINS = 12,	  /* independent accumulators: latency 4 to 5 times 2 ports, plus two */
	PEAK_ADDS = 1 << 20,
};
#define PEAK_MMA_SM_FLOP 0x1p32

/* The instruction set that `auto` selects on this machine for the type: the widest. PEAK_ISA_AUTO if there is
 * none, or if the CPU has a faster unit (tiles) for which this program has no loop. */
enum peak_isa peak_isa(const struct machine *m, const struct peak_opts *o);
/* Number of independent accumulators per thread: latency 4 to 5 times 2 ports, plus two; NEON 24. */
unsigned peak_chains(enum peak_isa isa);
unsigned peak_lanes(enum peak_isa isa, enum peak_type type);

/* Traffic of a unit; both members are 0 if the unit moves no streams. */
struct peak_mix {
	unsigned reads;
	enum peak_put put;
};
struct peak_mix peak_mix(enum peak_unit unit);
/* Number of 8-byte words in each stream of the mix; work() and the engine use the same number. It follows the
 * size rule of probe memory, but all streams together take at most a quarter of the memory. The result is a
 * multiple of 512 x the number of streams. */
uint64_t peak_stream_words(const struct machine *m, const struct target *t, enum peak_unit unit);
unsigned peak_stream_count(enum peak_unit unit); /* streams read and written; 0: the unit moves no streams */
const char *peak_type_name(enum peak_type type);
const char *peak_isa_name(enum peak_isa isa);

/* First member of every engine's state; verify uses it. */
struct peak {
	struct peak_opts opts;
	/* The engine's own check: compares the result of the last iteration with an independent computation,
	 * then poisons it. */
	enum status (*check)(void *state, struct wrong *wrong, struct error *err);
	/* Sets fields after the phases; NULL: none. */
	enum status (*finish)(void *state, struct result *out, struct error *err);
};

/* name, unit, kind, better, help: the probe's own fields. */
#define PEAK_FIELDS(X)                                                                                       \
	X(instruction_set, "", TEXT, 0, "instruction set of the loop")                                       \
	X(chains, "", U64, 0, "independent chains per thread (per warp on a GPU)")                           \
	X(stream_bytes, "B", U64, 0, "units of memory traffic: bytes of each stream")                        \
	X(instruction, "", TEXT, 0, "unit mma: instruction that the loop issues")                            \
	X(flop_per_clock, "FLOP", F64, 1, "unit mma: FLOP per clock and SM, by the SM's own cycle counter")
#define X(name, ...) PEAK_FIELD_##name,
enum peak_field { PEAK_FIELDS(X) PEAK_FIELD_COUNT };
#undef X
extern const struct field peak_fields[];

/* other probes measure it as their ceiling: run/probe.h, struct ceiling */
extern const struct probe probe_peak;
extern const struct engine peak_cpu_engine;
extern const struct engine peak_gpu_engine;
#endif
