/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's counters: host API, range profiler and PM sampling, from libcupti.so of CUDA 12.6 and newer. Every
 * function takes one structure. Its size tells the library which members the caller knows, so a row holds the
 * structure too. Our structures have short names. vendor_headers.c checks each offset and size against the
 * toolkit's headers (13.0; those of 12.8 and 12.9 are the same).
 */
#ifndef VENDOR_CUPTI_H
#define VENDOR_CUPTI_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "vendor/lib.h"

/* Results that the program distinguishes: name, value, status, cause. All others are STATUS_VENDOR. */
/* clang-format off */
#define CUPTI_RESULTS(X)                                                                     \
	X(CUPTI_SUCCESS, 0, OK, NONE)                                                        \
	X(CUPTI_ERROR_INVALID_PARAMETER, 1, VENDOR, VENDOR_CALL)                             \
	X(CUPTI_ERROR_INVALID_OPERATION, 7, VENDOR, VENDOR_CALL)                             \
	X(CUPTI_ERROR_OUT_OF_MEMORY, 8, NO_RESOURCE, NO_MEMORY)                              \
	X(CUPTI_ERROR_NOT_COMPATIBLE, 14, UNAVAILABLE, VERSION_MISMATCH)                     \
	X(CUPTI_ERROR_NOT_INITIALIZED, 15, UNAVAILABLE, VERSION_MISMATCH)                    \
	X(CUPTI_ERROR_INVALID_METRIC_NAME, 17, UNSUPPORTED, UNSUPPORTED)                     \
	X(CUPTI_ERROR_HARDWARE_BUSY, 26, UNAVAILABLE, BUSY)                                  \
	X(CUPTI_ERROR_NOT_SUPPORTED, 27, UNSUPPORTED, UNSUPPORTED)                           \
	X(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, 33, UNSUPPORTED, UNSUPPORTED)        \
	X(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 35, UNAVAILABLE, PERMISSION)                  \
	X(CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, 36, UNAVAILABLE, BUSY)                   \
	X(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39, UNAVAILABLE, BUSY)             \
	X(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, 40, UNAVAILABLE, PERMISSION) \
	X(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, 41, UNSUPPORTED, UNSUPPORTED)    \
	X(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, 43, UNSUPPORTED, MIG_MODE)                   \
	X(CUPTI_ERROR_INVALID_CHIP_NAME, 46, UNAVAILABLE, VERSION_MISMATCH)                  \
	X(CUPTI_ERROR_UNKNOWN, 999, VENDOR, VENDOR_CALL)
#define CUPTI_CONSTANTS(X)                                                                   \
	X(CUPTI_PROFILER_TYPE_RANGE_PROFILER, 0) X(CUPTI_PROFILER_TYPE_PM_SAMPLING, 1)       \
	X(CUPTI_UserRange, 2)                    X(CUPTI_UserReplay, 3)                      \
	X(CUPTI_AutoRange, 1)                    X(CUPTI_KernelReplay, 2)                    \
	X(CUPTI_PROFILER_RANGE_PROFILING, 0)     X(CUPTI_PROFILER_PM_SAMPLING, 3)            \
	X(CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, 1) X(CUPTI_PROFILER_CONFIGURATION_DISABLED, 2) \
	X(CUPTI_PROFILER_CONFIGURATION_SUPPORTED, 3)                                         \
	X(CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL, 0)                             \
	X(CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL, 1)                               \
	X(CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST, 0)                      \
	X(CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST, 1)
/* clang-format on */
#ifndef _CUPTI_RESULT_H_ /* CUPTI's headers were not included */
enum {
#define X(name, value, status, cause) name = value,
	CUPTI_RESULTS(X)
#undef X
#define X(name, value) name = value,
		CUPTI_CONSTANTS(X)
#undef X
};
#endif

/* Members after size and priv: M(our type, our name, CUPTI's name). */
/* clang-format off */
#define CUPTI_NO_MEMBERS(M)
#define CUPTI_CHIP(M) M(size_t, device, deviceIndex) M(const char *, chip, pChipName)
#define CUPTI_SUPPORTED(M)                                                                   \
	M(int, device, cuDevice) M(int, all, isSupported) M(int, architecture, architecture) \
	M(int, sli, sli) M(int, vgpu, vGpu) M(int, confidential, confidentialCompute)        \
	M(int, cmp, cmp) M(int, wsl, wsl) M(int, api, api)
