/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/memory/stream.cu and memory_bulk.cu. A sum stands in partial[0], the other blocks' are 0. */
#include "kernel/memory/stream.h"
#include "ref.h"

static const float *in(uint64_t p)
{
	return (const float *)(uintptr_t)p;
}

static void sum_out(uint64_t partial, unsigned blocks, double sum)
{
	double *p = (double *)(uintptr_t)partial;

	for (unsigned i = 0; i < blocks; i++)
		p[i] = i ? 0 : sum;
}

static void ref_read(const char *entry, struct ref_grid grid, const void *args)
{
	const struct memory_args *a = args;
	double sum = 0;

	(void)entry;
	for (uint64_t i = 0; i < a->count; i++)
		sum += in(a->in0)[i];
	sum_out(a->partial, grid.blocks, sum);
}

static void ref_dot(const char *entry, struct ref_grid grid, const void *args)
{
	const struct memory_args *a = args;
	double sum = 0;

	(void)entry;
	for (uint64_t i = 0; i < a->count; i++)
		sum += (double)in(a->in0)[i] * in(a->in1)[i];
	sum_out(a->partial, grid.blocks, sum);
}

static void ref_stream(const char *entry, struct ref_grid grid, const void *args)
{
	const struct memory_args *a = args;
	float *out = (float *)(uintptr_t)a->out;

	(void)grid;
	for (uint64_t i = 0; i < a->count; i++) {
		if (entry[0] == 'w')
			out[i] = a->factor;
		else if (entry[0] == 'c')
			out[i] = in(a->in0)[i];
		else if (entry[0] == 's')
			out[i] = a->factor * in(a->in0)[i];
		else if (entry[0] == 'a')
			out[i] = in(a->in0)[i] + in(a->in1)[i];
		else
			out[i] = in(a->in0)[i] + a->factor * in(a->in1)[i];
	}
}

static void ref_gather(const char *entry, struct ref_grid grid, const void *args)
{
	const struct gather_args *a = args;
	const uint32_t *index = (const uint32_t *)(uintptr_t)a->index;
	double sum = 0;

	(void)entry;
	for (uint64_t i = 0; i < a->count; i++)
		sum += in(a->in)[index[i]];
	sum_out(a->partial, grid.blocks, sum);
}

static void ref_chase(const char *entry, struct ref_grid grid, const void *args)
{
	const struct chase_args *a = args;
	uint64_t *cursor = (uint64_t *)(uintptr_t)a->cursor;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->hops; i++)
		*cursor = ((const struct memory_node *)(uintptr_t)*cursor)->next;
}

#define ROW(entry, run, out)                                                                                 \
	{                                                                                                    \
		entry, run, sizeof(struct memory_args), offsetof(struct memory_args, out)                    \
	}
const struct ref_row ref_memory[] = {
	ROW("read_", ref_read, partial),
	ROW("dot_", ref_dot, partial),
	ROW("write_", ref_stream, out),
	ROW("copy_", ref_stream, out),
	ROW("scale_", ref_stream, out),
	ROW("add_", ref_stream, out),
	ROW("triad_", ref_stream, out),
	{"gather_", ref_gather, sizeof(struct gather_args), offsetof(struct gather_args, partial)},
	{"chase", ref_chase, sizeof(struct chase_args), REF_NO_OUT},
	{NULL, NULL, 0, 0},
};
