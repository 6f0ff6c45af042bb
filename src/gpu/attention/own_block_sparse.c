/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention/own_block_sparse.h"
#include <math.h>
#include <stdlib.h>
#include "gpu/attention/kernel_args.h"
#include "kernel/attention/sparse/make_lists.h"
#include "kernel/attention/sparse/args.h"

#define LISTS_FILE "attention_lists"
#define SPARSE_FILE "attention_sparse_sm90"
#define PORTABLE_FILE "attention_sparse"

enum {
	/* Keys and values of a section of heads: half of the L2 of an H100. The rest is for queries and for
	 * loads in flight. */
	SECTION_BYTES = 24 << 20,
	/* The rank of a unit takes a count over all units of its section, so the section is limited. */
	SECTION_UNITS = 8192,
	LEAST_CC = 80,
	OWN_CC = 90, /* compute capability of the specialised kernel */
};

/* Arrays in device memory. BITS and MAP exist only with a mask of elements. */
enum array { FULL_BEGIN, FULL, PARTIAL_BEGIN, PARTIAL, COUNTS, ORDER, TURN, MAP, BITS, ARRAYS };

struct attention_sparse {
	struct gpu_device *device;
	const struct attention_problem *p;
	struct attention_sparse_how how;
	struct attention_lists_args lists;
	gpu_ptr array[ARRAYS];
	uint64_t bytes[ARRAYS];
	uint32_t rows;
	bool portable;
	char kernel[48];
};

static enum status refuse(struct error *err, const char *what)
{
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			       "attention: our block-sparse kernels support only %s", what);
}

enum status attention_sparse_supports(const struct attention_problem *p, uint32_t q_block, uint32_t k_block,
				      struct error *err)
{
	if (p->type != ATTENTION_F16 && p->type != ATTENTION_BF16)
		return refuse(err, "fp16 and bf16");
	if (p->head_dim != 64 && p->head_dim != 128)
		return refuse(err, "head dimensions 64 and 128");
	if (q_block != ATTENTION_SPARSE_ROWS)
		return refuse(err, "query blocks of 128");
	if (k_block != 64 && k_block != 128)
		return refuse(err, "key blocks of 64 and 128");
	if (p->q_len >= ATTENTION_OPEN || p->kv_len >= ATTENTION_OPEN)
		return refuse(err, "sequences of fewer than 2^29 tokens");
	return STATUS_OK;
}

/* -- create and destroy -- */

static uint32_t section_of(const struct attention_problem *p, uint32_t q_blocks)
{
	uint64_t bytes = 4 * (uint64_t)p->kv_len * p->head_dim, heads = SECTION_BYTES / bytes;
	uint64_t group = p->heads / p->kv_heads, all = (uint64_t)p->batch * p->heads;

	heads = (heads ? heads : 1) * group;
	if (heads * q_blocks > SECTION_UNITS)
		heads = SECTION_UNITS / q_blocks;
	heads = heads < all ? heads : all;
	return heads ? (uint32_t)heads : 1;
}

static void sizes(struct attention_sparse *s)
{
	struct attention_lists_args *a = &s->lists;
	const uint64_t blocks = (uint64_t)s->rows * a->lists.k_blocks;

	s->bytes[FULL_BEGIN] = s->bytes[PARTIAL_BEGIN] = ((uint64_t)s->rows + 1) * 4;
	s->bytes[FULL] = s->bytes[PARTIAL] = blocks * 4;
	s->bytes[COUNTS] = (uint64_t)s->rows * 8;
	s->bytes[ORDER] = (uint64_t)a->batch * a->heads * a->lists.q_blocks * 4;
	s->bytes[TURN] = 8;
	if (s->how.mask) {
		s->bytes[MAP] = blocks;
		s->bytes[BITS] = blocks * a->lists.q_block * a->lists.k_block / 8;
	}
}