#define CUPTI_AVAILABILITY(M)                                                                \
	M(void *, context, ctx) M(size_t, image_size, counterAvailabilityImageSize)          \
	M(uint8_t *, image, pCounterAvailabilityImage)
#define CUPTI_HOST_OPEN(M)                                                                   \
	M(int, type, profilerType) M(const char *, chip, pChipName)                          \
	M(const uint8_t *, availability, pCounterAvailabilityImage) M(void *, host, pHostObject)
#define CUPTI_HOST(M) M(void *, host, pHostObject)
#define CUPTI_PROPERTIES(M)                                                                  \
	M(void *, host, pHostObject) M(const char *, metric, pMetricName)                    \
	M(const char *, description, pDescription) M(const char *, unit, pHwUnit)            \
	M(const char *, dimension, pDimUnit) M(int, type, metricType)
#define CUPTI_ADD(M)                                                                         \
	M(void *, host, pHostObject) M(const char **, metrics, ppMetricNames)                \
	M(size_t, count, numMetrics)
#define CUPTI_IMAGE_SIZE(M) M(void *, host, pHostObject) M(size_t, image_size, configImageSize)
#define CUPTI_IMAGE(M)                                                                       \
	M(void *, host, pHostObject) M(size_t, image_size, configImageSize)                  \
	M(uint8_t *, image, pConfigImage)
#define CUPTI_PASSES(M)                                                                      \
	M(size_t, image_size, configImageSize) M(uint8_t *, image, pConfigImage)             \
	M(size_t, passes, numOfPasses)
#define CUPTI_EVALUATE(M)                                                                    \
	M(void *, host, pHostObject) M(const uint8_t *, data, pCounterDataImage)             \
	M(size_t, data_size, counterDataImageSize) M(size_t, range, rangeIndex)              \
	M(const char **, metrics, ppMetricNames) M(size_t, count, numMetrics)                \
	M(double *, values, pMetricValues)
#define CUPTI_RANGE_ENABLE(M) M(void *, context, ctx) M(void *, profiler, pRangeProfilerObject)
#define CUPTI_RANGE(M) M(void *, profiler, pRangeProfilerObject)
#define CUPTI_RANGE_CONFIG(M)                                                                \
	M(void *, profiler, pRangeProfilerObject) M(size_t, image_size, configSize)          \
	M(const uint8_t *, image, pConfig) M(size_t, data_size, counterDataImageSize)        \
	M(uint8_t *, data, pCounterDataImage) M(int, range, range)                           \
	M(int, replay, replayMode) M(size_t, ranges, maxRangesPerPass)                       \
	M(uint16_t, levels, numNestingLevels) M(uint16_t, level_min, minNestingLevel)        \
	M(size_t, pass, passIndex) M(uint16_t, level, targetNestingLevel)
#define CUPTI_RANGE_STOP(M)                                                                  \
	M(void *, profiler, pRangeProfilerObject) M(size_t, pass, passIndex)                 \
	M(size_t, level, targetNestingLevel) M(uint8_t, all, isAllPassSubmitted)
#define CUPTI_RANGE_PUSH(M) M(void *, profiler, pRangeProfilerObject) M(const char *, name, pRangeName)
#define CUPTI_RANGE_DECODE(M) M(void *, profiler, pRangeProfilerObject) M(size_t, dropped, numOfRangeDropped)
#define CUPTI_RANGE_DATA_SIZE(M)                                                             \
	M(void *, profiler, pRangeProfilerObject) M(const char **, metrics, pMetricNames)    \
	M(size_t, count, numMetrics) M(size_t, ranges, maxNumOfRanges)                       \
	M(uint32_t, nodes, maxNumRangeTreeNodes) M(size_t, data_size, counterDataSize)
#define CUPTI_RANGE_DATA(M)                                                                  \
	M(void *, profiler, pRangeProfilerObject) M(size_t, data_size, counterDataSize)      \
	M(uint8_t *, data, pCounterData)
#define CUPTI_RANGE_INFO(M)                                                                  \
	M(const uint8_t *, data, pCounterDataImage) M(size_t, data_size, counterDataImageSize) \
	M(size_t, ranges, numTotalRanges)
