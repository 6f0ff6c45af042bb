/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops for one vector width. cpu_streams.c includes this file once per instruction set, with these
 * macros:
 *   NAME(x)   the function's name      TARGET         its target attribute
 *   WORDS     words per vector         STREAM(p, v)   store past the cache, with FENCE after it (absent:
 * none) Four vectors per stream and pass keep enough cache lines in flight.
 */
typedef uint64_t NAME(vec) __attribute__((vector_size(WORDS * sizeof(uint64_t)), may_alias));

#define VEC NAME(vec)
#define TURN (4 * WORDS)

/* Inlined with constant `reads` and `put`, so each unit becomes a loop without branches. */
static inline __attribute__((always_inline)) uint64_t TARGET NAME(move)(unsigned reads, enum peak_put put,
									const uint64_t *a, const uint64_t *b,
									uint64_t *c, uint64_t n)
{
	VEC sum[4] = {{0}}, word = (VEC){0} + PEAK_WORD_WRITTEN;
	uint64_t total = 0;

	for (uint64_t i = 0; i < n; i += TURN)
		_Pragma("GCC unroll 4") for (unsigned v = 0; v < 4; v++)
		{
			if (reads)
				sum[v] += ((const VEC *)(a + i))[v];
			if (reads > 1)
				sum[v] += ((const VEC *)(b + i))[v];
			if (put == PEAK_PUT_CACHED)
				((volatile VEC *)(c + i))[v] = word;
#ifdef STREAM
			if (put == PEAK_PUT_PAST)
				STREAM((VEC *)(c + i) + v, word);
#endif
		}
#ifdef STREAM
	if (put == PEAK_PUT_PAST)
		FENCE;
#endif
	for (unsigned v = 0; v < 4; v++)
		for (unsigned lane = 0; lane < WORDS; lane++)
			total += sum[v][lane];
	return total;
}

#define X(unit, text, reads, put)                                                                            \
	static uint64_t TARGET NAME(unit)(const uint64_t *a, const uint64_t *b, uint64_t *c, uint64_t n)     \
	{                                                                                                    \
		return NAME(move)(reads, put, a, b, c, n);                                                   \
	}
PEAK_CACHED_STREAMS(X)
#ifdef STREAM
PEAK_PAST_STREAMS(X)
#endif
#undef X

#define X(unit, text, reads, put) [PEAK_##unit] = NAME(unit),
static peak_stream_loop *const NAME(loops)[PEAK_UNIT_COUNT] = {PEAK_CACHED_STREAMS(X)
#ifdef STREAM
								       PEAK_PAST_STREAMS(X)
#endif
};
#undef X

#undef VEC
#undef TURN
#undef STREAM
#undef FENCE
#undef NAME
#undef TARGET
#undef WORDS
