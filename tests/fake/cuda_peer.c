/* SPDX-License-Identifier: Apache-2.0 */
/* From GPU to GPU: who reaches whom, and what copies and kernels wait for. */
#include "cuda_fake.h"
#include "kernel/memory/link.h"
#include "traffic.h"
#include <stdatomic.h>

#define PEER_RATE 380.0	 /* bytes a ns from GPU to GPU */
#define STAGED_RATE 20.0 /* where it goes through the host */

static atomic_bool enabled[DEVICES][DEVICES]; /* [a][b]: a reaches b's memory */

static bool denied(int a, int b)
{
	return stage_pair("peer", a, b, NULL) || stage_pair("peer", b, a, NULL);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice peer)
{
	STAGED(cuDeviceCanAccessPeer);
	*can = d != peer && !denied(d, peer);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
	STAGED(cuDeviceGetP2PAttribute);
	if (from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = !denied(from, to);
	return attribute ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	int own = fake_current(), other = fake_device_of_context(peer);

	(void)flags;
	STAGED(cuCtxEnablePeerAccess);
	if (other == own || denied(own, other))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return atomic_exchange(&enabled[own % DEVICES][other % DEVICES], true)
		       ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
		       : CUDA_SUCCESS;
}

/* What moving so many bytes from GPU to GPU takes. */
static double peer_ns(int from, int to, double bytes)
{
	bool direct = enabled[from % DEVICES][to % DEVICES] || enabled[to % DEVICES][from % DEVICES];
	double share = 1;

	(void)stage_pair("slow", from, to, &share);
	if (direct)
		traffic_add(from, to, (uint64_t)bytes);
	return bytes / (direct ? PEER_RATE : STAGED_RATE) / share;
}

void fake_copy_peer(const struct operation *o)
{
	fake_pass(o->device, peer_ns(o->source, o->destination, (double)o->bytes));
	if (stage_pair("drop_peer", o->source, o->destination, NULL))
		return;
	if (o->again) /* nothing ran between the two: it takes its time, and what it moves is there */
		return;
	memmove(o->to, o->from, o->bytes);
	if (stage_pair("flip_peer", o->source, o->destination, NULL))
		((uint32_t *)o->to)[o->bytes / 8] ^= 0x00400000u;
}

void fake_wait_for_link(const struct operation *o)
{
	const struct link_args *a = (const struct link_args *)(const void *)o->args;
	const struct flag_args *hop = (const struct flag_args *)(const void *)o->args;
	bool moves = !strncmp(o->kernel->entry, "link_v", 6);
	int from, to;

	if (!moves && strcmp(o->kernel->entry, "link_hop"))
		return;
	from = fake_device_of((const void *)(uintptr_t)(moves ? a->from : hop->next));
	to = fake_device_of((const void *)(uintptr_t)(moves ? a->to : hop->at));
	if (from >= 0 && to >= 0 && from != to)
		fake_pass(o->device,
			  moves ? peer_ns(from, to, 16.0 * (double)a->count) : 700.0 * (double)hop->hops);
}
