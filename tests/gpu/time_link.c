/* SPDX-License-Identifier: Apache-2.0 */
/* Times the link: the copy engine and kernels on pinned memory. */
#include "cases.h"
#include "kernel/memory/link.h"
#include <inttypes.h>

/* Pinned host memory and device memory of `bytes` with the link between them. */
struct transfer {
	struct kit *kit;
	struct gpu_kernel *kernel; /* NULL: the copy engine */
	void *host;
	gpu_ptr device, mapped;
	uint64_t bytes;
	unsigned per_sm, threads;
	bool to_device;
};

static enum status call(void *arg, struct error *err)
{
	const struct transfer *t = arg;
	struct link_args args = {.count = t->bytes / 16};

	if (!t->kernel)
		return t->to_device ? gpu_stream_copy_to(t->kit->stream, t->device, t->host, t->bytes, err)
				    : gpu_stream_copy_from(t->kit->stream, t->host, t->device, t->bytes, err);
	args.from = t->to_device ? t->mapped : t->device;
	args.to = t->to_device ? t->device : t->mapped;
	return gpu_launch_1d(t->kernel, t->kit->stream, t->per_sm * gpu_sm_count(t->kit->device), t->threads,
			     0, &args, err);
}

static enum status transfer_open(struct transfer *t, struct error *err)
{
	enum status st = gpu_host_alloc(t->kit->device, &t->host, t->bytes, err);

	if (st)
		return st;
	for (uint64_t i = 0; i < t->bytes / 8; i++)
		((uint64_t *)t->host)[i] = i * 0x9E3779B97F4A7C15u;
	st = gpu_alloc(t->kit->device, &t->device, t->bytes, err);
	return st ? st : gpu_host_pointer(t->kit->device, t->host, &t->mapped, err);
}

static void transfer_close(struct transfer *t)
{
	gpu_free(t->kit->device, &t->device);
	gpu_host_free(t->kit->device, &t->host);
}

static enum status transfer_time(struct transfer *t, unsigned calls, double *ns, struct error *err)
{
	return kit_time(t->kit, call, t, calls, ns, err);
}

enum status time_link(struct kit *k, struct error *err);
enum status time_link(struct kit *k, struct error *err)
{
	static const unsigned per_sm[] = {1, 2, 4, 8};
	struct transfer t = {.kit = k, .bytes = (uint64_t)256 << 20, .threads = 256};
	enum status st = transfer_open(&t, err);
	double ns;

	for (int way = 0; way < 2 && !st; way++) {
		t.to_device = !way;
		t.kernel = NULL;
		st = transfer_time(&t, 8, &ns, err);
		if (!st)
			printf("time link %s copy engine: %.2f GB/s\n", way ? "d2h" : "h2d",
			       (double)t.bytes / ns);
		for (int version = 1; version <= 2 && !st; version++) {
			st = gpu_kernel(k->device, &t.kernel, "link", version == 1 ? "link_v1" : "link_v2",
					err);
			for (unsigned i = 0; i < 4 && !st; i++) {
				t.per_sm = per_sm[i];
				st = transfer_time(&t, 2, &ns, err);
				if (!st)
					printf("time link %s link_v%d %u blocks an SM: %.2f GB/s\n",
					       way ? "d2h" : "h2d", version, t.per_sm, (double)t.bytes / ns);
			}
		}
	}
	transfer_close(&t);
	return st;
}
