/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVTX's tool interface (versions 2 and 3) that is used, declared here as in cupti.h. */
#ifndef PROFILE_INJECT_NVTX_TYPES_H
#define PROFILE_INJECT_NVTX_TYPES_H
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1, NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };
enum { NVTX_TEXT_ASCII = 1, NVTX_TEXT_WIDE = 2, NVTX_TEXT_REGISTERED = 3 };
enum { NVTX_PAYLOAD_FLOAT = 6 /* the last plain type */ };
#define NVTX_PAYLOAD_EXT ((int32_t)0xDFBD0009)

/* Slots of the tables of the two modules and of the payload extension. */
/* clang-format off */
#define NVTX_CORE_SLOTS(X) \
	X(MarkEx, 1) X(MarkA, 2) X(MarkW, 3) X(RangeStartEx, 4) X(RangeStartA, 5) X(RangeStartW, 6) X(RangeEnd, 7) \
	X(RangePushEx, 8) X(RangePushA, 9) X(RangePushW, 10) X(RangePop, 11) X(NameOsThreadA, 14)
#define NVTX_CORE2_SLOTS(X) \
	X(DomainMarkEx, 1) X(DomainRangeStartEx, 2) X(DomainRangeEnd, 3) X(DomainRangePushEx, 4) X(DomainRangePop, 5) \
	X(DomainRegisterStringA, 10) X(DomainRegisterStringW, 11) X(DomainCreateA, 12) X(DomainCreateW, 13)
#define NVTX_PAYLOAD_SLOTS(X) \
	X(PayloadSchemaRegister, 0) X(RangePushPayload, 3) X(RangePopPayload, 4)
/* clang-format on */
enum { NVTX_PAYLOAD_MODULE = 2 };

struct nvtx_attributes { /* nvtxEventAttributes_t */
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, payload_count;
	uint64_t payload;
	int32_t text_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} text;
};

struct nvtx_payload { /* nvtxPayloadData_t */
	uint64_t schema;
	size_t size;
	const void *data;
};

enum { NVTX_SCHEMA_HAS_NAME = 1 << 1, NVTX_SCHEMA_HAS_ENTRIES = 1 << 4, NVTX_SCHEMA_HAS_ID = 1 << 8 };
struct nvtx_schema_entry { /* nvtxPayloadSchemaEntry_t */
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};
struct nvtx_schema { /* nvtxPayloadSchemaAttr_t */
	uint64_t mask;
	const char *name;
	uint64_t type, flags;
	const struct nvtx_schema_entry *entries;
	size_t count, size, align;
	uint64_t id;
	void *extension;
};

typedef void nvtx_function(void);
struct nvtx_callbacks {
	size_t size;
	/* For a module: the addresses of its function pointers. */
	int (*table_of)(int module, nvtx_function ****table, unsigned *count);
};
typedef const void *nvtx_export(uint32_t table);

struct nvtx_segment {
	size_t id, count;
	intptr_t *slots;
};
struct nvtx_module { /* nvtxExtModuleInfo_t */
	uint16_t version, size, module, compatible;
	size_t segment_count;
	struct nvtx_segment *segments;
	void *export_function;
	const void *info;
};
#endif
