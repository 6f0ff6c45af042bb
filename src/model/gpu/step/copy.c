/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of few bytes between the device and pinned memory, in the order of the stream. */
#include "kernel/train/rows.h"
#include "model/gpu/internal.h"

/* On an H200, a copy of the copy engine begins 6 us after the end of the kernel before it. The next kernel
 * begins 7 us after the copy. A kernel that copies should need about 2 us for each. */
#define FEW_BYTES ((uint64_t)256 << 10)

/* Pinned memory without an address on the device is for the copy engine. */
static bool is_for_kernel(const struct gpu_pinned *m, uint64_t bytes)
{
	return m->device && bytes && bytes <= FEW_BYTES && bytes % 4 == 0;
}

enum status gpu_pinned_alloc(struct gpu_state *g, struct gpu_pinned *m, uint64_t bytes, struct error *err)
{
	struct error ignored = {0};
	enum status st = gpu_host_alloc(g->device, &m->host, bytes, err);

	if (st || gpu_host_pointer(g->device, m->host, &m->device, &ignored))
		m->device = 0;
	return st;
}

static enum status by_kernel(struct gpu_state *g, gpu_ptr to, gpu_ptr from, uint64_t bytes, struct error *err)
{
	const struct train_copy_args args = {.from = from, .to = to, .rows = 1, .bytes = bytes};
	const unsigned grid[3] = {train_blocks(1, bytes / 2), 1, 1}, block[3] = {TRAIN_THREADS, 1, 1};

	return gpu_launch(g->kernel[GPU_KERNEL_COPY], g->stream, grid, block, 0, &args, err);
}

enum status gpu_few_to(struct gpu_state *g, gpu_ptr to, const struct gpu_pinned *from, uint64_t bytes,
		       struct error *err)
{
	return is_for_kernel(from, bytes) ? by_kernel(g, to, from->device, bytes, err)
					  : gpu_stream_copy_to(g->stream, to, from->host, bytes, err);
}

enum status gpu_few_from(struct gpu_state *g, const struct gpu_pinned *to, gpu_ptr from, uint64_t bytes,
			 struct error *err)
{
	return is_for_kernel(to, bytes) ? by_kernel(g, to->device, from, bytes, err)
					: gpu_stream_copy_from(g->stream, to->host, from, bytes, err);
}
