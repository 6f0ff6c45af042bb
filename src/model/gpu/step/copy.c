/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of few bytes between the device and pinned memory, in the order of the stream. */
#include "kernel/train/rows.h"
#include "model/gpu/internal.h"

/* On an H200, a copy of the copy engine begins 6 us after the kernel before it has ended, and the next kernel 7 us
 * after the copy. A kernel that copies needs about 2 us for each. It reads the host's memory at half the
 * engine's rate at least. */
#define FEW_BYTES ((uint64_t)256 << 10)

static enum status by_kernel(struct gpu_state *g, gpu_ptr to, gpu_ptr from, uint64_t bytes, struct error *err)
{
	const struct train_copy_args args = {.from = from, .to = to, .rows = 1, .bytes = bytes};
	const unsigned grid[3] = {train_blocks(1, bytes / 2), 1, 1}, block[3] = {TRAIN_THREADS, 1, 1};

	return gpu_launch(g->kernel[GPU_KERNEL_COPY], g->stream, grid, block, 0, &args, err);
}

enum status gpu_few_to(struct gpu_state *g, gpu_ptr to, const struct gpu_pinned *from, uint64_t bytes,
		       struct error *err)
{
	return bytes && bytes <= FEW_BYTES && bytes % 4 == 0
		       ? by_kernel(g, to, from->device, bytes, err)
		       : gpu_stream_copy_to(g->stream, to, from->host, bytes, err);
}

enum status gpu_few_from(struct gpu_state *g, const struct gpu_pinned *to, gpu_ptr from, uint64_t bytes,
			 struct error *err)
{
	return bytes && bytes <= FEW_BYTES && bytes % 4 == 0
		       ? by_kernel(g, to->device, from, bytes, err)
		       : gpu_stream_copy_from(g->stream, to->host, from, bytes, err);
}
