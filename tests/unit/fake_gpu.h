/* SPDX-License-Identifier: Apache-2.0 */
/* A device of the fake driver, with the fake libraries beside it; none of them stages a fault. FAKE_DIR: where they lie. */
#ifndef TESTS_UNIT_FAKE_GPU_H
#define TESTS_UNIT_FAKE_GPU_H
#include <stdbool.h>
#include <stdlib.h>
#include "gpu/device/gpu.h"

static inline void fakes_take(void)
{
	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libcuda.so.1", 1);
	setenv("ASSAY_LIB_CUBLASLT", FAKE_DIR "/libcublasLt.so.13", 1);
	setenv("ASSAY_LIB_CUDNN", FAKE_DIR "/libcudnn.so.9", 1);
	unsetenv("FAKE_CUDA");
	unsetenv("FAKE_CUBLASLT");
	unsetenv("FAKE_CUDNN");
}

/* False: it does not open. Owner: caller, fake_gpu_close(). */
static inline bool fake_gpu_open(struct gpu_device **device, struct gpu_stream **stream)
{
	fakes_take();
	return !gpu_open(device, NULL, NULL) && !gpu_stream_create(*device, stream, NULL);
}

static inline void fake_gpu_close(struct gpu_device **device, struct gpu_stream **stream)
{
	gpu_stream_destroy(stream);
	gpu_close(device);
}
#endif
