/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on mapped host memory (kernel/link.cu), and the copies of the driver that they stand beside. */
#include "cases.h"
#include "core/random.h"
#include "kernel/link.h"
#include "ref.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* p0: 0 host to device, 1 device to host */
static const struct kernel_case cases[] = {
	{"link_v1", "host to device", 10001, 3, 128, 0, 0},
	{"link_v1", "device to host", 10001, 3, 128, 1, 0},
	{"link_v2", "one word", 1, 1, 128, 0, 0},
	{"link_v2", "host to device, uneven turns", 10001, 3, 128, 0, 0},
	{"link_v2", "device to host, uneven turns", 10001, 3, 128, 1, 0},
	{"link_hop", "a chain through host memory", 100, 1, 1, 0, 0},
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
	return strcmp(c->entry, "link_hop") ? test_copy(k, c, err) : test_hop(k, c, err);
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
