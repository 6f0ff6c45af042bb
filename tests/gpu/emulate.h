/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grid of a kernel on the CPU: each thread of it is a fiber (ucontext), so that barriers, shuffles, spinning and shared memory
 * do what they do on a device, if slowly and in one fixed order. A .cu file that is C but for what stands here is included
 * behind it. What it cannot show: memory that is seen late, and speed.
 */
#ifndef TESTS_GPU_EMULATE_H
#define TESTS_GPU_EMULATE_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* kernel(args) by blocks x threads, of which a block's all run once before the next block's. Aborts where no thread can go on. */
void emulate(void (*kernel)(const void *args), const void *args, unsigned blocks, unsigned threads);

struct emulate_index {
	unsigned x;
};
extern struct emulate_index threadIdx, blockIdx, gridDim, blockDim;

void __syncthreads(void);
float __shfl_xor_sync(unsigned mask, float v, unsigned lane_mask);
/* What lane `lane` of the warp passes; the whole warp calls it. */
uint64_t emulate_shuffle(uint64_t v, unsigned lane);
void __syncwarp(void);
/* A read that others' writes are waited for by. */
uint32_t emulate_poll(const uint32_t *p);
uint32_t atomicAdd(uint32_t *p, uint32_t v);
uint32_t atomicCAS(uint32_t *p, uint32_t old, uint32_t now);
void emulate_add64(uint64_t *p, uint64_t v);
void __trap(void);
enum { EMULATE_WORDS = 8 };
/* Each lane of a warp gives its words. Returns those of all lanes, [lane][word], lent until the warp's next but one exchange. */
const uint32_t (*emulate_warp(const uint32_t *words, unsigned count))[EMULATE_WORDS];
/* cp.async: a thread's copies are made when it waits for them, groups in their order. `zeros` bytes follow those copied. */
void emulate_copy(void *to, const void *from, size_t bytes, size_t zeros);
void emulate_commit(void);
void emulate_wait(unsigned later);

#define EMULATED
#define __CUDACC__ /* pointers in argument structs are pointers */
#define ENTRY static
#define __device__
#define __host__
#define __noinline__
#define __forceinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__

typedef struct {
	_Alignas(16) float x;
	float y, z, w;
} float4;
typedef struct {
	_Alignas(16) uint32_t x;
	uint32_t y, z, w;
} uint4;
typedef struct {
	_Alignas(8) uint32_t x;
	uint32_t y;
} uint2;
enum { EMULATE_SHARED = 256 << 10 };
extern float4 shared[EMULATE_SHARED / 16]; /* of the block that runs: `extern __shared__ float4 shared[]` */

static inline float4 make_float4(float x, float y, float z, float w)
{
	return (float4){x, y, z, w};
}

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
	return (uint4){x, y, z, w};
}

static inline float __uint_as_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t __float_as_uint(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline uint2 make_uint2(uint32_t x, uint32_t y)
{
	return (uint2){x, y};
}

static inline float __fdividef(float x, float y)
{
	return x / y;
}

#define __expf expf

static inline uint32_t __umulhi(uint32_t x, uint32_t y)
{
	return (uint32_t)((uint64_t)x * y >> 32);
}

static inline float rsqrtf(float v)
{
	return 1 / sqrtf(v);
}

static inline void __threadfence(void)
{
}
#define __ldcg(p) (*(p))
#endif
