/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention/own_forward.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "gpu/attention/kernel_args.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LOG2_E 1.4426950408889634
#define SECTION_BYTES (24.0 * 1024 * 1024) /* K and V of concurrent heads: half of an H100's L2 */

enum { ALIGNED_BYTES = 16, CANDIDATES_MAX = 24, PAIR_ROWS = 2 * ATTENTION_SM90_ROWS };

enum family { NAIVE, FLASH, SM90 };

/* How an SM90 kernel walks its tiles. RANGES: any range of keys. PAIRS: two alternating tiles over a head
 * that stays in the slots. FLOW: tiles follow each other without a break. LEAN: as FLOW, without a mask and
 * with streaming keys. HEADS, HEADS_CAUSAL: a head exactly fills the slots. STREAM: keys stream through in
 * rounds of twice the slots. */
enum walk { RANGES, PAIRS, FLOW, LEAN, STREAM, HEADS, HEADS_CAUSAL };

struct kernel_row {
	const char *file, *entry;
	enum family family;
	enum attention_type type, out;
	unsigned head_dim; /* maximum; flash: exact */
	/* SM90 only: warpgroups, rows of a warpgroup's tile, keys per block, slots of keys, slots of queries
	 * per warpgroup. */
	unsigned groups, rows, keys, slots, q_slots;
	enum walk walk;
};

