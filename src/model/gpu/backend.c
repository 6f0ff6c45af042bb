/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/backend.h"
#include <stdlib.h>
#include "core/process/cpu_clear.h"
#include "gpu/matmul/skinny.h"
#include "model/cpu/cpu.h"
#include "model/gpu/fp8.h"
#include "model/gpu/gemm/gemm.h"
#include "model/gpu/internal.h"
#include "model/gpu/paged/lists.h"

static enum status load_kernels(struct gpu_state *g, struct error *err)
{
	static const struct {
		const char *file[2], *entry[2];
		enum gpu_kernel_types types;
	} kernels[] = {
#define X(name, in, called, part, types) {{in, in "_f32"}, {called, called "_f32"}, GPU_KERNEL_##types},
		GPU_KERNELS(X)
#undef X
	};
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < GPU_KERNEL_COUNT; i++) {
		const bool f32 =
			kernels[i].types == GPU_KERNEL_BOTH && g->options.precision != GPU_PRECISION_BF16;

		st = gpu_kernel(g->device, &g->kernel[i], kernels[i].file[f32], kernels[i].entry[f32], err);
	}
	return st;
}

static enum status open_all(struct gpu_state *g, struct error *err)
{
	enum status st = gpu_open(&g->device, g->options.pci, err);

	if (!st)
		st = gpu_stream_create(g->device, &g->stream, err);
	if (!st)
		st = load_kernels(g, err);
	if (!st)
		st = gpu_times_create(&g->phases, err);
	if (!st && g->options.parts)
		st = gpu_times_create(&g->parts, err);
	if (!st)
		st = staging_create(&g->staging, g->device, g->stream, err);
	if (!st)
		st = gemm_plans_create(&g->products, g, err);
	if (!st)
		st = gpu_check_fp8(g, err);
	if (!st)
		st = few_rows_open(g, err);
	if (!st)
		st = attention_state_create(&g->attends, g, err);
	if (st)
		return st;
	g->shared_most = gpu_shared_most(g->device);
	return STATUS_OK;
}

/* A context with libraries and kernels takes less than SHARED_BYTES of the device's memory. `own`: bytes that
 * this process has allocated. */
#define SHARED_BYTES ((uint64_t)2 << 30)
static bool is_shared(const struct gpu_state *g, uint64_t own)
{
	uint64_t unused, total;
	struct error ignored = {0};

	return gpu_memory(g->device, &unused, &total, &ignored) || total - unused > own + SHARED_BYTES;
}

enum status gpu_backend_create(struct backend *back, const struct gpu_backend_options *options,
			       struct arena *arena, struct error *err)
{
	struct gpu_state *g = calloc(1, sizeof(*g));
	enum status st;

	*back = (struct backend){
		.ops = &gpu_ops,
		.device = g,
		.arena = arena,
		.dtype = options->precision == GPU_PRECISION_BF16 ? DTYPE_BF16 : DTYPE_F32,
		.stat = DTYPE_F32,
		.kind = BACKEND_GPU,
	};
	if (!g)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a GPU back end");
	g->options = *options;
	st = open_all(g, err);
	if (st)
		gpu_backend_release(back);
	else
		g->is_shared = is_shared(g, 0);
	return st;
}

enum status gpu_backend_take(struct backend *back, uint64_t bytes, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	enum status st = gpu_alloc(g->device, &g->memory, bytes, err);

	if (st)
		return st;
	*back->arena = (struct arena){.base = (uint8_t *)(uintptr_t)g->memory, .size = bytes};
	g->is_shared = g->is_shared || is_shared(g, bytes);
	return STATUS_OK;
}

bool gpu_backend_is_shared(const struct backend *back)
{
	return gpu_of(back)->is_shared;
}

enum status gpu_backend_pin(struct backend *back, uint64_t bytes, struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	struct error why = {0};
	enum status st;

	if (!bytes)
		return STATUS_OK;
	/* in huge pages, which are pinned many times faster */
	g->pinned = cpu_memory(bytes);
	if (!g->pinned)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no %.3g GB of host memory",
				       (double)bytes * 1e-9);
	cpu_clear(g->pinned, bytes); /* the driver would make the pages with one thread */
	st = gpu_host_register(g->device, g->pinned, bytes, &why);
	if (st) {
		free(g->pinned);
		g->pinned = NULL;
		return error_set_cause(err, st, CAUSE_NO_MEMORY, "cannot pin %.3g GB of host memory: %s",
				       (double)bytes * 1e-9, why.text);
	}
	*back->host = (struct arena){.base = g->pinned, .size = bytes};
	return STATUS_OK;
}

