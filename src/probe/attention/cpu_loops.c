/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/attention/cpu_loops.h"
#include "machine/machine.h"

#if defined(__x86_64__)
#define NAME(x) x##_avx512f
#define TARGET __attribute__((target("avx512f,fma")))
#define LANES 16
#define ISA "avx512f"
#define ISA_BITS (1u << CPU_ISA_avx512f | 1u << CPU_ISA_fma)
#include "probe/attention/cpu_loops_body.h"

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define ISA "avx2"
#define ISA_BITS (1u << CPU_ISA_avx2 | 1u << CPU_ISA_fma)
#include "probe/attention/cpu_loops_body.h"
#endif

/* Four floats per vector: SSE2 and NEON; on other machines the compiler chooses the instructions. */
#define NAME(x) x##_portable
#define TARGET
#define LANES 4
#if defined(__x86_64__)
#define ISA "sse2"
#elif defined(__aarch64__)
#define ISA "neon"
#else
#define ISA "portable"
#endif
#define ISA_BITS 0
#include "probe/attention/cpu_loops_body.h"

static const struct attention_loops *const all[] = {
#if defined(__x86_64__)
	&loops_avx512f,
	&loops_avx2,
#endif
	&loops_portable,
};

const struct attention_loops *attention_loops_for(uint32_t isa_bits)
{
	unsigned i = 0;

	while ((all[i]->isa_bits & isa_bits) != all[i]->isa_bits)
		i++;
	return all[i];
}