/* Sorted fastest first, for problems that several kernels support. */
/* clang-format off */
#define S9(entry, type, out, d, groups, rows, keys, slots, q_slots, walk) \
	{"attention_sm90", "sm90_" entry, SM90, ATTENTION_##type, ATTENTION_##out, d, groups, rows, keys, slots, q_slots, walk}
#define ANY(entry, family, type, d) {"attention", entry, family, ATTENTION_##type, ATTENTION_##type, d, 0, 0, 0, 0, 0, RANGES}
static const struct kernel_row kernels[] = {
	S9("fp16_d64_head", F16, F16, 64, 3, 64, 64, 8, 1, HEADS),
	S9("bf16_d64_head", BF16, BF16, 64, 3, 64, 64, 8, 1, HEADS),
	S9("e4m3_fp16_d64_head", E4M3, F16, 64, 3, 64, 64, 8, 1, HEADS),
	S9("e4m3_bf16_d64_head", E4M3, BF16, 64, 3, 64, 64, 8, 1, HEADS),
	S9("e4m3_fp16_d128_head", E4M3, F16, 128, 2, 64, 128, 4, 2, HEADS),
	S9("e4m3_bf16_d128_head", E4M3, BF16, 128, 2, 64, 128, 4, 2, HEADS),
	S9("fp16_d64_down", F16, F16, 64, 3, 64, 64, 8, 2, HEADS_CAUSAL),
	S9("bf16_d64_down", BF16, BF16, 64, 3, 64, 64, 8, 2, HEADS_CAUSAL),
	S9("fp16_d64_head_causal", F16, F16, 64, 3, 64, 64, 8, 1, HEADS_CAUSAL),
	S9("bf16_d64_head_causal", BF16, BF16, 64, 3, 64, 64, 8, 1, HEADS_CAUSAL),
	S9("e4m3_fp16_d64_head_causal", E4M3, F16, 64, 3, 64, 64, 8, 1, HEADS_CAUSAL),
	S9("e4m3_bf16_d64_head_causal", E4M3, BF16, 64, 3, 64, 64, 8, 1, HEADS_CAUSAL),
	S9("fp16_d64", F16, F16, 64, 3, 64, 64, 8, 1, RANGES),
	S9("bf16_d64", BF16, BF16, 64, 3, 64, 64, 8, 1, RANGES),
	S9("fp16_d64_stream", F16, F16, 64, 3, 64, 64, 4, 1, STREAM),
	S9("bf16_d64_stream", BF16, BF16, 64, 3, 64, 64, 4, 1, STREAM),
	S9("fp16_d64_lean", F16, F16, 64, 2, 64, 128, 5, 2, LEAN),
	S9("bf16_d64_lean", BF16, BF16, 64, 2, 64, 128, 5, 2, LEAN),
	S9("fp16_d64_pair", F16, F16, 64, 2, 128, 64, 10, 1, PAIRS),
	S9("bf16_d64_pair", BF16, BF16, 64, 2, 128, 64, 10, 1, PAIRS),
	S9("fp16_d128", F16, F16, 128, 2, 64, 128, 2, 2, RANGES),
	S9("bf16_d128", BF16, BF16, 128, 2, 64, 128, 2, 2, RANGES),
	S9("fp16_d128_stream", F16, F16, 128, 2, 64, 64, 4, 1, STREAM),
	S9("bf16_d128_stream", BF16, BF16, 128, 2, 64, 64, 4, 1, STREAM),
	S9("fp16_d256", F16, F16, 256, 2, 64, 64, 2, 1, RANGES),
	S9("bf16_d256", BF16, BF16, 256, 2, 64, 64, 2, 1, RANGES),
	S9("e4m3_fp16_d64", E4M3, F16, 64, 3, 64, 64, 16, 1, RANGES),
	S9("e4m3_bf16_d64", E4M3, BF16, 64, 3, 64, 64, 16, 1, RANGES),
	S9("e4m3_fp16_d64_pair", E4M3, F16, 64, 2, 128, 64, 16, 1, PAIRS),
	S9("e4m3_bf16_d64_pair", E4M3, BF16, 64, 2, 128, 64, 16, 1, PAIRS),
	S9("e4m3_fp16_d64_flow", E4M3, F16, 64, 2, 64, 128, 8, 2, FLOW),
	S9("e4m3_bf16_d64_flow", E4M3, BF16, 64, 2, 64, 128, 8, 2, FLOW),
	S9("e4m3_fp16_d128_flow", E4M3, F16, 128, 2, 64, 128, 5, 2, FLOW),
	S9("e4m3_bf16_d128_flow", E4M3, BF16, 128, 2, 64, 128, 5, 2, FLOW),
	S9("e4m3_fp16_d128", E4M3, F16, 128, 2, 64, 128, 5, 1, RANGES),
	S9("e4m3_bf16_d128", E4M3, BF16, 128, 2, 64, 128, 5, 1, RANGES),
	ANY("flash_fp16_d64", FLASH, F16, 64),
	ANY("flash_bf16_d64", FLASH, BF16, 64),
	ANY("flash_fp16_d128", FLASH, F16, 128),
	ANY("flash_bf16_d128", FLASH, BF16, 128),
	ANY("flash_fp16_d256", FLASH, F16, 256),
	ANY("flash_bf16_d256", FLASH, BF16, 256),
	ANY("naive_fp16", NAIVE, F16, 256),
	ANY("naive_bf16", NAIVE, BF16, 256),
};
/* clang-format on */

struct candidate {
	const struct kernel_row *kernel;
	bool resident; /* all keys of a head stay in the slots */
	char name[64];
};

struct attention_own {
	struct gpu_device *device;
	struct attention_problem problem;
	struct attention_strides q, k, v, o;
	uint64_t q_rows, kv_rows; /* rows of the whole tensor, or of a batch element */
	struct candidate candidate[CANDIDATES_MAX];
	unsigned count;
	const struct candidate *selected;
	struct gpu_kernel *kernel;
};

/* -- which kernels support a problem -- */

static bool steps_aligned(struct attention_strides s, enum attention_type type)
{
	const unsigned elements = ALIGNED_BYTES / attention_type_bytes(type);

	return s.row % elements == 0 && s.head % elements == 0 && s.batch % elements == 0;
}

static bool all_aligned(const struct attention_problem *p)
{
	return p->head_dim * attention_type_bytes(p->type) % ALIGNED_BYTES == 0 &&
	       steps_aligned(attention_q_strides(p), p->type) &&
	       steps_aligned(attention_k_strides(p), p->type) &&
	       steps_aligned(attention_v_strides(p), p->type) &&
	       steps_aligned(attention_o_strides(p), p->out_type);
}

static unsigned tiles_of(const struct kernel_row *r, const struct attention_problem *p)
{
	return (p->q_len + r->rows - 1) / r->rows;
}

/* Whether the slots hold exactly a head's keys and values, and every warpgroup has a tile of it. */
static bool takes_heads(const struct kernel_row *r, const struct attention_problem *p)
{
	if (p->kv_len != r->keys * r->slots || tiles_of(r, p) < r->groups)
		return false;
	return r->walk == HEADS ? p->mask == ATTENTION_FULL
				: p->mask == ATTENTION_CAUSAL && p->q_len == p->kv_len;
}

/* Whether the problem suits kernels without ranges of keys: every block is whole or on the diagonal of a
 * square causal mask, and all warpgroups have the same number of tiles. */
static bool takes_plain(const struct kernel_row *r, const struct attention_problem *p)
{
	const bool square = p->q_len == p->kv_len && p->kv_len % PAIR_ROWS == 0;
	const bool causal = p->mask == ATTENTION_CAUSAL && square, fits = p->kv_len <= r->keys * r->slots;

	if (r->walk == STREAM)
		return p->mask == ATTENTION_FULL && p->kv_len % (2 * r->keys * r->slots) == 0;
	if (p->kv_len % r->keys || tiles_of(r, p) % r->groups)
		return false;
	if (r->walk == LEAN)
		return p->mask == ATTENTION_FULL && p->kv_len / r->keys % 2 == 0;
	if (r->walk == PAIRS)
		return (p->mask == ATTENTION_FULL || causal) && fits;
	return p->mask == ATTENTION_FULL || (causal && fits);
}

static bool whole_heads(const struct kernel_row *r)
{
	return r->walk == HEADS || r->walk == HEADS_CAUSAL;
}

static bool takes_walk(const struct kernel_row *r, const struct attention_problem *p)
{
	if (r->walk == RANGES)
		return true;
	if (p->q_starts)
		return false;
	return whole_heads(r) ? takes_heads(r, p) : takes_plain(r, p);
}

static bool takes(const struct kernel_row *r, const struct attention_problem *p, unsigned cc)
{
	if (r->type != p->type || r->out != p->out_type || p->head_dim > r->head_dim)
		return false;
	if (r->family == NAIVE)
		return cc >= 80;
	if (r->family == FLASH)
		return cc >= 80 && p->head_dim == r->head_dim && all_aligned(p);
	if (!takes_walk(r, p))
		return false;
	/* A packed sequence's last rows are written with the kernel's full head dim, so a smaller head dim
	 * would overwrite the next row. */
	return cc == 90 && all_aligned(p) && p->head_dim > (r->head_dim == 256 ? 128 : r->head_dim - 64) &&
	       (!p->q_starts || p->head_dim == r->head_dim) && attention_scale(p) > 0;
}

enum status attention_own_supports(const struct attention_problem *p, unsigned cc, struct error *err)
{
	enum status st = attention_check(p, err);

	for (size_t i = 0; i < COUNT(kernels) && !st; i++)
		if (takes(&kernels[i], p, cc))
			return STATUS_OK;
	if (st)
		return st;
	if (p->type == ATTENTION_E4M3)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"our FP8 attention needs sm_90, a head dimension of 16 to 128 and 16-bit output, not "
			"sm_%u, %u and %s",
			cc, p->head_dim, attention_type_name(p->out_type));
	return error_set(err, STATUS_UNSUPPORTED,
			 "our attention kernels need sm_80 or newer, this device is sm_%u", cc);
}

