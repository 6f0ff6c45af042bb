/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NCCL's memory: allocations, registrations and windows. */
#include "nccl_comm.h"

#ifndef FAKE_NCCL_OLD
ncclResult_t ncclMemAlloc(void **p, size_t size)
{
	CUdeviceptr at = 0;

	REFUSED(ncclMemAlloc);
	if (DRIVER(cuMemAlloc_v2)(&at, size))
		return ncclUnhandledCudaError;
	*p = (void *)(uintptr_t)at;
	return ncclSuccess;
}

ncclResult_t ncclMemFree(void *p)
{
	DRIVER(cuMemFree_v2)((uintptr_t)p);
	REFUSED(ncclMemFree);
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t c, void *p, size_t size, void **handle)
{
	(void)c, (void)size;
	REFUSED(ncclCommRegister);
	*handle = p;
	return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t c, void *handle)
{
	(void)c;
	REFUSED(ncclCommDeregister);
	return handle ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t c, void *p, size_t size, ncclWindow_t *w, int flags)
{
	REFUSED(ncclCommWindowRegister);
	if (flags != NCCL_WIN_COLL_SYMMETRIC || (uintptr_t)p % 512)
		return ncclInvalidArgument;
	for (int i = 0; i < FAKE_WINDOWS; i++) {
		if (!c->window[i].at) {
			c->window[i].at = p;
			c->window[i].size = size;
			*w = (ncclWindow_t)&c->window[i];
			return ncclSuccess;
		}
	}
	return ncclInvalidUsage;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t c, ncclWindow_t w)
{
	REFUSED(ncclCommWindowDeregister);
	for (int i = 0; i < FAKE_WINDOWS; i++)
		if ((ncclWindow_t)&c->window[i] == w)
			c->window[i].at = NULL;
	return ncclSuccess;
}
#endif

bool fake_in_window(const struct ncclComm *c, const void *p)
{
	for (int i = 0; i < FAKE_WINDOWS; i++)
		if (c->window[i].at && (const char *)p >= (const char *)c->window[i].at &&
		    (const char *)p < (const char *)c->window[i].at + c->window[i].size)
			return true;
	return false;
}
