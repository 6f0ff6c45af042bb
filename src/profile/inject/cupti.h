/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of CUPTI's activity interface as is used, declared here: the library is built without its headers
 * and runs with whichever CUPTI the target brings. Of each record the fields that all versions from
 * CUPTI_VERSION_MIN on have at one place; what came later is behind the version that brought it. A test holds
 * the layouts against the vendor's headers.
 */
#ifndef PROFILE_INJECT_CUPTI_H
#define PROFILE_INJECT_CUPTI_H
#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion's answers: 14 is of CUDA 11.1, 18 of 12.0, 130001 of 13.0. */
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
	CUPTI_THREAD_IDS_KERNEL = 1, /* else the lower half of pthread_self() */
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
	/* From CUPTI_VERSION_CLUSTER on. */
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

/* The object's id is of 12 bytes: process, then thread or device, as the object's kind says. */
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

/* need, field, symbol, parameters */
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
	uint32_t version_told;
#define X(need, field, symbol, params) int(*field) params;
	CUPTI_FUNCTIONS(X)
#undef X
};

enum { CUPTI_TEXT = 256 };
/*
 * The CUPTI that belongs to this process: ASSAY_LIB_CUPTI, one already loaded, one beside the CUDA libraries
 * that are loaded (toolkit or wheel), one on the loader's path, one of the toolkit at CUDA_HOME, CUDA_PATH or
 * /usr/local/cuda. `start` is asked to work with each in turn until it says yes (true). False: *why says what
 * the last one lacked. path: where it was found.
 */
int cupti_open(struct cupti *c, int (*start)(struct cupti *c, char why[CUPTI_TEXT]), char path[CUPTI_TEXT],
	       char why[CUPTI_TEXT]);
/* What CUPTI at this path loads when counters are first asked for: 0.1 to 0.3 s, in which whoever calls
 * waits. */
void cupti_load_counters(const char *path);
#endif
