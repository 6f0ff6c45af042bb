/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `nccl`: one rank per GPU. Each search variant has its own communicator and buffers. They are created
 * when the variant is first selected, and live until the case ends. The first call of a variant is separate:
 * it creates the connections, and it is the only call about which NCCL is queried.
 */
#include "probe/collective/collective.h"

#define FIELD(name) (&collective_fields[COLLECTIVE_FIELD_##name])

enum { FP8_FROM_CC = 90, FP8_FROM_NCCL = 22400 };

static bool is_fp8(const struct collective_opts *o)
{
	enum operand_type t = collective_operand(o);

	return t == OPERAND_E4M3 || t == OPERAND_E5M2;
}

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct collective_opts *o = opts;
	const struct lib_found *lib = machine_lib(m, "nccl");
	const struct gpu *g = machine_gpu(m, t->gpu[0]);
	double cc = g ? gpu_get(g, GPU_FACT_cc, 0) : 0;

	if (lib && lib->status)
		return error_set_cause(err, lib->status, lib->cause, "collective: NCCL: %s", lib->missing);
	if (is_fp8(o) && collective_reduces(o->op) && cc > 0 && cc < FP8_FROM_CC)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"collective: NCCL reduces 8-bit floats only on sm_90 or newer, this GPU is sm_%.0f",
			cc);
	if (t->ranks && !collective_shape(o, t->ranks).count)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"collective: %s of %llu bytes has less than one element for each of %u ranks; use a larger size",
			collective_op_name(o->op), (unsigned long long)o->size, t->ranks);
	if (t->ranks && o->root >= t->ranks)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "collective: root=%u does not exist, there are %u ranks", o->root,
				       t->ranks);
	return STATUS_OK;
}

static enum launch launch(const void *opts)
{
	const struct collective_opts *o = opts;

	return o->launch == COLLECTIVE_GRAPH_LAUNCH ? LAUNCH_GRAPH : LAUNCH_STREAM;
}

static enum status named(const struct collective_state *s, ncclResult_t r, const char *what,
			 struct error *err)
{
	return nccl_check(s->nccl, r, s->now->comm->comm, what, err);
}

/* Sends and receives grouped into one launch. */
static ncclResult_t points(struct collective_state *s, void *stream)
{
	const struct nccl *n = s->nccl;
	const struct collective_memory *m = &s->now->memory;
	ncclComm_t comm = s->now->comm->comm;
	ncclDataType_t type = collective_nccl_type(&s->opts);
	unsigned size = s->team->size, rank = s->team->rank, bytes = collective_type_bytes(s->inputs.type);
	bool all = s->opts.op == COLLECTIVE_ALL_TO_ALL;
	ncclResult_t r = n->group_start(), ended;

	for (unsigned q = 0; r == ncclSuccess && q < size; q++) {
		uint64_t offset = all ? q * s->shape.count * bytes : 0;

		if (all || q == (rank + 1) % size)
			r = n->send((void *)(uintptr_t)(m->send + offset), s->shape.count, type, (int)q, comm,
				    stream);
		if (r == ncclSuccess && (all || q == (rank + size - 1) % size))
			r = n->recv((void *)(uintptr_t)(m->receive + offset), s->shape.count, type, (int)q,
				    comm, stream);
	}
	ended = n->group_end();
	return r == ncclSuccess ? ended : r;
}

enum status collective_call(struct collective_state *s, struct error *err)
{
	static const ncclRedOp_t reductions[] = {ncclSum, ncclMin, ncclMax, ncclAvg};
	const struct nccl *n = s->nccl;
	const void *send = (const void *)(uintptr_t)s->now->memory.send;
	void *receive = (void *)(uintptr_t)s->now->memory.receive,
	     *stream = gpu_stream_raw(s->bench->stream[0]);
	ncclComm_t comm = s->now->comm->comm;
	ncclDataType_t type = collective_nccl_type(&s->opts);
	ncclRedOp_t op = reductions[s->opts.reduce];
	uint64_t count = s->shape.count;
	int root = (int)s->opts.root;

