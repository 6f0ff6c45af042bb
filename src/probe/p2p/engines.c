/* SPDX-License-Identifier: Apache-2.0 */
/* Engines of probe p2p: the driver's copy, and a kernel that stores to or loads from the other GPU. */
#include "kernel/data.h"
#include "kernel/link.h"
#include "machine/path.h"
#include "probe/p2p/p2p.h"

enum {
	PER_SM = 4,
	THREADS = 256
}; /* 4 vectors a thread: 2 MB in flight on 132 SMs; 1 us at 450 GB/s is 0.45 */

static enum status supports(const struct p2p_opts *o, bool load, struct error *err)
{
	if (o->direction == P2P_LATENCY && !load)
		return error_set(err, STATUS_UNSUPPORTED,
				 "p2p: the latency of a read is measured by engine load");
	return STATUS_OK;
}

static enum status send_supports(const struct machine *m, const struct target *t, const void *opts,
				 struct error *err)
{
	(void)m, (void)t;
	return supports(opts, false, err);
}

static enum status load_supports(const struct machine *m, const struct target *t, const void *opts,
				 struct error *err)
{
	(void)m, (void)t;
	return supports(opts, true, err);
}

enum status p2p_stand(const struct p2p_state *s, unsigned side, struct error *err)
{
	return gpu_current(s->side[side].device, err);
}

enum status p2p_generate(struct p2p_state *s, unsigned side, gpu_ptr *p, uint32_t words, struct error *err)
{
	struct p2p_side *at = &s->side[side];
	struct gpu_kernel *fill;
	enum status st = gpu_alloc(at->device, p, s->bytes, err);

	if (!st)
		st = gpu_kernel(at->device, &fill, "data", "fill_words", err);
	return st ? st
		  : gpu_launch_1d(fill, at->stream, 4 * gpu_sm_count(at->device), 256, 0,
				  &(struct fill_args){
					  .out = *p, .count = s->bytes / 4, .seed = s->seed, .stream = words},
				  err);
}

/* Which side does the work of what `from` sends. */
static unsigned actor(const struct p2p_state *s, unsigned from)
{
	return s->way == P2P_LOAD ? !from : from;
}

static enum status prepare_way(struct p2p_state *s, unsigned from, struct error *err)
{
	struct p2p_side *sender = &s->side[from], *receiver = &s->side[!from];
	uint32_t words = p2p_words(sender, receiver);
	enum status st = p2p_stand(s, from, err);

	if (!st)
		st = p2p_generate(s, from, &sender->out, words, err);
	if (!st)
		st = p2p_stand(s, !from, err);
	if (!st)
		st = gpu_alloc(receiver->device, &receiver->in, s->bytes, err);
	if (!st)
		st = p2p_generate(s, !from, &receiver->expected, words, err);
	if (!st)
		st = gpu_alloc(receiver->device, &receiver->record, sizeof(struct compare_record), err);
	return st;
}

/* A ring of indices with a step prime to its length, in the sender's memory. */
static enum status prepare_chain(struct p2p_state *s, struct error *err)
{
	uint64_t next[P2P_PLACES];
	enum status st = p2p_stand(s, 0, err);

	for (uint64_t i = 0; i < P2P_PLACES; i++)
		next[i] = (i + P2P_STEP) % P2P_PLACES;
	if (!st)
		st = gpu_alloc(s->side[0].device, &s->chain, sizeof(next), err);
	if (!st)
		st = gpu_copy_to(s->side[0].device, s->chain, next, sizeof(next), err);
	if (!st)
		st = p2p_stand(s, 1, err);
	if (!st)
		st = gpu_alloc(s->side[1].device, &s->at, sizeof(uint64_t), err);
	return st ? st : gpu_copy_to(s->side[1].device, s->at, &(uint64_t){0}, sizeof(uint64_t), err);
}

static enum status prepare_kernel(struct p2p_state *s, unsigned side, struct error *err)
{
	struct p2p_side *at = &s->side[side];
	enum status st = p2p_stand(s, side, err);

	return st ? st
		  : gpu_kernel(at->device, &at->kernel, "link",
			       s->opts.direction == P2P_LATENCY ? "link_hop" : "link_v2", err);
}

static enum status prepare_both(struct p2p_state *s, struct error *err)
{
	enum status st = p2p_stand(s, !s->own, err);

	if (!st)
		st = gpu_event_create(s->side[!s->own].device, &s->join, err);
	if (!st)
		st = p2p_stand(s, s->own, err);
	return st ? st : gpu_event_create(s->side[s->own].device, &s->fork, err);
}

