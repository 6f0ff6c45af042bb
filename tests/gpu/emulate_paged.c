/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/paged/portable.cu itself in its reference's place: tests/fake's driver, built with this file, runs the kernels' own source. */
#include "emulate_f16.h"
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* of unrolling */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* columns that a unit does not have */

static uint32_t shared_address(uint32_t at)
{
	return at;
}

static void copy16(uint32_t to, const uint8_t *from, bool there, bool wide)
{
	(void)wide;
	emulate_copy((char *)shared + to, from, there ? 16 : 0, there ? 0 : 16);
}

static void copy_some(uint32_t to, const float *from, uint32_t bytes)
{
	emulate_copy((char *)shared + to, from, bytes, 16 - bytes);
}

static void copy_commit(void)
{
	emulate_commit();
}

static void copy_wait(uint32_t later)
{
	emulate_wait(later);
}

/* The barrier's words: phases that have ended; arrivals that a phase lacks, and above them those that it has in all. */
static void phase_init(uint32_t at, uint32_t arrivals)
{
	uint32_t *word = (uint32_t *)((char *)shared + at);

	word[0] = 0;
	word[1] = arrivals << 16 | arrivals;
}

static void phase_arrive(uint32_t at)
{
	uint32_t *word = (uint32_t *)((char *)shared + at);

	if (--word[1] & 0xffff)
		return;
	word[1] |= word[1] >> 16;
	atomicAdd(word, 1);
}

static void phase_wait(uint32_t at, uint32_t parity)
{
	while (emulate_poll((const uint32_t *)((char *)shared + at)) % 2 == parity)
		;
}

static void grid_wait(void)
{
}

static void grid_release(void)
{
}

static uint16_t element(uint32_t row_at, uint32_t i)
{
	return ((const uint16_t *)((const char *)shared + row_at))[i];
}

static void matrix4(uint32_t *r, uint32_t at)
{
	const uint32_t(*all)[EMULATE_WORDS] = emulate_warp(&at, 1);
	const uint32_t lane = threadIdx.x % 32;

	for (uint32_t m = 0; m < 4; m++) {
		const uint32_t row = all[8 * m + lane / 4][0];

		r[m] = element(row, lane % 4 * 2) | (uint32_t)element(row, lane % 4 * 2 + 1) << 16;
	}
}

static void matrix4_turned(uint32_t *r, uint32_t at)
{
	const uint32_t(*all)[EMULATE_WORDS] = emulate_warp(&at, 1);
	const uint32_t lane = threadIdx.x % 32;

	for (uint32_t m = 0; m < 4; m++) {
		const uint32_t first = 8 * m + lane % 4 * 2;

		r[m] = element(all[first][0], lane / 4) | (uint32_t)element(all[first + 1][0], lane / 4) << 16;
	}
}

static uint32_t matrix_turn(uint32_t v)
{
	const uint32_t(*all)[EMULATE_WORDS] = emulate_warp(&v, 1);
	const uint32_t lane = threadIdx.x % 32, column = lane / 4;
	uint32_t half[2];

	for (uint32_t e = 0; e < 2; e++)
		half[e] = all[(lane % 4 * 2 + e) * 4 + column / 2][0] >> column % 2 * 16 & 0xffff;
	return half[0] | half[1] << 16;
}

static void matrix_step(float *c, const uint32_t *a, uint32_t b0, uint32_t b1)
{
	emulate_matrix(c, a, b0, b1, emulate_bf16);
}

static uint32_t round_bf16(float v)
{
	const uint32_t bits = __float_as_uint(v);

	return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

static uint32_t pack_bf16(float first, float second)
{
	return round_bf16(first) | round_bf16(second) << 16;
}

static uint32_t pick_bytes(uint32_t v, uint32_t which)
{
	uint32_t picked = 0;

	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t from = which >> 4 * i & 7;

		picked |= (from < 4 ? v >> 8 * from & 0xff : 0) << 8 * i;
	}
	return picked;
}

static float exp2_fast(float x)
{
	return exp2f(x);
}

static float log2_fast(float x)
{
	return log2f(x);
}

static float reciprocal_fast(float x)
{
	return 1 / x;
}

static float larger_or_nan(float x, float y)
{
	return isnan(x) || x > y ? x : y;
}

static int32_t lane_value(int32_t v, uint32_t lane)
{
	return (int32_t)emulate_shuffle((uint32_t)v, lane);
}

static bool warp_any(bool v)
{
	const uint32_t word = v;
	const uint32_t(*all)[EMULATE_WORDS] = emulate_warp(&word, 1);
	uint32_t any = 0;

	for (int i = 0; i < 32; i++)
		any |= all[i][0];
	return any;
}

/* emulate.h stands first: it says what nvcc's words mean. */
#include "kernel/paged/portable.cu"
#undef __CUDACC__
#define ref_paged ref_paged_double /* tiles have no emulation */
#include "ref_paged.c"
#undef ref_paged

#define RUN(NAME)                                                                                            \
	static void run_##NAME(const void *args)                                                             \
	{                                                                                                    \
		paged_##NAME(*(const struct paged_attention_args *)args);                                    \
	}
RUN(bf16_d64)
RUN(bf16_d128)
RUN(e4m3_d64)
RUN(e4m3_d128)
RUN(bf16_d64_late)
RUN(bf16_d128_late)
RUN(e4m3_d64_late)
RUN(e4m3_d128_late)

static void run_copy_bf16(const void *args)
{
	paged_copy_bf16(*(const struct paged_copy_args *)args);
}

static void run_copy_e4m3(const void *args)
{
	paged_copy_e4m3(*(const struct paged_copy_args *)args);
}

static void emulate_copy_pages(const char *entry, struct ref_grid grid, const void *args)
{
	emulate(strstr(entry, "e4m3") ? run_copy_e4m3 : run_copy_bf16, args, grid.blocks, grid.threads);
}

static void emulate_units(const char *entry, struct ref_grid grid, const void *args)
{
	static const struct {
		const char *entry;
		void (*run)(const void *args);
	} all[] = {
		{"paged_bf16_d64", run_bf16_d64},	      {"paged_bf16_d128", run_bf16_d128},
		{"paged_e4m3_d64", run_e4m3_d64},	      {"paged_e4m3_d128", run_e4m3_d128},
		{"paged_bf16_d64_late", run_bf16_d64_late}, {"paged_bf16_d128_late", run_bf16_d128_late},
		{"paged_e4m3_d64_late", run_e4m3_d64_late}, {"paged_e4m3_d128_late", run_e4m3_d128_late},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(entry, all[i].entry))
			emulate(all[i].run, args, grid.blocks, grid.threads);
}

const struct ref_row ref_paged[] = {
	{"paged_bf16_", emulate_units, sizeof(struct paged_attention_args), offsetof(struct paged_attention_args, o)},
	{"paged_e4m3_", emulate_units, sizeof(struct paged_attention_args), offsetof(struct paged_attention_args, o)},
	{"paged_copy_", emulate_copy_pages, sizeof(struct paged_copy_args), offsetof(struct paged_copy_args, copy)},
	{"tiles_bf16_", run_tiles, sizeof(struct paged_tiles_args), offsetof(struct paged_tiles_args, dense.o)},
	{NULL, NULL, 0, 0},
};