static bool fits_resident(const struct kernel_row *r, const struct attention_problem *p)
{
	return r->family == SM90 && r->walk != PAIRS && r->walk != LEAN && p->kv_len <= r->keys * r->slots &&
	       tiles_of(r, p) > r->groups;
}

static void add(struct attention_own *a, const struct kernel_row *r, bool resident)
{
	struct candidate *c = &a->candidate[a->count];

	if (a->count == CANDIDATES_MAX)
		return;
	*c = (struct candidate){.kernel = r, .resident = resident};
	snprintf(c->name, sizeof(c->name), "%s%s", r->entry, resident ? ", resident" : "");
	a->count++;
}

/* Whether a unit must be a whole head. */
static bool always_resident(const struct kernel_row *r, const struct attention_problem *p)
{
	return r->walk == PAIRS || whole_heads(r) || (r->walk == FLOW && p->mask == ATTENTION_CAUSAL);
}

/* Whether measurements showed this walk to be faster than RANGES (docs/explanation/design/attention.md).
 * `many`: there are enough heads to occupy all SMs. */
static bool goes_first(const struct kernel_row *r, const struct attention_problem *p, bool many)
{
	switch (r->walk) {
	case HEADS:
	case HEADS_CAUSAL:
		return many;
	case PAIRS:
		return many && p->mask == ATTENTION_CAUSAL;
	case LEAN: /* for whole rounds of the slots STREAM is faster */
		return r->type == ATTENTION_F16 && p->kv_len > 512 && p->kv_len < 1024;
	case STREAM:
		if (r->head_dim == 64)
			return p->kv_len >= 1024;
		return p->kv_len == 512 || (p->kv_len == 1024 && r->type == ATTENTION_F16);
	default:
		return false;
	}
}

