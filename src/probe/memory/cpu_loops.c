/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/memory/cpu_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(x) x##_avx512f
#define TARGET __attribute__((target("avx512f")))
#define LANES 8
#define ISA "avx512f"
#define ISA_BITS (1u << CPU_ISA_avx512f)
#define STREAM(p, x) _mm512_stream_pd((double *)(p), (__m512d)(x))
#define FENCE _mm_sfence()
#include "probe/memory/cpu_loops_body.h"

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#define LANES 4
#define ISA "avx2"
#define ISA_BITS (1u << CPU_ISA_avx2)
#define STREAM(p, x) _mm256_stream_pd((double *)(p), (__m256d)(x))
#define FENCE _mm_sfence()
#include "probe/memory/cpu_loops_body.h"

#define NAME(x) x##_sse2
#define TARGET __attribute__((target("sse2")))
#define LANES 2
#define ISA "sse2"
#define ISA_BITS (1u << CPU_ISA_sse2)
#define STREAM(p, x) _mm_stream_pd((double *)(p), (__m128d)(x))
#define FENCE _mm_sfence()
#include "probe/memory/cpu_loops_body.h"
#endif

/* Two doubles per vector: NEON on AArch64; on other machines the compiler chooses the instructions. */
#define NAME(x) x##_portable
#define TARGET
#define LANES 2
#ifdef __aarch64__
#define ISA "neon"
#else
#define ISA "portable"
#endif
#define ISA_BITS 0
#include "probe/memory/cpu_loops_body.h"

static const struct memory_loops *const all[] = {
#if defined(__x86_64__)
	&loops_avx512f,
	&loops_avx2,
	&loops_sse2,
#endif
	&loops_portable,
};

/*
 * 512-bit vectors lower the clock of many CPUs (2.4 GHz instead of 3.1 GHz on the machine of this
 * measurement), and loops that wait for memory gain nothing from them: with 256-bit vectors, copy rose from
 * 19.4 to 22 GB/s.
 */
const struct memory_loops *memory_loops_for(uint32_t isa_bits, bool from_memory)
{
	unsigned i = 0;

	if (from_memory && isa_bits & 1u << CPU_ISA_avx2)
		isa_bits &= ~(1u << CPU_ISA_avx512f);
	while ((all[i]->isa_bits & isa_bits) != all[i]->isa_bits)
		i++;
	return all[i];
}

double memory_gather(const double *a, const uint32_t *x, uint64_t n)
{
	double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
	uint64_t i = 0;

	for (; i + 4 <= n; i += 4) {
		s0 += a[x[i]];
		s1 += a[x[i + 1]];
		s2 += a[x[i + 2]];
		s3 += a[x[i + 3]];
	}
	for (; i < n; i++)
		s0 += a[x[i]];
	return s0 + s1 + s2 + s3;
}

const struct memory_node *memory_chase(const struct memory_node *p, unsigned hops)
{
	for (unsigned i = 0; i < hops; i++)
		p = p->next;
	return p;
}
