/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's and NVTX's records as the injected library declares them, against the vendor's headers where the
 * build machine has them: a field at another place does not compile.
 */
#include "test.h"
#if __has_include(<cupti.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cuda.h>
#include <cupti.h>
#pragma GCC diagnostic pop
#define HAVE_CUPTI_H 1
#endif
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#pragma GCC diagnostic pop
#define HAVE_NVTX_H 1
#endif
#include "profile/inject/cupti.h"
#include "profile/inject/launch.h"
#include "profile/inject/nvtx_types.h"

#define AT(ours, field, theirs, member)                                                                      \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, member) &&                           \
			       sizeof(((struct ours *)0)->field) >= sizeof(((theirs *)0)->member),           \
		       #ours "." #field);

#ifdef HAVE_CUPTI_H
#define X(name, value) _Static_assert((int)CUPTI_ACTIVITY_KIND_##name == (value), #name);
CUPTI_KINDS(X)
#undef X
#define X(need, field, symbol, params)                                                                       \
	_Static_assert(sizeof(&symbol) == sizeof(((struct cupti *)0)->field), #symbol);
CUPTI_FUNCTIONS(X)
#undef X
_Static_assert((int)CUPTI_ACTIVITY_FLAG_FLUSH_FORCED == CUPTI_FLUSH_FORCED, "flag");
_Static_assert((int)CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER == CUPTI_ATTRIBUTE_ZEROED, "attribute");
_Static_assert((int)CUPTI_CB_DOMAIN_DRIVER_API == CUPTI_DOMAIN_DRIVER, "domain");
_Static_assert((int)CUPTI_CB_DOMAIN_RUNTIME_API == CUPTI_DOMAIN_RUNTIME, "domain");
_Static_assert((int)CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED == CUPTI_MULTIPLE_SUBSCRIBERS, "error");

/* Every version of the kernel's record that the fields are read from. */
#define KERNEL(type)                                                                                         \
	AT(cupti_kernel, registers, type, registersPerThread)                                                \
	AT(cupti_kernel, start, type, start)                                                                 \
	AT(cupti_kernel, end, type, end)                                                                     \
	AT(cupti_kernel, device, type, deviceId)                                                             \
	AT(cupti_kernel, context, type, contextId)                                                           \
	AT(cupti_kernel, stream, type, streamId)                                                             \
	AT(cupti_kernel, grid, type, gridX)                                                                  \
	AT(cupti_kernel, block, type, blockX)                                                                \
	AT(cupti_kernel, shared_static, type, staticSharedMemory)                                            \
	AT(cupti_kernel, shared_dynamic, type, dynamicSharedMemory)                                          \
	AT(cupti_kernel, local_bytes, type, localMemoryPerThread)                                            \
	AT(cupti_kernel, correlation, type, correlationId)                                                   \
	AT(cupti_kernel, name, type, name)                                                                   \
	AT(cupti_kernel, graph_node, type, graphNodeId)                                                      \
	AT(cupti_kernel, graph, type, graphId)
#define CLUSTER(type) AT(cupti_kernel, cluster, type, clusterX)
#define COPY(type)                                                                                           \
	AT(cupti_memcpy, copy_kind, type, copyKind)                                                          \
	AT(cupti_memcpy, from, type, srcKind)                                                                \
	AT(cupti_memcpy, to, type, dstKind)                                                                  \
	AT(cupti_memcpy, flags, type, flags)                                                                 \
	AT(cupti_memcpy, bytes, type, bytes)                                                                 \
	AT(cupti_memcpy, start, type, start)                                                                 \
	AT(cupti_memcpy, end, type, end)                                                                     \
	AT(cupti_memcpy, device, type, deviceId)                                                             \
	AT(cupti_memcpy, context, type, contextId)                                                           \
	AT(cupti_memcpy, stream, type, streamId)                                                             \
	AT(cupti_memcpy, correlation, type, correlationId)                                                   \
	AT(cupti_memcpy, graph_node, type, graphNodeId)                                                      \
	AT(cupti_memcpy, graph, type, graphId)
#define PEER(type)                                                                                           \
	AT(cupti_memcpy_peer, bytes, type, bytes)                                                            \
	AT(cupti_memcpy_peer, start, type, start)                                                            \
	AT(cupti_memcpy_peer, stream, type, streamId)                                                        \
	AT(cupti_memcpy_peer, from_device, type, srcDeviceId)                                                \
	AT(cupti_memcpy_peer, to_device, type, dstDeviceId)                                                  \
	AT(cupti_memcpy_peer, correlation, type, correlationId)                                              \
	AT(cupti_memcpy_peer, graph_node, type, graphNodeId)                                                 \
	AT(cupti_memcpy_peer, graph, type, graphId)
#define SET(type)                                                                                            \
	AT(cupti_memset, value, type, value)                                                                 \
	AT(cupti_memset, bytes, type, bytes)                                                                 \
	AT(cupti_memset, start, type, start)                                                                 \
	AT(cupti_memset, stream, type, streamId)                                                             \
	AT(cupti_memset, correlation, type, correlationId)                                                   \
	AT(cupti_memset, memory, type, memoryKind)                                                           \
	AT(cupti_memset, graph_node, type, graphNodeId)                                                      \
	AT(cupti_memset, graph, type, graphId)
#define API(type)                                                                                            \
	AT(cupti_api, cbid, type, cbid)                                                                      \
	AT(cupti_api, start, type, start)                                                                    \
	AT(cupti_api, thread, type, threadId)                                                                \
	AT(cupti_api, correlation, type, correlationId)                                                      \
	AT(cupti_api, result, type, returnValue)
#define DEVICE(type)                                                                                         \
	AT(cupti_device, bandwidth_kbytes, type, globalMemoryBandwidth)                                      \
	AT(cupti_device, memory_bytes, type, globalMemorySize)                                               \
	AT(cupti_device, l2_bytes, type, l2CacheSize)                                                        \
	AT(cupti_device, clock_khz, type, coreClockRate)                                                     \
	AT(cupti_device, sms, type, numMultiprocessors)                                                      \
	AT(cupti_device, registers_per_sm, type, maxRegistersPerMultiprocessor)                              \
	AT(cupti_device, shared_per_block, type, maxSharedMemoryPerBlock)                                    \
	AT(cupti_device, threads_per_block, type, maxThreadsPerBlock)                                        \
	AT(cupti_device, major, type, computeCapabilityMajor)                                                \
	AT(cupti_device, id, type, id)                                                                       \
	AT(cupti_device, uuid, type, uuid)                                                                   \
	AT(cupti_device, name, type, name)
#define SYNC(record)                                                                                         \
	AT(cupti_sync, type, record, type)                                                                   \
	AT(cupti_sync, start, record, start)                                                                 \
	AT(cupti_sync, correlation, record, correlationId)                                                   \
	AT(cupti_sync, context, record, contextId)                                                           \
	AT(cupti_sync, stream, record, streamId)                                                             \
	AT(cupti_sync, event, record, cudaEventId)
#define CONTEXT(type)                                                                                        \
	AT(cupti_context, id, type, contextId)                                                               \
	AT(cupti_context, device, type, deviceId)                                                            \
	AT(cupti_context, null_stream, type, nullStreamId)

#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10)
CLUSTER(CUpti_ActivityKernel10)
COPY(CUpti_ActivityMemcpy6)
SYNC(CUpti_ActivitySynchronization2)
CONTEXT(CUpti_ActivityContext3)
#include <cupti_activity_deprecated.h>
SYNC(CUpti_ActivitySynchronization)
AT(cupti_graph_trace, correlation, CUpti_ActivityGraphTrace2, correlationId)
AT(cupti_graph_trace, start, CUpti_ActivityGraphTrace2, start)
AT(cupti_graph_trace, device, CUpti_ActivityGraphTrace2, deviceId)
AT(cupti_graph_trace, graph, CUpti_ActivityGraphTrace2, graphId)
AT(cupti_graph_trace, context, CUpti_ActivityGraphTrace2, contextId)
AT(cupti_graph_trace, stream, CUpti_ActivityGraphTrace2, streamId)
AT(cupti_overhead, overhead, CUpti_ActivityOverhead3, overheadKind)
AT(cupti_overhead, thread, CUpti_ActivityOverhead3, objectId.pt.threadId)
AT(cupti_overhead, start, CUpti_ActivityOverhead3, start)
AT(launch_callback_data, site, CUpti_CallbackData, callbackSite)
AT(launch_callback_data, function, CUpti_CallbackData, functionName)
AT(launch_callback_data, params, CUpti_CallbackData, functionParams)
AT(launch_callback_data, symbol, CUpti_CallbackData, symbolName)
AT(launch_callback_data, context, CUpti_CallbackData, context)
AT(launch_callback_data, correlation, CUpti_CallbackData, correlationId)
AT(launch_params, stream, cuLaunchKernel_params, hStream)
AT(launch_params, stream, cuLaunchCooperativeKernel_params, hStream)
AT(launch_config, stream, CUlaunchConfig, hStream)
_Static_assert(offsetof(cuLaunchKernelEx_params, config) == 0, "the first");
_Static_assert((int)CUPTI_API_ENTER == 0 && (int)CUPTI_API_EXIT == 1, "site");
_Static_assert((int)CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM == CUPTI_THREAD_IDS_KERNEL, "threads");
DEVICE(CUpti_ActivityDevice5)
#endif
#if CUPTI_API_VERSION >= 18
KERNEL(CUpti_ActivityKernel5)
KERNEL(CUpti_ActivityKernel7)
KERNEL(CUpti_ActivityKernel9)
CLUSTER(CUpti_ActivityKernel8)
CLUSTER(CUpti_ActivityKernel9)
COPY(CUpti_ActivityMemcpy4)
COPY(CUpti_ActivityMemcpy5)
PEER(CUpti_ActivityMemcpyPtoP3)
PEER(CUpti_ActivityMemcpyPtoP4)
SET(CUpti_ActivityMemset3)
SET(CUpti_ActivityMemset4)
API(CUpti_ActivityAPI)
DEVICE(CUpti_ActivityDevice3)
DEVICE(CUpti_ActivityDevice4)
CONTEXT(CUpti_ActivityContext)
#endif
#endif

#ifdef HAVE_NVTX_H
#define ATTRIBUTE(field, member) AT(nvtx_attributes, field, nvtxEventAttributes_t, member)
ATTRIBUTE(category, category)
ATTRIBUTE(color_type, colorType)
ATTRIBUTE(color, color)
ATTRIBUTE(payload_type, payloadType)
ATTRIBUTE(payload_count, reserved0)
ATTRIBUTE(payload, payload)
ATTRIBUTE(text_type, messageType)
ATTRIBUTE(text, message)
AT(nvtx_payload, schema, nvtxPayloadData_t, schemaId)
AT(nvtx_payload, size, nvtxPayloadData_t, size)
AT(nvtx_payload, data, nvtxPayloadData_t, payload)
AT(nvtx_schema, mask, nvtxPayloadSchemaAttr_t, fieldMask)
AT(nvtx_schema, entries, nvtxPayloadSchemaAttr_t, entries)
AT(nvtx_schema, count, nvtxPayloadSchemaAttr_t, numEntries)
AT(nvtx_schema, id, nvtxPayloadSchemaAttr_t, schemaId)
AT(nvtx_schema_entry, type, nvtxPayloadSchemaEntry_t, type)
AT(nvtx_schema_entry, name, nvtxPayloadSchemaEntry_t, name)
AT(nvtx_schema_entry, offset, nvtxPayloadSchemaEntry_t, offset)
_Static_assert(sizeof(struct nvtx_schema_entry) == sizeof(nvtxPayloadSchemaEntry_t), "an array of them");
AT(nvtx_module, module, nvtxExtModuleInfo_t, moduleId)
AT(nvtx_module, segments, nvtxExtModuleInfo_t, segments)
AT(nvtx_segment, count, nvtxExtModuleSegment_t, slotCount)
AT(nvtx_segment, slots, nvtxExtModuleSegment_t, functionSlots)
AT(nvtx_callbacks, table_of, NvtxExportTableCallbacks, GetModuleFunctionTable)
#define X(name, index) _Static_assert((int)NVTX_CBID_CORE_##name == (index), #name);
NVTX_CORE_SLOTS(X)
#undef X
#define X(name, index) _Static_assert((int)NVTX_CBID_CORE2_##name == (index), #name);
NVTX_CORE2_SLOTS(X)
#undef X
#define X(name, index) _Static_assert(NVTX3EXT_CBID_nvtx##name == (index), #name);
NVTX_PAYLOAD_SLOTS(X)
#undef X
_Static_assert(NVTX_PAYLOAD_EXT == NVTX_PAYLOAD_TYPE_EXT, "payload");
_Static_assert(NVTX_PAYLOAD_MODULE == NVTX_EXT_PAYLOAD_MODULEID, "module");
_Static_assert(NVTX_SCHEMA_HAS_NAME == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME, "mask");
_Static_assert(NVTX_SCHEMA_HAS_ENTRIES == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES, "mask");
_Static_assert(NVTX_SCHEMA_HAS_ID == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID, "mask");
#endif

static void test_profile_headers__records_of_cupti_are_where_they_are_read(void **state)
{
	(void)state;
#ifndef HAVE_CUPTI_H
	print_message("cupti.h is not here\n");
	skip();
#endif
}

static void test_profile_headers__nvtx_is_as_it_is_declared(void **state)
{
	(void)state;
#ifndef HAVE_NVTX_H
	print_message("NVTX's headers are not here\n");
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profile_headers__records_of_cupti_are_where_they_are_read),
		cmocka_unit_test(test_profile_headers__nvtx_is_as_it_is_declared),
	};

	return cmocka_run_group_tests_name("profile_headers", tests, NULL, NULL);
}