/* Lists the candidates. A resident head is one unit of work, which pays off if there are enough heads to
 * occupy all SMs. */
static void list(struct attention_own *a)
{
	const struct attention_problem *p = &a->problem;
	const bool many = (uint64_t)p->batch * p->heads * 4 >= (uint64_t)gpu_sm_count(a->device) * 3;

	for (size_t i = 0; i < 2 * COUNT(kernels); i++) {
		const struct kernel_row *r = &kernels[i % COUNT(kernels)];

		if (!takes(r, p, gpu_cc(a->device)) || goes_first(r, p, many) != (i < COUNT(kernels)))
			continue;
		if (always_resident(r, p)) {
			add(a, r, true);
		} else if (fits_resident(r, p)) {
			add(a, r, many);
			add(a, r, !many);
		} else {
			add(a, r, false);
		}
	}
}

enum status attention_own_create(struct attention_own **out, struct gpu_device *d,
				 const struct attention_problem *p, struct error *err)
{
	enum status st = attention_own_supports(p, gpu_cc(d), err);
	struct attention_own *a;

	*out = NULL;
	if (st)
		return st;
	a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for an attention plan");
	*a = (struct attention_own){.device = d,
				    .problem = *p,
				    .q = attention_q_strides(p),
				    .k = attention_k_strides(p),
				    .v = attention_v_strides(p),
				    .o = attention_o_strides(p),
				    .q_rows = p->q_starts ? p->q_starts[p->batch] : p->q_len,
				    .kv_rows = p->kv_starts ? p->kv_starts[p->batch] : p->kv_len};
	list(a);
	st = attention_own_select(a, 0, err);
	if (st)
		attention_own_destroy(&a);
	*out = a;
	return st;
}

void attention_own_destroy(struct attention_own **a)
{
	free(*a);
	*a = NULL;
}

unsigned attention_own_count(const struct attention_own *a)
{
	return a->count;
}

const char *attention_own_name(const struct attention_own *a, unsigned candidate)
{
	return a->candidate[candidate].name;
}

enum status attention_own_select(struct attention_own *a, unsigned candidate, struct error *err)
{
	const struct candidate *c = &a->candidate[candidate];

	a->selected = c;
	return gpu_kernel(a->device, &a->kernel, c->kernel->file, c->kernel->entry, err);
}

/* -- launch -- */

static enum status launch_portable(struct attention_own *a, const struct attention_operands *o,
				   struct gpu_stream *stream, struct error *err)
{
	const struct attention_problem *p = &a->problem;
	const bool flash = a->selected->kernel->family == FLASH;
	const unsigned rows = flash ? ATTENTION_FLASH_ROWS : ATTENTION_NAIVE_THREADS / 32;
	const unsigned grid[3] = {(p->q_len + rows - 1) / rows, p->heads, p->batch};
	const unsigned block[3] = {flash ? ATTENTION_FLASH_THREADS : ATTENTION_NAIVE_THREADS, 1, 1};
	const unsigned tiles = ATTENTION_FLASH_ROWS + 2 * ATTENTION_FLASH_KEYS;
	const struct attention_args args = {.q = o->q,
					    .k = o->k,
					    .v = o->v,
					    .o = o->o,
					    .lse = o->lse,
					    .q_starts = o->q_starts,
					    .kv_starts = o->kv_starts,
					    .q_step = attention_steps_of(a->q),
					    .k_step = attention_steps_of(a->k),
					    .v_step = attention_steps_of(a->v),
					    .o_step = attention_steps_of(a->o),
					    .batch = p->batch,
					    .heads = p->heads,
					    .kv_heads = p->kv_heads,
					    .q_len = p->q_len,
					    .kv_len = p->kv_len,
					    .head_dim = p->head_dim,
					    .left = attention_side(p, true),
					    .right = attention_side(p, false),
					    .scale = (float)attention_scale(p)};

	return gpu_launch(a->kernel, stream, grid, block, flash ? tiles * p->head_dim * 2 : 0, &args, err);
}