	s->iterations++;
	switch ((enum collective_op)s->opts.op) {
	case COLLECTIVE_ALL_REDUCE:
		return named(s, n->all_reduce(send, receive, count, type, op, comm, stream), "ncclAllReduce",
			     err);
	case COLLECTIVE_ALL_GATHER:
		return named(s, n->all_gather(send, receive, count, type, comm, stream), "ncclAllGather",
			     err);
	case COLLECTIVE_REDUCE_SCATTER:
		return named(s, n->reduce_scatter(send, receive, count, type, op, comm, stream),
			     "ncclReduceScatter", err);
	case COLLECTIVE_BROADCAST:
		return named(s, n->broadcast(send, receive, count, type, root, comm, stream), "ncclBroadcast",
			     err);
	case COLLECTIVE_REDUCE:
		return named(s, n->reduce(send, receive, count, type, op, root, comm, stream), "ncclReduce",
			     err);
	case COLLECTIVE_ALL_TO_ALL:
		if (n->all_to_all)
			return named(s, n->all_to_all(send, receive, count, type, comm, stream),
				     "ncclAlltoAll", err);
		return named(s, points(s, stream), "ncclSend and ncclRecv", err);
	case COLLECTIVE_SEND_RECV:
	case COLLECTIVE_OP_COUNT:
		break;
	}
	return named(s, points(s, stream), "ncclSend and ncclRecv", err);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	(void)i;
	return collective_call(state, err);
}

enum status collective_wait(struct collective_state *s, struct error *err)
{
	return team_nccl_wait(s->team, s->now->comm, s->bench->stream[0], s->done, s->bench->clock, err);
}

/* Makes the first call of the communicator on these buffers, and queries NCCL about its choices. */
static enum status first_call(struct collective_state *s, struct collective_way *w, struct error *err)
{
	bool asks = !s->team->in_process || !s->team->rank;
	uint64_t t0;
	enum status st;

	if (asks)
		nccl_hooks_listen(true);
	st = team_agree(s->team, STATUS_OK, err);
	t0 = clock_now_ns(s->bench->clock);
	team_at(s->team->board, TEAM_OP_ENQUEUE);
	if (!st)
		st = collective_call(s, err);
	st = team_agree(s->team, st, err);
	if (!st)
		st = collective_wait(s, err);
	w->first_ms = (double)(clock_now_ns(s->bench->clock) - t0) / 1e6;
	st = team_agree(s->team, st, err);
	if (asks) {
		w->told = nccl_hooks_choice();
		nccl_hooks_listen(false);
	}
	return st;
}

/* Creates communicator, buffers and inputs, and makes the first call. All ranks call it together. */
static enum status make_way(struct collective_state *s, struct collective_way *w, struct error *err)
{
	enum status st = team_nccl_comm(s->team, &w->spec, &w->comm, err);

	s->now = w;
	if (!st)
		st = collective_memory_make(s, w, err);
	if (!st) {
		st = collective_fill_inputs(s, err);
		st = team_agree(s->team, st, err);
	}
	if (!st)
		st = first_call(s, w, err);
	w->made = !st;
	if (st && w != &s->way[0]) /* the search continues without it */
		collective_memory_free(s, w);
	return st;
}

static enum status known_type(const struct collective_state *s, struct error *err)
{
	int version = 0;
	char text[24];

	(void)s->nccl->version(&version);
	nccl_version_text(s->nccl, text, sizeof(text));
	if (is_fp8(&s->opts) && version < FP8_FROM_NCCL)
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
				       "collective: NCCL %s does not support %s; it needs 2.24 or newer",
				       text, collective_type_name(&s->opts));
	if (is_fp8(&s->opts) && collective_reduces(s->opts.op) && gpu_cc(s->bench->device) < FP8_FROM_CC)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"collective: NCCL reduces 8-bit floats only on sm_90 or newer, this GPU is sm_%u",
			gpu_cc(s->bench->device));
	return STATUS_OK;
}

static const char *calls_text(const struct collective_state *s)
{
	static const char *const names[] = {"ncclAllReduce",	  "ncclAllGather", "ncclReduceScatter",
					    "ncclAlltoAll",	  "ncclBroadcast", "ncclReduce",
					    "ncclSend + ncclRecv"};

	if (s->opts.op == COLLECTIVE_ALL_TO_ALL && !s->nccl->all_to_all)
		return "grouped ncclSend + ncclRecv";
	return names[s->opts.op];
}

/* Name of a variant's algorithm; NULL: not reported. */
static const char *algorithm_of(const struct collective_state *s, const struct collective_way *w)
{
	bool points_only = s->opts.op == COLLECTIVE_SEND_RECV || s->opts.op == COLLECTIVE_ALL_TO_ALL;

	if (w->told.told)
		return w->told.algorithm;
	return w->buffers == COLLECTIVE_WINDOW && !points_only ? "symmetric" : NULL;
}

