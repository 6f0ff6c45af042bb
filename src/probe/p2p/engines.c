/* SPDX-License-Identifier: Apache-2.0 */
/* Engines of probe p2p: the driver's copy, and kernels that store to or load from the other GPU. */
#include "kernel/memory/link.h"
#include "machine/link/gpu_path.h"
#include "probe/p2p/p2p.h"
#include "probe/shared/transfer_data.h"

static enum status supports(const struct target *t, const struct p2p_opts *o, bool load, struct error *err)
{
	if ((t->kind == TARGET_NODE) != (o->pattern != P2P_PAIR))
		return error_set(err, STATUS_UNSUPPORTED,
				 "p2p: pattern=pair needs target pair, the other patterns need target node");
	if (t->kind == TARGET_NODE && t->gpu_count < 2)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
				       "p2p: this pattern needs at least two GPUs");
	if (load && o->pattern > P2P_ALL)
		return error_set(err, STATUS_UNSUPPORTED,
				 "p2p: pattern=out and pattern=in need engine driver or store");
	if (o->direction == P2P_LATENCY && !load)
		return error_set(err, STATUS_UNSUPPORTED, "p2p: only engine load measures direction=latency");
	return STATUS_OK;
}

static enum status send_supports(const struct machine *m, const struct target *t, const void *opts,
				 struct error *err)
{
	(void)m;
	return supports(t, opts, false, err);
}

static enum status load_supports(const struct machine *m, const struct target *t, const void *opts,
				 struct error *err)
{
	(void)m;
	return supports(t, opts, true, err);
}

enum status p2p_make_current(const struct p2p_state *s, unsigned side, struct error *err)
{
	return gpu_current(s->side[side].device, err);
}

static enum status generate(struct p2p_state *s, unsigned side, gpu_ptr *p, uint32_t words, struct error *err)
{
	return transfer_data_generate(s->side[side].device, s->side[side].stream, p, s->bytes, s->seed, words,
				      err);
}

/* The side that runs the transfer of the data that `from` sends. */
static unsigned actor(const struct p2p_state *s, unsigned from)
{
	return s->way == P2P_LOAD ? !from : from;
}

static enum status prepare_way(struct p2p_state *s, unsigned from, struct error *err)
{
	struct p2p_side *sender = &s->side[from], *receiver = &s->side[!from];
	uint32_t words = p2p_words(sender, receiver);
	enum status st = p2p_make_current(s, from, err);

	if (!st)
		st = generate(s, from, &sender->out, words, err);
	if (!st)
		st = p2p_make_current(s, !from, err);
	if (!st)
		st = gpu_alloc(receiver->device, &receiver->in, s->bytes, err);
	if (!st)
		st = generate(s, !from, &receiver->expected, words, err);
	if (!st)
		st = transfer_data_record(receiver->device, &receiver->record, err);
	return st;
}

/* Builds a ring of indices in the sender's memory; the step is coprime to the ring's length. */
static enum status prepare_chain(struct p2p_state *s, struct error *err)
{
	uint64_t next[P2P_PLACES];
	enum status st = p2p_make_current(s, 0, err);

	for (uint64_t i = 0; i < P2P_PLACES; i++)
		next[i] = (i + P2P_STEP) % P2P_PLACES;
	if (!st)
		st = gpu_alloc(s->side[0].device, &s->chain, sizeof(next), err);
	if (!st)
		st = gpu_copy_to(s->side[0].device, s->chain, next, sizeof(next), err);
	if (!st)
		st = p2p_make_current(s, 1, err);
	if (!st)
		st = gpu_alloc(s->side[1].device, &s->at, sizeof(uint64_t), err);
	return st ? st : gpu_copy_to(s->side[1].device, s->at, &(uint64_t){0}, sizeof(uint64_t), err);
}

static enum status prepare_kernel(struct p2p_state *s, unsigned side, struct error *err)
{
	struct p2p_side *at = &s->side[side];
	enum status st = p2p_make_current(s, side, err);

	return st ? st
		  : gpu_kernel(at->device, &at->kernel, "link",
			       s->opts.direction == P2P_LATENCY ? "link_hop" : "link_v2", err);
}

static enum status prepare_both(struct p2p_state *s, struct error *err)
{
	enum status st = p2p_make_current(s, !s->own, err);

	if (!st)
		st = gpu_event_create(s->side[!s->own].device, &s->join, err);
	if (!st)
		st = p2p_make_current(s, s->own, err);
	return st ? st : gpu_event_create(s->side[s->own].device, &s->fork, err);
}

/* Reports the path between the GPUs: NVLinks by the machine's facts, else the PCIe topology, else the
 * driver's answer. */
static void report_path(const struct p2p_state *s, const struct bench *b, bool access)
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

static enum status report(const struct p2p_state *s, const struct bench *b, bool access, struct error *err)
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
		snprintf(way, sizeof(way), "link_v2, %u threads, %u blocks an SM", P2P_THREADS, P2P_PER_SM);
	result_text(b->out, &p2p_fields[P2P_FIELD_way], way);
	report_path(s, b, access);
	return STATUS_OK;
}

/* Opens access in both directions, as far as the driver allows. *access: both are open. */
static enum status open_access(struct p2p_state *s, bool *access, struct error *err)
{
	bool there = false, back = false;
	enum status st = gpu_peer_enable(s->side[0].device, s->side[1].device, &there, err);

