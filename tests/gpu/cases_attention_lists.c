/* SPDX-License-Identifier: Apache-2.0 */
/* Block lists made on the device: kernel/attention/sparse/make_lists.cu, every number of every array, and what of them
 * stays unwritten. p0: row of `shapes`; count: queries. */
#include <inttypes.h>
#include "cases.h"
#include "core/math/random.h"
#include "kernel/attention/forward/args.h"
#include "kernel/attention/sparse/make_lists.h"
#include "ref.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define OPEN ATTENTION_OPEN
#define FILE_NAME "attention_lists"

struct shape {
	uint32_t batches, heads; /* of the lists */
	uint32_t batch, all_heads, q_len, kv_len, q_block, k_block;
	int32_t left, right;
	uint32_t source, stride, section;
	double density;
	bool elements; /* the map comes from a mask of elements */
	const uint32_t *q_starts, *kv_starts;
};

static const uint32_t q_starts[] = {0, 130, 130, 400}, kv_starts[] = {0, 200, 205, 600};

static const struct shape shapes[] = {
	{1, 1, 1, 1, 1, 1, 128, 128, OPEN, OPEN, LISTS_ALL, 0, 1, 0, false, NULL, NULL},
	{1, 1, 2, 3, 512, 512, 128, 128, OPEN, 0, LISTS_ALL, 0, 2, 0, false, NULL, NULL},
	{1, 1, 1, 2, 500, 389, 128, 64, OPEN, 0, LISTS_ALL, 0, 1, 0, false, NULL, NULL},
	{1, 1, 1, 1, 389, 1000, 128, 128, 200, 37, LISTS_ALL, 0, 1, 0, false, NULL, NULL},
	{1, 1, 1, 1, 300, 2500, 128, 64, OPEN, 0, LISTS_STRIDED, 3, 1, 0, false, NULL, NULL},
	{2, 3, 2, 3, 512, 640, 128, 128, OPEN, OPEN, LISTS_RANDOM, 0, 2, 0.5, false, NULL, NULL},
	{2, 3, 2, 3, 400, 600, 128, 64, 300, 0, LISTS_RANDOM, 0, 4, 0.3, false, NULL, NULL},
	{1, 2, 1, 2, 256, 4500, 128, 64, OPEN, OPEN, LISTS_RANDOM, 0, 1, 0.1, false, NULL, NULL},
	{1, 2, 1, 2, 256, 512, 128, 128, OPEN, OPEN, LISTS_RANDOM, 0, 1, 0, false, NULL, NULL},
	{1, 2, 1, 2, 256, 512, 128, 128, OPEN, OPEN, LISTS_RANDOM, 0, 1, 1, false, NULL, NULL},
	{1, 4, 3, 4, 520, 520, 128, 128, OPEN, OPEN, LISTS_MAP, 0, 12, 0, false, NULL, NULL},
	{2, 1, 2, 3, 520, 700, 128, 64, OPEN, 0, LISTS_MAP, 0, 1, 0, false, NULL, NULL},
	{3, 2, 3, 2, 270, 395, 128, 128, OPEN, 0, LISTS_RANDOM, 0, 2, 0.7, false, q_starts, kv_starts},
	{1, 2, 1, 2, 300, 400, 128, 64, OPEN, OPEN, LISTS_MAP, 0, 1, 0, true, NULL, NULL},
	{1, 1, 2, 2, 390, 517, 128, 128, OPEN, 0, LISTS_MAP, 0, 2, 0, true, NULL, NULL},
	{1, 1, 1, 64, 640, 128, 128, 128, OPEN, 0, LISTS_RANDOM, 0, 64, 0.5, false, NULL, NULL},
};

