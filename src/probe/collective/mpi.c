/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `mpi`: one rank per launched process, with arrays in its own memory; MPI moves and reduces. Calls
 * block, so the host's clock times them. All ranks meet at a barrier before each timed batch.
 */
#include <errno.h>
#include <limits.h>
#include "core/clock.h"
#include "probe/collective/host.h"
#include "team/libraries/mpi.h"

#define FIELD(name) (&collective_fields[COLLECTIVE_FIELD_##name])

enum { ALIGN = 4096, POISON = 0xff /* not a correct value in any type: NaN, or -1 in every byte */ };

struct state {
	struct collective_own own;
	struct collective_opts opts;
	struct collective_shape shape;
	struct collective_inputs inputs;
	const struct bench *bench;
	struct team *team;
	struct mpi_plugin_call call;
	unsigned char *base[2]; /* send, receive; in place base[0] is both */
	uint64_t size[2];
	unsigned char *give, *result; /* start of the input that MPI is given, and of the result */
	unsigned long long *suspect;
	bool filled;
	uint64_t iterations; /* calls since the result was poisoned */
};

/* -- limits of MPI -- */

static enum status unsupported(struct error *err, const char *what)
{
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			       "collective: engine mpi does not support %s", what);
}

/* Rejects options that only NCCL supports. */
static enum status known_options(const struct collective_opts *o, struct error *err)
{
	char type[64];

	snprintf(type, sizeof(type), "type=%s; use type=fp32, fp64, int8 or int32", collective_type_name(o));
	if (!collective_host_type(collective_operand(o)))
		return unsupported(err, type);
	if (collective_rule_of(o) == COLLECTIVE_AVG)
		return unsupported(err, "reduce=avg; use sum, min or max");
	if (o->buffers != COLLECTIVE_PLAIN)
		return unsupported(err, "library, registered or window buffers; use buffers=plain");
	if (o->launch != COLLECTIVE_STREAM_LAUNCH)
		return unsupported(err, "launch=graph; use launch=stream");
	if (o->algorithm || o->protocol || o->ctas || o->search != COLLECTIVE_FIRST)
		return unsupported(err, "the options algorithm, protocol, ctas and search; omit them");
	return STATUS_OK;
}

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct collective_opts *o = opts;
	const struct lib_found *lib = machine_lib(m, "mpi_plugin");
	const struct collective_shape shape = collective_shape(o, t->ranks);
	enum status st = known_options(o, err);

	if (st)
		return st;
	if (!shape.count || (t->ranks > 1 && o->root >= t->ranks))
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "collective: %u ranks are too %s for this %s", t->ranks,
				       shape.count ? "few" : "many", shape.count ? "root" : "size");
	if (shape.count > INT_MAX)
		return error_set_cause(
			err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			"collective: MPI supports at most %d elements per call, not %llu; use a smaller size",
			INT_MAX, (unsigned long long)shape.count);
	if (lib && lib->status)
		return error_set_cause(err, lib->status, lib->cause, "collective: MPI: %s", lib->missing);
	return STATUS_OK;
}

/* -- arrays -- */

static enum status allocate(struct state *s, struct error *err)
{
	unsigned bytes = collective_type_bytes(s->inputs.type);
	bool in_place = s->opts.place == COLLECTIVE_IN;
	const struct collective_member me = collective_member_of(&s->opts, &s->shape, s->team);

	s->size[0] = in_place ? s->shape.bytes : s->shape.send * bytes;
	s->size[1] = in_place ? 0 : s->shape.receive * bytes;
	for (int i = 0; i < 2; i++) {
		s->size[i] = (s->size[i] + ALIGN - 1) / ALIGN * ALIGN;
		s->base[i] = s->size[i] ? aligned_alloc(ALIGN, s->size[i]) : NULL;
		if (s->size[i] && !s->base[i])
			return error_errno(err, ENOMEM, "collective: cannot allocate %llu bytes",
					   (unsigned long long)s->size[i]);
	}
	s->suspect = calloc(2 * s->team->size + 1, sizeof(*s->suspect));
	if (!s->suspect)
		return error_errno(err, ENOMEM, "collective: cannot allocate the counts of %u ranks",
				   s->team->size);
	s->give = s->base[0];
	if (in_place && s->opts.op == COLLECTIVE_ALL_GATHER)
		s->give += me.rank * s->shape.count * bytes;
	s->result = in_place ? s->base[0] : s->base[1];
	return STATUS_OK;
}

