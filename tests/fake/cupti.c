/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity interface without a GPU (its counters are cupti_profiler.c's): a program plants records
 * (cupti_fake.h), and they come out as CUPTI's would, at the size that the version's records have, what lies
 * behind the fields of old versions filled with rubbish. FAKE_CUPTI_VERSION=N   as cuptiGetVersion tells
 * (130001) FAKE_CUPTI_REFUSE=CODE enabling kernels fails with it FAKE_CUPTI_DROP=N      so many records are
 * told as dropped, once
 */
#include "cupti_fake.h"
#include "cupti_launch.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cupti_buffer_request *request;
static cupti_buffer_complete *complete;
static uint8_t *buffer;
static size_t size, used;
static uint64_t enabled;		   /* bit a kind */
static uint8_t calls[2][FAKE_CUPTI_CALLS]; /* enabled one by one */
static size_t to_drop;
static int thread_ids;
static bool planted; /* CUDA has begun */

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static uint32_t version(void)
{
	return (uint32_t)number("FAKE_CUPTI_VERSION", 130001);
}

/* Bytes of a record in this version; those of our struct where nothing is known to follow. */
static size_t size_of(uint32_t kind, size_t ours)
{
	bool first12 = version() >= 18, first13 = version() >= 130000;

	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return first13 ? 216 : first12 ? 208 : 176;
	case CUPTI_KIND_MEMCPY:
		return first13 ? 96 : first12 ? 88 : 80;
	case CUPTI_KIND_MEMCPY2:
		return first12 ? 96 : 88;
	case CUPTI_KIND_MEMSET:
		return first12 ? 88 : 80;
	case CUPTI_KIND_DEVICE:
		return first12 ? 184 : 176;
	case CUPTI_KIND_SYNCHRONIZATION:
		return first13 ? 56 : 40;
	case CUPTI_KIND_OVERHEAD:
		return first12 ? 56 : 40;
	case CUPTI_KIND_CONTEXT:
		return first13 ? 32 : 24;
	case CUPTI_KIND_GRAPH_TRACE:
		return first12 ? 64 : 48;
	default:
		return (ours + 7) & ~(size_t)7;
	}
}

/* With the lock; hands out what is there. */
static void hand_out(void)
{
	uint8_t *full = buffer;
	size_t valid = used;

	buffer = NULL;
	used = 0;
	if (full)
		complete(NULL, 0, full, size, valid);
}

static bool is_enabled(uint32_t kind, const void *record)
{
	const struct cupti_api *a = record;

	if (enabled >> kind & 1)
		return true;
	return (kind == CUPTI_KIND_RUNTIME || kind == CUPTI_KIND_DRIVER) && a->cbid < FAKE_CUPTI_CALLS &&
	       calls[kind == CUPTI_KIND_RUNTIME][a->cbid];
}

void fake_cupti_plant(const void *record, size_t bytes)
{
	size_t most;
	uint32_t kind;
	size_t whole;

	memcpy(&kind, record, sizeof(kind));
	whole = size_of(kind, bytes);
	pthread_mutex_lock(&lock);
	planted = true;
	if (request && is_enabled(kind, record)) {
		if (buffer && used + whole > size)
			hand_out();
		if (!buffer)
			request(&buffer, &size, &most);
		if (buffer) {
			memset(buffer + used, 0xee, whole);
			memcpy(buffer + used, record, bytes < whole ? bytes : whole);
			used += whole;
		} else {
			to_drop++;
		}
	}
	pthread_mutex_unlock(&lock);
}

int cuptiGetVersion(uint32_t *out)
{
	*out = version();
	return 0;
}

int cuptiGetTimestamp(uint64_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*out = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return 0;
}

int cuptiActivityRegisterCallbacks(cupti_buffer_request *on_request, cupti_buffer_complete *on_complete)
{
	request = on_request;
	complete = on_complete;
	to_drop = (size_t)number("FAKE_CUPTI_DROP", 0);
	return 0;
}

int cuptiActivityEnable(uint32_t kind)
{
	int refuse = (int)number("FAKE_CUPTI_REFUSE", 0);

	if (refuse && kind == CUPTI_KIND_CONCURRENT_KERNEL)
		return refuse;
	enabled |= 1ull << kind;
	return 0;
}

/* By itself, not with its kind. Once CUDA has begun it is taken and does nothing, as in CUPTI 13.0. */
static int enable_call(unsigned domain, uint32_t cbid, uint8_t enable)
{
	if (version() < 26) /* of CUDA 12.8 */
		return 11;  /* CUPTI_ERROR_API_NOT_IMPLEMENTED */
	if (cbid >= FAKE_CUPTI_CALLS)
		return 1;
	if (!planted)
		calls[domain - 1][cbid] = enable;
	return 0;
}

int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	return enable_call(CUPTI_DOMAIN_RUNTIME, cbid, enable);
}

int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	return enable_call(CUPTI_DOMAIN_DRIVER, cbid, enable);
}

int cuptiActivityDisable(uint32_t kind)
{
	enabled &= ~(1ull << kind);
	return 0;
}

int cuptiActivityFlushAll(uint32_t flag)
{
	(void)flag;
	pthread_mutex_lock(&lock);
	hand_out();
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuptiActivityGetNextRecord(uint8_t *at, size_t valid, void **record)
{
	uint8_t *next = at;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		next = (uint8_t *)*record +
		       size_of(kind, kind == CUPTI_KIND_RUNTIME || kind == CUPTI_KIND_DRIVER
					     ? sizeof(struct cupti_api)
					     : 0);
	}
	if (next >= at + valid)
		return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	*record = next;
	return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = to_drop;
	to_drop = 0;
	return 0;
}

int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name)
{
	static const char *const names[] = {
		[FAKE_CUPTI_LAUNCH] = "cudaLaunchKernel_v7000",
		[FAKE_CUPTI_COPY] = "cudaMemcpyAsync_v3020",
		[FAKE_CUPTI_SYNC] = "cudaDeviceSynchronize_v3020",
		[FAKE_CUPTI_GET] = "cudaGetDevice_v3020",
		[FAKE_CUPTI_GRAPH] = "cudaGraphLaunch_v10000",
	};

	if (domain == CUPTI_DOMAIN_DRIVER && cbid == FAKE_CUPTI_DRIVER_LAUNCH) {
		*name = "cuLaunchKernel";
		return 0;
	}
	if (domain == CUPTI_DOMAIN_DRIVER && cbid == FAKE_CUPTI_DRIVER_GRAPH) {
		*name = "cuGraphLaunch";
		return 0;
	}
	if (domain != CUPTI_DOMAIN_RUNTIME || cbid >= sizeof(names) / sizeof(names[0]) || !names[cbid])
		return 1;
	*name = names[cbid];
	return 0;
}

int cuptiSetThreadIdType(int type)
{
	thread_ids = type;
	return 0;
}

uint32_t fake_cupti_thread(void)
{
	return thread_ids ? (uint32_t)syscall(SYS_gettid) : (uint32_t)(uintptr_t)pthread_self();
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value)
{
	(void)attribute, (void)bytes, (void)value;
	return 0;
}