#define CUPTI_PM_ENABLE(M) M(size_t, device, deviceIndex) M(void *, sampler, pPmSamplingObject)
#define CUPTI_PM(M) M(void *, sampler, pPmSamplingObject)
#define CUPTI_PM_CONFIG(M)                                                                   \
	M(void *, sampler, pPmSamplingObject) M(size_t, image_size, configSize)              \
	M(const uint8_t *, image, pConfig) M(size_t, buffer_size, hardwareBufferSize)        \
	M(uint64_t, interval, samplingInterval) M(int, trigger, triggerMode)                 \
	M(int, append, hwBufferAppendMode)
#define CUPTI_PM_DECODE(M)                                                                   \
	M(void *, sampler, pPmSamplingObject) M(uint8_t *, data, pCounterDataImage)          \
	M(size_t, data_size, counterDataImageSize) M(int, reason, decodeStopReason)          \
	M(uint8_t, overflow, overflow)
#define CUPTI_PM_AVAILABILITY(M)                                                             \
	M(size_t, device, deviceIndex) M(size_t, image_size, counterAvailabilityImageSize)   \
	M(uint8_t *, image, pCounterAvailabilityImage)
#define CUPTI_PM_DATA_SIZE(M)                                                                \
	M(void *, sampler, pPmSamplingObject) M(const char **, metrics, pMetricNames)        \
	M(size_t, count, numMetrics) M(uint32_t, samples, maxSamples)                        \
	M(size_t, data_size, counterDataSize)
#define CUPTI_PM_DATA(M)                                                                     \
	M(void *, sampler, pPmSamplingObject) M(size_t, data_size, counterDataSize)          \
	M(uint8_t *, data, pCounterData)
#define CUPTI_PM_INFO(M)                                                                     \
	M(const uint8_t *, data, pCounterDataImage)                                          \
	M(size_t, data_size, counterDataImageSize) M(size_t, room, numTotalSamples)          \
	M(size_t, begun, numPopulatedSamples) M(size_t, complete, numCompletedSamples)
#define CUPTI_PM_SAMPLE(M)                                                                   \
	M(void *, sampler, pPmSamplingObject) M(const uint8_t *, data, pCounterDataImage)    \
	M(size_t, data_size, counterDataImageSize) M(size_t, sample, sampleIndex)            \
	M(uint64_t, begin_ns, startTimestamp) M(uint64_t, end_ns, endTimestamp)