/* In place, the result overlaps the inputs, so the poison is written first and the inputs after it. */
static void fill(struct state *s)
{
	const struct collective_member me = collective_member_of(&s->opts, &s->shape, s->team);

	s->iterations = 0;
	for (int i = 0; i < 2; i++)
		if (s->base[i])
			memset(s->base[i], POISON, s->size[i]);
	for (unsigned i = 0; i < collective_parts_given(&me); i++) {
		const struct collective_part gift = collective_part_given(&me, i);

		collective_host_fill(&s->inputs, &gift, s->give);
	}
}

static void make_call(struct state *s)
{
	static const uint32_t whats[COLLECTIVE_OP_COUNT] = {
		[COLLECTIVE_ALL_REDUCE] = MPI_PLUGIN_ALL_REDUCE,
		[COLLECTIVE_ALL_GATHER] = MPI_PLUGIN_ALL_GATHER,
		[COLLECTIVE_REDUCE_SCATTER] = MPI_PLUGIN_REDUCE_SCATTER,
		[COLLECTIVE_ALL_TO_ALL] = MPI_PLUGIN_ALL_TO_ALL,
		[COLLECTIVE_BROADCAST] = MPI_PLUGIN_BROADCAST,
		[COLLECTIVE_REDUCE] = MPI_PLUGIN_REDUCE,
		[COLLECTIVE_SEND_RECV] = MPI_PLUGIN_SEND_RECEIVE,
	};
	const enum operand_type type = s->inputs.type;
	const enum collective_rule rule = s->inputs.rule;

	s->call = (struct mpi_plugin_call){
		.what = whats[s->opts.op],
		.type = type == OPERAND_F32   ? MPI_PLUGIN_F32
			: type == OPERAND_F64 ? MPI_PLUGIN_F64
			: type == OPERAND_S8  ? MPI_PLUGIN_S8
					      : MPI_PLUGIN_S32,
		.op = rule == COLLECTIVE_MIN   ? MPI_PLUGIN_MIN
		      : rule == COLLECTIVE_MAX ? MPI_PLUGIN_MAX
					       : MPI_PLUGIN_SUM,
		.root = s->opts.root,
		.in_place = s->opts.place == COLLECTIVE_IN,
		.count = s->shape.count,
		.send = s->give,
		.receive = s->result,
	};
}

/* -- a case -- */

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct state *s = state;

	(void)i;
	s->iterations++;
	return team_mpi_call(s->team, &s->call, err);
}

static enum status align(void *state, struct error *err)
{
	struct state *s = state;

	team_at(s->team->board, TEAM_OP_MPI);
	return team_mpi_barrier(s->team, err);
}

/* Makes one call on all ranks together. No rank enters MPI if another has failed. */
static enum status call_together(struct state *s, struct error *err)
{
	enum status st = team_agree(s->team, STATUS_OK, err);

	team_at(s->team->board, TEAM_OP_MPI);
	if (!st)
		st = enqueue(s, 0, err);
	return team_agree(s->team, st, err);
}

static void check(struct state *s, struct wrong *w)
{
	const struct collective_member me = collective_member_of(&s->opts, &s->shape, s->team);
	bool given = s->opts.op == COLLECTIVE_BROADCAST && s->opts.place == COLLECTIVE_OUT &&
		     me.rank == s->opts.root; /* MPI_Bcast has one array: on the root it is the input, so the
						 root has no result to check */
	unsigned parts = collective_parts(&me);

	memset(s->suspect, 0, (2 * me.size + 1) * sizeof(*s->suspect));
	for (unsigned i = 0; i < parts; i++) {
		const struct collective_part part = collective_part(&me, i);

		collective_host_check(&s->inputs, &part, given ? s->give : s->result, w, s->suspect);
	}
	if (w->count)
		collective_blame(&s->inputs, s->suspect, w);
}

