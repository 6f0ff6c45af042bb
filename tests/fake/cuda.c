/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver: devices and their contexts; cuda_fake.h beside this has its parts. */
#include <math.h>
#include <time.h>
#include <unistd.h>
#include "cuda_fake.h"
#include <pthread.h>

static _Thread_local int current; /* whose context */

static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static double elapsed_ns[DEVICES];

int fake_current(void)
{
	return current < 0 ? 0 : current;
}

int fake_device_of_context(CUcontext c)
{
	return (int)(uintptr_t)c - 1;
}

/* FAKE_CUDA=pace=N; 0: devices have time of their own. */
static double pace(void)
{
	return (double)stage_number("pace", 0);
}

static double host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void sleep_ns(double ns)
{
	nanosleep(&(struct timespec){(time_t)(ns * 1e-9), (long)fmod(ns, 1e9)}, NULL);
}

double fake_now(int device)
{
	double now;

	if (pace() > 0)
		return host_ns();
	pthread_mutex_lock(&clock_lock);
	now = 1e9 + elapsed_ns[device % DEVICES];
	pthread_mutex_unlock(&clock_lock);
	return now;
}

static void pass(int device, double ns)
{
	pthread_mutex_lock(&clock_lock);
	elapsed_ns[device % DEVICES] += ns;
	pthread_mutex_unlock(&clock_lock);
}

void fake_pass(int device, double ns)
{
	if (pace() > 0)
		sleep_ns(ns * pace());
	else
		pass(device, ns);
}

void fake_wait_until(int device, double ns)
{
	double late = ns - fake_now(device);

	if (late > 0 && pace() > 0)
		sleep_ns(late);
	else if (late > 0)
		pass(device, late);
}

/* For a fake library above this one: the device that is current, and that so much time passes on it. */
int fake_cuda_current(void);
int fake_cuda_current(void)
{
	return fake_current();
}

void fake_cuda_pass(double ns);
void fake_cuda_pass(double ns)
{
	fake_pass(fake_current(), ns);
}

/* Own names are resolved here, since cuGetErrorName and the like must not fail. */
CUresult cuGetErrorName(CUresult r, const char **name)
{
	switch ((int)r) {
#define X(result, value, status, cause)                                                                      \
	case value:                                                                                          \
		*name = #result;                                                                             \
		return CUDA_SUCCESS;
		CUDA_RESULTS(X)
#undef X
	}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult r, const char **text)
{
	(void)r;
	*text = "staged by the fake driver";
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
	(void)flags;
	STAGED(cuInit);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	STAGED(cuDriverGetVersion);
	*version = 13000;
	return CUDA_SUCCESS;
}

/* The device of a number among those that CUDA_VISIBLE_DEVICES lists, by numbers alone; -1: none. */
static int device_of(int ordinal)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int devices = (int)stage_number("devices", 1), d = ordinal;

	for (; list && ordinal >= 0; ordinal--) {
		char *end;

		d = (int)strtoul(list, &end, 10);
		if (end == list)
			return -1;
		list = *end == ',' ? end + 1 : end;
	}
	return d < devices ? d : -1;
}

CUresult cuDeviceGetCount(int *count)
{
	STAGED(cuDeviceGetCount);
	for (*count = 0; device_of(*count) >= 0; ++*count)
		;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
	STAGED(cuDeviceGet);
	*d = device_of(ordinal);
	return *d >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* The device's bus is 8d, as the fake NVML's; a second one's is 8e, .. */
CUresult cuDeviceGetByPCIBusId(CUdevice *d, const char *pci)
{
	unsigned domain, bus;

	STAGED(cuDeviceGetByPCIBusId);
	if (sscanf(pci, "%x:%x:", &domain, &bus) != 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain || bus < 0x8d || bus - 0x8d >= stage_number("devices", 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*d = (int)bus - 0x8d;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pci, int size, CUdevice d)
{
	STAGED(cuDeviceGetPCIBusId);
	snprintf(pci, (size_t)size, "0000:%02X:00.0", 0x8d + d);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice d)
{
	STAGED(cuDeviceGetName);
	(void)d;
	snprintf(name, (size_t)size, "NVIDIA H100 80GB HBM3");
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d)
{
	STAGED(cuDeviceGetUuid_v2);
	memset(uuid, 0x40 + d, sizeof(*uuid));
	return CUDA_SUCCESS;
}

uint64_t fake_total_bytes(void)
{
	return stage_number("memory", 81920) << 20;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d)
{
	STAGED(cuDeviceTotalMem_v2);
	(void)d;
	*bytes = fake_total_bytes();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice d)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} rows[] = {
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
		{CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
		{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
		{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
		{CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
		{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
		{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
		{CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
	};

	STAGED(cuDeviceGetAttribute);
	*value = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].attribute == attribute)
			*value = rows[i].value;
	if (attribute == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
		*value = (int)stage_number("memory_khz", 2619000);
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*value = (int)stage_number("sms", 132);
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
		*value = (int)stage_number("cc", 90) / 10;
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
		*value = (int)stage_number("cc", 90) % 10;
	if (attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
		*value = (int)stage_number("optin", 232448);
	if (attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
		*value = 1980000;
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = 0x8d + d;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	STAGED(cuDevicePrimaryCtxRetain);
	*c = (CUcontext)(uintptr_t)(d + 1);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	(void)d;
	STAGED(cuDevicePrimaryCtxRelease_v2);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c)
{
	STAGED(cuCtxSetCurrent);
	current = fake_device_of_context(c);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	STAGED(cuCtxSynchronize);
	fake_await(fake_current());
	return CUDA_SUCCESS;
}

static _Atomic bool sticks[DEVICES];

void fake_stick(int device, bool stuck)
{
	sticks[device % DEVICES] = stuck;
}

bool fake_stuck(int device)
{
	return sticks[device % DEVICES];
}

void fake_await(int device)
{
	const char *ms = getenv("FAKE_CUDA_WAIT_MS");

	if (ms)
		usleep(1000 * (useconds_t)strtoul(ms, NULL, 10));
	while (fake_stuck(device))
		usleep(2000);
}
