/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver, libcuda.so.1, as a table of functions. No CUDA header is needed, because the types are
 * declared here under NVIDIA's names. If <cuda.h> was included before, its types are used.
 * tests/unit/vendor_headers.c checks every row and constant in that way.
 */
#ifndef VENDOR_CUDA_H
#define VENDOR_CUDA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "vendor/lib.h"

/* Results that the program distinguishes: name, value, status, cause. All others are STATUS_VENDOR. */
/* clang-format off */
#define CUDA_RESULTS(X)                                                        \
	X(CUDA_SUCCESS, 0, OK, NONE)                                           \
	X(CUDA_ERROR_INVALID_VALUE, 1, VENDOR, VENDOR_CALL)                    \
	X(CUDA_ERROR_OUT_OF_MEMORY, 2, NO_RESOURCE, NO_MEMORY)                 \
	X(CUDA_ERROR_NOT_INITIALIZED, 3, VENDOR, VENDOR_CALL)                  \
	X(CUDA_ERROR_STUB_LIBRARY, 34, UNAVAILABLE, DRIVER_MISSING)            \
	X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36, UNAVAILABLE, DRIVER_OLD)  \
	X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, UNAVAILABLE, BUSY)                \
	X(CUDA_ERROR_NO_DEVICE, 100, UNAVAILABLE, NOT_GRANTED)                 \
	X(CUDA_ERROR_INVALID_DEVICE, 101, UNAVAILABLE, NOT_GRANTED)            \
	X(CUDA_ERROR_INVALID_IMAGE, 200, UNSUPPORTED, UNSUPPORTED)             \
	X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, UNSUPPORTED, UNSUPPORTED)         \
	X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, LOST, ECC)                        \
	X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, UNSUPPORTED, UNSUPPORTED)   \
	X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220, LOST, NVLINK_ERRORS)           \
	X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, UNAVAILABLE, DRIVER_OLD)    \
	X(CUDA_ERROR_CONTAINED, 226, LOST, ECC)                                \
	X(CUDA_ERROR_NOT_FOUND, 500, UNSUPPORTED, UNSUPPORTED)                 \
	X(CUDA_ERROR_NOT_READY, 600, VENDOR, VENDOR_CALL)                      \
	X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, VENDOR, VENDOR_CALL)                \
	X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, VENDOR, VENDOR_CALL)                 \
	X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, VENDOR, VENDOR_CALL)    \
	X(CUDA_ERROR_LAUNCH_FAILED, 719, VENDOR, VENDOR_CALL)                  \
	X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720, UNSUPPORTED, UNSUPPORTED) \
	X(CUDA_ERROR_NOT_PERMITTED, 800, UNAVAILABLE, PERMISSION)              \
	X(CUDA_ERROR_NOT_SUPPORTED, 801, UNSUPPORTED, UNSUPPORTED)             \
	X(CUDA_ERROR_SYSTEM_NOT_READY, 802, UNAVAILABLE, FABRIC_STATE)         \
	X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, UNAVAILABLE, VERSION_MISMATCH) \
	X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, UNAVAILABLE, DRIVER_OLD) \
	X(CUDA_ERROR_UNKNOWN, 999, LOST, GPU_LOST)
/* clang-format on */

/* Device attributes that the program reads, with cuDeviceGetAttribute's numbers. */
/* clang-format off */
#define CUDA_ATTRIBUTES(X)                                          \
	X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)             \
	X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                       \
	X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)             \
	X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                       \
	X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)              \
	X(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32)                      \
	X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                       \
	X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                    \
	X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                \
	X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)          \
	X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                    \
	X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)   \
	X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)               \
	X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                    \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)         \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)         \
	X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
	X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)
/* clang-format on */

