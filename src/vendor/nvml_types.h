/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML's types and numbers, written by hand from nvidia-ml-py (BSD), so no NVIDIA header is needed for the
 * build. Names are NVIDIA's. So tests/unit/vendor_headers.c can check our rows against the real nvml.h if it
 * is installed: it includes that header first and defines VENDOR_REAL_NVML.
 */
#ifndef VENDOR_NVML_TYPES_H
#define VENDOR_NVML_TYPES_H

#ifndef VENDOR_REAL_NVML
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;

typedef enum nvmlReturn_enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_INSUFFICIENT_POWER = 8,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_IRQ_ISSUE = 11,
	NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_CORRUPTED_INFOROM = 14,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_DEPRECATED = 26,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
	NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;

typedef enum nvmlEnableState_enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 } nvmlEnableState_t;

typedef enum nvmlClockType_enum {
	NVML_CLOCK_GRAPHICS = 0,
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEM = 2,
	NVML_CLOCK_VIDEO = 3
} nvmlClockType_t;

typedef enum nvmlTemperatureSensors_enum { NVML_TEMPERATURE_GPU = 0 } nvmlTemperatureSensors_t;

typedef enum nvmlTemperatureThresholds_enum {
	NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
	NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
	NVML_TEMPERATURE_THRESHOLD_MEM_MAX = 2,
	NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3
} nvmlTemperatureThresholds_t;

typedef enum nvmlMemoryErrorType_enum {
	NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
	NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
} nvmlMemoryErrorType_t;

typedef enum nvmlEccCounterType_enum { NVML_VOLATILE_ECC = 0, NVML_AGGREGATE_ECC = 1 } nvmlEccCounterType_t;

typedef enum nvmlPageRetirementCause_enum {
	NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0,
	NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1
} nvmlPageRetirementCause_t;

typedef enum nvmlPerfPolicyType_enum {
	NVML_PERF_POLICY_POWER = 0,
	NVML_PERF_POLICY_THERMAL = 1,
	NVML_PERF_POLICY_SYNC_BOOST = 2,
	NVML_PERF_POLICY_BOARD_LIMIT = 3,
	NVML_PERF_POLICY_LOW_UTILIZATION = 4,
	NVML_PERF_POLICY_RELIABILITY = 5
} nvmlPerfPolicyType_t;

typedef enum nvmlComputeMode_enum {
	NVML_COMPUTEMODE_DEFAULT = 0,
	NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
	NVML_COMPUTEMODE_PROHIBITED = 2,
	NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
} nvmlComputeMode_t;

typedef enum nvmlGpuVirtualizationMode {
	NVML_GPU_VIRTUALIZATION_MODE_NONE = 0,
	NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1,
	NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2,
	NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3,
	NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4
} nvmlGpuVirtualizationMode_t;

typedef enum nvmlPStates_enum { NVML_PSTATE_0 = 0, NVML_PSTATE_UNKNOWN = 32 } nvmlPstates_t;

typedef enum nvmlIntNvLinkDeviceType_enum {
	NVML_NVLINK_DEVICE_TYPE_GPU = 0x00,
	NVML_NVLINK_DEVICE_TYPE_IBMNPU = 0x01,
	NVML_NVLINK_DEVICE_TYPE_SWITCH = 0x02,
	NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 0xFF
} nvmlIntNvLinkDeviceType_t;

typedef enum nvmlNvLinkErrorCounter_enum {
	NVML_NVLINK_ERROR_DL_REPLAY = 0,
	NVML_NVLINK_ERROR_DL_RECOVERY = 1,
	NVML_NVLINK_ERROR_DL_CRC_FLIT = 2,
	NVML_NVLINK_ERROR_DL_CRC_DATA = 3,
	NVML_NVLINK_ERROR_DL_ECC_DATA = 4
} nvmlNvLinkErrorCounter_t;

typedef enum nvmlGpuLevel_enum {
	NVML_TOPOLOGY_INTERNAL = 0,
	NVML_TOPOLOGY_SINGLE = 10,
	NVML_TOPOLOGY_MULTIPLE = 20,
	NVML_TOPOLOGY_HOSTBRIDGE = 30,
	NVML_TOPOLOGY_NODE = 40,
	NVML_TOPOLOGY_SYSTEM = 50
} nvmlGpuTopologyLevel_t;

typedef enum nvmlPcieUtilCounter_enum {
	NVML_PCIE_UTIL_TX_BYTES = 0,
	NVML_PCIE_UTIL_RX_BYTES = 1
} nvmlPcieUtilCounter_t;

typedef enum nvmlValueType_enum {
	NVML_VALUE_TYPE_DOUBLE = 0,
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
	NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
	NVML_VALUE_TYPE_SIGNED_INT = 5,
	NVML_VALUE_TYPE_UNSIGNED_SHORT = 6
} nvmlValueType_t;