static const struct kernel_case cases[] = {
	{"lists", "one pair", 1, 1, LISTS_THREADS, 0, 0},
	{"lists", "causal, lists of all heads", 512, 1, LISTS_THREADS, 1, 0},
	{"lists", "causal, more queries than keys, 64 keys", 500, 1, LISTS_THREADS, 2, 0},
	{"lists", "a window", 389, 1, LISTS_THREADS, 3, 0},
	{"lists", "strides below a causal mask", 300, 1, LISTS_THREADS, 4, 0},
	{"lists", "random", 512, 1, LISTS_THREADS, 5, 0},
	{"lists", "random in a window, ends ragged, sections of several batches", 400, 1, LISTS_THREADS, 6,
	 0},
	{"lists", "rows longer than two turns", 256, 1, LISTS_THREADS, 7, 0},
	{"lists", "nothing kept", 256, 1, LISTS_THREADS, 8, 0},
	{"lists", "all kept", 256, 1, LISTS_THREADS, 9, 0},
	{"lists", "a map of blocks for each head, all batches", 520, 1, LISTS_THREADS, 10, 0},
	{"lists", "a map of blocks for each batch, all heads", 520, 1, LISTS_THREADS, 11, 0},
	{"lists", "sequences of their own lengths, one without queries", 270, 1, LISTS_THREADS, 12, 0},
	{"lists", "a mask of elements", 300, 1, LISTS_THREADS, 13, 0},
	{"lists", "a mask of elements below a causal one", 390, 1, LISTS_THREADS, 14, 0},
	{"lists", "more units a section than threads", 640, 1, LISTS_THREADS, 15, 0},
};

enum array { FULL_BEGIN, FULL, PARTIAL_BEGIN, PARTIAL, COUNTS, ORDER, MAP, MASK, BITS, STARTS, ARRAYS };
static const char *const array_name[ARRAYS] = {
	[FULL_BEGIN] = "full_begin",
	[FULL] = "full",
	[PARTIAL_BEGIN] = "partial_begin",
	[PARTIAL] = "partial",
	[COUNTS] = "counts",
	[ORDER] = "order",
	[MAP] = "map",
	[MASK] = "mask",
	[BITS] = "bits",
	[STARTS] = "starts",
};

struct lists {
	const struct shape *shape;
	uint32_t rows, q_blocks, k_blocks, sections;
	uint64_t bytes[ARRAYS];
	struct guarded device[ARRAYS];
	void *host[ARRAYS], *found;
};

static void sizes(struct lists *l)
{
	const struct shape *s = l->shape;
	uint64_t blocks;

	l->q_blocks = (s->q_len + s->q_block - 1) / s->q_block;
	l->k_blocks = (s->kv_len + s->k_block - 1) / s->k_block;
	l->rows = s->batches * s->heads * l->q_blocks;
	l->sections = (s->batch * s->all_heads + s->section - 1) / s->section;
	blocks = (uint64_t)l->rows * l->k_blocks;
	l->bytes[FULL_BEGIN] = l->bytes[PARTIAL_BEGIN] = (l->rows + 1) * 4ul;
	l->bytes[FULL] = l->bytes[PARTIAL] = blocks * 4;
	l->bytes[COUNTS] = l->rows * 8ul;
	l->bytes[ORDER] = (uint64_t)s->batch * s->all_heads * l->q_blocks * 4;
	l->bytes[MAP] = (blocks + 3) / 4 * 4;
	l->bytes[MASK] =
		s->elements ? ((uint64_t)s->batches * s->heads * s->q_len * s->kv_len + 3) / 4 * 4 : 4;
	l->bytes[BITS] = s->elements ? blocks * s->q_block * s->k_block / 8 : 4;
	l->bytes[STARTS] = (s->batch + 1) * 8ul;
}

/* Of an eighth of each line every element is dropped, of another none. */
static uint8_t mask_byte(uint64_t seed, uint64_t i, uint64_t k)
{
	switch (k / 64 % 8) {
	case 1:
	case 2:
		return 0;
	case 4:
	case 5:
		return 1;
	default:
		return random_u32(seed, 2, i) % 3 == 0;
	}
}

