/* SPDX-License-Identifier: Apache-2.0 */
/* Probe memory: options, fields, work and descriptor (at the end). memory.h defines which bytes count. */
#include "probe/memory/memory.h"
#include "probe/peak/peak.h"
#include "core/math/random.h"
#include "probe/shared/cpu.h"
#include "probe/memory/cpu_loops.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

#define X(id, text) text,
static const char *const ops[] = {MEMORY_OPS(X) NULL};
#undef X
static const char *const stores[] = {"auto", "regular", "nontemporal", "memcpy", NULL};

static const char *const searches[] = {"first", "top", NULL};

static const struct opt opt_rows[] = {
	OPT_ROW(struct memory_opts, op, .name = "op", .preset = "copy", .choices = ops,
		.help = "operation: sums (read dot gather), streams (write copy scale add triad), "
			"pointer chase (chase), fill by the C library or the driver (set)"),
	OPT_ROW(struct memory_opts, size, .name = "size", .preset = "0", .unit = "B", .max = 0x1p46,
		.help = "bytes of each stream; 0: 4 x the last-level cache on a CPU, 4 GiB on a GPU, limited by free memory"),
	OPT_ROW(struct memory_opts, store, .name = "store", .preset = "auto", .choices = stores,
		.help = "CPU: kind of stores; auto: nontemporal (past the cache) for streams larger than the cache"),
	OPT_ROW(struct memory_opts, threads, .name = "threads", .preset = "0", .max = 4096,
		.help = "CPU threads; 0: all usable CPUs"),
	OPT_ROW(struct memory_opts, search, .name = "search", .preset = "top", .choices = searches,
		.help = "GPU: use the known best launch shape (first), or measure a few and take the fastest (top)"),
};

const struct field memory_fields[] = {MEMORY_FIELDS(FIELD_ROW)};

const char *memory_op_name(enum memory_op op)
{
	return ops[op];
}

int memory_element(uint64_t seed, enum memory_stream stream, uint64_t i)
{
	return (int8_t)(random_u32(seed, stream, i / 4) >> (i % 4 * 8));
}

void memory_elements(uint64_t seed, enum memory_stream stream, uint64_t first, size_t count, int8_t *out)
{
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

	for (size_t done = 0; done < count;) {
		uint64_t block = (first + done) / 16;
		size_t skip = (first + done) % 16, step = count - done < 16 - skip ? count - done : 16 - skip;
		uint32_t word[4];
		int8_t byte[16];

		philox4x32(word, (const uint32_t[4]){(uint32_t)block, (uint32_t)(block >> 32), stream, 0},
			   key);
		for (unsigned i = 0; i < 16; i++)
			byte[i] = (int8_t)(word[i / 4] >> (i % 4 * 8));
		memcpy(out + done, byte + skip, step);
		done += step;
	}
}

unsigned memory_passes(const struct target *t, enum memory_op op, uint64_t size)
{
	uint64_t moved = size * memory_streams(op), enough = 8 * MIB;

	if (t->kind == TARGET_GPU || op == MEMORY_CHASE || moved >= enough)
		return 1;
	return (unsigned)((enough + moved - 1) / moved);
}

unsigned memory_streams(enum memory_op op)
{
	switch (op) {
	case MEMORY_COPY:
	case MEMORY_SCALE:
	case MEMORY_DOT:
	case MEMORY_GATHER:
		return 2;
	case MEMORY_ADD:
	case MEMORY_TRIAD:
		return 3;
	default:
		return 1;
	}
}

unsigned memory_element_bytes(const struct target *t)
{
	return t->kind == TARGET_GPU ? sizeof(float) : sizeof(double);
}

static uint64_t cache_bytes(const struct machine *m, const struct target *t)
{
	const struct gpu *g = t->kind == TARGET_GPU ? machine_gpu(m, t->gpu[0]) : NULL;

	if (t->kind == TARGET_GPU)
		return g ? (uint64_t)gpu_get(g, GPU_FACT_l2_bytes, 64.0 * MIB) : 64 * MIB;
	return cpu_cache_bytes(m, t);
}

