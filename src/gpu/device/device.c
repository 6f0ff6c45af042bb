/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/device/gpu.h"
#include "gpu/device/internal.h"
#include <inttypes.h>

static enum status find_device(struct gpu_device *d, const char *pci, struct error *err)
{
	CUresult r = pci ? d->cu.device_by_pci(&d->id, pci) : d->cu.device_get(&d->id, 0);

	if (pci && (r == CUDA_ERROR_INVALID_DEVICE || r == CUDA_ERROR_INVALID_VALUE))
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_NOT_GRANTED,
			"the CUDA driver lists no GPU at %s; CUDA_VISIBLE_DEVICES or a cgroup may hide it",
			pci);
	return cuda_check(&d->cu, r, pci ? "device_by_pci" : "device_get", __FILE__, __LINE__, err);
}

enum status gpu_open(struct gpu_device **out, const char *pci, struct error *err)
{
	struct gpu_device *d = calloc(1, sizeof(*d));
	char name[64] = "GPU", address[24] = "";
	enum status st;

	if (!d)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a device handle");
	st = cuda_open(&d->cu, NULL, err);
	if (st)
		goto out;
	st = find_device(d, pci, err);
	if (st)
		goto out;
	d->cu.device_name(name, sizeof(name), d->id); /* if the driver refuses, the name stays "GPU" */
	d->cu.device_pci(address, sizeof(address), d->id);
	snprintf(d->name, sizeof(d->name), "%s (%s)", name, address);
	st = CUDA_CALL(&d->cu, err, primary_retain, &d->context, d->id);
	if (st)
		goto out;
	d->retained = true;
	st = CUDA_CALL(&d->cu, err, context_set, d->context);
	if (st)
		goto out;
	d->sm_count = (unsigned)gpu_attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	d->cc = (unsigned)(10 * gpu_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
			   gpu_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
	if (!d->sm_count || d->sm_count > 4096)
		st = error_set_cause(err, STATUS_LOST, CAUSE_GPU_LOST, "%s does not report its number of SMs",
				     d->name);
out:
	if (st)
		gpu_close(&d);
	*out = d;
	return st;
}

void gpu_close(struct gpu_device **d)
{
	if (!*d)
		return;
	gpu_files_unload(*d);
	if ((*d)->retained)
		(*d)->cu.primary_release((*d)->id);
	free(*d);
	*d = NULL;
}

const char *gpu_name(const struct gpu_device *d)
{
	return d->name;
}

int gpu_attribute(const struct gpu_device *d, int attribute)
{
	int value = -1;

	return d->cu.device_attribute(&value, (CUdevice_attribute)attribute, d->id) ? -1 : value;
}

unsigned gpu_shared_most(const struct gpu_device *d)
{
	int bytes = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

	return bytes > 0 ? (unsigned)bytes : 0;
}

unsigned gpu_sm_count(const struct gpu_device *d)
{
	return d->sm_count;
}

unsigned gpu_cc(const struct gpu_device *d)
{
	return d->cc;
}

int gpu_ordinal(const struct gpu_device *d)
{
	return d->id;
}

void *gpu_context_raw(const struct gpu_device *d)
{
	return d->context;
}

double gpu_dram_rate(const struct gpu_device *d)
{
	double khz = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
	double bits = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);

	return khz > 0 && bits > 0 ? 2e3 * khz * bits / 8 : 0;
}

enum status gpu_memory(const struct gpu_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
		       struct error *err)
{
	size_t available = 0, total = 0;
	enum status st = CUDA_CALL(&d->cu, err, memory_info, &available, &total);

	*free_bytes = available;
	*total_bytes = total;
	return st;
}

uint64_t gpu_memory_usable(const struct gpu_device *d)
{
	uint64_t available, total;

	if (gpu_memory(d, &available, &total, NULL))
		return 0;
	return available > GPU_LEAVE_BYTES ? available - GPU_LEAVE_BYTES : 0;
}

enum status gpu_synchronize(struct gpu_device *d, struct error *err)
{
	return cuda_check(&d->cu, d->cu.context_synchronize(), "context_synchronize", __FILE__, __LINE__,
			  err);
}

enum status gpu_alloc(struct gpu_device *d, gpu_ptr *p, uint64_t size, struct error *err)
{
	uint64_t available, total;
	CUdeviceptr raw = 0;
	enum status st = gpu_memory(d, &available, &total, err);

	*p = 0;
	if (st)
		return st;
	if (size > available || available - size < GPU_LEAVE_BYTES)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "cannot allocate %" PRIu64 " bytes on %s: %" PRIu64
				       " are free, and 2 GiB of them must stay free",
				       size, d->name, available);
	st = CUDA_CALL(&d->cu, err, memory_alloc, &raw, size);
	*p = st ? 0 : raw;
	return st;
}

void gpu_free(struct gpu_device *d, gpu_ptr *p)
{
	if (*p)
		d->cu.memory_free(*p);
	*p = 0;
}

enum status gpu_host_alloc(struct gpu_device *d, void **p, uint64_t size, struct error *err)
{
	struct error why = {0};
	enum status st = CUDA_CALL(&d->cu, &why, host_alloc, p, size,
				   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);

	if (!st)
		return STATUS_OK;
	*p = NULL; /* the driver's message speaks of a full device, so name host memory */
	return error_set_cause(err, st, why.cause,
			       "cannot allocate %" PRIu64 " bytes of pinned host memory: %s", size, why.text);
}

void gpu_host_free(struct gpu_device *d, void **p)
{
	if (*p)
		d->cu.host_free(*p);
	*p = NULL;
}

enum status gpu_host_register(struct gpu_device *d, void *p, uint64_t size, struct error *err)
{
	return CUDA_CALL(&d->cu, err, host_register, p, size,
			 CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
}

void gpu_host_unregister(struct gpu_device *d, void *p)
{
	if (p)
		d->cu.host_unregister(p);
}

enum status gpu_host_pointer(struct gpu_device *d, void *host, gpu_ptr *p, struct error *err)
{
	CUdeviceptr raw = 0;
	enum status st = CUDA_CALL(&d->cu, err, host_pointer, &raw, host, 0);

	*p = st ? 0 : raw;
	return st;
}

/* Our streams and the legacy stream, which runs plain copies, do not wait for each other. A copy from
 * pageable memory returns when the data is staged, not when it has arrived. So both sides wait for all
 * work. */
enum status gpu_copy_to(struct gpu_device *d, gpu_ptr to, const void *from, uint64_t size, struct error *err)
{
	enum status st = gpu_synchronize(d, err);

	if (!st)
		st = CUDA_CALL(&d->cu, err, copy_to, to, from, size);
	return st ? st : gpu_synchronize(d, err);
}

enum status gpu_copy_from(struct gpu_device *d, void *to, gpu_ptr from, uint64_t size, struct error *err)
{
	enum status st = gpu_synchronize(d, err);

	return st ? st : CUDA_CALL(&d->cu, err, copy_from, to, from, size);
}