static void inputs(struct lists *l, uint64_t seed)
{
	const struct shape *s = l->shape;

	if (!s->elements)
		for (uint64_t i = 0; i < (uint64_t)l->rows * l->k_blocks; i++)
			((uint8_t *)l->host[MAP])[i] = random_u32(seed, 1, i) % 3;
	else
		for (uint64_t i = 0; i < (uint64_t)s->batches * s->heads * s->q_len * s->kv_len; i++)
			((uint8_t *)l->host[MASK])[i] = mask_byte(seed, i, i % s->kv_len);
	for (uint32_t b = 0; b <= s->batch; b++) {
		((uint32_t *)l->host[STARTS])[b] = s->q_starts ? s->q_starts[b] : 0;
		((uint32_t *)l->host[STARTS])[s->batch + 1 + b] = s->kv_starts ? s->kv_starts[b] : 0;
	}
}

static enum status open_lists(struct kit *k, struct lists *l, struct error *err)
{
	enum status st = STATUS_OK;
	uint64_t largest = 0;

	sizes(l);
	for (int i = 0; i < ARRAYS && !st; i++) {
		largest = l->bytes[i] > largest ? l->bytes[i] : largest;
		l->host[i] = malloc(l->bytes[i]);
		if (!l->host[i])
			return error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
		memset(l->host[i], 0xff, l->bytes[i]);
		st = kit_alloc(k, &l->device[i], l->bytes[i], err);
	}
	l->found = malloc(largest);
	if (!st && !l->found)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	if (!st)
		inputs(l, k->seed);
	for (int i = MAP; i <= STARTS && !st; i++)
		st = gpu_copy_to(k->device, l->device[i].data, l->host[i], l->bytes[i], err);
	return st;
}

static void close_lists(struct kit *k, struct lists *l)
{
	for (int i = 0; i < ARRAYS; i++) {
		kit_free(k, &l->device[i]);
		free(l->host[i]);
	}
	free(l->found);
}

static struct attention_lists_args point(const struct lists *l, uint64_t seed, const uint64_t at[ARRAYS])
{
	const struct shape *s = l->shape;

	return (struct attention_lists_args){
		.lists = {.full_begin = at[FULL_BEGIN],
			  .full = at[FULL],
			  .partial_begin = at[PARTIAL_BEGIN],
			  .partial = at[PARTIAL],
			  .batches = s->batches,
			  .heads = s->heads,
			  .q_blocks = l->q_blocks,
			  .k_blocks = l->k_blocks,
			  .q_block = s->q_block,
			  .k_block = s->k_block},
		.map = at[MAP],
		.mask = at[MASK],
		.bits = at[BITS],
		.counts = at[COUNTS],
		.order = at[ORDER],
		.q_starts = s->q_starts ? at[STARTS] : 0,
		.kv_starts = s->q_starts ? at[STARTS] + 4 * (s->batch + 1) : 0,
		.seed = seed,
		.below = (uint64_t)(s->density * 0x1p32),
		.source = s->source,
		.stride = s->stride,
		.batch = s->batch,
		.heads = s->all_heads,
		.q_len = s->q_len,
		.kv_len = s->kv_len,
		.left = s->left,
		.right = s->right,
		.section = s->section,
	};
}

/* Every entry, in order. */
static enum status run(struct kit *k, const struct lists *l, const struct attention_lists_args *args,
		       struct error *err)
{
	static const char *const entries[] = {"lists_classify", "lists_count", "lists_place", "lists_write",
					      "lists_bits"};
	const uint32_t each = (l->shape->section * l->q_blocks + LISTS_THREADS - 1) / LISTS_THREADS;
	const unsigned by_row = (l->rows + LISTS_ROWS - 1) / LISTS_ROWS;
	const unsigned grid[][3] = {{l->rows, l->k_blocks, 1},
				    {by_row, 1, 1},
				    {1 + l->sections * each, 1, 1},
				    {by_row, 1, 1},
				    {l->rows, l->k_blocks, 1}};
	const unsigned block[3] = {LISTS_THREADS, 1, 1};
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < COUNT(entries) && !st; i++) {
		struct gpu_kernel *kernel;

		if ((i == 0 || i == 4) && !l->shape->elements)
			continue;
		st = gpu_kernel(k->device, &kernel, FILE_NAME, entries[i], err);
		if (!st)
			st = gpu_launch(kernel, k->stream, grid[i], block, 0, args, err);
	}
	return st;
}