/* What lies between them: NVLinks by the machine's facts, else PCIe's parts, else what the driver says. */
static void tell_path(const struct p2p_state *s, const struct bench *b, bool access)
{
	unsigned from = s->side[0].index, to = s->side[1].index,
		 links = machine_nvlinks(b->machine, from, to);
	const struct gpu *g[2] = {machine_gpu(b->machine, from), machine_gpu(b->machine, to)};
	unsigned most = machine_nvlinks_most(b->machine, from, to);
	double rate = gpu_get(g[0], GPU_FACT_nvlink_rate_gbps, 0);
	int pci = machine_pci_path(b->machine, from, to);
	char nv[16];

	snprintf(nv, sizeof(nv), "NV%u", links);
	result_text(b->out, &p2p_fields[P2P_FIELD_path],
		    !access    ? "host"
		    : links    ? nv
		    : pci >= 0 ? pci_paths[pci].word
			       : "peer");
	if (!(gpu_get(g[0], GPU_FACT_nvlink_count, 0) > 0) || !(gpu_get(g[1], GPU_FACT_nvlink_count, 0) > 0))
		return;
	result_u64(b->out, &p2p_fields[P2P_FIELD_nvlinks], links);
	if (!access)
		result_u64(b->out, &p2p_fields[P2P_FIELD_nvlinks_denied], links);
	if (most)
		result_u64(b->out, &p2p_fields[P2P_FIELD_nvlinks_most], most);
	if (rate > 0)
		result_f64(b->out, &p2p_fields[P2P_FIELD_nvlink_rate_raw], rate * 1e9);
}

static enum status tell(const struct p2p_state *s, const struct bench *b, bool access, struct error *err)
{
	struct gpu_peer peer;
	char way[64] = "copy engine";
	enum status st = gpu_peer_attributes(s->side[0].device, s->side[1].device, &peer, err);

	if (st)
		return st;
	result_u64(b->out, &p2p_fields[P2P_FIELD_copy_bytes], s->bytes);
	result_u64(b->out, &p2p_fields[P2P_FIELD_peer_access], access);
	if (peer.performance_rank >= 0)
		result_u64(b->out, &p2p_fields[P2P_FIELD_performance_rank], (uint64_t)peer.performance_rank);
	if (peer.native_atomics >= 0)
		result_u64(b->out, &p2p_fields[P2P_FIELD_native_atomics], (uint64_t)peer.native_atomics);
	if (s->opts.direction == P2P_LATENCY)
		snprintf(way, sizeof(way), "link_hop, one thread");
	else if (s->way != P2P_DRIVER)
		snprintf(way, sizeof(way), "link_v2, %u threads, %u blocks an SM", THREADS, PER_SM);
	result_text(b->out, &p2p_fields[P2P_FIELD_way], way);
	tell_path(s, b, access);
	return STATUS_OK;
}

/* Each reaches the other's memory, as far as the driver lets them. */
static enum status open_way(struct p2p_state *s, bool *access, struct error *err)
{
	bool there = false, back = false;
	enum status st = gpu_peer_enable(s->side[0].device, s->side[1].device, &there, err);

	if (!st)
		st = gpu_peer_enable(s->side[1].device, s->side[0].device, &back, err);
	*access = there && back;
	if (!st && !*access && s->way != P2P_DRIVER)
		st = error_set(
			err, STATUS_UNSUPPORTED,
			"p2p: the driver gives gpu%u and gpu%u no access to each other's memory: no kernel "
			"reaches it",
			s->side[0].index, s->side[1].index);
	return st;
}

static void seat(struct p2p_state *s, const struct bench *b, const void *opts, enum p2p_way way)
{
	const struct p2p_opts *o = opts;

	*s = (struct p2p_state){
		.opts = *o,
		.way = way,
		.own = way == P2P_LOAD,
		.seed = b->seed,
		.bytes = o->direction == P2P_LATENCY ? P2P_PLACES * sizeof(uint64_t) : o->size,
	};
	s->side[s->own] = (struct p2p_side){.device = b->device, .stream = b->stream[0]};
	s->side[!s->own] = (struct p2p_side){.device = b->peer, .stream = b->peer_stream};
	for (unsigned i = 0; i < 2; i++)
		s->side[i].index = b->target->gpu[i];
}

static enum status prepare(struct p2p_state *s, const struct bench *b, struct error *err)
{
	bool access;
	enum status st = open_way(s, &access, err);

	if (!st && s->opts.direction == P2P_LATENCY)
		st = prepare_chain(s, err);
	for (unsigned from = 0; !st && from < 2; from++)
		if (p2p_sends(s, from))
			st = prepare_way(s, from, err);
	for (unsigned side = 0; !st && s->way != P2P_DRIVER && side < 2; side++)
		if (side == s->own || s->opts.direction == P2P_BOTH)
			st = prepare_kernel(s, side, err);
	if (!st && s->opts.direction == P2P_BOTH)
		st = prepare_both(s, err);
	if (!st)
		st = tell(s, b, access, err);
	return st ? st : p2p_wait(s, err);
}

