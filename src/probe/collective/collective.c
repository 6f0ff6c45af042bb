/* SPDX-License-Identifier: Apache-2.0 */
/* Probe collective: options, fields, work and descriptor (at the end). collective.h defines the sizes. */
#include "probe/collective/collective.h"
#include "core/math/bus_bandwidth.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	enum bus_load load;
	bool reduces, divided;
} ops[] = {
#define X(id, name, load, reduces, divided) {name, load, reduces, divided},
	COLLECTIVE_OPS(X)
#undef X
};

static const struct {
	const char *name;
	enum operand_type operand;
	ncclDataType_t nccl;
} types[] = {
	{"fp32", OPERAND_F32, ncclFloat32},	{"bf16", OPERAND_BF16, ncclBfloat16},
	{"fp16", OPERAND_F16, ncclFloat16},	{"e4m3", OPERAND_E4M3, ncclFloat8e4m3},
	{"e5m2", OPERAND_E5M2, ncclFloat8e5m2}, {"int8", OPERAND_S8, ncclInt8},
	{"int32", OPERAND_S32, ncclInt32},	{"fp64", OPERAND_F64, ncclFloat64},
};

#define X(id, name, load, reduces, divided) name,
static const char *const op_words[] = {COLLECTIVE_OPS(X) NULL};
#undef X
static const char *const reduce_words[] = {"sum", "min", "max", "avg", NULL};
static const char *const type_words[] = {"fp32", "bf16",  "fp16", "e4m3", "e5m2",
					 "int8", "int32", "fp64", NULL};
static const char *const place_words[] = {"out", "in", NULL};
static const char *const buffer_words[] = {"plain", "library", "registered", "window", NULL};
static const char *const launch_words[] = {"stream", "graph", NULL};
static const char *const algorithm_words[] = {"auto",	       "ring",	       "tree", "nvls", "nvlstree",
					      "collnetdirect", "collnetchain", "pat",  NULL};
static const char *const protocol_words[] = {"auto", "ll", "ll128", "simple", NULL};
static const char *const search_words[] = {"first", "top", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct collective_opts, algorithm, .name = "algorithm", .preset = "auto",
		.choices = algorithm_words,
		.help = "auto: NCCL chooses; else this algorithm, set by NCCL_ALGO during the creation of the communicator"),
	OPT_ROW(struct collective_opts, buffers, .name = "buffers", .preset = "plain",
		.choices = buffer_words,
		.help = "plain: driver memory; library: memory of ncclMemAlloc, two arrays of the larger side's size, as in "
			"nccl-tests; registered: library memory registered with NCCL; window: symmetric windows (NCCL 2.27)"),
	OPT_ROW(struct collective_opts, ctas, .name = "ctas", .preset = "0", .max = 64,
		.help = "CTAs of the communicator; 0: NCCL chooses"),
	OPT_ROW(struct collective_opts, launch, .name = "launch", .preset = "stream", .choices = launch_words,
		.help = "stream: launch each call by itself; graph: replay chains of calls from a graph"),
	OPT_ROW(struct collective_opts, op, .name = "op", .preset = "allreduce", .choices = op_words,
		.help = "collective operation; sendrecv: every rank sends to the next"),
	OPT_ROW(struct collective_opts, place, .name = "place", .preset = "out", .choices = place_words,
		.help = "out: separate arrays for input and result; in: the result overwrites the input"),
	OPT_ROW(struct collective_opts, protocol, .name = "protocol", .preset = "auto",
		.choices = protocol_words,
		.help = "auto: NCCL chooses; else this protocol, set by NCCL_PROTO during the creation of the communicator"),
	OPT_ROW(struct collective_opts, reduce, .name = "reduce", .preset = "sum", .choices = reduce_words,
		.help = "reduction of allreduce, reducescatter and reduce"),
	OPT_ROW(struct collective_opts, root, .name = "root", .preset = "0", .max = COLLECTIVE_RANKS - 1,
		.help = "root rank of broadcast and reduce"),
	OPT_ROW(struct collective_opts, search, .name = "search", .preset = "first", .choices = search_words,
		.help = "first: NCCL's own choice; top: the fastest of several algorithms, protocols, CTAs and buffers"),
	OPT_ROW(struct collective_opts, size, .name = "size", .preset = "64MiB", .unit = "B", .min = 1,
		.max = 0x1p34, .help = "whole size of the larger side (input or result), as in nccl-tests"),
	OPT_ROW(struct collective_opts, type, .name = "type", .preset = "bf16", .choices = type_words,
		.help = "type of the elements; engine mpi: default fp32"),
};

const struct field collective_fields[] = {COLLECTIVE_FIELDS(FIELD_ROW)};

const char *collective_op_name(enum collective_op op)
{
	return ops[op].name;
}

