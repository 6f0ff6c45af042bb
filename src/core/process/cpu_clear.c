/* SPDX-License-Identifier: Apache-2.0 */
/* Clears large memory with several threads. The kernel clears each new page when a thread first writes to it.
 * One thread does that with about 3 GB/s on the host of an H200 (results/2026-11-29-h200-x2/training, the
 * start of states-host-f32). */
#include "core/process/cpu_clear.h"
#include <linux/mempolicy.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/process/cpu_pool.h"

enum { ALONE_BYTES = 64 << 20, GRAIN_BYTES = 2 << 20, NODES_MOST = 64 };

struct clearing {
	uint8_t *memory;
	size_t size;
	unsigned threads,
		node; /* node: the NUMA node for the pages; NODES_MOST: by the policy of the process */
};

/* The NUMA node of the calling thread, if the process has no policy of its own. New pages would lie there if
 * this thread wrote to them alone. */
static unsigned own_node(void)
{
	unsigned cpu, node;
	int policy = MPOL_DEFAULT;

	if (syscall(SYS_getcpu, &cpu, &node, NULL) || node >= NODES_MOST ||
	    syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) || policy != MPOL_DEFAULT)
		return NODES_MOST;
	return node;
}

static void clear_part(void *arg, unsigned thread)
{
	const struct clearing *c = arg;
	const uint64_t nodes = c->node < NODES_MOST ? UINT64_C(1) << c->node : 0;
	uint64_t first, last;
	bool preferred;

	cpu_share(c->size, GRAIN_BYTES, thread, c->threads, &first, &last);
	/* a system that does not allow a policy places the pages by its own */
	preferred = nodes && !syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, NODES_MOST + 1);
	memset(c->memory + first, 0, last - first);
	if (preferred)
		syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

void cpu_clear(void *memory, size_t size)
{
	struct clearing c = {.memory = memory, .size = size, .node = own_node()};
	struct cpu_pool *pool = NULL;

	if (size < ALONE_BYTES || cpu_pool_usable(&pool, NULL)) {
		memset(memory, 0, size);
		return;
	}
	c.threads = cpu_pool_count(pool);
	cpu_pool_run(pool, clear_part, &c);
	cpu_pool_destroy(&pool);
}
