/* SPDX-License-Identifier: Apache-2.0 */
/* Engines of probe link: the driver's copy engines, and a kernel that accesses mapped host memory. */
#include <errno.h>
#include <sched.h>
#include "core/math/random.h"
#include "kernel/test_data/numbers.h"
#include "kernel/memory/link.h"
#include "probe/shared/cpu.h"
#include "probe/link/link.h"
#include "probe/shared/transfer_data.h"

/* about 60 KB in flight cover PCIe's rate times its round trip: any launch shape has enough */
enum { OWN_PER_SM = 4, OWN_THREADS = 256 };

static enum status driver_supports(const struct machine *m, const struct target *t, const void *opts,
				   struct error *err)
{
	const struct link_opts *o = opts;

	(void)m, (void)t;
	if (o->direction == LINK_LATENCY)
		return error_set(err, STATUS_UNSUPPORTED, "link: only engine own measures direction=latency");
	return STATUS_OK;
}

static enum status own_supports(const struct machine *m, const struct target *t, const void *opts,
				struct error *err)
{
	const struct link_opts *o = opts;

	(void)m, (void)t;
	if (o->memory == LINK_PAGEABLE)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"link: engine own needs memory=pinned: a kernel cannot access pageable memory");
	return STATUS_OK;
}

static void fill_work(void *arg, unsigned thread)
{
	const struct link_state *s = arg;
	const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
	uint64_t block, last;

	cpu_share(s->bytes / 16, LINK_GRAIN, thread, cpu_pool_count(s->pool), &block, &last);
	for (; block < last; block++) {
		const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), LINK_STREAM, 0};

		philox4x32(s->host[0] + 4 * block, counter, key);
	}
}

static enum status generate(struct link_state *s, gpu_ptr *p, uint32_t stream, struct error *err)
{
	return transfer_data_generate(s->device, s->stream[0], p, s->bytes, s->seed, stream, err);
}

static enum status prepare_in(struct link_state *s, struct error *err)
{
	enum status st = link_host_alloc(s, 0, err);

	if (st)
		return st;
	cpu_pool_run(s->pool, fill_work, s);
	st = gpu_alloc(s->device, &s->data[0], s->bytes, err);
	if (!st)
		st = generate(s, &s->expected, LINK_STREAM, err);
	return st ? st : transfer_data_record(s->device, &s->record, err);
}

static enum status prepare_out(struct link_state *s, struct error *err)
{
	enum status st = link_host_alloc(s, 1, err);

	return st ? st : generate(s, &s->data[1], LINK_STREAM + 1, err);
}

/* Builds a ring of indices. The step is coprime to the ring's length, so the chain visits every entry, in an
 * order that no prefetcher predicts. */
static enum status prepare_chain(struct link_state *s, struct error *err)
{
	enum status st;

	s->bytes = LINK_PLACES * sizeof(uint64_t);
	st = link_host_alloc(s, 0, err);
	for (uint64_t i = 0; i < LINK_PLACES && !st; i++)
		((uint64_t *)(void *)s->host[0])[i] = (i + LINK_STEP) % LINK_PLACES;
	if (!st)
		st = gpu_alloc(s->device, &s->at, sizeof(uint64_t), err);
	/* The chain starts at entry 0. New device memory holds arbitrary words, which would lead outside the
	 * ring. */
	return st ? st : gpu_copy_to(s->device, s->at, &(uint64_t){0}, sizeof(uint64_t), err);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct link_state *s = state;
	const struct link_opts *o = opts;
	unsigned here;
	int node;
	enum status st;

