/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on mapped host memory and on another GPU's (kernel/memory/link.cu). */
#include "cases.h"
#include "core/math/random.h"
#include "kernel/memory/link.h"
#include "ref.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* p0: 0 host to device, 1 device to host; 2 stores into another GPU, 3 loads from it (link_hop: 3) */
enum { TO_HOST = 1, TO_PEER = 2, FROM_PEER = 3 };

static const struct kernel_case cases[] = {
	{"link_v1", "host to device", 10001, 3, 128, 0, 0},
	{"link_v1", "device to host", 10001, 3, 128, 1, 0},
	{"link_v2", "one word", 1, 1, 128, 0, 0},
	{"link_v2", "host to device, uneven turns", 10001, 3, 128, 0, 0},
	{"link_v2", "device to host, uneven turns", 10001, 3, 128, 1, 0},
	{"link_hop", "a chain through host memory", 100, 1, 1, 0, 0},
	{"link_v1", "stores into another GPU", 10001, 3, 128, TO_PEER, 0},
	{"link_v1", "loads from another GPU", 10001, 3, 128, FROM_PEER, 0},
	{"link_v2", "one word into another GPU", 1, 1, 128, TO_PEER, 0},
	{"link_v2", "stores into another GPU, uneven turns", 10001, 3, 128, TO_PEER, 0},
	{"link_v2", "loads from another GPU, uneven turns", 10001, 3, 128, FROM_PEER, 0},
	{"link_v2", "loads from another GPU, many blocks", 1000003, 64, 256, FROM_PEER, 0},
	{"link_hop", "a chain through another GPU's memory", 100, 1, 1, FROM_PEER, 0},
};

static enum status test_copy(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint64_t bytes = c->count * 16;
	struct guarded device = {0};
	struct gpu_kernel *kernel;
	uint32_t *words = calloc(1, bytes);
	void *host = NULL;
	gpu_ptr mapped;
	enum status st = kit_alloc(k, &device, bytes, err);

	if (!st)
		st = gpu_host_alloc(k->device, &host, bytes, err);
	if (!st)
		st = gpu_host_pointer(k->device, host, &mapped, err);
	if (!st)
		st = gpu_kernel(k->device, &kernel, "link", c->entry, err);
	if (!st && !words)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (st)
		goto out;
	for (uint64_t i = 0; i < bytes / 4; i++)
		words[i] = random_u32(k->seed, 4, i);
	memcpy(host, words, bytes);
	if (c->p0) {
		st = gpu_copy_to(k->device, device.data, words, bytes, err);
		memset(host, 0xff, bytes);
	}
	if (!st)
		st = gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, 0,
				   &(struct link_args){c->p0 ? device.data : mapped,
						       c->p0 ? mapped : device.data, c->count},
				   err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st && !c->p0)
		st = gpu_copy_from(k->device, host, device.data, bytes, err);
	if (!st)
		st = kit_compare(c->entry, host, words, bytes, err);
	if (!st)
		st = kit_guards(k, &device, c->entry, err);
out:
	kit_free(k, &device);
	gpu_host_free(k->device, &host);
	free(words);
	return st;
}

/* Memory of the other GPU, which has to be current while it is taken, used by the host and given back. */
static enum status peer_alloc(struct kit *k, gpu_ptr *p, uint64_t bytes, struct error *err)
{
	enum status st = kit_peer(k, err);

	if (!st)
		st = gpu_current(k->peer, err);
	return st ? st : gpu_alloc(k->peer, p, bytes, err);
}

static void peer_free(struct kit *k, gpu_ptr *p)
{
	if (!k->peer)
		return;
	(void)gpu_current(k->peer, NULL);
	gpu_free(k->peer, p);
	(void)gpu_current(k->device, NULL);
}

static enum status on_peer(struct kit *k, gpu_ptr p, void *host, uint64_t bytes, bool read, struct error *err)
{
	enum status st = gpu_current(k->peer, err);

	if (!st)
		st = read ? gpu_copy_from(k->peer, host, p, bytes, err)
			  : gpu_copy_to(k->peer, p, host, bytes, err);
	return st ? st : gpu_current(k->device, err);
}

