/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of stream.cu by bulk copies (cp.async.bulk, from sm_90 on). One thread of a block requests
 * whole tiles and keeps `stages` of them in flight in shared memory. So neither registers nor issue slots
 * limit the bytes in flight, and DRAM sees long contiguous accesses. References: tests/gpu/ref_memory.c.
 *
 *   write_bulk                fills one tile in shared memory and stores it repeatedly
 *   copy_bulk                 loads and stores; no thread touches the data
 *   scale_bulk .. triad_bulk  the other warps compute in place between load and store
 *   read_bulk, dot_bulk       the other warps sum
 *
 * Launch: warp 0 copies and the other warps compute. write and copy have only the copying warp (32 threads).
 * Dynamic shared memory is inputs x stages x tile_bytes (write: tile_bytes).
 * Blocks loop over the tiles in grid strides. With `grouped`, each block takes one group of neighbouring
 * tiles, and the grid is the number of groups. The hardware starts blocks in order, so all SMs stay within a
 * narrow window of the array, which suits DRAM pages.
 * Each stage has one mbarrier for "loaded" and one for "computed". Both count phases, so the parity is the
 * stage's use count mod 2.
 */
#include "kernel/memory/stream.h"
#include "kernel/block_sum.cuh"

extern __shared__ __align__(128) unsigned char shared_tiles[];

static __device__ uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ void barrier_init(uint64_t *b, unsigned arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}

static __device__ void barrier_expect(uint64_t *b, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
		     : "memory");
}

static __device__ void barrier_arrive(uint64_t *b)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}

static __device__ void barrier_wait(uint64_t *b, unsigned parity)
{
	asm volatile("{\n\t.reg .pred done;\n\t"
		     "again:\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
		     "@done bra over;\n\t"
		     "bra again;\n\t"
		     "over:\n\t}" ::"r"(shared_address(b)),
		     "r"(parity)
		     : "memory");
}

static __device__ uint64_t policy_of(uint32_t evict_first)
{
	uint64_t policy;

	if (evict_first)
		asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
	else
		asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
	return policy;
}

static __device__ void bulk_load(void *to, const void *from, unsigned bytes, uint64_t *b, uint64_t policy)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
		     " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
		     "l"(from), "r"(bytes), "r"(shared_address(b)), "l"(policy)
		     : "memory");
}

static __device__ void bulk_store(void *to, const void *from, unsigned bytes, uint64_t policy)
{
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;\n\t"
		     "cp.async.bulk.commit_group;" ::"l"(to),
		     "r"(shared_address(from)), "r"(bytes), "l"(policy)
		     : "memory");
}

