/* SPDX-License-Identifier: Apache-2.0 */
/* The part of CUPTI's activity interface that is used, declared here because the library is built without
 * CUPTI's headers and runs with any CUPTI of the target machine. Only fields of records are declared
 * that lie at the same place in all versions from CUPTI_VERSION_MIN on. Newer fields come after the version
 * that added them. A test compares the layouts with NVIDIA's headers. */
#ifndef PROFILE_INJECT_CUPTI_H
#define PROFILE_INJECT_CUPTI_H
#include <stddef.h>
#include <stdint.h>

/* values of cuptiGetVersion: 14 is CUDA 11.1, 18 is 12.0, 130001 is 13.0 */
enum { CUPTI_VERSION_MIN = 14, CUPTI_VERSION_CLUSTER = 18 };

/* clang-format off */
#define CUPTI_KINDS(X) \
	X(MEMCPY, 1) X(MEMSET, 2) X(KERNEL, 3) X(DRIVER, 4) X(RUNTIME, 5) X(DEVICE, 8) X(CONTEXT, 9) \
	X(CONCURRENT_KERNEL, 10) X(OVERHEAD, 17) X(MEMCPY2, 22) X(SYNCHRONIZATION, 38) X(GRAPH_TRACE, 51)
/* clang-format on */
#define X(name, value) CUPTI_KIND_##name = value,
enum cupti_kind { CUPTI_KINDS(X) };
#undef X

enum {
	CUPTI_OK = 0,
	CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_FLUSH_FORCED = 1,
	CUPTI_ATTRIBUTE_ZEROED = 5,
	CUPTI_THREAD_IDS_KERNEL = 1, /* kernel thread ids instead of the lower half of pthread_self() */
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_RECORD_ALIGN = 8,
};

struct cupti_kernel {
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream, grid[3], block[3], shared_static, shared_dynamic, local_bytes,
		local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout[2];
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit, graph;
	/* from CUPTI_VERSION_CLUSTER on */
	void *access_policy;
	uint32_t channel, channel_type, cluster[3];
};

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, from_device, from_context, to_device, to_context, correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

struct cupti_api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

struct cupti_sync {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

struct cupti_graph_trace {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
};

/* The id of the object has 12 bytes: a process, then a thread or device, depending on the kind of the object.
 */
struct cupti_overhead {
	uint32_t kind, overhead, object, process, thread, unused;
	uint64_t start, end;
};

struct cupti_device {
	uint32_t kind, flags;
	uint64_t bandwidth_kbytes, memory_bytes;
	uint32_t constant_bytes, l2_bytes, warp, clock_khz, copy_engines, sms, max_ipc, warps_per_sm,
		blocks_per_sm, shared_per_sm, registers_per_sm, registers_per_block, shared_per_block,
		threads_per_block, block_max[3], grid_max[3], major, minor, id, ecc;
	uint8_t uuid[16];
	const char *name;
};

struct cupti_context {
	uint32_t kind, id, device;
	uint16_t api, null_stream;
};

typedef void cupti_buffer_request(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void cupti_buffer_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				   size_t valid);

/* required, field, symbol, parameters */
/* clang-format off */
#define CUPTI_FUNCTIONS(X)                                                                                   \
	X(REQUIRED, version, cuptiGetVersion, (uint32_t *))                                                  \
	X(REQUIRED, timestamp, cuptiGetTimestamp, (uint64_t *))                                              \
	X(REQUIRED, register_callbacks, cuptiActivityRegisterCallbacks,                                      \
	  (cupti_buffer_request *, cupti_buffer_complete *))                                                 \
	X(REQUIRED, enable, cuptiActivityEnable, (uint32_t))                                                 \
	X(REQUIRED, disable, cuptiActivityDisable, (uint32_t))                                               \
	X(REQUIRED, flush_all, cuptiActivityFlushAll, (uint32_t))                                            \
	X(REQUIRED, next_record, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                   \
	X(REQUIRED, dropped, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                \
	X(REQUIRED, error_text, cuptiGetResultString, (int, const char **))                                  \
	X(OPTIONAL, callback_name, cuptiGetCallbackName, (int, uint32_t, const char **))                     \
	X(OPTIONAL, set_attribute, cuptiActivitySetAttribute, (uint32_t, size_t *, void *))                  \
	X(OPTIONAL, set_thread_ids, cuptiSetThreadIdType, (int))                                             \
	X(OPTIONAL, enable_driver_call, cuptiActivityEnableDriverApi, (uint32_t, uint8_t))                   \
	X(OPTIONAL, enable_runtime_call, cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))
/* clang-format on */

struct cupti {
	void *handle; /* NULL: not open */
	uint32_t version_number;
#define X(need, field, symbol, params) int(*field) params;
	CUPTI_FUNCTIONS(X)
#undef X
};

enum { CUPTI_TEXT = 256 };
/* Opens the CUPTI that belongs to this process. It tries, in this order: ASSAY_LIB_CUPTI, a CUPTI already
 * loaded, one next to the loaded CUDA libraries (toolkit or wheel), one on the loader's path, and one of the
 * toolkit at CUDA_HOME, CUDA_PATH or /usr/local/cuda. `start` is called with each in turn until it returns
 * true. path: where it was found. Returns false if none works; *why says what is wrong with the last one. */
int cupti_open(struct cupti *c, int (*start)(struct cupti *c, char why[CUPTI_TEXT]), char path[CUPTI_TEXT],
	       char why[CUPTI_TEXT]);
/* Loads in advance what CUPTI at this path loads at the first use of counters. Takes 0.1 to 0.3 s. */
void cupti_load_counters(const char *path);
#endif
