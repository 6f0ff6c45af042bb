/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/attention/forward/args.h on the host: the arguments taken back to a problem, and that computed by its definition.
 */
#include "kernel/attention/forward/args.h"
#include <stdlib.h>
#include <string.h>
#include "ref.h"
#include "ref_attention.h"
#include "ref_number.h"

/* Results in double go where the kernel would have put them. */
static void run(struct attention_problem *p, const struct ref_attention *inputs, double factor, void *o,
		float *lse)
{
	struct ref_attention r = *inputs;
	uint64_t rows = (uint64_t)p->batch * p->heads * p->q_len;

	r.o = calloc(attention_o_count(p), sizeof(*r.o));
	r.lse = calloc(rows, sizeof(*r.lse));
	if (!r.o || !r.lse)
		abort();
	ref_attention_run(p, &r);
	for (uint32_t b = 0; b < p->batch; b++)
		for (uint32_t h = 0; h < p->heads; h++)
			for (uint32_t i = 0; i < attention_q_len(p, b); i++) {
				uint64_t at = (p->q_starts ? p->q_starts[b] * p->o.row : b * p->o.batch) +
					      h * p->o.head + i * p->o.row;
				uint64_t row = ((uint64_t)b * p->heads + h) * p->q_len + i;

				for (uint32_t d = 0; d < p->head_dim; d++)
					ref_number_store(p->out_type, o, at + d, factor * r.o[at + d]);
				if (lse)
					lse[row] = (float)r.lse[row];
			}
	free(r.o);
	free(r.lse);
}

static uint32_t side(int32_t keys)
{
	return keys >= ATTENTION_OPEN ? ATTENTION_UNBOUNDED : (uint32_t)keys;
}

static enum attention_type type_of(const char *entry)
{
	return strstr(entry, "e4m3")   ? ATTENTION_E4M3
	       : strstr(entry, "bf16") ? ATTENTION_BF16
				       : ATTENTION_F16;
}

static enum attention_type out_of(const char *entry)
{
	return strstr(entry, "bf16") ? ATTENTION_BF16 : ATTENTION_F16;
}

static struct attention_strides strides(struct attention_steps s)
{
	return (struct attention_strides){(uint64_t)s.batch, (uint64_t)s.head, (uint64_t)s.row};
}

static void portable(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_args *a = args;
	struct attention_problem p = {.type = type_of(entry),
				      .out_type = out_of(entry),
				      .batch = a->batch,
				      .heads = a->heads,
				      .kv_heads = a->kv_heads,
				      .q_len = a->q_len,
				      .kv_len = a->kv_len,
				      .head_dim = a->head_dim,
				      .mask = ATTENTION_WINDOW,
				      .window_left = side(a->left),
				      .window_right = side(a->right),
				      .scale = (double)a->scale,
				      .q = strides(a->q_step),
				      .k = strides(a->k_step),
				      .v = strides(a->v_step),
				      .o = strides(a->o_step),
				      .q_starts = (const uint32_t *)(uintptr_t)a->q_starts,
				      .kv_starts = (const uint32_t *)(uintptr_t)a->kv_starts};
	const struct ref_attention inputs = {.q = (const void *)(uintptr_t)a->q,
					     .k = (const void *)(uintptr_t)a->k,
					     .v = (const void *)(uintptr_t)a->v};

	(void)grid;
	run(&p, &inputs, 1.0, (void *)(uintptr_t)a->o, (float *)(uintptr_t)a->lse);
}

/* The fake driver's map: address, four sizes, three strides in bytes. */
static struct attention_strides map_strides(const struct tensor_map *m, enum attention_type type)
{
	const unsigned bytes = attention_type_bytes(type);

	return (struct attention_strides){
		.row = m->opaque[5] / bytes, .head = m->opaque[6] / bytes, .batch = m->opaque[7] / bytes};
}

/* What the stored elements are multiplied by. */
static double descale(uint64_t at)
{
	return at ? (double)*(const float *)(uintptr_t)at : 1.0;
}

/* Whether an order of `count` words names every unit of all sequences just once; without one, nothing is left
 * out. */
static bool order_is_whole(uint64_t order, uint32_t count, const uint32_t *starts, uint32_t batch)
{
	const uint32_t *word = (const uint32_t *)(uintptr_t)order;
	uint8_t *seen = calloc(starts ? starts[batch] + 1 : 1, 1);
	uint64_t units = 0;
	bool whole = seen != NULL;

	for (uint32_t b = 0; order && b < batch; b++)
		units += (starts[b + 1] - starts[b] + ATTENTION_ORDER_ROWS - 1) / ATTENTION_ORDER_ROWS;
	for (uint32_t i = 0; order && whole && i < count; i++) {
		const uint32_t b = ATTENTION_ORDER_SEQUENCE(word[i]);
		const uint64_t row = (uint64_t)ATTENTION_ORDER_UNIT(word[i]) * ATTENTION_ORDER_ROWS;

		whole = b < batch && row < starts[b + 1] - starts[b] && !seen[starts[b] + row]++;
	}
	free(seen);
	return whole && (!order || count == units);
}

static void sm90(const char *entry, struct ref_grid grid, const void *args)
{
	struct attention_sm90_args copy; /* aligned, as the driver's own copy is */
	const struct attention_sm90_args *a = memcpy(&copy, args, sizeof(copy));
	struct attention_problem p = {.type = type_of(entry),
				      .out_type = out_of(entry),
				      .batch = a->batch,
				      .heads = a->heads,
				      .kv_heads = a->kv_heads,
				      .q_len = a->q_len,
				      .kv_len = a->kv_len,
				      .head_dim = (uint32_t)a->q_map.opaque[1],
				      .mask = ATTENTION_WINDOW,
				      .window_left = side(a->left),
				      .window_right = side(a->right),
				      .scale = (double)a->scale_log2 / 1.4426950408889634 *
					       descale(a->descale_q) * descale(a->descale_k),
				      .q = map_strides(&a->q_map, type_of(entry)),
				      .k = map_strides(&a->k_map, type_of(entry)),
				      .v = map_strides(&a->v_map, type_of(entry)),
				      .o = map_strides(&a->o_map, out_of(entry)),
				      .q_starts = (const uint32_t *)(uintptr_t)a->q_starts,
				      .kv_starts = (const uint32_t *)(uintptr_t)a->kv_starts};
	const struct ref_attention inputs = {.q = (const void *)(uintptr_t)a->q_map.opaque[0],
					     .k = (const void *)(uintptr_t)a->k_map.opaque[0],
					     .v = (const void *)(uintptr_t)a->v_map.opaque[0]};

	(void)grid;
	if (!order_is_whole(a->order, a->head_units, p.q_starts, p.batch))
		return; /* rows that nothing computes stay as they are */
	run(&p, &inputs, descale(a->descale_v), (void *)(uintptr_t)a->o, (float *)(uintptr_t)a->lse);
}

const struct ref_row ref_attention_own[] = {
	{"naive_", portable, sizeof(struct attention_args), offsetof(struct attention_args, o)},
	{"flash_", portable, sizeof(struct attention_args), offsetof(struct attention_args, o)},
	{"sm90_", sm90, sizeof(struct attention_sm90_args), offsetof(struct attention_sm90_args, o)},
	{NULL, NULL, 0, 0},
};
