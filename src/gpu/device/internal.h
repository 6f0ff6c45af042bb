/* SPDX-License-Identifier: Apache-2.0 */
/* Private structs of src/gpu/device. Only files of src/gpu include this header. */
#ifndef GPU_DEVICE_INTERNAL_H
#define GPU_DEVICE_INTERNAL_H
#include "gpu/device/gpu.h"
#include "vendor/cuda.h"

struct gpu_file; /* one loaded fatbin */

struct gpu_device {
	struct cuda cu;
	CUdevice id;
	CUcontext context;
	bool retained;
	char name[96]; /* e.g. "NVIDIA H100 80GB HBM3 (0000:1b:00.0)", for messages */
	unsigned sm_count, cc;
	struct gpu_file *files;
};

struct gpu_stream {
	struct gpu_device *device;
	CUstream raw;
};

struct gpu_event {
	struct gpu_device *device;
	CUevent raw;
};

struct gpu_graph {
	struct gpu_device *device;
	CUgraphExec raw;
};

struct gpu_kernel {
	struct gpu_device *device;
	struct gpu_kernel *next;
	CUfunction function;
	unsigned shared_bytes_max; /* largest size opted in to so far */
	char file[32], entry[64];
};

struct gpu_file {
	struct gpu_file *next;
	CUlibrary library;
	struct gpu_kernel *kernels;
	char name[32];
};

struct kernel_fatbin;
/* The fatbin's own bytes. *code is lent; *owned is the memory that the caller frees, or NULL. BUG: the
 * compressed bytes are damaged. */
enum status gpu_file_code(const void **code, void **owned, const struct kernel_fatbin *f, struct error *err);
void gpu_files_unload(struct gpu_device *d);
#endif
