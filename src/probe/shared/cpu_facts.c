/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, cache and memory of a CPU target, from the machine's facts. Pure. */
#include "probe/shared/cpu.h"

static const struct numa *node_of(const struct cpu *c, const struct target *t)
{
	for (unsigned i = 0; t->numa >= 0 && i < c->numa_count; i++)
		if (c->numa[i].node == t->numa)
			return &c->numa[i];
	return NULL;
}

unsigned cpu_threads(const struct machine *m, const struct target *t, unsigned wanted)
{
	const struct cpu *c = machine_cpu(m);
	const struct numa *node = node_of(c, t);
	unsigned most = node && node->cpus ? node->cpus : c->usable;

	if (c->quota > 0 && c->quota < most) {
		most = (unsigned)c->quota;
		if (most < c->quota)
			most++;
	}
	if (!most)
		most = 1;
	return wanted && wanted < most ? wanted : most;
}

/* Number of L3 instances of the target. For a node it is the node's own number, or if that is not known, an
 * equal share of the machine's number. If that is not known either, each socket counts as one instance. */
static uint64_t cache_instances(const struct cpu *c, const struct numa *node)
{
	unsigned all = c->l3_count ? c->l3_count : c->sockets, parts = c->numa_count;

	if (node && node->l3_count)
		return node->l3_count;
	if (node && parts)
		all = (all + parts - 1) / parts;
	return all ? all : 1;
}

uint64_t cpu_cache_bytes(const struct machine *m, const struct target *t)
{
	const struct cpu *c = machine_cpu(m);
	uint64_t instances = cache_instances(c, node_of(c, t));

	if (c->l3_bytes)
		return c->l3_bytes * instances;
	if (c->l2_bytes)
		return c->l2_bytes * (c->cores ? c->cores : 1);
	return (uint64_t)32 << 20;
}

/* An eighth of the free memory is left for other processes and for this program. */
static uint64_t available_room(const struct cpu *c)
{
	return c->memory_available_bytes - c->memory_available_bytes / 8;
}

uint64_t cpu_memory_bytes(const struct machine *m, const struct target *t)
{
	const struct cpu *c = machine_cpu(m);
	const struct numa *node = node_of(c, t);
	uint64_t total = node && node->memory_bytes ? node->memory_bytes : c->memory_bytes;

	if (c->memory_limit_bytes && c->memory_limit_bytes < total)
		total = c->memory_limit_bytes;
	total /= 2;
	if (c->memory_available_bytes && available_room(c) < total)
		total = available_room(c);
	return total;
}

enum status cpu_memory_check(const struct machine *m, const struct target *t, const char *what, double need,
			     struct error *err)
{
	double room = (double)cpu_memory_bytes(m, t);
	bool others = (double)available_room(machine_cpu(m)) == room;

	if (!(room > 0) || need <= room)
		return STATUS_OK;
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "%s need %.0f bytes, but only %.0f bytes are available (%s)", what, need, room,
			       others ? "7/8 of the free memory" : "half of the memory");
}

enum status cpu_bench_threads(const struct bench *b, unsigned wanted, unsigned *threads, struct error *err)
{
	*threads = cpu_threads(b->machine, b->target, wanted);
	if (b->cpus && *threads > b->threads)
		return error_set(err, STATUS_NO_RESOURCE,
				 "the options request %u threads, but this case has only %u CPUs", *threads,
				 b->threads);
	return STATUS_OK;
}

enum status cpu_bench_confine(const struct bench *b, unsigned threads, struct cpu_confined *out,
			      struct error *err)
{
	cpu_set_t set;

	if (!b->cpus)
		return STATUS_OK;
	CPU_ZERO(&set);
	for (unsigned i = 0; i < threads; i++)
		if (b->cpus[i] < CPU_SETSIZE)
			CPU_SET(b->cpus[i], &set);
	if (sched_getaffinity(0, sizeof(out->before), &out->before) ||
	    sched_setaffinity(0, sizeof(set), &set))
		return error_set(err, STATUS_NO_RESOURCE,
				 "cannot limit the threads to %u CPUs from CPU %u on", threads, b->cpus[0]);
	out->set = true;
	return STATUS_OK;
}

void cpu_bench_unconfine(struct cpu_confined *c)
{
	if (c->set)
		sched_setaffinity(0, sizeof(c->before), &c->before);
	c->set = false;
}
