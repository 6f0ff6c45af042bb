/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine `cpu` of probe memory: pinned threads, each with its own share of the streams. Each thread touches
 * its share first, so that the pages are on its NUMA node. cpu_loops.c has the loops; memcpy and memset are
 * the C library's.
 */
#include <inttypes.h>
#include <math.h>
#include "core/math/random.h"
#include "probe/shared/cpu.h"
#include "probe/memory/cpu_loops.h"
#include "probe/memory/memory.h"

enum { STREAM_ORDER = 50 };

struct slot { /* one thread's sum, on a cache line of its own */
	double sum;
	char rest[56];
};

struct memory_cpu {
	struct memory common;
	struct cpu_pool *pool;
	const struct memory_loops *loops;
	const struct memory_stores *stores;
	bool libc; /* use memcpy or memset */
	unsigned threads, passes;
	uint64_t grain;
	double *a, *b, *c;	  /* (count) each, or NULL */
	uint32_t *order;	  /* gather: a permutation of 0 .. count-1 */
	struct memory_node *node; /* chase: (nodes) */
	uint64_t nodes;
	const struct memory_node *at; /* current node of the walk */
	struct slot *slot;	      /* (threads) */
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct memory_opts *o = opts;
	const struct memory_loops *loops = memory_loops_for(machine_cpu(m)->isa, false);
	uint64_t need = memory_size(m, t, o) * memory_streams(o->op);

	if (o->store == MEMORY_STORE_NONTEMPORAL && !loops->nontemporal.copy)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "memory: the instruction set %s has no non-temporal stores",
				       loops->isa);
	return cpu_memory_check(m, t, "memory: the streams", (double)need, err);
}

/* -- filling -- */

static double *output(struct memory_cpu *s)
{
	switch ((enum memory_op)s->common.opts.op) {
	case MEMORY_COPY:
	case MEMORY_ADD:
		return s->c;
	case MEMORY_SCALE:
		return s->b;
	default:
		return s->a;
	}
}

static void fill_share(const struct memory_cpu *s, double *p, enum memory_stream stream, uint64_t first,
		       uint64_t last)
{
	int8_t value[4096];

	for (uint64_t i = first; i < last; i += sizeof(value)) {
		size_t count = last - i < sizeof(value) ? last - i : sizeof(value);

		memory_elements(s->common.seed, stream, i, count, value);
		for (size_t j = 0; j < count; j++)
			p[i + j] = value[j];
	}
}

static void poison_share(double *p, uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i < last; i++)
		p[i] = NAN;
}

static void fill_work(void *arg, unsigned thread)
{
	struct memory_cpu *s = arg;
	uint64_t first, last;

	cpu_share(s->common.count, s->grain, thread, s->threads, &first, &last);
	if (s->a)
		fill_share(s, s->a, MEMORY_STREAM_A, first, last);
	if (s->b)
		fill_share(s, s->b, MEMORY_STREAM_B, first, last);
	if (s->c)
		fill_share(s, s->c, MEMORY_STREAM_C, first, last);
	if (s->order)
		for (uint64_t i = first; i < last; i++)
			s->order[i] = (uint32_t)i;
}

/* Fisher-Yates shuffle with the generator: order becomes a uniform permutation of 0 .. count-1. */
static void shuffle(uint32_t *order, uint64_t count, uint64_t seed)
{
	for (uint64_t i = count; i > 1; i--) {
		uint64_t j = (uint64_t)random_u32(seed, STREAM_ORDER, i) * i >> 32;
		uint32_t swap = order[i - 1];

		order[i - 1] = order[j];
		order[j] = swap;
	}
}

/* Links all nodes into one cycle in random order, so that a walk of `nodes` hops visits each line once. */
static enum status fill_nodes(struct memory_cpu *s, struct error *err)
{
	uint32_t *order = malloc(s->nodes * sizeof(*order));

	if (!order)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "memory: not enough memory for the order of %" PRIu64 " nodes",
				       s->nodes);
	for (uint64_t i = 0; i < s->nodes; i++)
		order[i] = (uint32_t)i;
	shuffle(order, s->nodes, s->common.seed);
	for (uint64_t i = 0; i < s->nodes; i++) {
		struct memory_node *n = &s->node[order[i]];

		n->next = &s->node[order[(i + 1) % s->nodes]];
		n->place = i;
	}
	s->at = &s->node[order[0]];
	free(order);
	return STATUS_OK;
}

/* -- one iteration -- */

