/* SPDX-License-Identifier: Apache-2.0 */
/* A small CPU machine and a bench on it, for tests of CPU engines. */
#ifndef TESTS_UNIT_CPU_BENCH_H
#define TESTS_UNIT_CPU_BENCH_H
#include <sched.h>
#include "run/probe.h"

struct machine {
	struct cpu cpu;
	struct lib_found lib; /* the one library known; name "": none */
};

/* The linker puts these in the place of the machine room's (--wrap). */
const struct cpu *__wrap_machine_cpu(const struct machine *m);
const struct cpu *__wrap_machine_cpu(const struct machine *m)
{
	return &m->cpu;
}

const struct gpu *__wrap_machine_gpu(const struct machine *m, unsigned index);
const struct gpu *__wrap_machine_gpu(const struct machine *m, unsigned index)
{
	(void)m, (void)index;
	return NULL;
}

const struct lib_found *__wrap_machine_lib(const struct machine *m, const char *name);
const struct lib_found *__wrap_machine_lib(const struct machine *m, const char *name)
{
	return m->lib.name[0] && !strcmp(m->lib.name, name) ? &m->lib : NULL;
}

/* ISA bits that this very CPU has, so that no test runs an instruction that is not there. */
static inline uint32_t cpu_bench_isa(void)
{
	uint32_t isa = 0;

#if defined(__x86_64__)
	isa |= 1u << CPU_ISA_sse2;
	isa |= __builtin_cpu_supports("avx2") ? 1u << CPU_ISA_avx2 : 0;
	isa |= __builtin_cpu_supports("fma") ? 1u << CPU_ISA_fma : 0;
	isa |= __builtin_cpu_supports("avx512f") ? 1u << CPU_ISA_avx512f : 0;
	isa |= __builtin_cpu_supports("avx512vnni") ? 1u << CPU_ISA_avx512_vnni : 0;
	isa |= __builtin_cpu_supports("avx512bf16") ? 1u << CPU_ISA_avx512_bf16 : 0;
#elif defined(__aarch64__)
	isa |= 1u << CPU_ISA_neon;
#endif
	return isa;
}

struct cpu_bench {
	struct machine machine;
	struct target target;
	struct bench bench;
};

/* Two threads, unpinned (a test machine may have one CPU), little memory: sizes stay small. */
static inline void cpu_bench_make(struct cpu_bench *b)
{
	*b = (struct cpu_bench){
		.machine.cpu = {.usable = 2,
				.sockets = 1,
				.l3_bytes = 64 << 10,
				.memory_bytes = 64 << 20,
				.isa = cpu_bench_isa()},
		.target = {.kind = TARGET_CPU, .numa = -1},
	};
	b->bench = (struct bench){.machine = &b->machine, .target = &b->target, .threads = 2, .seed = 4711};
}
#endif