/* Flags and kinds. */
/* clang-format off */
#define CUDA_CONSTANTS(X)                                    \
	X(CU_STREAM_NON_BLOCKING, 1)                         \
	X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)            \
	X(CU_EVENT_RECORD_EXTERNAL, 1)                       \
	X(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1)       \
	X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3) \
	X(CU_MEMHOSTALLOC_PORTABLE, 1)                       \
	X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                      \
	X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                     \
	X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6) \
	X(CU_EVENT_BLOCKING_SYNC, 1)                         \
	X(CU_EVENT_DISABLE_TIMING, 2)                        \
	X(CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)                  \
	X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                \
	X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                  \
	X(CU_TENSOR_MAP_SWIZZLE_64B, 2)                      \
	X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                     \
	X(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)             \
	X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)             \
	X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)              \
	X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)          \
	X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)
/* clang-format on */

#ifndef CUDA_VERSION /* <cuda.h> is not included */
typedef enum cudaError_enum {
#define X(name, value, status, cause) name = value,
	CUDA_RESULTS(X)
#undef X
} CUresult;
typedef enum CUdevice_attribute_enum {
#define X(name, value) name = value,
	CUDA_ATTRIBUTES(X)
#undef X
} CUdevice_attribute;
enum {
#define X(name, value) name = value,
	CUDA_CONSTANTS(X)
#undef X
};
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;
typedef unsigned CUstreamCaptureMode, CUjit_option, CUlibraryOption, CUfunction_attribute,
	CUdevice_P2PAttribute;
typedef unsigned CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
	CUtensorMapFloatOOBfill;