static uint64_t memory_room(const struct machine *m, const struct target *t)
{
	const struct gpu *g = t->kind == TARGET_GPU ? machine_gpu(m, t->gpu[0]) : NULL;
	double free_bytes;

	if (t->kind != TARGET_GPU)
		return cpu_memory_bytes(m, t);
	if (!g)
		return 16 * GIB;
	free_bytes = gpu_get(g, GPU_FACT_memory_free_bytes, gpu_get(g, GPU_FACT_memory_bytes, 16.0 * GIB));
	return free_bytes > 4.0 * GIB ? (uint64_t)free_bytes - 3 * GIB : (uint64_t)free_bytes / 4;
}

/* All operations on a machine use the same size, so that their figures can be compared. So there is always
 * room for three streams. */
uint64_t memory_size(const struct machine *m, const struct target *t, const struct memory_opts *o)
{
	uint64_t size = o->size, room;

	if (!size) {
		size = t->kind == TARGET_GPU ? 4 * GIB : 4 * cache_bytes(m, t);
		if (size < 64 * MIB)
			size = 64 * MIB;
		room = memory_room(m, t) / 3;
		if (size > room)
			size = room;
	}
	if (size < 4096)
		return size < 64 ? 64 : size / 64 * 64;
	return size / 4096 * 4096;
}

bool memory_beyond_caches(const struct machine *m, const struct target *t, const struct memory_opts *o)
{
	uint64_t caches = t->kind == TARGET_GPU ? 8 : 4;

	return memory_size(m, t, o) * memory_streams(o->op) >= caches * cache_bytes(m, t);
}

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct memory_opts *o = opts;
	double size = (double)memory_size(m, t, o), passes = memory_passes(t, o->op, memory_size(m, t, o)),
	       count = size / memory_element_bytes(t);
	struct work w = {.limit = memory_beyond_caches(m, t, o) ? "memory" : "cache"};

	switch ((enum memory_op)o->op) {
	case MEMORY_READ:
		w.read_bytes = size;
		w.flop = count;
		break;
	case MEMORY_WRITE:
	case MEMORY_SET:
		w.write_bytes = size;
		break;
	case MEMORY_COPY:
		w.read_bytes = w.write_bytes = size;
		break;
	case MEMORY_SCALE:
		w.read_bytes = w.write_bytes = size;
		w.flop = count;
		break;
	case MEMORY_ADD:
		w.read_bytes = 2 * size;
		w.write_bytes = size;
		w.flop = count;
		break;
	case MEMORY_TRIAD:
		w.read_bytes = 2 * size;
		w.write_bytes = size;
		w.flop = 2 * count;
		break;
	case MEMORY_DOT:
		w.read_bytes = 2 * size;
		w.flop = 2 * count;
		break;
	case MEMORY_GATHER:
		w.read_bytes = size + 4 * count;
		w.flop = count;
		break;
	case MEMORY_CHASE:
		w.messages = MEMORY_HOPS;
		w.limit = "latency";
		break;
	case MEMORY_OP_COUNT:
		break;
	}
	w.read_bytes *= passes;
	w.write_bytes *= passes;
	w.flop *= passes;
	return w;
}

static void need(const struct machine *m, const struct target *t, const void *opts, struct need *out)
{
	const struct memory_opts *o = opts;
	double size = (double)memory_size(m, t, o), bytes = size * memory_streams((enum memory_op)o->op);

	if (o->op == MEMORY_GATHER)
		bytes = size + 4 * size / memory_element_bytes(t);
	*(t->kind == TARGET_GPU ? &out->device_bytes : &out->host_bytes) = bytes;
}

static enum status check(const void *opts, struct error *err)
{
	const struct memory_opts *o = opts;