/* X(need, name of function and structure, symbol, CUPTI's structure, members) */
#define CUPTI_FUNCTIONS(X) \
	X(REQUIRED, chip, cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params, CUPTI_CHIP) \
	X(REQUIRED, initialize, cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params, CUPTI_NO_MEMBERS) \
	X(REQUIRED, deinitialize, cuptiProfilerDeInitialize, CUpti_Profiler_DeInitialize_Params, CUPTI_NO_MEMBERS) \
	X(REQUIRED, supported, cuptiProfilerDeviceSupported, CUpti_Profiler_DeviceSupported_Params, CUPTI_SUPPORTED) \
	X(REQUIRED, availability, cuptiProfilerGetCounterAvailability, CUpti_Profiler_GetCounterAvailability_Params, CUPTI_AVAILABILITY) \
	X(REQUIRED, host_open, cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params, CUPTI_HOST_OPEN) \
	X(REQUIRED, host_close, cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params, CUPTI_HOST) \
	X(REQUIRED, host_properties, cuptiProfilerHostGetMetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params, CUPTI_PROPERTIES) \
	X(REQUIRED, host_add, cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, CUPTI_ADD) \
	X(REQUIRED, host_image_size, cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params, CUPTI_IMAGE_SIZE) \
	X(REQUIRED, host_image, cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params, CUPTI_IMAGE) \
	X(REQUIRED, host_passes, cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params, CUPTI_PASSES) \
	X(REQUIRED, host_evaluate, cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params, CUPTI_EVALUATE) \
	X(REQUIRED, range_enable, cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable_Params, CUPTI_RANGE_ENABLE) \
	X(REQUIRED, range_disable, cuptiRangeProfilerDisable, CUpti_RangeProfiler_Disable_Params, CUPTI_RANGE) \
	X(REQUIRED, range_config, cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params, CUPTI_RANGE_CONFIG) \
	X(REQUIRED, range_start, cuptiRangeProfilerStart, CUpti_RangeProfiler_Start_Params, CUPTI_RANGE) \
	X(REQUIRED, range_stop, cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params, CUPTI_RANGE_STOP) \
	X(REQUIRED, range_push, cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params, CUPTI_RANGE_PUSH) \
	X(REQUIRED, range_pop, cuptiRangeProfilerPopRange, CUpti_RangeProfiler_PopRange_Params, CUPTI_RANGE) \
	X(REQUIRED, range_decode, cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params, CUPTI_RANGE_DECODE) \
	X(REQUIRED, range_data_size, cuptiRangeProfilerGetCounterDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params, CUPTI_RANGE_DATA_SIZE) \
	X(REQUIRED, range_data, cuptiRangeProfilerCounterDataImageInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, CUPTI_RANGE_DATA) \
	X(REQUIRED, range_info, cuptiRangeProfilerGetCounterDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params, CUPTI_RANGE_INFO) \
	X(OPTIONAL, pm_enable, cuptiPmSamplingEnable, CUpti_PmSampling_Enable_Params, CUPTI_PM_ENABLE) \
	X(OPTIONAL, pm_disable, cuptiPmSamplingDisable, CUpti_PmSampling_Disable_Params, CUPTI_PM) \
	X(OPTIONAL, pm_config, cuptiPmSamplingSetConfig, CUpti_PmSampling_SetConfig_Params, CUPTI_PM_CONFIG) \
	X(OPTIONAL, pm_start, cuptiPmSamplingStart, CUpti_PmSampling_Start_Params, CUPTI_PM) \
	X(OPTIONAL, pm_stop, cuptiPmSamplingStop, CUpti_PmSampling_Stop_Params, CUPTI_PM) \
	X(OPTIONAL, pm_decode, cuptiPmSamplingDecodeData, CUpti_PmSampling_DecodeData_Params, CUPTI_PM_DECODE) \
	X(OPTIONAL, pm_availability, cuptiPmSamplingGetCounterAvailability, CUpti_PmSampling_GetCounterAvailability_Params, CUPTI_PM_AVAILABILITY) \
	X(OPTIONAL, pm_data_size, cuptiPmSamplingGetCounterDataSize, CUpti_PmSampling_GetCounterDataSize_Params, CUPTI_PM_DATA_SIZE) \
	X(OPTIONAL, pm_data, cuptiPmSamplingCounterDataImageInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params, CUPTI_PM_DATA) \
	X(OPTIONAL, pm_info, cuptiPmSamplingGetCounterDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params, CUPTI_PM_INFO) \
	X(OPTIONAL, pm_sample, cuptiPmSamplingCounterDataGetSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params, CUPTI_PM_SAMPLE)
/* Functions without a structure: X(need, ret, field, symbol, params). */
#define CUPTI_PLAIN_FUNCTIONS(X) \
	X(REQUIRED, int, version, cuptiGetVersion, (uint32_t *version)) \
	X(REQUIRED, int, result_name, cuptiGetResultString, (int result, const char **name))
/* clang-format on */

/* `end` is not a member of CUPTI's structure. Its offset is the size that the library receives, without
 * trailing padding. */
#define CUPTI_MEMBER(type, ours, theirs) type ours;
#define X(need, name, symbol, real, members)                                                                 \
	struct cupti_##name {                                                                                \
		size_t size;                                                                                 \
		void *priv;                                                                                  \
		members(CUPTI_MEMBER) char end[];                                                            \
	};
CUPTI_FUNCTIONS(X)
#undef X

struct cupti {
#define X(need, ret, field, symbol, params) ret(*field) params;
	CUPTI_PLAIN_FUNCTIONS(X)
#undef X
#define X(need, name, symbol, real, members) int (*name)(struct cupti_##name * params);
	CUPTI_FUNCTIONS(X)
#undef X
};

extern const struct lib_spec cupti_lib;

/* The parameter structure of function NAME with the given members, and its size set. */
#define CUPTI_PARAMS(name, ...)                                                                              \
	(struct cupti_##name)                                                                                \
	{                                                                                                    \
		.size = offsetof(struct cupti_##name, end), __VA_ARGS__                                      \
	}

/* Opens the library. UNAVAILABLE with LIBRARY_MISSING: it is absent or older than CUDA 12.6's. */
enum status cupti_load(struct cupti *out, const char *path, struct error *err);

/* Converts a result; CUPTI_SUCCESS is OK. Otherwise *err names the call and the library's version and, if
 * counters are refused or in use, what to do. */
enum status cupti_check(const struct cupti *cu, int result, const char *call, struct error *err);
#endif