static void run_reference(const struct lists *l, const struct attention_lists_args *args)
{
	struct ref_grid grid = {1, 1};

	if (l->shape->elements)
		ref_run("lists_classify", grid, args);
	ref_run("lists_count", grid, args);
	ref_run("lists_place", grid, args);
	ref_run("lists_write", grid, args);
	if (l->shape->elements)
		ref_run("lists_bits", grid, args);
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct lists l = {.shape = &shapes[c->p0]};
	uint64_t device[ARRAYS], host[ARRAYS];
	struct attention_lists_args args;
	enum status st = open_lists(k, &l, err);

	for (int i = 0; i < ARRAYS; i++) {
		device[i] = l.device[i].data;
		host[i] = (uintptr_t)l.host[i];
	}
	if (!st) {
		args = point(&l, k->seed, host);
		run_reference(&l, &args);
		args = point(&l, k->seed, device);
		st = run(k, &l, &args, err);
	}
	for (int i = 0; i < ARRAYS && !st; i++) {
		st = gpu_copy_from(k->device, l.found, l.device[i].data, l.bytes[i], err);
		if (!st)
			st = kit_compare(array_name[i], l.found, l.host[i], l.bytes[i], err);
		if (!st)
			st = kit_guards(k, &l.device[i], array_name[i], err);
	}
	close_lists(k, &l);
	return st;
}

static void test(struct kit *k)
{
	kit_cases(k, &group_attention_lists, one);
}

/* -- times -- */

struct timed {
	struct kit *kit;
	struct lists *lists;
	const struct attention_lists_args *args;
};

static enum status call(void *arg, struct error *err)
{
	struct timed *t = arg;

	return run(t->kit, t->lists, t->args, err);
}

static enum status time_one(struct kit *k, const char *name, const struct shape *shape, struct error *err)
{
	struct lists l = {.shape = shape};
	uint64_t device[ARRAYS];
	struct attention_lists_args args;
	struct timed t = {k, &l, &args};
	double ns;
	enum status st = open_lists(k, &l, err);

	for (int i = 0; i < ARRAYS; i++)
		device[i] = l.device[i].data;
	args = point(&l, k->seed, device);
	if (!st)
		st = kit_time(k, call, &t, 20, &ns, err);
	if (!st)
		printf("time lists %s, %u x %u, %u heads, blocks of %u x %u: %.1f us\n", name, shape->q_len,
		       shape->kv_len, shape->heads, shape->q_block, shape->k_block, ns / 1e3);
	close_lists(k, &l);
	return st;
}

static enum status time_lists(struct kit *k, struct error *err)
{
	enum { S = 32768 };
	static const struct {
		const char *name;
		struct shape shape;
	} timings[] = {
		{"random at 0.1",
		 {1, 12, 1, 12, S, S, 128, 128, OPEN, OPEN, LISTS_RANDOM, 0, 1, 0.1, false, NULL, NULL}},
		{"random at 0.1",
		 {1, 12, 1, 12, S, S, 128, 64, OPEN, OPEN, LISTS_RANDOM, 0, 1, 0.1, false, NULL, NULL}},
		{"a map of blocks",
		 {1, 12, 1, 12, S, S, 128, 128, OPEN, OPEN, LISTS_MAP, 0, 1, 0, false, NULL, NULL}},
		{"causal", {1, 1, 1, 12, S, S, 128, 128, OPEN, 0, LISTS_ALL, 0, 1, 0, false, NULL, NULL}},
		{"a mask of elements",
		 {1, 1, 1, 1, S / 4, S / 4, 128, 128, OPEN, OPEN, LISTS_MAP, 0, 1, 0, true, NULL, NULL}},
	};
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < COUNT(timings) && !st; i++)
		st = time_one(k, timings[i].name, &timings[i].shape, err);
	return st;
}

const struct kernel_group group_attention_lists = {
	.name = "lists",
	.cases = cases,
	.count = COUNT(cases),
	.test = test,
	.time = time_lists,
};