static void describe(struct attention_sparse *s)
{
	const struct attention_problem *p = s->p;
	const struct attention_sparse_how *how = &s->how;
	const uint32_t q_blocks = (p->q_len + ATTENTION_SPARSE_ROWS - 1) / ATTENTION_SPARSE_ROWS;

	s->lists = (struct attention_lists_args){
		.lists = {.batches = how->batches,
			  .heads = how->heads,
			  .q_blocks = q_blocks,
			  .k_blocks = (p->kv_len + how->k_block - 1) / how->k_block,
			  .q_block = ATTENTION_SPARSE_ROWS,
			  .k_block = how->k_block},
		.seed = how->seed,
		.below = (uint64_t)ceil(how->density * 0x1p32),
		.source = how->source,
		.stride = how->stride,
		.batch = p->batch,
		.heads = p->heads,
		.q_len = p->q_len,
		.kv_len = p->kv_len,
		.left = attention_side(p, true),
		.right = attention_side(p, false),
		.section = section_of(p, q_blocks),
	};
	s->rows = how->batches * how->heads * q_blocks;
	s->portable = how->portable || gpu_cc(s->device) != OWN_CC;
	if (s->portable)
		snprintf(s->kernel, sizeof(s->kernel), "blocks_%s_d%u", attention_type_name(p->type),
			 p->head_dim);
	else
		snprintf(s->kernel, sizeof(s->kernel), "sparse_%s_d%u_k%u", attention_type_name(p->type),
			 p->head_dim, how->k_block);
}

static void point(struct attention_sparse *s)
{
	struct attention_lists_args *a = &s->lists;

	a->lists.full_begin = s->array[FULL_BEGIN];
	a->lists.full = s->array[FULL];
	a->lists.partial_begin = s->array[PARTIAL_BEGIN];
	a->lists.partial = s->array[PARTIAL];
	a->counts = s->array[COUNTS];
	a->order = s->array[ORDER];
	a->map = s->how.mask ? s->array[MAP] : s->how.map;
	a->mask = s->how.mask;
	a->bits = s->array[BITS];
}

enum status attention_sparse_create(struct attention_sparse **out, struct gpu_device *d,
				    const struct attention_problem *p, const struct attention_sparse_how *how,
				    struct error *err)
{
	const uint64_t zero = 0;
	struct attention_sparse *s;
	enum status st = attention_sparse_supports(p, ATTENTION_SPARSE_ROWS, how->k_block, err);

	if (st)
		return st;
	if (gpu_cc(d) < LEAST_CC)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "attention: our block-sparse kernels need sm_80 or newer, %s is sm_%u",
				       gpu_name(d), gpu_cc(d));
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: no memory for the block lists");
	*s = (struct attention_sparse){.device = d, .p = p, .how = *how};
	describe(s);
	sizes(s);
	for (int i = 0; i < ARRAYS && !st; i++)
		if (s->bytes[i])
			st = gpu_alloc(d, &s->array[i], (s->bytes[i] + 3) / 4 * 4, err);
	if (!st)
		st = gpu_copy_to(d, s->array[TURN], &zero, sizeof(zero), err);
	point(s);
	*out = s;
	if (st)
		attention_sparse_destroy(out);
	return st;
}

void attention_sparse_destroy(struct attention_sparse **s)
{
	if (!*s)
		return;
	for (int i = 0; i < ARRAYS; i++)
		gpu_free((*s)->device, &(*s)->array[i]);
	free(*s);
	*s = NULL;
}

const char *attention_sparse_kernel(const struct attention_sparse *s)
{
	return s->kernel;
}

/* -- lists -- */

static enum status lists_launch(struct attention_sparse *s, const char *entry, unsigned x, unsigned y,
				struct gpu_stream *stream, struct error *err)
{
	const unsigned grid[3] = {x, y, 1}, block[3] = {LISTS_THREADS, 1, 1};
	struct gpu_kernel *k;
	enum status st = gpu_kernel(s->device, &k, LISTS_FILE, entry, err);

	return st ? st : gpu_launch(k, stream, grid, block, 0, &s->lists, err);
}

static enum status place(struct attention_sparse *s, struct gpu_stream *stream, struct error *err)
{
	const struct attention_lists_args *a = &s->lists;
	const unsigned sections = (a->batch * a->heads + a->section - 1) / a->section;
	const unsigned each = (a->section * a->lists.q_blocks + LISTS_THREADS - 1) / LISTS_THREADS;

