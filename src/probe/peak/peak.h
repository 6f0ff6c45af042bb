/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `peak`: what the parts of this machine can do at most, found by loops that do nothing else. The bound
 * where facts are hidden (a VM's CPU), and the tensor signal's calibration on a GPU.
 *
 *   fma    CPU: independent chains of fused multiply-adds in registers, FLOP          limit compute.TYPE
 *   add    CPU: one chain of dependent integer adds, one a cycle: the held clock         limit clock
 *   mma    GPU: matrix instructions of one type in registers, on every SM             limit compute.TYPE
 *   read .. read2_write_nt   CPU: one mix of traffic, streams of 4 x the last cache   limit memory
 *          so many read, one written: by stores through the caches, or (nt) past them
 */
#ifndef PROBE_PEAK_PEAK_H
#define PROBE_PEAK_PEAK_H
#include <stdint.h>
#include "run/probe.h"

/* How a mix of traffic writes. */
enum peak_put { PEAK_PUT_NONE, PEAK_PUT_CACHED, PEAK_PUT_PAST };
/* name, text, streams read, how one is written. The second list: for ISAs with stores past the caches. */
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

/* The types of probe gemm, in its order. */
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

/* Work of one iteration. CPU: a thread's. GPU: an SM's, the same for every type. */
enum {
	PEAK_FMA_LOOPS = 1 << 16, /* passes over the chains */
	PEAK_CHAINS = 12,	  /* independent accumulators: latency 4..5 times 2 ports, and two to spare */
	PEAK_ADDS = 1 << 20,
};
#define PEAK_MMA_SM_FLOP 0x1p32

/* The ISA that `auto` means on this machine for the type: the widest of its kind; PEAK_ISA_AUTO where there
 * is none, or where the CPU has a faster one (tiles) that no loop of ours issues. */
enum peak_isa peak_isa(const struct machine *m, const struct peak_opts *o);
/* Independent accumulators a thread: latency 4..5 times 2 ports and two to spare; NEON 24. */
unsigned peak_chains(enum peak_isa isa);
unsigned peak_lanes(enum peak_isa isa, enum peak_type type);

/* The traffic of a unit; both members 0 where it is none of streams. */
struct peak_mix {
	unsigned reads;
	enum peak_put put;
};
struct peak_mix peak_mix(enum peak_unit unit);
/* Words of 8 bytes in each stream of the mix, the same for work() and the engine: probe memory's size, less
 * where all would take over a quarter of the memory; a multiple of 512 x the mix's streams. */
uint64_t peak_stream_words(const struct machine *m, const struct target *t, enum peak_unit unit);
unsigned peak_stream_count(enum peak_unit unit); /* read and written; 0: none of streams */
const char *peak_type_name(enum peak_type type);
const char *peak_isa_name(enum peak_isa isa);

/* First member of every engine's state: what verify uses. */
struct peak {
	struct peak_opts opts;
	/* Compares what the last iteration left with an independent computation and poisons it; the engine's
	 * own. */
	enum status (*check)(void *state, struct wrong *wrong, struct error *err);
	/* Fields after the phases; NULL: none. */
	enum status (*finish)(void *state, struct result *out, struct error *err);
};

/* name, unit, kind, better, help: the probe's own fields. */
#define PEAK_FIELDS(X)                                                                                       \
	X(instruction_set, "", TEXT, 0, "instruction set of the loop")                                       \
	X(chains, "", U64, 0, "independent chains a thread (a warp on a GPU)")                               \
	X(stream_bytes, "B", U64, 0, "streams: bytes of each")                                               \
	X(instruction, "", TEXT, 0, "unit mma: the instruction issued")                                      \
	X(flop_per_clock, "FLOP", F64, 1, "unit mma: per clock and multiprocessor, by its own cycle counter")
#define X(name, ...) PEAK_FIELD_##name,
enum peak_field { PEAK_FIELDS(X) PEAK_FIELD_COUNT };
#undef X
extern const struct field peak_fields[];

extern const struct probe probe_peak; /* the instrument of other probes: run/probe.h, struct ceiling */
extern const struct engine peak_cpu_engine;
extern const struct engine peak_gpu_engine;
#endif
