/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/peak/cpu_streams.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__x86_64__)
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2")))
#define WORDS 4
#define STREAM(p, x) _mm256_stream_si256((__m256i *)(p), (__m256i)(x))
#define FENCE _mm_sfence()
#include "probe/peak/cpu_streams_body.h"

#define NAME(x) x##_sse2
#define TARGET __attribute__((target("sse2")))
#define WORDS 2
#define STREAM(p, x) _mm_stream_si128((__m128i *)(p), (__m128i)(x))
#define FENCE _mm_sfence()
#include "probe/peak/cpu_streams_body.h"
#endif

/* Two words per vector: NEON on AArch64; on other machines the compiler chooses the instructions. */
#define NAME(x) x##_portable
#define TARGET
#define WORDS 2
#include "probe/peak/cpu_streams_body.h"

static const struct {
	const char *isa;
	uint32_t isa_bits;
	peak_stream_loop *const *loop; /* (PEAK_UNIT_COUNT) */
} all[] = {
#if defined(__x86_64__)
	{"avx2", 1u << CPU_ISA_avx2, loops_avx2},
	{"sse2", 1u << CPU_ISA_sse2, loops_sse2},
#endif
#if defined(__aarch64__)
	{"neon", 0, loops_portable},
#else
	{"portable", 0, loops_portable},
#endif
};

peak_stream_loop *peak_stream_loop_for(uint32_t isa_bits, enum peak_unit unit, const char **isa)
{
	unsigned i = 0;

	while ((all[i].isa_bits & isa_bits) != all[i].isa_bits)
		i++;
	*isa = all[i].isa;
	return all[i].loop[unit];
}

/* The steps are odd, so that every word of a stream has its own value. */
static uint64_t step(unsigned stream)
{
	return stream ? UINT64_C(0x9e3779b97f4a7c15) : UINT64_C(0xd1b54a32d192ed03);
}

uint64_t peak_word(uint64_t seed, unsigned stream, uint64_t i)
{
	return seed + step(stream) * i;
}

/* n seed + step x (first + .. + last - 1); either n or first + last - 1 is even. */
uint64_t peak_words_sum(uint64_t seed, unsigned stream, uint64_t first, uint64_t last)
{
	uint64_t n = last - first, ends = first + last - 1, places;

	if (!n)
		return 0;
	places = n % 2 ? ends / 2 * n : n / 2 * ends;
	return n * seed + step(stream) * places;
}