static void report_choice(const struct collective_state *s, struct result *out)
{
	const struct collective_way *w = &s->way[0];
	const char *asked = getenv("NCCL_NVLS_ENABLE"), *algorithm = algorithm_of(s, w);

	if (algorithm)
		result_text(out, FIELD(algorithm), algorithm);
	if (w->told.told) {
		result_text(out, FIELD(protocol), w->told.protocol);
		result_u64(out, FIELD(channels), w->told.channels);
		result_u64(out, FIELD(warps), w->told.warps);
		result_u64(out, FIELD(nvls), strstr(w->told.algorithm, "nvls") != NULL);
		result_text(out, FIELD(told_by),
			    s->opts.launch == COLLECTIVE_GRAPH_LAUNCH ? "a stream call" : "such a call");
	} else if (asked && !strcmp(asked, "0")) {
		result_u64(out, FIELD(nvls), 0);
	}
}

/* Reports NCCL's choices for the variant that the search selected. */
static void report_best(const void *state, struct result *out)
{
	const struct collective_state *s = state;
	const char *algorithm;

	if (s->ways < 2)
		return;
	algorithm = algorithm_of(s, s->now);
	if (algorithm)
		result_text(out, FIELD(best_algorithm), algorithm);
	if (!s->now->told.told)
		return;
	result_text(out, FIELD(best_protocol), s->now->told.protocol);
	result_u64(out, FIELD(best_channels), s->now->told.channels);
}

static void report(const struct collective_state *s, struct result *out)
{
	const struct collective_way *w = &s->way[0];
	char version[24];

	nccl_version_text(s->nccl, version, sizeof(version));
	result_text(out, FIELD(nccl_version), version);
	result_f64(out, FIELD(bus_factor), s->shape.factor);
	result_text(out, FIELD(calls), calls_text(s));
	result_f64(out, FIELD(init_ms), w->comm->init_ms);
	result_f64(out, FIELD(first_ms), w->first_ms);
	result_u64(out, FIELD(check_tolerance_ulp), s->inputs.ulp);
	if (w->buffers > COLLECTIVE_LIBRARY)
		result_u64(out, FIELD(buffers_registered), w->registered);
	report_choice(s, out);
}

/* Prepares what a rank needs on its own device, before it communicates. */
static enum status prepare_own(struct collective_state *s, struct error *err)
{
	struct gpu_device *d = s->bench->device;
	uint64_t found = s->team->size * sizeof(struct operand_found) +
			 (2 * s->team->size + 1) * sizeof(unsigned long long);
	enum status st = gpu_kernel(d, &s->fill, "collective", "collective_fill", err);

	if (!st)
		st = gpu_kernel(d, &s->check, "collective", "collective_check", err);
	if (!st)
		st = gpu_event_create(d, &s->done, err);
	return st ? st : gpu_alloc(d, &s->found, found, err);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct collective_state *s = state;
	const struct collective_opts *o = opts;
	enum status st;

	s->own = (struct collective_own){.verify = collective_verify, .finish = report_best};
	s->opts = *o;
	s->bench = b;
	s->team = b->team;
	if (!s->team || s->team->size < 2)
		return error_set(err, STATUS_UNSUPPORTED, "collective: needs at least two ranks");
	s->shape = collective_shape(o, s->team->size);
	s->inputs = collective_inputs(collective_operand(o), collective_rule_of(o), s->team->size, b->seed);
	st = team_nccl_open(s->team, err);
	if (st)
		return st;
	s->nccl = team_nccl_table(s->team);
	st = known_type(s, err);
	if (!st)
		st = prepare_own(s, err);
	st = team_agree(s->team, st, err);
	if (st)
		return st;
	collective_ways(s);
	st = make_way(s, &s->way[0], err);
	if (!st)
		report(s, b->out);
	return st;
}

static unsigned variants(void *state)
{
	const struct collective_state *s = state;

	return s->ways > 1 ? s->ways : 0;
}

static enum status choose(void *state, unsigned variant, const char **name, struct error *err)
{
	struct collective_state *s = state;
	struct collective_way *w = &s->way[variant];
	enum status st = w->made ? STATUS_OK : make_way(s, w, err);

	if (st)
		s->now = &s->way[0];
	else
		s->now = w;
	*name = w->name;
	return st;
}

static void release(void *state)
{
	struct collective_state *s = state;

	if (!s->bench || !s->bench->device)
		return;
	if (s->now)
		team_nccl_drain(s->team, s->now->comm, s->bench->stream[0], s->done, s->bench->clock);
	for (unsigned i = 0; i < s->ways; i++)
		collective_memory_free(s, &s->way[i]);
	gpu_free(s->bench->device, &s->found);
	gpu_event_destroy(&s->done);
}

const struct engine collective_nccl_engine = {
	.name = "nccl",
	.libs = "nccl cuda",
	.targets = TARGET_NODE | TARGET_TEAM,
	.streams = 1,
	.launch = launch,
	.state_size = sizeof(struct collective_state),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.variants = variants,
	.select = choose,
	.release = release,
};