static void stores_work(struct memory_cpu *s, uint64_t first, uint64_t n)
{
	const struct memory_stores *f = s->stores;
	double *a = s->a + first, *b = s->b ? s->b + first : NULL, *c = s->c ? s->c + first : NULL;

	switch ((enum memory_op)s->common.opts.op) {
	case MEMORY_WRITE:
		f->write(a, MEMORY_FACTOR, n);
		break;
	case MEMORY_COPY:
		if (s->libc)
			memcpy(c, a, n * sizeof(*a));
		else
			f->copy(c, a, n);
		break;
	case MEMORY_ADD:
		f->add(c, a, b, n);
		break;
	case MEMORY_TRIAD:
		f->triad(a, b, c, MEMORY_FACTOR, n);
		break;
	default:
		break;
	}
}

static void pass(struct memory_cpu *s, unsigned thread, uint64_t first, uint64_t n)
{
	switch ((enum memory_op)s->common.opts.op) {
	case MEMORY_READ:
		s->slot[thread].sum = s->loops->read(s->a + first, n);
		break;
	case MEMORY_DOT:
		s->slot[thread].sum = s->loops->dot(s->a + first, s->b + first, n);
		break;
	case MEMORY_GATHER:
		s->slot[thread].sum = memory_gather(s->a, s->order + first, n);
		break;
	case MEMORY_SCALE: /* scale uses streams b and c only */
		s->stores->scale(s->b + first, s->c + first, MEMORY_FACTOR, n);
		break;
	case MEMORY_SET:
		memset(s->a + first, MEMORY_SET_BYTE, n * sizeof(*s->a));
		break;
	default:
		stores_work(s, first, n);
	}
}

static void iterate(void *arg, unsigned thread)
{
	struct memory_cpu *s = arg;
	uint64_t first, last;

	if (s->node) {
		s->at = memory_chase(s->at, MEMORY_HOPS);
		return;
	}
	cpu_share(s->common.count, s->grain, thread, s->threads, &first, &last);
	for (unsigned i = 0; i < s->passes; i++)
		pass(s, thread, first, last - first);
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct memory_cpu *s = state;

	(void)i, (void)err;
	cpu_pool_run(s->pool, iterate, s);
	s->common.iterations++;
	return STATUS_OK;
}

/* -- verification -- */

static void poison_work(void *arg, unsigned thread)
{
	struct memory_cpu *s = arg;
	uint64_t first, last;

	cpu_share(s->common.count, s->grain, thread, s->threads, &first, &last);
	poison_share(output(s), first, last);
}

static enum status poison(void *state, struct error *err)
{
	struct memory_cpu *s = state;
	enum memory_op op = s->common.opts.op;

	for (unsigned i = 0; i < s->threads; i++)
		s->slot[i].sum = NAN;
	if (op == MEMORY_CHASE)
		return fill_nodes(s, err);
	if (op != MEMORY_READ && op != MEMORY_DOT && op != MEMORY_GATHER)
		cpu_pool_run(s->pool, poison_work, s);
	return STATUS_OK;
}

static enum status run_once(void *state, struct error *err)
{
	struct memory_cpu *s = state;

	(void)err;
	cpu_pool_run(s->pool, iterate, s);
	return STATUS_OK;
}

static enum status fetch(void *state, uint64_t first, size_t count, double *out, struct error *err)
{
	(void)err;
	memcpy(out, output(state) + first, count * sizeof(*out));
	return STATUS_OK;
}

static enum status sum(void *state, double *out, struct error *err)
{
	struct memory_cpu *s = state;

	(void)err;
	*out = 0;
	if (s->node)
		*out = (double)s->at->place;
	else
		for (unsigned i = 0; i < s->threads; i++)
			*out += s->slot[i].sum;
	return STATUS_OK;
}

static const struct memory_access memory_cpu_access = {
	.poison = poison,
	.run = run_once,
	.fetch = fetch,
	.sum = sum,
};

/* -- begin and end -- */

/*
 * Streams that start at the same offset of their 2 MiB pages use the same cache sets and DRAM banks; this
 * cost triad 8 %. So each stream starts 4 KiB and one cache line further into its pages than the previous
 * one.
 */
enum { STREAM_A, STREAM_B, STREAM_C, STREAM_SHIFT = 4096 + 64 };

static enum status stream_alloc(double **out, unsigned place, uint64_t size, struct error *err)
{
	void *base;
	enum status st = cpu_pages_alloc(&base, size + place * STREAM_SHIFT, err);

	*out = st ? NULL : (double *)((char *)base + place * STREAM_SHIFT);
	return st;
}

static void stream_free(double **p, unsigned place, uint64_t size)
{
	void *base = *p ? (char *)*p - place * STREAM_SHIFT : NULL;

	cpu_pages_free(&base, size + place * STREAM_SHIFT);
	*p = NULL;
}

static enum status streams_alloc(struct memory_cpu *s, struct error *err)
{
	uint64_t size = s->common.size;
	enum memory_op op = s->common.opts.op;
	enum status st = STATUS_OK;

