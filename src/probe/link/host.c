/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory of probe link: pinned, pageable, or on a given NUMA node. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe/link/link.h"

/* Binds the pages to the node that option numa names. The policy must be set before the first touch. */
static enum status place(void *p, uint64_t bytes, int node, struct error *err)
{
	unsigned long mask[1024 / (8 * sizeof(unsigned long))] = {0};
	const unsigned bits = 8 * sizeof(unsigned long);

	mask[(unsigned)node / bits] = 1ul << (unsigned)node % bits;
	if (syscall(SYS_mbind, p, bytes, MPOL_BIND, mask, 1024ul, 0u))
		return error_errno(err, errno, "link: cannot place host memory on NUMA node %d", node);
	return STATUS_OK;
}

static enum status map_own(struct link_state *s, unsigned which, int node, struct error *err)
{
	void *p = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	enum status st = STATUS_OK;

	if (p == MAP_FAILED)
		return error_errno(err, errno, "link: cannot map %llu bytes of host memory",
				   (unsigned long long)s->bytes);
	s->host[which] = p;
	if (node >= 0)
		st = place(p, s->bytes, node, err);
	if (!st)
		memset(p, 0, s->bytes);
	return st;
}

enum status link_host_alloc(struct link_state *s, unsigned which, struct error *err)
{
	bool pinned = s->opts.memory == LINK_PINNED;
	int node;
	enum status st = link_numa_node(&s->opts, &node, err);

	if (!st && pinned && node < 0) {
		void *p;

		st = gpu_host_alloc(s->device, &p, s->bytes, err);
		s->host[which] = p;
	} else if (!st) {
		s->registered[which] = false;
		st = map_own(s, which, node, err);
		if (!st && pinned) {
			st = gpu_host_register(s->device, s->host[which], s->bytes, err);
			s->registered[which] = !st;
		}
	}
	if (!st && pinned)
		st = gpu_host_pointer(s->device, s->host[which], &s->mapped[which], err);
	return st;
}

void link_host_free(struct link_state *s, unsigned which)
{
	int node = -1;
	void *p = s->host[which];

	if (!p)
		return;
	(void)link_numa_node(&s->opts, &node, NULL);
	if (s->opts.memory == LINK_PINNED && node < 0) {
		gpu_host_free(s->device, &p);
	} else {
		if (s->registered[which])
			gpu_host_unregister(s->device, p);
		munmap(p, s->bytes);
	}
	s->host[which] = NULL;
}