static enum status maps(struct attention_own *a, struct attention_sm90_args *args,
			const struct attention_operands *o, struct error *err)
{
	const struct attention_problem *p = &a->problem;
	const unsigned keys = a->selected->kernel->keys;
	enum status st = attention_map(a->device, &args->q_map, p, ATTENTION_Q, o->q, a->q_rows,
				       ATTENTION_SM90_ROWS, err);

	if (!st)
		st = attention_map(a->device, &args->k_map, p, ATTENTION_K, o->k, a->kv_rows, keys, err);
	if (!st)
		st = attention_map(a->device, &args->v_map, p, ATTENTION_V, o->v, a->kv_rows, keys, err);
	if (!st)
		st = attention_map(a->device, &args->o_map, p, ATTENTION_O, o->o, a->q_rows,
				   ATTENTION_SM90_O_ROWS, err);
	return st;
}

/* Number of heads, out of `pairs`, whose units are sorted by length together: as many as have their keys and
 * values, `rows` each, in the L2. */
static uint32_t section_of(const struct attention_problem *p, double rows, uint32_t pairs)
{
	double head = 2.0 * rows * p->head_dim * attention_type_bytes(p->type) * p->kv_heads / p->heads;
	double heads = fmin(SECTION_BYTES / head, pairs);

	return heads < 1 ? 1 : (uint32_t)heads;
}

/* Whether the kernel's units are the units of an order. */
static bool takes_order(const struct kernel_row *r, const struct attention_operands *o, unsigned passes)
{
	return o->order && r->walk == RANGES && r->groups * passes * r->rows == ATTENTION_ORDER_ROWS;
}

static enum status launch_sm90(struct attention_own *a, const struct attention_operands *o,
			       struct gpu_stream *stream, struct error *err)
{
	const struct attention_problem *p = &a->problem;
	const struct kernel_row *r = a->selected->kernel;
	const unsigned passes = a->selected->resident ? (tiles_of(r, p) + r->groups - 1) / r->groups : 1;
	const bool ordered = takes_order(r, o, passes);
	const unsigned head_units =
		ordered ? o->order_count : (tiles_of(r, p) + r->groups * passes - 1) / (r->groups * passes);
	const uint32_t pairs = ordered ? p->heads : p->batch * p->heads;
	const uint64_t units = (uint64_t)pairs * head_units;
	const unsigned blocks = gpu_sm_count(a->device);
	const bool uneven = head_units > 1 && (p->mask != ATTENTION_FULL || p->q_starts);
	struct attention_sm90_args args = {
		.o = o->o,
		.lse = o->lse,
		.q_starts = o->q_starts,
		.kv_starts = o->kv_starts,
		.o_step = attention_steps_of(a->o),
		.batch = p->batch,
		.heads = p->heads,
		.kv_heads = p->kv_heads,
		.q_len = p->q_len,
		.kv_len = p->kv_len,
		.left = attention_side(p, true),
		.right = attention_side(p, false),
		.scale_log2 = (float)(attention_scale(p) * LOG2_E),
		.passes = passes,
		.head_units = head_units,
		.section = uneven ? section_of(p, ordered ? (double)a->kv_rows : p->kv_len, pairs) : 1,
		.zigzag = uneven,
		.pairs = pairs,
		.order = ordered ? o->order : 0,
		.descale_q = o->descale_q,
		.descale_k = o->descale_k,
		.descale_v = o->descale_v};
	enum status st = maps(a, &args, o, err);

	if (st)
		return st;
	return gpu_launch_1d(
		a->kernel, stream, units < blocks ? (unsigned)units : blocks, 128 * (r->groups + 1),
		ATTENTION_SM90_ROOM(attention_type_bytes(p->type), r->head_dim, r->groups, r->rows, r->keys,
				    r->slots, r->q_slots, r->head_dim <= 128) -
			(whole_heads(r) || r->walk == STREAM ? ATTENTION_SM90_UNITS(r->groups) : 0),
		&args, err);
}

enum status attention_own_enqueue(struct attention_own *a, const struct attention_operands *o,
				  struct gpu_stream *stream, struct error *err)
{
	return a->selected->kernel->family == SM90 ? launch_sm90(a, o, stream, err)
						   : launch_portable(a, o, stream, err);
}