	if (op == MEMORY_CHASE) {
		s->nodes = size / sizeof(*s->node);
		return cpu_pages_alloc((void **)&s->node, size, err);
	}
	if (op != MEMORY_SCALE)
		st = stream_alloc(&s->a, STREAM_A, size, err);
	if (!st && (op == MEMORY_SCALE || op == MEMORY_ADD || op == MEMORY_TRIAD || op == MEMORY_DOT))
		st = stream_alloc(&s->b, STREAM_B, size, err);
	if (!st && (op == MEMORY_COPY || op == MEMORY_SCALE || op == MEMORY_ADD || op == MEMORY_TRIAD))
		st = stream_alloc(&s->c, STREAM_C, size, err);
	if (!st && op == MEMORY_GATHER)
		st = cpu_pages_alloc((void **)&s->order, s->common.count * sizeof(*s->order), err);
	return st;
}

static const char *choose_stores(struct memory_cpu *s, enum memory_store store)
{
	s->stores = store == MEMORY_STORE_NONTEMPORAL ? &s->loops->nontemporal : &s->loops->regular;
	s->libc = store == MEMORY_STORE_MEMCPY;
	return s->libc ? "memcpy" : store == MEMORY_STORE_NONTEMPORAL ? "nontemporal" : "regular";
}

static void report(const struct memory_cpu *s, const struct bench *b, const char *store)
{
	const void *pages = s->node ? (const void *)s->node : s->a ? s->a : s->b;
	enum memory_op op = s->common.opts.op;
	double huge = cpu_pages_huge_share(pages, s->common.size);
	char text[48];

	if (!b->out)
		return;
	result_u64(b->out, &field_threads, s->threads);
	result_u64(b->out, &memory_fields[MEMORY_FIELD_stream_bytes], s->common.size);
	result_text(b->out, &memory_fields[MEMORY_FIELD_instruction_set], s->loops->isa);
	if (op != MEMORY_READ && op != MEMORY_DOT && op != MEMORY_GATHER && op != MEMORY_CHASE)
		result_text(b->out, &memory_fields[MEMORY_FIELD_store], store);
	if (s->node)
		result_u64(b->out, &memory_fields[MEMORY_FIELD_nodes], s->nodes);
	if (huge < 0)
		return;
	snprintf(text, sizeof(text), "huge advised, %.0f %% given", huge * 100);
	result_text(b->out, &memory_fields[MEMORY_FIELD_pages], text);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct memory_cpu *s = state;
	const struct memory_opts *o = opts;
	const char *store;
	enum status st;

	memory_begin(&s->common, b, o, &memory_cpu_access);
	s->passes = memory_passes(b->target, o->op, s->common.size);
	s->grain = s->common.size < (1u << 20) ? 8 : 512;
	s->loops = memory_loops_for(machine_cpu(b->machine)->isa,
				    memory_beyond_caches(b->machine, b->target, o));
	store = choose_stores(s, memory_store(b->machine, b->target, o));
	st = cpu_bench_threads(b, o->op == MEMORY_CHASE ? 1 : o->threads, &s->threads, err);
	if (!st)
		st = cpu_pool_create(&s->pool, b->cpus, s->threads, err);
	s->common.pool = s->pool;
	if (!st)
		st = streams_alloc(s, err);
	if (st)
		return st;
	s->slot = aligned_alloc(64, s->threads * sizeof(*s->slot));
	if (!s->slot)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "memory: not enough memory for %u threads", s->threads);
	memset(s->slot, 0, s->threads * sizeof(*s->slot));
	if (s->node)
		st = fill_nodes(s, err);
	else
		cpu_pool_run(s->pool, fill_work, s);
	if (!st && s->order)
		shuffle(s->order, s->common.count, s->common.seed);
	if (!st)
		report(s, b, store);
	return st;
}

static uint64_t cpu_time(void *state)
{
	return cpu_pool_time_ns(((struct memory_cpu *)state)->pool);
}

static void release(void *state)
{
	struct memory_cpu *s = state;

	cpu_pool_destroy(&s->pool);
	stream_free(&s->a, STREAM_A, s->common.size);
	stream_free(&s->b, STREAM_B, s->common.size);
	stream_free(&s->c, STREAM_C, s->common.size);
	cpu_pages_free((void **)&s->order, s->common.count * sizeof(*s->order));
	cpu_pages_free((void **)&s->node, s->common.size);
	free(s->slot);
	*s = (struct memory_cpu){0};
}

const struct engine memory_cpu_engine = {
	.name = "cpu",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct memory_cpu),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.cpu_time_ns = cpu_time,
	.release = release,
};
