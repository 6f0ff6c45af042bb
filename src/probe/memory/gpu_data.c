/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's streams: allocating, filling from the generator on the device, poisoning and reading back. */
#include "kernel/test_data/numbers.h"
#include "kernel/memory/stream.h"
#include "probe/memory/gpu.h"

_Static_assert(CHASE_NODE_BYTES == MEMORY_NODE_BYTES(sizeof(float)),
	       "probe and kernel use nodes of the same size");

static enum status launch_data(struct memory_gpu *s, const char *entry, const void *args, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(s->device, &kernel, "data", entry, err);

	return st ? st : gpu_launch_1d(kernel, s->stream, 8 * gpu_sm_count(s->device), 256, 0, args, err);
}

static enum status make_stream(struct memory_gpu *s, gpu_ptr *p, enum memory_stream stream, struct error *err)
{
	enum status st = gpu_alloc(s->device, p, s->common.size, err);

	return st ? st
		  : launch_data(s, "fill_integers",
				&(struct fill_args){.out = *p,
						    .count = s->common.count,
						    .seed = s->common.seed,
						    .stream = stream},
				err);
}

static enum status make_index(struct memory_gpu *s, struct error *err)
{
	enum status st = gpu_alloc(s->device, &s->index, s->common.count * sizeof(uint32_t), err);

	return st ? st
		  : launch_data(s, "permute",
				&(struct permute_args){
					.out = s->index, .count = s->common.count, .seed = s->common.seed},
				err);
}

static enum status make_ring(struct memory_gpu *s, struct error *err)
{
	enum status st;

	s->node_count = s->common.size / CHASE_NODE_BYTES;
	if (!s->node_count)
		s->node_count = 1;
	st = gpu_alloc(s->device, &s->nodes, s->node_count * CHASE_NODE_BYTES, err);
	if (!st)
		st = gpu_alloc(s->device, &s->cursor, sizeof(uint64_t), err);
	if (!st)
		st = launch_data(s, "ring",
				 &(struct ring_args){.nodes = s->nodes,
						     .cursor = s->cursor,
						     .count = s->node_count,
						     .seed = s->common.seed},
				 err);
	if (!st)
		st = gpu_copy_from(s->device, &s->first_node, s->cursor, sizeof(s->first_node), err);
	return st;
}

static enum status make_streams(struct memory_gpu *s, struct error *err)
{
	enum memory_op op = (enum memory_op)s->common.opts.op;
	bool a = op != MEMORY_SCALE,
	     b = op == MEMORY_SCALE || op == MEMORY_ADD || op == MEMORY_TRIAD || op == MEMORY_DOT;
	bool c = op == MEMORY_COPY || op == MEMORY_SCALE || op == MEMORY_ADD || op == MEMORY_TRIAD;
	enum status st = a ? make_stream(s, &s->a, MEMORY_STREAM_A, err) : STATUS_OK;

	if (!st && b)
		st = make_stream(s, &s->b, MEMORY_STREAM_B, err);
	if (!st && c)
		st = make_stream(s, &s->c, MEMORY_STREAM_C, err);
	if (op == MEMORY_WRITE || op == MEMORY_SET || op == MEMORY_TRIAD)
		s->out = s->a;
	else if (op == MEMORY_COPY || op == MEMORY_ADD)
		s->out = s->c;
	else if (op == MEMORY_SCALE)
		s->out = s->b;
	if (!st && op == MEMORY_GATHER)
		st = make_index(s, err);
	if (!st && !s->out)
		st = gpu_alloc(s->device, &s->partial, move_blocks_max(s->common.count) * sizeof(double),
			       err);
	return st;
}

enum status memory_gpu_make(struct memory_gpu *s, const struct bench *b, const struct memory_opts *o,
			    const struct memory_access *access, struct error *err)
{
	enum status st;

	memory_begin(&s->common, b, o, access);
	s->device = b->device;
	s->stream = b->stream[0];
	result_u64(b->out, &memory_fields[MEMORY_FIELD_stream_bytes], s->common.size);
	st = o->op == MEMORY_CHASE ? make_ring(s, err) : make_streams(s, err);
	if (!st && o->op == MEMORY_CHASE)
		result_u64(b->out, &memory_fields[MEMORY_FIELD_nodes], s->node_count);
	if (!st)
		st = gpu_alloc(s->device, &s->record, sizeof(struct compare_record), err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

void memory_gpu_release(void *state)
{
	struct memory_gpu *s = state;
	gpu_ptr *const all[] = {&s->a,	   &s->b,     &s->c,	  &s->partial,
				&s->index, &s->nodes, &s->cursor, &s->record};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]) && s->device; i++)
		gpu_free(s->device, all[i]);
	*s = (struct memory_gpu){0};
}

/* Fills the output array or sum with NaN, which no correct result has. The inputs are never written. */
enum status memory_gpu_poison(void *state, struct error *err)
{
	struct memory_gpu *s = state;
	enum status st;

	if (s->common.opts.op == MEMORY_CHASE)
		return gpu_copy_to(s->device, s->cursor, &s->first_node, sizeof(s->first_node), err);
	st = s->out ? gpu_stream_fill32(s->stream, s->out, 0xffffffffu, s->common.count, err)
		    : gpu_stream_fill32(s->stream, s->partial, 0xffffffffu,
					2 * move_blocks_max(s->common.count), err);
	return st ? st : gpu_stream_wait(s->stream, err);
}

enum status memory_gpu_fetch(void *state, uint64_t first, size_t count, double *out, struct error *err)
{
	struct memory_gpu *s = state;
	float *found = malloc(count * sizeof(*found));
	enum status st;

	if (!found)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "memory: not enough memory to verify");
	st = gpu_copy_from(s->device, found, s->out + first * sizeof(float), count * sizeof(float), err);
	for (size_t i = 0; i < count && !st; i++)
		out[i] = (double)found[i];
	free(found);
	return st;
}

static enum status walk_end(struct memory_gpu *s, double *out, struct error *err)
{
	struct memory_node node;
	uint64_t at;
	enum status st = gpu_copy_from(s->device, &at, s->cursor, sizeof(at), err);

	*out = -1; /* no valid node */
	if (st || at < s->nodes || at >= s->nodes + s->node_count * CHASE_NODE_BYTES)
		return st;
	st = gpu_copy_from(s->device, &node, at, sizeof(node), err);
	*out = st ? -1 : (double)node.place;
	return st;
}

enum status memory_gpu_sum(void *state, double *out, struct error *err)
{
	struct memory_gpu *s = state;

	if (s->common.opts.op == MEMORY_CHASE)
		return walk_end(s, out, err);
	return move_sum(&s->move, s->device, s->partial, out, err);
}
