/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver's memory: the host's, counted. It is full of one byte, which shows up where a program reads
 * memory that nobody wrote. */
#include "cuda_fake.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Large memory is the same pages of a file over and over, each copied at the first write. Most of it is never touched.
 * Under ASan all memory comes from malloc, which finds what is written beside it. */
#ifdef __SANITIZE_ADDRESS__
enum { FILLING = 0xcd, PAGES = 1 << 20, LARGE = INT32_MAX };
#else
enum { FILLING = 0xcd, PAGES = 1 << 20, LARGE = PAGES };
#endif

struct allocation {
	struct allocation *next;
	int device; /* -1: the host's */
	uint64_t bytes;
	unsigned char *data;
	size_t mapped; /* bytes; 0: malloc's */
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

static int file_of_filling(void)
{
	static int fd = -1;

	pthread_mutex_lock(&lock);
	if (fd < 0) {
		unsigned char *page;

		fd = memfd_create("filling", MFD_CLOEXEC);
		page = fd < 0 || ftruncate(fd, PAGES) ? MAP_FAILED : mmap(NULL, PAGES, PROT_WRITE, MAP_SHARED, fd, 0);
		if (page == MAP_FAILED)
			abort();
		memset(page, FILLING, PAGES);
		munmap(page, PAGES);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

static bool map(struct allocation *a, size_t bytes)
{
	const int fd = file_of_filling();

	a->mapped = (bytes + PAGES - 1) / PAGES * PAGES;
	a->data = mmap(NULL, a->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->data == MAP_FAILED)
		return false;
	for (size_t at = 0; at < a->mapped; at += PAGES)
		if (mmap(a->data + at, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			abort();
	return true;
}

static bool fill(struct allocation *a, size_t bytes)
{
	a->data = aligned_alloc(512, (bytes + 511) / 512 * 512);
	if (a->data)
		memset(a->data, FILLING, bytes);
	return a->data;
}

static void release(struct allocation *a)
{
	if (a->mapped)
		munmap(a->data, a->mapped);
	else
		free(a->data);
	free(a);
}

/* Host memory (device -1) is not counted. */
static void *take(size_t bytes, int device)
{
	struct allocation *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	if (!(bytes >= LARGE ? map(a, bytes) : fill(a, bytes))) {
		free(a);
		return NULL;
	}
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
	release(a);
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