	if (!st)
		st = gpu_peer_enable(s->side[1].device, s->side[0].device, &back, err);
	*access = there && back;
	if (!st && !*access && s->way != P2P_DRIVER)
		st = error_set(
			err, STATUS_UNSUPPORTED,
			"p2p: the driver gives gpu%u and gpu%u no access to each other's memory, so no kernel can reach it",
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
	s->blocks = P2P_PER_SM * gpu_sm_count(b->device);
	s->threads = P2P_THREADS;
}

static enum status prepare(struct p2p_state *s, const struct bench *b, struct error *err)
{
	bool access;
	enum status st = open_access(s, &access, err);

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
		st = report(s, b, access, err);
	return st ? st : p2p_wait(s, err);
}

static enum status prepare_any(struct p2p_state *s, const struct bench *b, const void *opts, enum p2p_way way,
			       struct error *err)
{
	if (b->target->kind == TARGET_NODE)
		return p2p_node_prepare(&s->node, b, opts, way, err);
	seat(s, b, opts, way);
	return prepare(s, b, err);
}

static enum status driver_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	return prepare_any(state, b, opts, P2P_DRIVER, err);
}

static enum status store_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	return prepare_any(state, b, opts, P2P_STORE, err);
}

static enum status load_prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	return prepare_any(state, b, opts, P2P_LOAD, err);
}

/* Enqueues the transfer of the data that side `from` sends. The side that runs it must be current. */
static enum status one_way(struct p2p_state *s, unsigned from, struct error *err)
{
	const struct p2p_side *sender = &s->side[from], *receiver = &s->side[!from],
			      *by = &s->side[actor(s, from)];

	if (s->way == P2P_DRIVER)
		return gpu_stream_copy_peer(by->stream, receiver->in, receiver->device, sender->out,
					    sender->device, s->bytes, err);
	return gpu_launch_1d(by->kernel, by->stream, s->blocks, s->threads, 0,
			     &(struct link_args){sender->out, receiver->in, s->bytes / 16}, err);
}

/* The other side's stream starts after the work on the own stream, and the own stream continues after it. */
static enum status both_ways(struct p2p_state *s, struct error *err)
{
	unsigned from = actor(s, s->own); /* sender of the transfer that the own side runs */
	struct gpu_stream *own = s->side[s->own].stream, *other = s->side[!s->own].stream;
	enum status st = gpu_event_record(s->fork, own, err);

	if (!st)
		st = one_way(s, from, err);
	if (!st)
		st = p2p_make_current(s, !s->own, err);
	if (!st)
		st = gpu_stream_after(other, s->fork, err);
	if (!st)
		st = one_way(s, !from, err);
	if (!st)
		st = gpu_event_record(s->join, other, err);
	if (st) {
		(void)p2p_make_current(s, s->own, NULL); /* the first failure is the one to report */
		return st;
	}
	st = p2p_make_current(s, s->own, err);
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
	struct p2p_state *s = state;

	(void)i;
	return s->node ? p2p_node_enqueue(s->node, err) : p2p_enqueue(s, err);
}

enum status p2p_wait(struct p2p_state *s, struct error *err)
{
	enum status st = p2p_make_current(s, !s->own, err);

	if (!st)
		st = gpu_synchronize(s->side[!s->own].device, err);
	if (!st)
		st = p2p_make_current(s, s->own, err);
	return st ? st : gpu_synchronize(s->side[s->own].device, err);
}

static void release(void *state)
{
	struct p2p_state *s = state;

	p2p_node_release(&s->node);
	for (unsigned i = 0; i < 2; i++) {
		struct p2p_side *at = &s->side[i];
		gpu_ptr *const all[] = {&at->out, &at->in, &at->expected, &at->record,
					i ? &s->at : &s->chain};

		if (!at->device)
			continue;
		(void)p2p_make_current(s, i, NULL); /* on a lost device there is nothing to free */
		for (unsigned k = 0; k < sizeof(all) / sizeof(all[0]); k++)
			gpu_free(at->device, all[k]);
	}
	gpu_event_destroy(&s->join);
	gpu_event_destroy(&s->fork);
	if (s->side[s->own].device)
		(void)p2p_make_current(s, s->own, NULL);
	*s = (struct p2p_state){0};
}

/* Search variants: SMs that take part. 0: all SMs, four blocks each. Else so many SMs, with one large block
 * each. */
static const unsigned sm_counts[] = {0, 32, 16};

static unsigned variants(void *state)
{
	const struct p2p_state *s = state;

	return !s->node && s->opts.search && s->opts.direction != P2P_LATENCY ? 3 : 1;
}

static enum status choose(void *state, unsigned variant, const char **name, struct error *err)
{
	struct p2p_state *s = state;
	unsigned sms = sm_counts[variant];

	(void)err;
	if (s->node) {
		*name = "link_v2";
		return STATUS_OK;
	}
	s->blocks = sms ? sms : P2P_PER_SM * gpu_sm_count(s->side[s->own].device);
	s->threads = sms ? 1024 : P2P_THREADS;
	snprintf(s->variant, sizeof(s->variant), "link_v2, %u blocks of %u", s->blocks, s->threads);
	*name = s->variant;
	return STATUS_OK;
}

const struct engine p2p_driver_engine = {
	.name = "driver",
	.libs = "cuda",
	.targets = TARGET_PAIR | TARGET_NODE,
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
	.targets = TARGET_PAIR | TARGET_NODE,
	.streams = 1,
	.state_size = sizeof(struct p2p_state),
	.supports = send_supports,
	.prepare = store_prepare,
	.enqueue = enqueue,
	.variants = variants,
	.select = choose,
	.release = release,
};

const struct engine p2p_load_engine = {
	.name = "load",
	.libs = "cuda",
	.targets = TARGET_PAIR | TARGET_NODE,
	.streams = 1,
	.seat = 1,
	.state_size = sizeof(struct p2p_state),
	.supports = load_supports,
	.prepare = load_prepare,
	.enqueue = enqueue,
	.variants = variants,
	.select = choose,
	.release = release,
};