typedef struct CUtensorMap_st {
	_Alignas(64) uint64_t opaque[16];
} CUtensorMap;
typedef struct CUlaunchAttribute_st {
	unsigned id;
	char pad[4];
	union {
		char bytes[64];
		struct {
			unsigned x, y, z;
		} clusterDim;
		int programmaticStreamSerializationAllowed;
	} value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;
#endif

/* need, result, field, symbol, parameters */
/* clang-format off */
#define CUDA_FUNCTIONS(X)                                                                                     \
	X(REQUIRED, CUresult, init, cuInit, (unsigned flags))                                                 \
	X(REQUIRED, CUresult, driver_version, cuDriverGetVersion, (int *version))                             \
	X(REQUIRED, CUresult, error_name, cuGetErrorName, (CUresult r, const char **name))                    \
	X(REQUIRED, CUresult, error_string, cuGetErrorString, (CUresult r, const char **text))                \
	X(REQUIRED, CUresult, device_count, cuDeviceGetCount, (int *count))                                   \
	X(REQUIRED, CUresult, device_get, cuDeviceGet, (CUdevice *d, int ordinal))                            \
	X(REQUIRED, CUresult, device_by_pci, cuDeviceGetByPCIBusId, (CUdevice *d, const char *pci))           \
	X(REQUIRED, CUresult, device_pci, cuDeviceGetPCIBusId, (char *pci, int size, CUdevice d))             \
	X(REQUIRED, CUresult, device_name, cuDeviceGetName, (char *name, int size, CUdevice d))               \
	X(OPTIONAL, CUresult, device_uuid, cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice d))                    \
	X(REQUIRED, CUresult, device_memory, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice d))                \
	X(REQUIRED, CUresult, device_attribute, cuDeviceGetAttribute,                                         \
	  (int *value, CUdevice_attribute attribute, CUdevice d))                                             \
	X(REQUIRED, CUresult, device_peer, cuDeviceCanAccessPeer, (int *can, CUdevice d, CUdevice peer))      \
	X(REQUIRED, CUresult, device_p2p, cuDeviceGetP2PAttribute,                                            \
	  (int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to))                          \
	X(REQUIRED, CUresult, primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *c, CUdevice d))           \
	X(REQUIRED, CUresult, primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice d))                    \
	X(REQUIRED, CUresult, context_set, cuCtxSetCurrent, (CUcontext c))                                    \
	X(REQUIRED, CUresult, context_peer, cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags))          \
	X(REQUIRED, CUresult, context_synchronize, cuCtxSynchronize, (void))                                  \
	X(REQUIRED, CUresult, memory_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))        \
	X(REQUIRED, CUresult, memory_alloc, cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes))                    \
	X(REQUIRED, CUresult, memory_free, cuMemFree_v2, (CUdeviceptr p))                                     \
	X(REQUIRED, CUresult, host_alloc, cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))           \
	X(REQUIRED, CUresult, host_free, cuMemFreeHost, (void *p))                                            \
	X(REQUIRED, CUresult, host_pointer, cuMemHostGetDevicePointer_v2,                                     \
	  (CUdeviceptr *p, void *host, unsigned flags))                                                       \
	X(REQUIRED, CUresult, host_register, cuMemHostRegister_v2, (void *p, size_t bytes, unsigned flags))   \
	X(REQUIRED, CUresult, host_unregister, cuMemHostUnregister, (void *p))                                \
	X(REQUIRED, CUresult, copy_to, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))     \
	X(REQUIRED, CUresult, copy_from, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))         \
	X(REQUIRED, CUresult, copy_to_async, cuMemcpyHtoDAsync_v2,                                            \
	  (CUdeviceptr to, const void *from, size_t bytes, CUstream s))                                       \
	X(REQUIRED, CUresult, copy_from_async, cuMemcpyDtoHAsync_v2,                                          \
	  (void *to, CUdeviceptr from, size_t bytes, CUstream s))                                             \
	X(REQUIRED, CUresult, copy_async, cuMemcpyDtoDAsync_v2,                                               \
	  (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s))                                       \
	X(REQUIRED, CUresult, copy_peer, cuMemcpyPeerAsync,                                                   \
	  (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,      \
	   CUstream s))                                                                                       \
	X(REQUIRED, CUresult, set32_async, cuMemsetD32Async,                                                  \
	  (CUdeviceptr to, unsigned value, size_t words, CUstream s))                                         \
	X(REQUIRED, CUresult, stream_create, cuStreamCreate, (CUstream *s, unsigned flags))                   \
	X(REQUIRED, CUresult, stream_destroy, cuStreamDestroy_v2, (CUstream s))                               \
	X(REQUIRED, CUresult, stream_synchronize, cuStreamSynchronize, (CUstream s))                          \
	X(REQUIRED, CUresult, stream_wait_event, cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags))  \
	X(OPTIONAL, CUresult, stream_write, cuStreamWriteValue32_v2,                                          \
	  (CUstream s, CUdeviceptr to, uint32_t value, unsigned flags))                                       \
	X(REQUIRED, CUresult, capture_begin, cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode)) \
	X(REQUIRED, CUresult, capture_end, cuStreamEndCapture, (CUstream s, CUgraph *g))                      \
	X(REQUIRED, CUresult, event_create, cuEventCreate, (CUevent *e, unsigned flags))                      \
	X(REQUIRED, CUresult, event_destroy, cuEventDestroy_v2, (CUevent e))                                  \
	X(REQUIRED, CUresult, event_record, cuEventRecord, (CUevent e, CUstream s))                           \
	X(REQUIRED, CUresult, event_record_flags, cuEventRecordWithFlags,                                     \
	  (CUevent e, CUstream s, unsigned flags))                                                            \
	X(REQUIRED, CUresult, event_query, cuEventQuery, (CUevent e))                                         \
	X(REQUIRED, CUresult, event_synchronize, cuEventSynchronize, (CUevent e))                             \
	X(REQUIRED, CUresult, event_elapsed, cuEventElapsedTime, (float *ms, CUevent from, CUevent to))       \
	X(REQUIRED, CUresult, library_load, cuLibraryLoadData,                                                \
	  (CUlibrary *l, const void *code, CUjit_option *jit, void **jit_values, unsigned jit_count,          \
	   CUlibraryOption *options, void **values, unsigned count))                                          \
	X(REQUIRED, CUresult, library_unload, cuLibraryUnload, (CUlibrary l))                                 \
	X(REQUIRED, CUresult, library_kernel, cuLibraryGetKernel, (CUkernel *k, CUlibrary l, const char *name)) \
	X(REQUIRED, CUresult, kernel_function, cuKernelGetFunction, (CUfunction *f, CUkernel k))              \
	X(REQUIRED, CUresult, function_set, cuFuncSetAttribute,                                               \
	  (CUfunction f, CUfunction_attribute attribute, int value))                                          \
	X(REQUIRED, CUresult, function_get, cuFuncGetAttribute,                                               \
	  (int *value, CUfunction_attribute attribute, CUfunction f))                                         \
	X(REQUIRED, CUresult, occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                         \
	  (int *blocks, CUfunction f, int threads, size_t shared_bytes))                                      \
	X(OPTIONAL, CUresult, tensor_map, cuTensorMapEncodeTiled,                                             \
	  (CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address, const uint64_t *sizes,   \
	   const uint64_t *strides, const uint32_t *box, const uint32_t *steps, CUtensorMapInterleave interleave, \
	   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill))       \
	X(REQUIRED, CUresult, launch, cuLaunchKernel,                                                         \
	  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,        \
	   unsigned shared_bytes, CUstream s, void **params, void **extra))                                   \
	X(OPTIONAL, CUresult, launch_with, cuLaunchKernelEx,                                                  \
	  (const CUlaunchConfig *config, CUfunction f, void **params, void **extra))                          \
	X(REQUIRED, CUresult, launch_cooperative, cuLaunchCooperativeKernel,                                  \
	  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,        \
	   unsigned shared_bytes, CUstream s, void **params))                                                 \
	X(OPTIONAL, CUresult, clusters, cuOccupancyMaxActiveClusters,                                         \
	  (int *clusters, CUfunction f, const CUlaunchConfig *config))                                        \
	X(REQUIRED, CUresult, graph_instantiate, cuGraphInstantiateWithFlags,                                 \
	  (CUgraphExec *x, CUgraph g, unsigned long long flags))                                              \
	X(REQUIRED, CUresult, graph_launch, cuGraphLaunch, (CUgraphExec x, CUstream s))                       \
	X(REQUIRED, CUresult, graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec x))                        \
	X(REQUIRED, CUresult, graph_destroy, cuGraphDestroy, (CUgraph g))