bool collective_reduces(enum collective_op op)
{
	return ops[op].reduces;
}

enum operand_type collective_operand(const struct collective_opts *o)
{
	return types[o->type].operand;
}

ncclDataType_t collective_nccl_type(const struct collective_opts *o)
{
	return types[o->type].nccl;
}

const char *collective_type_name(const struct collective_opts *o)
{
	return types[o->type].name;
}

const char *collective_algorithm(uint32_t index)
{
	return index ? algorithm_words[index] : "";
}

const char *collective_protocol(uint32_t index)
{
	return index ? protocol_words[index] : "";
}

struct collective_shape collective_shape(const struct collective_opts *o, unsigned ranks)
{
	unsigned bytes = collective_type_bytes(collective_operand(o)), n = ranks ? ranks : 1;
	uint64_t all = o->size / bytes, part = all / n;
	struct collective_shape s = {.count = ops[o->op].divided ? part : all};

	s.send = o->op == COLLECTIVE_REDUCE_SCATTER || o->op == COLLECTIVE_ALL_TO_ALL ? part * n : s.count;
	s.receive = o->op == COLLECTIVE_ALL_GATHER || o->op == COLLECTIVE_ALL_TO_ALL ? part * n : s.count;
	s.bytes = (s.send > s.receive ? s.send : s.receive) * bytes;
	s.factor = bus_factor(ops[o->op].load, n);
	return s;
}

static enum status refuse(struct error *err, const char *why)
{
	return error_set(err, STATUS_BAD_INPUT, "collective: %s", why);
}

static enum status check(const void *opts, struct error *err)
{
	const struct collective_opts *o = opts;
	bool rooted = o->op == COLLECTIVE_BROADCAST || o->op == COLLECTIVE_REDUCE;

	if (o->reduce && !ops[o->op].reduces)
		return error_set(err, STATUS_BAD_INPUT,
				 "collective: op=%s does not reduce; reduce=%s is an option of allreduce, "
				 "reducescatter and reduce",
				 ops[o->op].name, reduce_words[o->reduce]);
	if (o->place == COLLECTIVE_IN && (o->op == COLLECTIVE_ALL_TO_ALL || o->op == COLLECTIVE_SEND_RECV))
		return refuse(err, "alltoall and sendrecv do not support place=in");
	if (o->root && !rooted)
		return refuse(err, "root is an option of broadcast and reduce");
	if (o->size % collective_type_bytes(types[o->type].operand))
		return error_set(
			err, STATUS_BAD_INPUT,
			"collective: size must be a multiple of %u bytes, the size of one %s element",
			collective_type_bytes(types[o->type].operand), types[o->type].name);
	return STATUS_OK;
}

/* Both sides; a search needs them as plain memory, registered and as windows. NCCL's own buffers are not
 * included. */
static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	const struct collective_opts *o = opts;
	const struct collective_shape s = collective_shape(o, t->ranks);
	double bytes = (double)(s.send + s.receive) * collective_type_bytes(collective_operand(o));

	(void)m;
	if (o->place == COLLECTIVE_IN)
		bytes = (double)s.bytes;
	else if (o->buffers == COLLECTIVE_LIBRARY)
		bytes = 2.0 * (double)s.bytes;
	out->device_bytes = bytes * (o->search == COLLECTIVE_TOP ? 3 : 1);
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
#define X(id, name, load, reduces, divided) "collective." name,
	static const char *const limits[] = {COLLECTIVE_OPS(X)};
#undef X
	/* up to this size the time is judged as latency: docs/explanation/methods/collectives.md, "Bus
	 * bandwidth" */
	enum { LATENCY_TO = 32 << 10 };
	const struct collective_opts *o = opts;
	const struct collective_shape s = collective_shape(o, t->ranks);
	struct work w = {.limit = limits[o->op]};

	(void)m;
	w.link_bytes = (double)s.bytes * s.factor;
	if (s.bytes <= LATENCY_TO) {
		w.limit = "latency";
		w.messages = 1;
	}
	return w;
}

static enum status verify(void *state, struct wrong *wrong, struct error *err)
{
	return ((const struct collective_own *)state)->verify(state, wrong, err);
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	const struct collective_own *own = state;

	(void)err;
	if (own->finish)
		own->finish(state, out);
	return STATUS_OK;
}

static const struct engine *const engines[] = {&collective_nccl_engine, &collective_mpi_engine, NULL};

const struct probe probe_collective = {
	.name = "collective",
	.summary =
		"collective operations on GPUs (NCCL) and CPUs (MPI): bus bandwidth, latency, and NCCL's choices",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct collective_opts)},
	.fields = collective_fields,
	.field_count = COLLECTIVE_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.verify = verify,
	.finish = finish,
};