	return lists_launch(s, "lists_place", 1 + sections * each, 1, stream, err);
}

enum status attention_sparse_build(struct attention_sparse *s, const struct attention_operands *o,
				   struct gpu_stream *stream, struct error *err)
{
	const unsigned by_row = (s->rows + LISTS_ROWS - 1) / LISTS_ROWS, k_blocks = s->lists.lists.k_blocks;
	enum status st = STATUS_OK;

	s->lists.q_starts = s->p->q_starts ? o->q_starts : 0;
	s->lists.kv_starts = s->p->q_starts ? o->kv_starts : 0;
	if (s->how.mask)
		st = lists_launch(s, "lists_classify", s->rows, k_blocks, stream, err);
	if (!st)
		st = lists_launch(s, "lists_count", by_row, 1, stream, err);
	if (!st)
		st = place(s, stream, err);
	if (!st)
		st = lists_launch(s, "lists_write", by_row, 1, stream, err);
	if (!st && s->how.mask)
		st = lists_launch(s, "lists_bits", s->rows, k_blocks, stream, err);
	return st;
}

enum status attention_sparse_put(struct attention_sparse *s, const struct attention_sparse_lists *l,
				 struct gpu_stream *stream, struct error *err)
{
	uint32_t *counts = malloc(s->bytes[COUNTS]);
	enum status st;

	if (!counts)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: no memory for the block lists");
	for (uint32_t row = 0; row < s->rows; row++) {
		counts[2 * row] = l->full_begin[row + 1] - l->full_begin[row];
		counts[2 * row + 1] = l->partial_begin[row + 1] - l->partial_begin[row];
	}
	st = gpu_copy_to(s->device, s->array[COUNTS], counts, s->bytes[COUNTS], err);
	if (!st && l->full_begin[s->rows])
		st = gpu_copy_to(s->device, s->array[FULL], l->full, l->full_begin[s->rows] * 4ull, err);
	if (!st && l->partial_begin[s->rows])
		st = gpu_copy_to(s->device, s->array[PARTIAL], l->partial, l->partial_begin[s->rows] * 4ull,
				 err);
	free(counts);
	return st ? st : place(s, stream, err);
}

static enum status compare_array(struct attention_sparse *s, enum array which, const char *name,
				 const uint32_t *expected, uint64_t count, struct error *err)
{
	uint32_t *found = malloc(count * 4 + 4);
	enum status st = STATUS_OK;

	if (!found)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "attention: no memory to compare the block lists");
	if (count)
		st = gpu_copy_from(s->device, found, s->array[which], count * 4, err);
	for (uint64_t i = 0; i < count && !st; i++)
		if (found[i] != expected[i])
			st = error_set(
				err, STATUS_MISMATCH,
				"attention: block lists made on the device are wrong: %s[%llu] is %u, expected %u",
				name, (unsigned long long)i, found[i], expected[i]);
	free(found);
	return st;
}

enum status attention_sparse_compare(struct attention_sparse *s, const struct attention_sparse_lists *l,
				     struct error *err)
{
	enum status st = compare_array(s, FULL_BEGIN, "full_begin", l->full_begin, s->rows + 1ull, err);

	if (!st)
		st = compare_array(s, PARTIAL_BEGIN, "partial_begin", l->partial_begin, s->rows + 1ull, err);
	if (!st)
		st = compare_array(s, FULL, "full", l->full, l->full_begin[s->rows], err);
	return st ? st : compare_array(s, PARTIAL, "partial", l->partial, l->partial_begin[s->rows], err);
}

/* -- attention -- */

static enum status maps(struct attention_sparse *s, struct attention_sm90_args *a,
			const struct attention_operands *o, struct error *err)
{
	const struct attention_problem *p = s->p;
	const uint64_t q_rows = p->q_starts ? p->q_starts[p->batch] : p->q_len;
	const uint64_t kv_rows = p->kv_starts ? p->kv_starts[p->batch] : p->kv_len;
	const unsigned keys = s->how.k_block;
	enum status st =
		attention_map(s->device, &a->q_map, p, ATTENTION_Q, o->q, q_rows, ATTENTION_SM90_ROWS, err);

	if (!st)
		st = attention_map(s->device, &a->k_map, p, ATTENTION_K, o->k, kv_rows, keys, err);
	if (!st)
		st = attention_map(s->device, &a->v_map, p, ATTENTION_V, o->v, kv_rows, keys, err);
	return st ? st
		  : attention_map(s->device, &a->o_map, p, ATTENTION_O, o->o, q_rows, ATTENTION_SM90_O_ROWS,
				  err);
}

