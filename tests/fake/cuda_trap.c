/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda that tells when it is touched, one line a touch to the file that FAKE_TOUCHED names, and that
 * aborts when it is initialised. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int index);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetPCIBusId(char *id, int size, int device);

static void touched(const char *what)
{
	const char *path = getenv("FAKE_TOUCHED");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%s\n", what);
	fclose(f);
}

__attribute__((constructor)) static void loaded(void)
{
	touched("loaded");
}

int cuInit(unsigned int flags)
{
	(void)flags;
	touched("cuInit");
	abort();
}

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

/* Nobody comes this far. */
static int unreached(const char *what, const void *a, const void *b)
{
	(void)a, (void)b;
	touched(what);
	abort();
}

int cuDeviceGetCount(int *count)
{
	return unreached("cuDeviceGetCount", count, NULL);
}

int cuDeviceGet(int *device, int index)
{
	return unreached("cuDeviceGet", device, &index);
}

int cuDeviceGetName(char *name, int size, int device)
{
	return unreached("cuDeviceGetName", name, size ? &size : &device);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	return unreached("cuDeviceTotalMem", bytes, &device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	return unreached("cuDeviceGetAttribute", value, attribute ? &attribute : &device);
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	return unreached("cuDeviceGetPCIBusId", id, size ? &size : &device);
}
