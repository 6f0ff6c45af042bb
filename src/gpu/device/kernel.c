/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels from the embedded fatbins. A file is loaded once per device, when its first kernel is requested. */
#include "gpu/device/gpu.h"
#include <zstd.h>
#include "core/text/text.h"
#include "gpu/device/internal.h"
#include "kernel/fatbin.h"

#define FATBIN_BYTES_MAX (256u << 20)
#define SHARED_BYTES_PLAIN (48u << 10) /* above it a kernel must opt in: CUDA C guide, "Shared memory" */

enum status gpu_file_code(const void **code, void **owned, const struct kernel_fatbin *f, struct error *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(f->data, f->size);
	size_t got;

	*code = f->data;
	*owned = NULL;
	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || !size)
		return STATUS_OK; /* not compressed */
	*owned = size <= FATBIN_BYTES_MAX ? malloc(size) : NULL;
	if (!*owned)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for kernel file %s (%llu bytes)", f->name, size);
	got = ZSTD_decompress(*owned, size, f->data, f->size);
	if (ZSTD_isError(got) || got != size) {
		free(*owned);
		*owned = NULL;
		return error_set(err, STATUS_BUG, "kernel file %s in this program is damaged: %s", f->name,
				 ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it is too short");
	}
	*code = *owned;
	return STATUS_OK;
}

static enum status load_file(struct gpu_device *d, struct gpu_file **out, const char *name, struct error *err)
{
	const struct kernel_fatbin *fatbin = kernel_fatbin_find(name);
	struct gpu_file *f = NULL;
	const void *code;
	void *owned;
	enum status st;
	CUresult r;

	if (!fatbin)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
			"this program was built without the kernel file %s (no nvcc at build time)", name);
	f = calloc(1, sizeof(*f));
	if (!f)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a kernel file");
	text_copy(f->name, sizeof(f->name), name);
	st = gpu_file_code(&code, &owned, fatbin, err);
	if (st) {
		free(f);
		return st;
	}
	/* The driver keeps a copy of its own, because CU_LIBRARY_BINARY_IS_PRESERVED is not set. */
	r = d->cu.library_load(&f->library, code, NULL, NULL, 0, NULL, NULL, 0);
	free(owned);
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU)
		st = error_set(err, STATUS_UNSUPPORTED, "kernel file %s has code for %s, not for %s (sm_%u)",
			       name, fatbin->architectures, d->name, d->cc);
	else
		st = cuda_check(&d->cu, r, "library_load", __FILE__, __LINE__, err);
	if (st) {
		free(f);
		return st;
	}
	f->next = d->files;
	d->files = f;
	*out = f;
	return STATUS_OK;
}

static enum status load_kernel(struct gpu_device *d, struct gpu_file *f, struct gpu_kernel **out,
			       const char *entry, struct error *err)
{
	struct gpu_kernel *k = calloc(1, sizeof(*k));
	CUkernel raw = NULL;
	CUresult r;
	enum status st = STATUS_OK;

	if (!k)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a kernel");
	k->device = d;
	text_copy(k->file, sizeof(k->file), f->name);
	text_copy(k->entry, sizeof(k->entry), entry);
	r = d->cu.library_kernel(&raw, f->library, entry);
	if (r == CUDA_ERROR_NOT_FOUND)
		st = error_set(err, STATUS_BUG, "kernel file %s has no kernel %s", f->name, entry);
	else if (r == CUDA_SUCCESS)
		r = d->cu.kernel_function(&k->function, raw);
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU) /* a lazily loaded file reports this only here */
		st = error_set(err, STATUS_UNSUPPORTED, "kernel %s of file %s has no code for %s (sm_%u)",
			       entry, f->name, d->name, d->cc);
	else if (!st)
		st = cuda_check(&d->cu, r, "kernel_function", __FILE__, __LINE__, err);
	if (st) {
		free(k);
		return st;
	}
	k->next = f->kernels;
	f->kernels = k;
	*out = k;
	return STATUS_OK;
}

enum status gpu_kernel(struct gpu_device *d, struct gpu_kernel **out, const char *file, const char *entry,
		       struct error *err)
{
	struct gpu_file *f = d->files;
	enum status st;

	*out = NULL;
	while (f && strcmp(f->name, file))
		f = f->next;
	if (!f) {
		st = load_file(d, &f, file, err);
		if (st)
			return st;
	}
	for (struct gpu_kernel *k = f->kernels; k; k = k->next) {
		if (!strcmp(k->entry, entry)) {
			*out = k;
			return STATUS_OK;
		}
	}
	return load_kernel(d, f, out, entry, err);
}

void gpu_files_unload(struct gpu_device *d)
{
	while (d->files) {
		struct gpu_file *f = d->files;

		while (f->kernels) {
			struct gpu_kernel *k = f->kernels;

			f->kernels = k->next;
			free(k);
		}
		d->cu.library_unload(f->library);
		d->files = f->next;
		free(f);
	}
}

static enum status opt_into_shared(struct gpu_kernel *k, unsigned shared_bytes, struct error *err)
{
	enum status st;

	if (shared_bytes <= SHARED_BYTES_PLAIN || shared_bytes <= k->shared_bytes_max)
		return STATUS_OK;
	st = CUDA_CALL(&k->device->cu, err, function_set, k->function,
		       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes);
	if (!st)
		k->shared_bytes_max = shared_bytes;
	return st;
}

