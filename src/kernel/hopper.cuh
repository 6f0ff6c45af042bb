/* SPDX-License-Identifier: Apache-2.0 */
/* Hopper instructions for sm_90a kernels: barriers, bulk tensor copies, register reallocation and fences. */
#ifndef KERNEL_HOPPER_CUH
#define KERNEL_HOPPER_CUH
#include "kernel/args.h"

static __device__ __forceinline__ uint32_t shared_at(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* -- barriers in shared memory: `at` is the address of an 8-byte barrier word -- */

static __device__ __forceinline__ void barrier_init(uint32_t at, unsigned arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void barrier_expect(uint32_t at, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t at)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint32_t at, unsigned parity)
{
	asm volatile("{\n\t.reg .pred done;\n\t"
		     "again:\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
		     "@done bra over;\n\t"
		     "bra again;\n\t"
		     "over:\n\t}" ::"r"(at),
		     "r"(parity)
		     : "memory");
}

/* Makes barrier_init visible to the copy engine. */
static __device__ __forceinline__ void barrier_init_fence()
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives `times` times at the same barrier of block `rank` of the cluster. Who waits there learns that this
 * thread has read its shared memory, but not what it wrote: a release to the cluster would be a fence of the whole
 * GPU's memory, which takes longer than a tile's loads. */
static __device__ __forceinline__ void barrier_arrive_at(uint32_t at, uint32_t rank, unsigned times)
{
	asm volatile("{\n\t.reg .b32 there;\n\t"
		     "mapa.shared::cluster.u32 there, %0, %1;\n\t"
		     "mbarrier.arrive.shared::cluster.b64 _, [there], %2;\n\t}" ::"r"(at),
		     "r"(rank), "r"(times)
		     : "memory");
}

/* Named barriers of the block have the numbers 1 .. 15. */
static __device__ __forceinline__ void named_sync(unsigned number, unsigned threads)
{
	asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* Waits for all threads of the cluster that have not exited. Afterwards each block sees the others' earlier
 * writes. */
static __device__ __forceinline__ void cluster_sync()
{
	asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

static __device__ __forceinline__ uint32_t cluster_size()
{
	uint32_t n;

	asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
	return n;
}

/* The same without the writes, except for barriers that barrier_init_fence has fenced. It is faster: there is no
 * fence of the GPU's memory. */
static __device__ __forceinline__ void cluster_meet()
{
	asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* This block's number in its cluster. */
static __device__ __forceinline__ uint32_t cluster_rank()
{
	uint32_t n;

	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(n));
	return n;
}

static __device__ __forceinline__ uint32_t shared_load_16(uint32_t at)
{
	uint16_t v;

	asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
	return v;
}

static __device__ __forceinline__ void shared_store(uint32_t at, float v)
{
	asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}

static __device__ __forceinline__ void shared_store4(uint32_t at, const float (&v)[4])
{
	asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
		     : "memory");
}

/* Loads from the same shared-memory address in block `rank` of the cluster. */
static __device__ __forceinline__ void cluster_load4(float (&v)[4], uint32_t at, uint32_t rank)
{
	uint32_t there;

	asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
	asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
		     : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
		     : "r"(there)
		     : "memory");
}

static __device__ __forceinline__ void named_arrive(unsigned number, unsigned threads)
{
	asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* -- bulk tensor copies; the tensor map has rank 4 -- */

static __device__ __forceinline__ void tensor_prefetch_map(const void *map)
{
	asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void tensor_load(uint32_t to, const void *map, uint32_t barrier, int c0, int c1,
						   int c2, int c3)
{
	asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
		     "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
		     "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
		     : "memory");
}

/* Priorities of lines in the L2, for the loads below. */
#define L2_EVICT_LAST 0x14f0000000000000

/* As tensor_load, with a priority in the L2. */
static __device__ __forceinline__ void tensor_load_kept(uint32_t to, const void *map, uint32_t barrier, uint64_t priority,
							int c0, int c1)
{
	asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
		     "[%0], [%1, {%3, %4, %5, %5}], [%2], %6;" ::"r"(to),
		     "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(0), "l"(priority)
		     : "memory");
}

/* The same into each block of the cluster whose bit is set in `blocks`: to the same address, and it reports to
 * the barrier at the same address there. */
static __device__ __forceinline__ void tensor_load_spread(uint32_t to, const void *map, uint32_t barrier,
							  uint16_t blocks, uint64_t priority, int c0, int c1)
{
	asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
		     ".L2::cache_hint [%0], [%1, {%3, %4, %5, %5}], [%2], %6, %7;" ::"r"(to),
		     "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(0), "h"(blocks), "l"(priority)
		     : "memory");
}