	*s = (struct link_state){.opts = *o, .device = b->device, .seed = b->seed, .bytes = o->size};
	s->stream[0] = b->stream[0];
	s->stream[1] = b->stream[1];
	st = cpu_pool_usable(&s->pool, err);
	if (!st && o->direction == LINK_LATENCY)
		st = prepare_chain(s, err);
	else if (!st && o->direction != LINK_D2H)
		st = prepare_in(s, err);
	if (!st && (o->direction == LINK_D2H || o->direction == LINK_BOTH))
		st = prepare_out(s, err);
	if (!st)
		st = gpu_event_create(s->device, &s->fork, err);
	if (!st)
		st = gpu_event_create(s->device, &s->join, err);
	if (!st)
		st = link_numa_node(o, &node, err);
	if (st)
		return st;
	result_u64(b->out, &link_fields[LINK_FIELD_copy_bytes], s->bytes);
	result_text(b->out, &link_fields[LINK_FIELD_way], "copy engine");
	if (node >= 0)
		result_u64(b->out, &link_fields[LINK_FIELD_host_node], (uint64_t)node);
	else if (!getcpu(NULL, &here))
		result_u64(b->out, &link_fields[LINK_FIELD_cpu_node], here);
	return gpu_stream_wait(s->stream[0], err);
}

static enum status own_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct link_state *s = state;
	enum status st = prepare(s, b, opts, err);
	bool latency = s->opts.direction == LINK_LATENCY;
	char way[64];

	if (!st)
		st = gpu_kernel(s->device, &s->kernel, "link", latency ? "link_hop" : "link_v2", err);
	s->blocks = latency ? 1 : OWN_PER_SM * gpu_sm_count(s->device);
	snprintf(way, sizeof(way), latency ? "link_hop, one thread" : "link_v2, %u threads, %u blocks an SM",
		 OWN_THREADS, OWN_PER_SM);
	if (!st)
		result_text(b->out, &link_fields[LINK_FIELD_way], way);
	return st;
}

static enum status one_way(struct link_state *s, bool in, struct gpu_stream *stream, struct error *err)
{
	struct link_args args = {.count = s->bytes / 16};

	if (!s->kernel)
		return in ? gpu_stream_copy_to(stream, s->data[0], s->host[0], s->bytes, err)
			  : gpu_stream_copy_from(stream, s->host[1], s->data[1], s->bytes, err);
	args.from = in ? s->mapped[0] : s->data[1];
	args.to = in ? s->data[0] : s->mapped[1];
	return gpu_launch_1d(s->kernel, stream, s->blocks, OWN_THREADS, 0, &args, err);
}

/* The second stream starts after the work that is already on the first, and the first continues after the
 * second. */
static enum status both_ways(struct link_state *s, struct error *err)
{
	enum status st = gpu_event_record(s->fork, s->stream[0], err);

	if (!st)
		st = gpu_stream_after(s->stream[1], s->fork, err);
	if (!st)
		st = one_way(s, true, s->stream[0], err);
	if (!st)
		st = one_way(s, false, s->stream[1], err);
	if (!st)
		st = gpu_event_record(s->join, s->stream[1], err);
	return st ? st : gpu_stream_after(s->stream[0], s->join, err);
}

enum status link_enqueue(struct link_state *s, struct error *err)
{
	s->iterations++;
	switch ((enum link_direction)s->opts.direction) {
	case LINK_LATENCY:
		return gpu_launch_1d(s->kernel, s->stream[0], 1, 1, 0,
				     &(struct flag_args){s->mapped[0], s->at, LINK_HOPS}, err);
	case LINK_BOTH:
		return both_ways(s, err);
	case LINK_H2D:
		return one_way(s, true, s->stream[0], err);
	case LINK_D2H:
		break;
	}
	return one_way(s, false, s->stream[0], err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	(void)i;
	return link_enqueue(state, err);
}

static void release(void *state)
{
	struct link_state *s = state;
	gpu_ptr *const all[] = {&s->data[0], &s->data[1], &s->expected, &s->record, &s->at};

	cpu_pool_destroy(&s->pool);
	if (!s->device)
		return;
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		gpu_free(s->device, all[i]);
	link_host_free(s, 0);
	link_host_free(s, 1);
	gpu_event_destroy(&s->fork);
	gpu_event_destroy(&s->join);
	*s = (struct link_state){0};
}

const struct engine link_driver_engine = {
	.name = "driver",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 2,
	.state_size = sizeof(struct link_state),
	.supports = driver_supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.release = release,
};

const struct engine link_own_engine = {
	.name = "own",
	.libs = "cuda",
	.targets = TARGET_GPU,
	.streams = 2,
	.state_size = sizeof(struct link_state),
	.supports = own_supports,
	.prepare = own_prepare,
	.enqueue = enqueue,
	.release = release,
};
