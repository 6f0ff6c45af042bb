/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices in one process: the current context, peer access, and copies between the devices. */
#include "gpu/device/gpu.h"
#include "gpu/device/internal.h"

enum status gpu_current(struct gpu_device *d, struct error *err)
{
	return CUDA_CALL(&d->cu, err, context_set, d->context);
}

static int peer_attribute(const struct gpu_device *d, const struct gpu_device *peer,
			  CUdevice_P2PAttribute attribute)
{
	int value = -1;

	return d->cu.device_p2p(&value, attribute, d->id, peer->id) ? -1 : value;
}

enum status gpu_peer_attributes(const struct gpu_device *d, const struct gpu_device *peer,
				struct gpu_peer *out, struct error *err)
{
	int can = 0;
	enum status st = CUDA_CALL(&d->cu, err, device_peer, &can, d->id, peer->id);

	*out = (struct gpu_peer){
		.access = !st && can,
		.performance_rank = peer_attribute(d, peer, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK),
		.native_atomics = peer_attribute(d, peer, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED),
	};
	return st;
}

enum status gpu_peer_enable(struct gpu_device *d, const struct gpu_device *peer, bool *possible,
			    struct error *err)
{
	struct gpu_peer facts;
	enum status st = gpu_peer_attributes(d, peer, &facts, err);
	CUresult r;

	*possible = false;
	if (st || !facts.access)
		return st;
	st = gpu_current(d, err);
	if (st)
		return st;
	r = d->cu.context_peer(peer->context, 0);
	*possible = r == CUDA_SUCCESS || r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	if (*possible || r == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
		return STATUS_OK;
	return cuda_check(&d->cu, r, "context_peer", __FILE__, __LINE__, err);
}

enum status gpu_stream_copy_peer(struct gpu_stream *s, gpu_ptr to, const struct gpu_device *to_device,
				 gpu_ptr from, const struct gpu_device *from_device, uint64_t size,
				 struct error *err)
{
	return CUDA_CALL(&s->device->cu, err, copy_peer, to, to_device->context, from, from_device->context,
			 size, s->raw);
}