typedef struct nvmlPciInfo_st {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef struct nvmlUtilization_st {
	unsigned int gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct nvmlMemory_st {
	unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct nvmlMemory_v2_st {
	unsigned int version;
	unsigned long long total, reserved, free, used; /* bytes */
} nvmlMemory_v2_t;

typedef struct nvmlBAR1Memory_st {
	unsigned long long bar1Total, bar1Free, bar1Used; /* bytes */
} nvmlBAR1Memory_t;

typedef struct nvmlProcessInfo_st {
	unsigned int pid;
	unsigned long long usedGpuMemory; /* bytes; all ones: not available */
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct nvmlProcessUtilizationSample_st {
	unsigned int pid;
	unsigned long long timeStamp;			/* us, CPU time of the sample */
	unsigned int smUtil, memUtil, encUtil, decUtil; /* percent */
} nvmlProcessUtilizationSample_t;

typedef struct nvmlRowRemapperHistogramValues_st {
	unsigned int max, high, partial, low, none; /* number of banks, by spare rows left */
} nvmlRowRemapperHistogramValues_t;

typedef struct nvmlViolationTime_st {
	unsigned long long referenceTime; /* us */
	unsigned long long violationTime; /* ns */
} nvmlViolationTime_t;

typedef union nvmlValue_st {
	double dVal;
	int siVal;
	unsigned int uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
	signed long long sllVal;
	unsigned short usVal;
} nvmlValue_t;

typedef struct nvmlFieldValue_st {
	unsigned int fieldId;
	unsigned int scopeId; /* link index if the field is per link */
	long long timestamp;  /* us, CPU time of the sample */
	long long latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn; /* the value is valid only on NVML_SUCCESS */
	nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct nvmlEventData_st {
	nvmlDevice_t device;
	unsigned long long eventType, eventData; /* data of an Xid event: its number */
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef struct {
	unsigned char clusterUuid[16];
	nvmlReturn_t status;
	unsigned int cliqueId;
	unsigned char state;
} nvmlGpuFabricInfo_t;

typedef struct {
	unsigned int version;
	unsigned char clusterUuid[16];
	nvmlReturn_t status;
	unsigned int cliqueId;
	unsigned char state;
	unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;

typedef struct {
	unsigned int version;
	unsigned char clusterUuid[16];
	nvmlReturn_t status;
	unsigned int cliqueId;
	unsigned char state;
	unsigned int healthMask;
	unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;
typedef nvmlGpuFabricInfo_v3_t nvmlGpuFabricInfoV_t;

typedef struct {
	unsigned int version;
	unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor;
	unsigned long long volatileUncParity, volatileUncSecDed, volatileCor;
	unsigned long long aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie;
	unsigned long long aggregateUncBucketMcu, aggregateUncBucketOther;
	unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
typedef nvmlEccSramErrorStatus_v1_t nvmlEccSramErrorStatus_t;

typedef struct {
	unsigned int version;
	nvmlTemperatureSensors_t sensorType;
	int temperature; /* C */
} nvmlTemperature_v1_t;
typedef nvmlTemperature_v1_t nvmlTemperature_t;

typedef struct {
	unsigned int metricId;
	nvmlReturn_t nvmlReturn;
	double value;
	struct {
		char *shortName, *longName, *unit;
	} metricInfo;
} nvmlGpmMetric_t;

/* NVML reads and writes only the first numMetrics entries, so the array may be shorter than NVIDIA's. */
#define NVML_GPM_METRIC_MAX 98
typedef struct {
	unsigned int version, numMetrics;
	nvmlGpmSample_t sample1, sample2;
	nvmlGpmMetric_t metrics[NVML_GPM_METRIC_MAX];
} nvmlGpmMetricsGet_t;

typedef struct {
	unsigned int version, isSupportedDevice;
} nvmlGpmSupport_t;

#define NVML_GPM_METRICS_GET_VERSION 1
#define NVML_GPM_SUPPORT_VERSION 1
#define NVML_STRUCT_VERSION(data, ver)                                                                       \
	((unsigned int)(sizeof(nvml##data##_v##ver##_t) | ((unsigned int)(ver) << 24u)))
#define nvmlMemory_v2 NVML_STRUCT_VERSION(Memory, 2)
#define nvmlTemperature_v1 NVML_STRUCT_VERSION(Temperature, 1)
#define nvmlEccSramErrorStatus_v1 NVML_STRUCT_VERSION(EccSramErrorStatus, 1)
#define nvmlGpuFabricInfo_v2 NVML_STRUCT_VERSION(GpuFabricInfo, 2)
#define nvmlGpuFabricInfo_v3 NVML_STRUCT_VERSION(GpuFabricInfo, 3)

#define nvmlEventTypeXidCriticalError 0x8ULL
#define nvmlEventTypeDoubleBitEccError 0x2ULL

#endif /* VENDOR_REAL_NVML */

/* Clock event reasons: bits, several may be set at once. */
enum nvml_reason {
	NVML_REASON_IDLE = 0x1,
	NVML_REASON_APPLICATION_CLOCKS = 0x2,
	NVML_REASON_SW_POWER_CAP = 0x4,
	NVML_REASON_HW_SLOWDOWN = 0x8,
	NVML_REASON_SYNC_BOOST = 0x10,
	NVML_REASON_SW_THERMAL = 0x20,
	NVML_REASON_HW_THERMAL = 0x40,
	NVML_REASON_HW_POWER_BRAKE = 0x80,
	NVML_REASON_DISPLAY = 0x100
};

/*
 * Fields that we read by nvmlDeviceGetFieldValues: name, id, unit. The names are the keys of the recorded raw
 * values. Units are those in nvml.h. The unit of violation times comes from the comments on 74 and 76, from
 * nvmlViolationTime_t (75 and 77 to 79 are the same counters from another call), and from a measurement:
 * under a power cap 74 rises by 1.000 s per second on an H100 and an H200.
 * Times of the slowdown reasons are not listed. Driver releases renumbered their ids (251 to 253, then 269 to
 * 271), and the fields that now have the old numbers return values too.
 */
/* clang-format off */
#define NVML_FIELDS(X)                              \
	X(ecc_volatile_corrected, 3, "")            \
	X(ecc_volatile_uncorrected, 4, "")          \
	X(ecc_aggregate_corrected, 5, "")           \
	X(ecc_aggregate_uncorrected, 6, "")         \
	X(nvlink_crc_flit_total, 38, "")            \
	X(nvlink_crc_data_total, 45, "")            \
	X(nvlink_replay_total, 52, "")              \
	X(nvlink_recovery_total, 59, "")            \
	X(violation_power, 74, "ns")                \
	X(violation_thermal, 75, "ns")              \
	X(violation_sync_boost, 76, "ns")           \
	X(violation_board, 77, "ns")                \
	X(violation_low_utilization, 78, "ns")      \
	X(violation_reliability, 79, "ns")          \
	X(memory_temperature, 82, "C")              \
	X(energy_total, 83, "mJ")                   \
	X(nvlink_speed_common, 90, "MB/s")          \
	X(nvlink_count, 91, "")                     \
	X(pcie_replay, 94, "")                      \
	X(remapped_correctable, 142, "")            \
	X(remapped_uncorrectable, 143, "")          \
	X(remap_pending, 144, "")                   \
	X(remap_failed, 145, "")                    \
	X(nvswitch_links, 147, "")                  \
	X(c2c_links, 170, "")                       \
	X(pcie_correctable, 173, "")                \
	X(pcie_non_fatal, 179, "")                  \
	X(pcie_fatal, 180, "")                      \
	X(power_average, 185, "mW")                 \
	X(power_instant, 186, "mW")                 \
	X(power_limit_min, 187, "mW")               \
	X(power_limit_max, 188, "mW")               \
	X(power_limit_default, 189, "mW")           \
	X(power_limit_current, 190, "mW")           \
	X(power_limit_requested, 192, "mW")         \
	X(recovery_action, 230, "")                 \
	X(violation_sw_thermal, 251, "ns")          \
	X(violation_hw_thermal, 252, "ns")          \
	X(violation_power_brake, 253, "ns")
/* clang-format on */

/* Fields that are read once per link, with the link's index as scope. */
/* clang-format off */
#define NVML_LINK_FIELDS(X)                  \
	X(data_tx, 138, "KiB")               \
	X(data_rx, 139, "KiB")               \
	X(raw_tx, 140, "KiB")                \
	X(raw_rx, 141, "KiB")                \
	X(error_replay, 161, "")             \
	X(error_recovery, 162, "")           \
	X(error_crc, 163, "")                \
	X(speed, 164, "MB/s")                \
	X(state, 165, "")                    \
	X(version, 166, "")                  \
	X(effective_errors, 219, "")         \
	X(symbol_errors, 221, "")
/* clang-format on */

#define X(name, id, unit) NVML_FIELD_##name = (id),
enum nvml_field_id { NVML_FIELDS(X) };
#undef X
#define X(name, id, unit) NVML_LINK_FIELD_##name = (id),
enum nvml_link_field_id { NVML_LINK_FIELDS(X) };
#undef X

/* GPM metrics, in percent or MiB/s. */
enum nvml_gpm {
	NVML_GPM_GRAPHICS = 1,
	NVML_GPM_SM = 2,
	NVML_GPM_OCCUPANCY = 3,
	NVML_GPM_INTEGER = 4,
	NVML_GPM_TENSOR = 5,
	NVML_GPM_DFMA_TENSOR = 6,
	NVML_GPM_HMMA_TENSOR = 7,
	NVML_GPM_IMMA_TENSOR = 9,
	NVML_GPM_DRAM = 10,
	NVML_GPM_FP64 = 11,
	NVML_GPM_FP32 = 12,
	NVML_GPM_FP16 = 13,
	NVML_GPM_PCIE_TX = 20,
	NVML_GPM_PCIE_RX = 21,
	NVML_GPM_NVLINK_RX = 60,
	NVML_GPM_NVLINK_TX = 61
};
#define NVML_LINKS_MAX 36

#endif