/* clang-format on */

struct cuda {
#define X(need, ret, field, symbol, params) ret(*field) params;
	CUDA_FUNCTIONS(X)
#undef X
};

extern const struct lib_spec cuda_lib;

/*
 * Disables the driver's cache of compiled kernels. Call it at the start of a process that uses the driver.
 * The driver would otherwise make a folder in the user's home, and assay leaves nothing behind there. Our
 * kernels are already compiled for the device. If the user has set a cache, it is not changed.
 */
void cuda_keep_no_cache(void);

/* Whether the driver's library can be opened. Does not initialise it. */
bool cuda_is_there(void);
/* Opens and initialises the driver (flags 0). UNAVAILABLE with DRIVER_MISSING, DRIVER_OLD, NOT_GRANTED and so
 * on if it cannot be used. The caller releases `fact`, which may be NULL. */
enum status cuda_open(struct cuda *cu, struct lib_fact *fact, struct error *err);

/* Runs one call and converts its result to a status. On failure *err has the driver's message. cuda_check's
 * `what` describes the call: "cuMemAlloc of 4096 bytes". */
#define CUDA_CALL(cu, err, field, ...)                                                                       \
	cuda_check((cu), (cu)->field(__VA_ARGS__), #field, __FILE__, __LINE__, (err))
enum status cuda_check(const struct cuda *cu, CUresult result, const char *what, const char *file, int line,
		       struct error *err);
#endif