/* As tensor_load, but only into the L2. */
static __device__ __forceinline__ void tensor_prefetch(const void *map, int c0, int c1, int c2, int c3)
{
	asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0), "r"(c1),
		     "r"(c2), "r"(c3)
		     : "memory");
}

/* Closes a group of this thread's stores since the last commit. An empty group is allowed. */
static __device__ __forceinline__ void tensor_store_commit()
{
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

static __device__ __forceinline__ void tensor_store(const void *map, uint32_t from, int c0, int c1, int c2, int c3)
{
	asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
		     "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
		     : "memory");
	tensor_store_commit();
}

/* Waits until all but the LEFT latest store groups of this thread have read their shared memory. */
template <int LEFT = 0> static __device__ __forceinline__ void tensor_store_wait_read()
{
	asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

static __device__ __forceinline__ void tensor_store_wait()
{
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* -- bulk copies: addresses and sizes are multiples of 16 bytes -- */

static __device__ __forceinline__ void bulk_load(uint32_t to, const void *from, unsigned bytes, uint32_t barrier)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
		     "l"(from), "r"(bytes), "r"(barrier)
		     : "memory");
}

/* Adds floats in shared memory to floats in global memory. tensor_store_wait and tensor_store_wait_read wait
 * for it. */
static __device__ __forceinline__ void bulk_add(float *to, uint32_t from, unsigned bytes)
{
	asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
		     "r"(bytes)
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Orders earlier ordinary shared-memory stores before later reads by the copy engine or the matrix unit. */
static __device__ __forceinline__ void proxy_fence()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* The same for global memory: before, ordinary stores by this thread or by threads whose stores it has seen;
 * afterwards, loads by a copy engine. */
static __device__ __forceinline__ void proxy_fence_all()
{
	asm volatile("fence.proxy.async;" ::: "memory");
}

/* A load of a word of global memory after which this thread sees what was written before the word. */
static __device__ __forceinline__ uint32_t load_acquire(const uint32_t *from)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
	return v;
}

/* -- programmatic dependent launch -- */

/* Waits until all grids before this one have ended and their writes are visible. */
static __device__ __forceinline__ void grid_wait()
{
	asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Lets the next grid begin, once all blocks of this one have called it or ended. */
static __device__ __forceinline__ void grid_release()
{
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* -- register count of a warpgroup -- */

template <int COUNT> static __device__ __forceinline__ void registers_grow()
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> static __device__ __forceinline__ void registers_shrink()
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* -- atomic additions in global memory -- */

static __device__ __forceinline__ void add4(float *to, float x, float y, float z, float w)
{
	asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

/* -- matrix fragments: four 8 x 8 matrices of 16-bit elements -- */

static __device__ __forceinline__ void matrix_load(uint32_t (&r)[4], uint32_t at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(at)
		     : "memory");
}

/* As matrix_load, with each 8 x 8 matrix transposed. */
static __device__ __forceinline__ void matrix_load_turned(uint32_t (&r)[4], uint32_t at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(at)
		     : "memory");
}

static __device__ __forceinline__ void matrix_store(uint32_t at, const uint32_t (&r)[4])
{
	asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0, %1, %2, %3};" ::"r"(r[0]), "r"(r[1]),
		     "r"(r[2]), "r"(r[3]), "r"(at)
		     : "memory");
}
#endif
