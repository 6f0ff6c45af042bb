/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/cpu/openblas_kernels.h"
#include <stddef.h>
#include <strings.h>

#define WIDE (BLAS_NEED_AVX2 | BLAS_NEED_FMA | BLAS_NEED_AVX512)

const struct blas_kernels blas_kernels[] = {
	{"SkylakeX", WIDE, 512},
	{"Cooperlake", WIDE | BLAS_NEED_AVX512_BF16, 512},
	{"SapphireRapids", WIDE | BLAS_NEED_AVX512_BF16 | BLAS_NEED_AMX_BF16, 512},
	{"Haswell", BLAS_NEED_AVX2 | BLAS_NEED_FMA, 256},
	{"Zen", BLAS_NEED_AVX2 | BLAS_NEED_FMA, 256},
	{0},
};

/* Other sets that a library may select. */
static const struct blas_kernels older[] = {
	{"Excavator", 0, 256},	  {"Steamroller", 0, 256},
	{"Piledriver", 0, 256},	  {"Bulldozer", 0, 256},
	{"Sandybridge", 0, 256},  {"Nehalem", 0, 128},
	{"Prescott", 0, 128},	  {"Core2", 0, 128},
	{"Penryn", 0, 128},	  {"Dunnington", 0, 128},
	{"Atom", 0, 128},	  {"Nano", 0, 128},
	{"Athlon", 0, 128},	  {"Opteron", 0, 128},
	{"Opteron_SSE3", 0, 128}, {"Barcelona", 0, 128},
	{"Bobcat", 0, 128},	  {"Katmai", 0, 128},
	{"Coppermine", 0, 128},	  {"Northwood", 0, 128},
	{"Banias", 0, 128},	  {0},
};

unsigned blas_cpu_has(void)
{
	unsigned has = 0;

#if defined(__x86_64__)
	__builtin_cpu_init();
	has |= __builtin_cpu_supports("avx2") ? BLAS_NEED_AVX2 : 0;
	has |= __builtin_cpu_supports("fma") ? BLAS_NEED_FMA : 0;
	has |= __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
		       ? BLAS_NEED_AVX512
		       : 0;
	has |= __builtin_cpu_supports("avx512bf16") ? BLAS_NEED_AVX512_BF16 : 0;
#endif
	return has;
}

static unsigned bits_of(const struct blas_kernels *k, const char *name)
{
	for (; k->name; k++)
		if (!strcasecmp(k->name, name))
			return k->bits;
	return 0;
}

unsigned blas_kernels_bits(const char *name)
{
	unsigned bits = name ? bits_of(blas_kernels, name) : 0;

	return bits || !name ? bits : bits_of(older, name);
}

unsigned blas_kernels_bits_most(unsigned has)
{
	unsigned most = 0;

	for (const struct blas_kernels *k = blas_kernels; k->name; k++)
		if (blas_kernels_fit(k, has) && k->bits > most)
			most = k->bits;
	return most;
}