static enum status driver_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	seat(state, b, opts, P2P_DRIVER);
	return prepare(state, b, err);
}

static enum status store_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	seat(state, b, opts, P2P_STORE);
	return prepare(state, b, err);
}

static enum status load_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	seat(state, b, opts, P2P_LOAD);
	return prepare(state, b, err);
}

/* What side `from` sends, by who does the work, who is current. */
static enum status one_way(struct p2p_state *s, unsigned from, struct error *err)
{
	const struct p2p_side *sender = &s->side[from], *receiver = &s->side[!from],
			      *by = &s->side[actor(s, from)];

	if (s->way == P2P_DRIVER)
		return gpu_stream_copy_peer(by->stream, receiver->in, receiver->device, sender->out,
					    sender->device, s->bytes, err);
	return gpu_launch_1d(by->kernel, by->stream, PER_SM * gpu_sm_count(by->device), THREADS, 0,
			     &(struct link_args){sender->out, receiver->in, s->bytes / 16}, err);
}

/* The other's stream begins after what is on the own, and the own goes on after it. */
static enum status both_ways(struct p2p_state *s, struct error *err)
{
	unsigned from = actor(s, s->own); /* what the own side does the work for */
	struct gpu_stream *own = s->side[s->own].stream, *other = s->side[!s->own].stream;
	enum status st = gpu_event_record(s->fork, own, err);

	if (!st)
		st = one_way(s, from, err);
	if (!st)
		st = p2p_stand(s, !s->own, err);
	if (!st)
		st = gpu_stream_after(other, s->fork, err);
	if (!st)
		st = one_way(s, !from, err);
	if (!st)
		st = gpu_event_record(s->join, other, err);
	if (st) {
		(void)p2p_stand(s, s->own, NULL); /* the first failure is the one to tell */
		return st;
	}
	st = p2p_stand(s, s->own, err);
	return st ? st : gpu_stream_after(own, s->join, err);
}

enum status p2p_enqueue(struct p2p_state *s, struct error *err)
{
	s->iterations++;
	if (s->opts.direction == P2P_LATENCY)
		return gpu_launch_1d(s->side[1].kernel, s->side[1].stream, 1, 1, 0,
				     &(struct flag_args){s->chain, s->at, P2P_HOPS}, err);
	return s->opts.direction == P2P_BOTH ? both_ways(s, err) : one_way(s, 0, err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	(void)i;
	return p2p_enqueue(state, err);
}

enum status p2p_wait(struct p2p_state *s, struct error *err)
{
	enum status st = p2p_stand(s, !s->own, err);

	if (!st)
		st = gpu_synchronize(s->side[!s->own].device, err);
	if (!st)
		st = p2p_stand(s, s->own, err);
	return st ? st : gpu_synchronize(s->side[s->own].device, err);
}

static void release(void *state)
{
	struct p2p_state *s = state;

	for (unsigned i = 0; i < 2; i++) {
		struct p2p_side *at = &s->side[i];
		gpu_ptr *const all[] = {&at->out, &at->in, &at->expected, &at->record,
					i ? &s->at : &s->chain};

		if (!at->device)
			continue;
		(void)p2p_stand(s, i, NULL); /* a device that is gone has nothing to give back */
		for (unsigned k = 0; k < sizeof(all) / sizeof(all[0]); k++)
			gpu_free(at->device, all[k]);
	}
	gpu_event_destroy(&s->join);
	gpu_event_destroy(&s->fork);
	if (s->side[s->own].device)
		(void)p2p_stand(s, s->own, NULL);
	*s = (struct p2p_state){0};
}

const struct engine p2p_driver_engine = {
	.name = "driver",
	.libs = "cuda",
	.targets = TARGET_PAIR,
	.streams = 1,
	.state_size = sizeof(struct p2p_state),
	.supports = send_supports,
	.prepare = driver_prepare,
	.enqueue = enqueue,
	.release = release,
};

const struct engine p2p_store_engine = {
	.name = "store",
	.libs = "cuda",
	.targets = TARGET_PAIR,
	.streams = 1,
	.state_size = sizeof(struct p2p_state),
	.supports = send_supports,
	.prepare = store_prepare,
	.enqueue = enqueue,
	.release = release,
};

const struct engine p2p_load_engine = {
	.name = "load",
	.libs = "cuda",
	.targets = TARGET_PAIR,
	.streams = 1,
	.seat = 1,
	.state_size = sizeof(struct p2p_state),
	.supports = load_supports,
	.prepare = load_prepare,
	.enqueue = enqueue,
	.release = release,
};
