/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver's memory: the host's, counted. */
#include "cuda_fake.h"
#include <pthread.h>

struct allocation {
	struct allocation *next;
	int device; /* -1: the host's */
	uint64_t bytes;
	unsigned char *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;
static uint64_t used_bytes[DEVICES];

/* Lock held. */
static uint64_t room(int device)
{
	uint64_t total = fake_total_bytes(),
		 used = used_bytes[device % DEVICES] + (stage_number("context", 0) << 20);

	return total > used ? total - used : 0;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	STAGED(cuMemGetInfo_v2);
	*total = fake_total_bytes();
	pthread_mutex_lock(&lock);
	*free_bytes = room(fake_current());
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

void fake_occupy(int device, int64_t bytes)
{
	pthread_mutex_lock(&lock);
	used_bytes[device % DEVICES] += (uint64_t)bytes;
	pthread_mutex_unlock(&lock);
}

/* Host memory (device -1) is not counted. */
static void *take(size_t bytes, int device)
{
	struct allocation *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->data = aligned_alloc(512, (bytes + 511) / 512 * 512);
	if (!a->data) {
		free(a);
		return NULL;
	}
	memset(a->data, 0xcd, bytes);
	a->bytes = device >= 0 ? bytes : 0;
	a->device = device;
	pthread_mutex_lock(&lock);
	if (device >= 0)
		used_bytes[device % DEVICES] += bytes;
	a->next = allocations;
	allocations = a;
	pthread_mutex_unlock(&lock);
	return a->data;
}

static struct allocation *unlink_of(const void *data)
{
	struct allocation *a = NULL;

	pthread_mutex_lock(&lock);
	for (struct allocation **p = &allocations; *p; p = &(*p)->next) {
		if ((*p)->data != data)
			continue;
		a = *p;
		*p = a->next;
		if (a->device >= 0)
			used_bytes[a->device % DEVICES] -= a->bytes;
		break;
	}
	pthread_mutex_unlock(&lock);
	return a;
}

static CUresult drop(const void *data)
{
	struct allocation *a = unlink_of(data);

	if (!a)
		return CUDA_ERROR_INVALID_VALUE;
	free(a->data);
	free(a);
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
	void *data;
	bool fits;

	STAGED(cuMemAlloc_v2);
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	fits = bytes <= room(fake_current());
	pthread_mutex_unlock(&lock);
	data = fits ? take(bytes, fake_current()) : NULL;
	*p = (uintptr_t)data;
	return data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
	CUresult r = drop((const void *)(uintptr_t)p); /* freed whatever is staged: nothing may leak */

	STAGED(cuMemFree_v2);
	return r;
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	(void)flags;
	STAGED(cuMemHostAlloc);
	*p = take(bytes, -1);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *p)
{
	CUresult r = drop(p);

	STAGED(cuMemFreeHost);
	return r;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *p, void *host, unsigned flags)
{
	(void)flags;
	STAGED(cuMemHostGetDevicePointer_v2);
	*p = (uintptr_t)host;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	(void)p, (void)bytes, (void)flags;
	STAGED(cuMemHostRegister_v2);
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *p)
{
	(void)p;
	STAGED(cuMemHostUnregister);
	return CUDA_SUCCESS;
}

int fake_device_of(const void *p)
{
	int device = -1;

	pthread_mutex_lock(&lock);
	for (const struct allocation *a = allocations; a; a = a->next)
		if ((const unsigned char *)p >= a->data && (const unsigned char *)p < a->data + a->bytes)
			device = a->device;
	pthread_mutex_unlock(&lock);
	return device;
}