/* Like engine nccl, checks the result of the timed calls if the inputs are intact; else makes one more call
 * and checks that. */
static enum status verify(void *state, struct wrong *w, struct error *err)
{
	struct state *s = state;
	bool again = !s->filled || !s->iterations || s->opts.place == COLLECTIVE_IN;
	enum status st = STATUS_OK;

	*w = (struct wrong){0};
	if (again) {
		fill(s);
		st = call_together(s, err);
		team_at(s->team->board, TEAM_OP_VERIFY);
	}
	if (st)
		return st;
	check(s, w);
	/* a wrong result is not a failure here: all ranks continue */
	st = team_agree(s->team, STATUS_OK, err);
	if (st)
		return st;
	s->filled = true;
	fill(s);
	return w->count ? collective_mismatch(&s->opts, w, err) : STATUS_OK;
}

static const char *call_text(enum collective_op op)
{
	static const char *const names[COLLECTIVE_OP_COUNT] = {
		[COLLECTIVE_ALL_REDUCE] = "MPI_Allreduce",
		[COLLECTIVE_ALL_GATHER] = "MPI_Allgather",
		[COLLECTIVE_REDUCE_SCATTER] = "MPI_Reduce_scatter_block",
		[COLLECTIVE_ALL_TO_ALL] = "MPI_Alltoall",
		[COLLECTIVE_BROADCAST] = "MPI_Bcast",
		[COLLECTIVE_REDUCE] = "MPI_Reduce",
		[COLLECTIVE_SEND_RECV] = "MPI_Sendrecv",
	};

	return names[op];
}

static void report(const struct state *s, double init_ms, double first_ms)
{
	struct result *out = s->bench->out;
	bool crowded = s->bench->machine && s->team->local_size > machine_cpu(s->bench->machine)->threads;

	result_text(out, FIELD(mpi_version), s->team->mpi->version);
	result_f64(out, FIELD(bus_factor), s->shape.factor);
	result_text(out, FIELD(calls), call_text(s->opts.op));
	result_f64(out, FIELD(init_ms), init_ms);
	result_f64(out, FIELD(first_ms), first_ms);
	result_u64(out, FIELD(check_tolerance_ulp), s->inputs.ulp);
	/* If ranks share a CPU, a low CPU share is no sign of other work, so no share is reported. */
	result_u64(out, FIELD(oversubscribed), crowded);
	result_u64(out, &field_threads, crowded ? 0 : 1);
}

static double ms_since(const struct state *s, uint64_t t0)
{
	return (double)(clock_now_ns(s->bench->clock) - t0) / 1e6;
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct state *s = state;
	uint64_t t0 = clock_now_ns(b->clock);
	double init_ms;
	enum status st;

	s->own.verify = verify;
	s->opts = *(const struct collective_opts *)opts;
	s->bench = b;
	s->team = b->team;
	if (!s->team || s->team->size < 2)
		return error_set(err, STATUS_UNSUPPORTED, "collective: needs at least two ranks");
	s->shape = collective_shape(&s->opts, s->team->size);
	s->inputs = collective_inputs(collective_operand(&s->opts), collective_rule_of(&s->opts),
				      s->team->size, b->seed);
	st = team_mpi_join(s->team, err);
	if (st)
		return st;
	init_ms = ms_since(s, t0);
	st = allocate(s, err);
	if (!st) {
		fill(s);
		make_call(s);
	}
	st = team_agree(s->team, st, err);
	t0 = clock_now_ns(b->clock);
	if (!st)
		st = call_together(s, err);
	if (!st)
		report(s, init_ms, ms_since(s, t0));
	return st;
}

static void release(void *state)
{
	struct state *s = state;

	for (int i = 0; i < 2; i++)
		free(s->base[i]);
	free(s->suspect);
}

/* MPI has no type for bf16, the probe's default. */
static const char *const presets[][2] = {{"type", "fp32"}, {NULL, NULL}};

const struct engine collective_mpi_engine = {
	.name = "mpi",
	.libs = "mpi_plugin",
	.targets = TARGET_NODE | TARGET_TEAM,
	.presets = presets,
	.launched = true,
	.once = true,
	.state_size = sizeof(struct state),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.align = align,
	.release = release,
};