enum status gpu_launch(struct gpu_kernel *k, struct gpu_stream *s, const unsigned grid[3],
		       const unsigned block[3], unsigned shared_bytes, const void *args, struct error *err)
{
	void *params[] = {(void *)(uintptr_t)args};
	enum status st = opt_into_shared(k, shared_bytes, err);

	if (st)
		return st;
	return CUDA_CALL(&k->device->cu, err, launch, k->function, grid[0], grid[1], grid[2], block[0],
			 block[1], block[2], shared_bytes, s->raw, params, NULL);
}

/* Devices whose own code waits for the kernel before (kernel/step/device.cuh): sm_90 and sm_100. Others run
 * code for an older architecture, which has no such wait. */
static bool begins_early(const struct gpu_device *d)
{
	return d->cu.launch_with && (d->cc / 10 == 9 || d->cc / 10 == 10);
}

enum status gpu_launch_early(struct gpu_kernel *k, struct gpu_stream *s, const unsigned grid[3],
			     const unsigned block[3], unsigned shared_bytes, const void *args,
			     struct error *err)
{
	void *params[] = {(void *)(uintptr_t)args};
	CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
				   .value.programmaticStreamSerializationAllowed = 1};
	const CUlaunchConfig config = {
		.gridDimX = grid[0],
		.gridDimY = grid[1],
		.gridDimZ = grid[2],
		.blockDimX = block[0],
		.blockDimY = block[1],
		.blockDimZ = block[2],
		.sharedMemBytes = shared_bytes,
		.hStream = s->raw,
		.attrs = &early,
		.numAttrs = 1,
	};
	enum status st;

	if (!begins_early(k->device))
		return gpu_launch(k, s, grid, block, shared_bytes, args, err);
	st = opt_into_shared(k, shared_bytes, err);
	return st ? st : CUDA_CALL(&k->device->cu, err, launch_with, &config, k->function, params, NULL);
}

enum status gpu_launch_1d(struct gpu_kernel *k, struct gpu_stream *s, unsigned blocks, unsigned threads,
			  unsigned shared_bytes, const void *args, struct error *err)
{
	const unsigned grid[3] = {blocks, 1, 1}, block[3] = {threads, 1, 1};

	return gpu_launch(k, s, grid, block, shared_bytes, args, err);
}

enum status gpu_launch_together(struct gpu_kernel *k, struct gpu_stream *s, unsigned blocks, unsigned threads,
				unsigned shared_bytes, const void *args, struct error *err)
{
	void *params[] = {(void *)(uintptr_t)args};
	enum status st = opt_into_shared(k, shared_bytes, err);

	return st ? st
		  : CUDA_CALL(&k->device->cu, err, launch_cooperative, k->function, blocks, 1, 1, threads, 1,
			      1, shared_bytes, s->raw, params);
}

/* The attributes stay the caller's. */
static CUlaunchConfig config_of(const struct gpu_cluster_launch *l, struct gpu_stream *s,
				CUlaunchAttribute attributes[2])
{
	CUlaunchConfig c = {.gridDimX = l->blocks,
			    .gridDimY = 1,
			    .gridDimZ = 1,
			    .blockDimX = l->threads,
			    .blockDimY = 1,
			    .blockDimZ = 1,
			    .sharedMemBytes = l->shared_bytes,
			    .hStream = s ? s->raw : NULL,
			    .attrs = attributes,
			    .numAttrs = 1 + l->overlap};

	memset(attributes, 0, 2 * sizeof(*attributes));
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attributes[0].value.clusterDim.x = l->cluster;
	attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
	attributes[1].value.programmaticStreamSerializationAllowed = 1;
	return c;
}

enum status gpu_launch_clusters(struct gpu_kernel *k, struct gpu_stream *s,
				const struct gpu_cluster_launch *l, const void *args, struct error *err)
{
	void *params[] = {(void *)(uintptr_t)args};
	CUlaunchAttribute attributes[2];
	const CUlaunchConfig config = config_of(l, s, attributes);
	enum status st;

	if (!k->device->cu.launch_with)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_DRIVER_OLD,
				       "the driver of %s cannot launch clusters (cuLaunchKernelEx)",
				       k->device->name);
	st = opt_into_shared(k, l->shared_bytes, err);
	return st ? st : CUDA_CALL(&k->device->cu, err, launch_with, &config, k->function, params, NULL);
}

enum status gpu_kernel_clusters(struct gpu_kernel *k, const struct gpu_cluster_launch *l, unsigned *clusters,
				struct error *err)
{
	struct gpu_cluster_launch one = *l;
	CUlaunchAttribute attributes[2];
	CUlaunchConfig config;
	enum status st;
	int n = 0;

	*clusters = 0;
	if (!k->device->cu.clusters)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_DRIVER_OLD,
			"the driver of %s cannot launch clusters (cuOccupancyMaxActiveClusters)",
			k->device->name);
	one.blocks = l->cluster;
	one.overlap = false;
	config = config_of(&one, NULL, attributes);
	st = opt_into_shared(k, l->shared_bytes, err);
	if (!st)
		st = CUDA_CALL(&k->device->cu, err, clusters, &n, k->function, &config);
	*clusters = st || n < 0 ? 0 : (unsigned)n;
	return st;
}

enum status gpu_kernel_occupancy(struct gpu_kernel *k, unsigned threads, unsigned shared_bytes,
				 unsigned *blocks, struct error *err)
{
	int n = 0;
	enum status st = opt_into_shared(k, shared_bytes, err);

	if (!st)
		st = CUDA_CALL(&k->device->cu, err, occupancy, &n, k->function, (int)threads, shared_bytes);
	*blocks = st || n < 0 ? 0 : (unsigned)n;
	return st;
}
