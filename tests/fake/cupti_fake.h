/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of the tests may ask of the fake CUPTI. */
#ifndef TESTS_FAKE_CUPTI_FAKE_H
#define TESTS_FAKE_CUPTI_FAKE_H
#include <stdbool.h>
#include "profile/inject/cupti.h"

/* Its calls' numbers. */
enum {
	FAKE_CUPTI_LAUNCH = 211,
	FAKE_CUPTI_COPY = 41,
	FAKE_CUPTI_SYNC = 165,
	FAKE_CUPTI_GET = 17,
	FAKE_CUPTI_GRAPH = 311,
	FAKE_CUPTI_CALLS = 512
};

/* One record, its kind first; not kept where its kind is not enabled. */
void fake_cupti_plant(const void *record, size_t bytes);
int cuptiGetVersion(uint32_t *out);
int cuptiGetTimestamp(uint64_t *out);
int cuptiActivityRegisterCallbacks(cupti_buffer_request *on_request, cupti_buffer_complete *on_complete);
int cuptiActivityEnable(uint32_t kind);
int cuptiActivityDisable(uint32_t kind);
int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *at, size_t valid, void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
int cuptiGetResultString(int code, const char **text);
int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name);
/* The id that a record of the calling thread has, as it was asked for. */
uint32_t fake_cupti_thread(void);
int cuptiSetThreadIdType(int type);
int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value);
#endif
