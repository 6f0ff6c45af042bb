/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops for one vector width. cpu_loops.c includes this file once per instruction set, with these macros:
 *   NAME(x)       the function's name         TARGET   its target attribute
 *   LANES         doubles per vector          STREAM(p, v)  non-temporal store (absent: none)
 * Four vectors per pass keep enough loads in flight; the remaining elements are processed one by one.
 */
typedef double NAME(vec) __attribute__((vector_size(LANES * sizeof(double)), may_alias));

#define VEC NAME(vec)
#define AT(p, v) (((const VEC *)(p))[v])
#define SPLAT(x) ((VEC){0} + (x))

static double TARGET NAME(total)(VEC v)
{
	double sum = 0;

	for (unsigned i = 0; i < LANES; i++)
		sum += v[i];
	return sum;
}

static double TARGET NAME(read)(const double *a, uint64_t n)
{
	VEC s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
	double sum = 0;
	uint64_t i = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES) {
		s0 += AT(a + i, 0);
		s1 += AT(a + i, 1);
		s2 += AT(a + i, 2);
		s3 += AT(a + i, 3);
	}
	for (; i < n; i++)
		sum += a[i];
	return sum + NAME(total)(s0 + s1 + s2 + s3);
}

static double TARGET NAME(dot)(const double *a, const double *b, uint64_t n)
{
	VEC s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
	double sum = 0;
	uint64_t i = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES) {
		s0 += AT(a + i, 0) * AT(b + i, 0);
		s1 += AT(a + i, 1) * AT(b + i, 1);
		s2 += AT(a + i, 2) * AT(b + i, 2);
		s3 += AT(a + i, 3) * AT(b + i, 3);
	}
	for (; i < n; i++)
		sum += a[i] * b[i];
	return sum + NAME(total)(s0 + s1 + s2 + s3);
}

/* A loop that stores: `value` is vector v of the current pass, `single` one of the remaining elements. */
#define LOOP(store, value, single, out)                                                                      \
	uint64_t i = 0;                                                                                      \
                                                                                                             \
	for (; i + 4 * LANES <= n; i += 4 * LANES)                                                           \
		_Pragma("GCC unroll 4") for (unsigned v = 0; v < 4; v++) store((VEC *)(out + i) + v, value); \
	for (; i < n; i++)                                                                                   \
	out[i] = single

#define STORES(kind, store, fence)                                                                           \
	static void TARGET NAME(write_##kind)(double *a, double q, uint64_t n)                               \
	{                                                                                                    \
		LOOP(store, SPLAT(q), q, a);                                                                 \
		fence;                                                                                       \
	}                                                                                                    \
	static void TARGET NAME(copy_##kind)(double *restrict c, const double *restrict a, uint64_t n)       \
	{                                                                                                    \
		LOOP(store, AT(a + i, v), a[i], c);                                                          \
		fence;                                                                                       \
	}                                                                                                    \
	static void TARGET NAME(scale_##kind)(double *restrict b, const double *restrict c, double q,        \
					      uint64_t n)                                                    \
	{                                                                                                    \
		LOOP(store, AT(c + i, v) * q, c[i] * q, b);                                                  \
		fence;                                                                                       \
	}                                                                                                    \
	static void TARGET NAME(add_##kind)(double *restrict c, const double *restrict a,                    \
					    const double *restrict b, uint64_t n)                            \
	{                                                                                                    \
		LOOP(store, AT(a + i, v) + AT(b + i, v), a[i] + b[i], c);                                    \
		fence;                                                                                       \
	}                                                                                                    \
	static void TARGET NAME(triad_##kind)(double *restrict a, const double *restrict b,                  \
					      const double *restrict c, double q, uint64_t n)                \
	{                                                                                                    \
		LOOP(store, AT(b + i, v) + AT(c + i, v) * q, b[i] + c[i] * q, a);                            \
		fence;                                                                                       \
	}
#define TABLE(kind)                                                                                          \
	{                                                                                                    \
		NAME(write_##kind), NAME(copy_##kind), NAME(scale_##kind), NAME(add_##kind),                 \
			NAME(triad_##kind)                                                                   \
	}

#define STORE(p, x) (*(p) = (x))
STORES(regular, STORE, (void)0)
#ifdef STREAM
STORES(nontemporal, STREAM, FENCE)
#endif

static const struct memory_loops NAME(loops) = {
	.isa = ISA,
	.isa_bits = ISA_BITS,
	.read = NAME(read),
	.dot = NAME(dot),
	.regular = TABLE(regular),
#ifdef STREAM
	.nontemporal = TABLE(nontemporal),
#endif
};

#undef VEC
#undef AT
#undef SPLAT
#undef LOOP
#undef STORES
#undef TABLE
#undef STORE
#undef STREAM
#undef FENCE
#undef NAME
#undef TARGET
#undef LANES
#undef ISA
#undef ISA_BITS