template <int Pending> static __device__ void bulk_wait_read()
{
	asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

static __device__ void bulk_wait_all()
{
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

static __device__ void fence_async()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

struct op_read {
	static constexpr int inputs = 1;
	static constexpr bool writes = false, computes = true;
	static __device__ float one(float x, float, float) { return x; }
};
struct op_copy {
	static constexpr int inputs = 1;
	static constexpr bool writes = true, computes = false;
	static __device__ float one(float x, float, float) { return x; }
};
struct op_scale {
	static constexpr int inputs = 1;
	static constexpr bool writes = true, computes = true;
	static __device__ float one(float x, float, float f) { return f * x; }
};
struct op_add {
	static constexpr int inputs = 2;
	static constexpr bool writes = true, computes = true;
	static __device__ float one(float x, float y, float) { return x + y; }
};
struct op_triad {
	static constexpr int inputs = 2;
	static constexpr bool writes = true, computes = true;
	static __device__ float one(float x, float y, float f) { return x + f * y; }
};
struct op_dot {
	static constexpr int inputs = 2;
	static constexpr bool writes = false, computes = true;
	static __device__ float one(float x, float y, float) { return x * y; }
};

/* The tiles of a block, as all its threads see them. */
template <class Op> struct tiles {
	const memory_args &a;
	uint64_t total, first, step, mine; /* total: bytes of an array; mine: tiles of this block */

	__device__ explicit tiles(const memory_args &args) : a(args), total(args.count * sizeof(float))
	{
		uint64_t all = (total + a.tile_bytes - 1) / a.tile_bytes, left;

		first = a.grouped ? (uint64_t)blockIdx.x * a.stages : blockIdx.x;
		step = a.grouped ? 1 : gridDim.x;
		left = first < all ? all - first : 0;
		mine = a.grouped ? (left < a.stages ? left : a.stages) : (left + step - 1) / step;
	}
	__device__ uint64_t offset(uint64_t n) const { return (first + n * step) * a.tile_bytes; }
	__device__ unsigned bytes(uint64_t n) const
	{
		uint64_t left = total - offset(n);

		return left < a.tile_bytes ? (unsigned)left : a.tile_bytes;
	}
	__device__ unsigned stage(uint64_t n) const { return (unsigned)(n % a.stages); }
	__device__ unsigned parity(uint64_t n) const { return (unsigned)(n / a.stages % 2); }
	__device__ unsigned char *shared(uint64_t n, int input) const
	{
		return shared_tiles + (uint64_t)(stage(n) * Op::inputs + input) * a.tile_bytes;
	}
};

template <class Op> static __device__ void load_tile(const tiles<Op> &t, uint64_t n, uint64_t *loaded, uint64_t policy)
{
	uint64_t *b = &loaded[t.stage(n)];
	unsigned bytes = t.bytes(n);

	barrier_expect(b, Op::inputs * bytes);
	bulk_load(t.shared(n, 0), (const char *)t.a.in0 + t.offset(n), bytes, b, policy);
	if (Op::inputs > 1)
		bulk_load(t.shared(n, 1), (const char *)t.a.in1 + t.offset(n), bytes, b, policy);
}

/* The copying thread. A stage is loaded again after its tile's store has left shared memory. With two or more
 * stages this wait comes one tile later, so one store is always in flight. Operations without output do not
 * wait. */
template <class Op> static __device__ void copying(const tiles<Op> &t, uint64_t *loaded, uint64_t *computed)
{
	uint64_t policy = policy_of(t.a.evict_first), stages = t.a.stages;
	uint64_t lag = Op::writes && stages > 1 ? 1 : 0;

	for (uint64_t n = 0; n < stages && n < t.mine; n++)
		load_tile(t, n, loaded, policy);
	for (uint64_t n = 0; n < t.mine; n++) {
		barrier_wait(Op::computes ? &computed[t.stage(n)] : &loaded[t.stage(n)], t.parity(n));
		if (Op::writes)
			bulk_store((char *)t.a.out + t.offset(n), t.shared(n, 0), t.bytes(n), policy);
		if (n < lag || n - lag + stages >= t.mine)
			continue;
		if (Op::writes && lag)
			bulk_wait_read<1>();
		else if (Op::writes)
			bulk_wait_read<0>();
		load_tile(t, n - lag + stages, loaded, policy);
	}
	bulk_wait_all();
}

/* The computing warps. They compute in place if the operation writes, else they sum. */
template <class Op> static __device__ double computing(const tiles<Op> &t, uint64_t *loaded, uint64_t *computed)
{
	unsigned thread = threadIdx.x - 32, threads = blockDim.x - 32;
	float4 sum = make_float4(0, 0, 0, 0);

	for (uint64_t n = 0; n < t.mine; n++) {
		float4 *x = (float4 *)t.shared(n, 0);
		const float4 *y = (const float4 *)t.shared(n, Op::inputs - 1);
		unsigned count = t.bytes(n) / sizeof(float4);

		barrier_wait(&loaded[t.stage(n)], t.parity(n));
#pragma unroll 4
		for (unsigned i = thread; i < count; i += threads) {
			float4 p = x[i], q = y[i], v;

			v = make_float4(Op::one(p.x, q.x, t.a.factor), Op::one(p.y, q.y, t.a.factor),
					Op::one(p.z, q.z, t.a.factor), Op::one(p.w, q.w, t.a.factor));
			if (Op::writes) {
				x[i] = v;
			} else {
				sum.x += v.x;
				sum.y += v.y;
				sum.z += v.z;
				sum.w += v.w;
			}
		}
		if (Op::writes)
			fence_async();
		__syncwarp();
		if (threadIdx.x % 32 == 0)
			barrier_arrive(&computed[t.stage(n)]);
	}
	return sum.x + (double)sum.y + sum.z + (double)sum.w;
}

template <class Op> static __device__ void bulk(const memory_args &a)
{
	__shared__ uint64_t loaded[MEMORY_STAGES_MAX], computed[MEMORY_STAGES_MAX];
	tiles<Op> t(a);
	double sum = 0;

	if (threadIdx.x == 0) {
		for (unsigned s = 0; s < a.stages; s++) {
			barrier_init(&loaded[s], 1);
			if (Op::computes)
				barrier_init(&computed[s], blockDim.x / 32 - 1);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		fence_async();
	}
	__syncthreads();
	if (threadIdx.x == 0)
		copying(t, loaded, computed);
	if (Op::computes && threadIdx.x >= 32)
		sum = computing(t, loaded, computed);
	if (!Op::writes) {
		__syncwarp();
		sum = block_sum(sum);
		if (threadIdx.x == 0)
			a.partial[blockIdx.x] = sum;
	}
}

extern "C" __global__ void read_bulk(memory_args a) { bulk<op_read>(a); }
extern "C" __global__ void copy_bulk(memory_args a) { bulk<op_copy>(a); }
extern "C" __global__ void scale_bulk(memory_args a) { bulk<op_scale>(a); }
extern "C" __global__ void add_bulk(memory_args a) { bulk<op_add>(a); }
extern "C" __global__ void triad_bulk(memory_args a) { bulk<op_triad>(a); }
extern "C" __global__ void dot_bulk(memory_args a) { bulk<op_dot>(a); }

extern "C" __global__ void write_bulk(memory_args a)
{
	tiles<op_copy> t(a);

	for (unsigned i = threadIdx.x; i < a.tile_bytes / sizeof(float); i += blockDim.x)
		((float *)shared_tiles)[i] = a.factor;
	fence_async();
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	uint64_t policy = policy_of(a.evict_first);
	for (uint64_t n = 0; n < t.mine; n++) {
		bulk_store((char *)a.out + t.offset(n), shared_tiles, t.bytes(n), policy);
		bulk_wait_read<8>();
	}
	bulk_wait_all();
}