void gpu_backend_release(struct backend *back)
{
	struct gpu_state *g = back->device;

	if (!g)
		return;
	if (g->stream)
		gpu_stream_wait(g->stream, NULL); /* an error here has occurred and been reported before */
	layer_graphs_release(&g->spans);
	fetching_release(&g->fetching);
	lanes_release(&g->lanes);
	replays_release(&g->replays);
	sample_turns_release(&g->sampling);
	fetches_release(&g->fetches);
	turns_release(&g->turns);
	paged_lists_release(&g->paged);
	background_copy_release(&g->background);
	filling_release(&g->filling);
	attention_state_release(&g->attends);
	gemm_choices_release(&g->choices);
	gemm_plans_release(&g->products);
	skinny_close(&g->skinny);
	staging_release(&g->staging);
	gpu_times_release(&g->phases);
	gpu_times_release(&g->parts);
	if (g->live)
		gpu_free(g->device, &g->live);
	if (g->memory)
		gpu_free(g->device, &g->memory);
	gpu_host_unregister(g->device, g->pinned);
	free(g->pinned);
	gpu_stream_destroy(&g->stream);
	gpu_close(&g->device);
	free(g);
	back->device = NULL;
}

void gpu_backend_fill(struct backend *back, int64_t most)
{
	gpu_of(back)->rows_most = most;
}

void gpu_backend_hold(struct backend *back, bool hold)
{
	gpu_of(back)->held = hold;
}

bool gpu_backend_holds(const struct backend *back)
{
	return gpu_of(back)->held;
}

struct gpu_device *gpu_backend_device(const struct backend *back)
{
	return gpu_of(back)->device;
}

struct gpu_stream *gpu_backend_stream(const struct backend *back)
{
	return gpu_of(back)->stream;
}

enum gpu_precision gpu_backend_precision(const struct backend *back)
{
	return gpu_of(back)->options.precision;
}

const char *gpu_backend_gemm(const struct backend *back)
{
	return gemm_plans_name(gpu_of(back)->products);
}

const char *gpu_backend_attention(const struct backend *back)
{
	return attention_state_name(gpu_of(back)->attends);
}

double gpu_backend_tuning_s(const struct backend *back)
{
	return gpu_of(back)->tuning_s + attention_state_planned_s(gpu_of(back)->attends);
}

const char *gpu_backend_part_name(enum gpu_part part)
{
	static const char *const names[] = {
#define X(name, word) [GPU_PART_##name] = word,
		GPU_PARTS(X)
#undef X
	};

	return names[part];
}

enum status gpu_backend_phase(struct backend *back, enum gpu_phase phase, struct error *err)
{
	gpu_of(back)->counted_bytes = back->cost.bytes;
	return gpu_times_mark(gpu_of(back)->phases, gpu_of(back), (int)phase, err);
}

enum status gpu_backend_wait_begin(struct backend *back, struct error *err)
{
	struct gpu_state *g = gpu_of(back);

	g->before_wait = gpu_times_now(g->phases);
	return g->before_wait < 0 ? STATUS_OK : gpu_times_mark(g->phases, g, GPU_PHASE_WAIT, err);
}

enum status gpu_backend_wait_end(struct backend *back, struct error *err)
{
	struct gpu_state *g = gpu_of(back);

	return g->before_wait < 0 ? STATUS_OK : gpu_times_mark(g->phases, g, g->before_wait, err);
}

void gpu_backend_times_begin(struct backend *back)
{
	gpu_times_clear(gpu_of(back)->phases);
	gpu_times_clear(gpu_of(back)->parts);
	memset(gpu_of(back)->part_work, 0, sizeof(gpu_of(back)->part_work));
	gpu_of(back)->counted_bytes = back->cost.bytes;
}

enum status gpu_backend_times(struct backend *back, double phase_s[GPU_PHASE_COUNT],
			      double part_s[GPU_PART_COUNT], struct gpu_part_work work[GPU_PART_COUNT],
			      struct error *err)
{
	struct gpu_state *g = gpu_of(back);
	enum status st = gpu_times_read(g->phases, phase_s, GPU_PHASE_COUNT, err);

	for (int i = 0; i < GPU_PART_COUNT; i++)
		part_s[i] = 0;
	memcpy(work, g->part_work, sizeof(g->part_work));
	if (st || !g->parts)
		return st;
	st = gpu_times_mark(g->parts, g, -1, err);
	return st ? st : gpu_times_read(g->parts, part_s, GPU_PART_COUNT, err);
}

enum gpu_part gpu_kernel_part(enum gpu_kernel_id kernel)
{
	static const enum gpu_part part[] = {
#define X(name, in, called, of, types) of,
		GPU_KERNELS(X)
#undef X
	};

	return part[kernel];
}

enum status gpu_run_3d(struct backend *back, enum gpu_kernel_id kernel, const unsigned grid[3],
		       unsigned threads, unsigned shared_bytes, const void *args, struct error *err)
{
	const unsigned block[3] = {threads, 1, 1};
	struct gpu_state *g = gpu_of(back);
	enum status st = gpu_part(back, gpu_kernel_part(kernel), err);

	return st ? st : gpu_launch(g->kernel[kernel], g->stream, grid, block, shared_bytes, args, err);
}

enum status gpu_run(struct backend *back, enum gpu_kernel_id kernel, unsigned blocks, unsigned threads,
		    unsigned shared_bytes, const void *args, struct error *err)
{
	const unsigned grid[3] = {blocks, 1, 1};

	return blocks ? gpu_run_3d(back, kernel, grid, threads, shared_bytes, args, err) : STATUS_OK;
}