static enum status enqueue_portable(struct attention_sparse *s, const struct attention_operands *o,
				    struct gpu_stream *stream, struct error *err)
{
	const struct attention_problem *p = s->p;
	const unsigned tiles = (p->q_len + ATTENTION_FLASH_ROWS - 1) / ATTENTION_FLASH_ROWS;
	const unsigned grid[3] = {tiles, p->heads, p->batch}, block[3] = {ATTENTION_FLASH_THREADS, 1, 1};
	const unsigned rows = ATTENTION_FLASH_ROWS + 2 * ATTENTION_FLASH_KEYS;
	const struct attention_sparse_flash_args a = {
		.dense = {.q = o->q,
			  .k = o->k,
			  .v = o->v,
			  .o = o->o,
			  .lse = p->want_lse ? o->lse : 0,
			  .q_starts = p->q_starts ? o->q_starts : 0,
			  .kv_starts = p->q_starts ? o->kv_starts : 0,
			  .q_step = attention_steps_of(attention_q_strides(p)),
			  .k_step = attention_steps_of(attention_k_strides(p)),
			  .v_step = attention_steps_of(attention_v_strides(p)),
			  .o_step = attention_steps_of(attention_o_strides(p)),
			  .batch = p->batch,
			  .heads = p->heads,
			  .kv_heads = p->kv_heads,
			  .q_len = p->q_len,
			  .kv_len = p->kv_len,
			  .head_dim = p->head_dim,
			  .left = s->lists.left,
			  .right = s->lists.right,
			  .scale = (float)attention_scale(p)},
		.lists = s->lists.lists,
		.bits = s->array[BITS],
	};
	struct gpu_kernel *k;
	enum status st = gpu_kernel(s->device, &k, PORTABLE_FILE, s->kernel, err);

	return st ? st : gpu_launch(k, stream, grid, block, rows * p->head_dim * 2, &a, err);
}

static enum status enqueue_own(struct attention_sparse *s, const struct attention_operands *o,
			       struct gpu_stream *stream, struct error *err)
{
	const struct attention_problem *p = s->p;
	const uint64_t units = s->bytes[ORDER] / 4;
	const unsigned sms = gpu_sm_count(s->device);
	struct attention_sparse_args a = {
		.dense = {.o = o->o,
			  .lse = p->want_lse ? o->lse : 0,
			  .q_starts = p->q_starts ? o->q_starts : 0,
			  .kv_starts = p->q_starts ? o->kv_starts : 0,
			  .o_step = attention_steps_of(attention_o_strides(p)),
			  .batch = p->batch,
			  .heads = p->heads,
			  .kv_heads = p->kv_heads,
			  .q_len = p->q_len,
			  .kv_len = p->kv_len,
			  .left = s->lists.left,
			  .right = s->lists.right,
			  .scale_log2 = (float)(attention_scale(p) * M_LOG2E)},
		.lists = s->lists.lists,
		.order = s->array[ORDER],
		.bits = s->array[BITS],
		.turn = s->array[TURN],
	};
	struct gpu_kernel *k;
	enum status st = maps(s, &a.dense, o, err);

	if (!st)
		st = gpu_kernel(s->device, &k, SPARSE_FILE, s->kernel, err);
	return st ? st
		  : gpu_launch_1d(k, stream, units < sms ? (unsigned)units : sms, ATTENTION_SPARSE_THREADS,
				  ATTENTION_SPARSE_SHARED(p->head_dim), &a, err);
}

enum status attention_sparse_enqueue(struct attention_sparse *s, const struct attention_operands *o,
				     struct gpu_stream *stream, struct error *err)
{
	return s->portable ? enqueue_portable(s, o, stream, err) : enqueue_own(s, o, stream, err);
}