/* Both ways by this GPU's kernel: its own memory has guards, the other's is as large as what is moved. */
static enum status test_peer(struct kit *k, const struct kernel_case *c, struct error *err)
{
	uint64_t bytes = c->count * 16;
	bool store = c->p0 == TO_PEER;
	struct guarded own = {0};
	struct gpu_kernel *kernel;
	uint32_t *words = calloc(2, bytes), *found = words ? words + bytes / 4 : NULL;
	gpu_ptr other = 0;
	enum status st = words ? peer_alloc(k, &other, bytes, err)
			       : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	if (!st)
		st = gpu_current(k->device, err);
	if (!st)
		st = kit_alloc(k, &own, bytes, err);
	if (!st)
		st = gpu_kernel(k->device, &kernel, "link", c->entry, err);
	for (uint64_t i = 0; !st && i < bytes / 4; i++)
		words[i] = random_u32(k->seed, 5, i);
	if (!st)
		st = on_peer(k, other, store ? found : words, bytes, false, err);
	if (!st && store)
		st = gpu_copy_to(k->device, own.data, words, bytes, err);
	if (!st)
		st = gpu_launch_1d(
			kernel, k->stream, c->blocks, c->threads, 0,
			&(struct link_args){store ? own.data : other, store ? other : own.data, c->count},
			err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = store ? on_peer(k, other, found, bytes, true, err)
			   : gpu_copy_from(k->device, found, own.data, bytes, err);
	if (!st)
		st = kit_compare(c->entry, found, words, bytes, err);
	if (!st)
		st = kit_guards(k, &own, c->entry, err);
	kit_free(k, &own);
	peer_free(k, &other);
	free(words);
	return st;
}

static enum status test_peer_hop(struct kit *k, const struct kernel_case *c, struct error *err)
{
	enum { PLACES = 1024, STEP = 389 };
	uint64_t next[PLACES], found = 0;
	struct guarded at = {0};
	struct gpu_kernel *kernel;
	gpu_ptr other = 0;
	enum status st = peer_alloc(k, &other, sizeof(next), err);

	for (uint64_t i = 0; i < PLACES; i++)
		next[i] = (i + STEP) % PLACES;
	if (!st)
		st = on_peer(k, other, next, sizeof(next), false, err);
	if (!st)
		st = kit_alloc(k, &at, sizeof(found), err);
	if (!st)
		st = gpu_copy_to(k->device, at.data, &found, sizeof(found), err);
	if (!st)
		st = gpu_kernel(k->device, &kernel, "link", c->entry, err);
	if (!st)
		st = gpu_launch_1d(kernel, k->stream, 1, 1, 0, &(struct flag_args){other, at.data, c->count},
				   err);
	if (!st)
		st = gpu_copy_from(k->device, &found, at.data, sizeof(found), err);
	if (!st && found != c->count * STEP % PLACES)
		st = error_set(err, STATUS_MISMATCH, "the chain ended at %" PRIu64 ", not %" PRIu64, found,
			       c->count * STEP % PLACES);
	kit_free(k, &at);
	peer_free(k, &other);
	return st;
}

static enum status test_hop(struct kit *k, const struct kernel_case *c, struct error *err)
{
	enum { PLACES = 1024, STEP = 389 };
	struct guarded at = {0};
	struct gpu_kernel *kernel;
	void *host = NULL;
	uint64_t found = 0;
	gpu_ptr mapped;
	enum status st = kit_alloc(k, &at, sizeof(found), err);

	if (!st)
		st = gpu_copy_to(k->device, at.data, &found, sizeof(found), err);
	if (!st)
		st = gpu_host_alloc(k->device, &host, PLACES * sizeof(uint64_t), err);
	for (uint64_t i = 0; i < PLACES && !st; i++)
		((uint64_t *)host)[i] = (i + STEP) % PLACES;
	if (!st)
		st = gpu_host_pointer(k->device, host, &mapped, err);
	if (!st)
		st = gpu_kernel(k->device, &kernel, "link", c->entry, err);
	if (!st)
		st = gpu_launch_1d(kernel, k->stream, 1, 1, 0, &(struct flag_args){mapped, at.data, c->count},
				   err);
	if (!st)
		st = gpu_copy_from(k->device, &found, at.data, sizeof(found), err);
	if (!st && found != c->count * STEP % PLACES)
		st = error_set(err, STATUS_MISMATCH, "the chain ended at %" PRIu64 ", not %" PRIu64, found,
			       c->count * STEP % PLACES);
	if (!st)
		st = kit_guards(k, &at, c->entry, err);
	gpu_host_free(k->device, &host);
	kit_free(k, &at);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	bool hop = !strcmp(c->entry, "link_hop");

	if (c->p0 >= TO_PEER)
		return hop ? test_peer_hop(k, c, err) : test_peer(k, c, err);
	return hop ? test_hop(k, c, err) : test_copy(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_link, one);
}

enum status time_link(struct kit *k, struct error *err); /* time_link.c */

const struct kernel_group group_link = {
	.name = "link",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
	.time = time_link,
};