	if (o->op == MEMORY_GATHER && o->size / sizeof(float) > UINT32_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "memory: op=gather has 32-bit indices, so size must be at most 16 GiB");
	if (o->store == MEMORY_STORE_MEMCPY && o->op != MEMORY_COPY && o->op != MEMORY_SET)
		return error_set(err, STATUS_BAD_INPUT,
				 "memory: store=memcpy supports op=copy and op=set, not op=%s", ops[o->op]);
	if (o->store == MEMORY_STORE_NONTEMPORAL &&
	    (o->op == MEMORY_READ || o->op == MEMORY_DOT || o->op == MEMORY_GATHER || o->op == MEMORY_CHASE))
		return error_set(err, STATUS_BAD_INPUT,
				 "memory: op=%s stores nothing, so store=nontemporal has no effect; omit it",
				 ops[o->op]);
	return STATUS_OK;
}

enum memory_store memory_store(const struct machine *m, const struct target *t, const struct memory_opts *o)
{
	bool past = memory_loops_for(machine_cpu(m)->isa, true)->nontemporal.copy;

	if (o->store == MEMORY_STORE_MEMCPY || o->op == MEMORY_SET)
		return MEMORY_STORE_MEMCPY;
	if (o->store == MEMORY_STORE_NONTEMPORAL ||
	    (o->store == MEMORY_STORE_AUTO && past && memory_beyond_caches(m, t, o)))
		return MEMORY_STORE_NONTEMPORAL;
	return MEMORY_STORE_REGULAR;
}

/*
 * The ceiling is the loop of probe peak with the same traffic (number of streams read, kind of stores) on as
 * many threads. A loop with other traffic can be faster. There is no ceiling for caches, chase, gather, and
 * memcpy and memset, whose stores the C library chooses.
 */
static bool ceiling(const struct machine *m, const struct target *t, const void *opts, struct ceiling *out)
{
	static const struct {
		enum peak_unit regular, past;
	} units[MEMORY_OP_COUNT] = {
		[MEMORY_READ] = {PEAK_READ, PEAK_READ},
		[MEMORY_DOT] = {PEAK_READ2, PEAK_READ2},
		[MEMORY_WRITE] = {PEAK_WRITE, PEAK_WRITE_NT},
		[MEMORY_COPY] = {PEAK_READ_WRITE, PEAK_READ_WRITE_NT},
		[MEMORY_SCALE] = {PEAK_READ_WRITE, PEAK_READ_WRITE_NT},
		[MEMORY_ADD] = {PEAK_READ2_WRITE, PEAK_READ2_WRITE_NT},
		[MEMORY_TRIAD] = {PEAK_READ2_WRITE, PEAK_READ2_WRITE_NT},
	};
	const struct memory_opts *o = opts;
	struct peak_opts *peak = (struct peak_opts *)out->opts;
	enum memory_store store = memory_store(m, t, o);
	enum peak_unit unit = store == MEMORY_STORE_REGULAR ? units[o->op].regular : units[o->op].past;

	out->probe = &probe_peak;
	out->engine = &peak_cpu_engine;
	*peak = (struct peak_opts){.unit = unit, .type = PEAK_FP32, .threads = o->threads};
	return peak_stream_count(unit) && store != MEMORY_STORE_MEMCPY && memory_beyond_caches(m, t, o);
}

static const struct engine *const engines[] = {
	&memory_cpu_engine,
	&memory_gpu_engine,
	&memory_driver_engine,
	NULL,
};

const struct probe probe_memory = {
	.name = "memory",
	.summary = "bandwidth and latency of memory and caches",
	.kind = PROBE_TIMED,
	.opts = {opt_rows, COUNT(opt_rows), sizeof(struct memory_opts)},
	.fields = memory_fields,
	.field_count = MEMORY_FIELD_COUNT,
	.engines = engines,
	.work = work,
	.need = need,
	.check = check,
	.ceiling = ceiling,
	.verify = memory_verify,
};
