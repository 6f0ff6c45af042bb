/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of the fake NCCL: reductions start at a rank that depends on the element and go round, and after every
 * addition the sum is rounded to the type, as a ring in that type would do it.
 */
#include "nccl_move.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/test_data/gemm.h"
#include "ref.h"

struct type {
	ncclDataType_t type;
	uint32_t operand;
	size_t bytes;
};

static const struct type types[] = {
	{ncclInt8, OPERAND_S8, 1},	   {ncclInt32, OPERAND_S32, 4},	      {ncclFloat16, OPERAND_F16, 2},
	{ncclFloat32, OPERAND_F32, 4},	   {ncclFloat64, OPERAND_F64, 8},     {ncclBfloat16, OPERAND_BF16, 2},
	{ncclFloat8e4m3, OPERAND_E4M3, 1}, {ncclFloat8e5m2, OPERAND_E5M2, 1},
};

static const struct type *type_of(ncclDataType_t t)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == t)
			return &types[i];
	abort();
}

size_t fake_type_bytes(ncclDataType_t t)
{
	return type_of(t)->bytes;
}

double fake_call_bytes(const struct fake_call *c, unsigned ranks)
{
	double bytes = (double)c->count * (double)type_of(c->type)->bytes, all = 0;

	if (c->kind == FAKE_POINT) {
		for (unsigned r = 0; r < ranks; r++)
			all += (double)c->to[r].count * (double)type_of(c->type)->bytes;
		return all;
	}
	return c->kind == FAKE_ALL_GATHER || c->kind == FAKE_REDUCE_SCATTER || c->kind == FAKE_ALL_TO_ALL
		       ? bytes * ranks
		       : bytes;
}

/* float is by far the most frequent type */
static double put_get(const struct type *t, double v)
{
	unsigned char room[8];

	if (t->operand == OPERAND_F32)
		return (float)v;
	ref_operand_put(t->operand, room, 0, v);
	return ref_operand_get(t->operand, room, 0);
}

static double combine(const struct type *t, ncclRedOp_t op, double a, double b)
{
	if (op == ncclMin)
		return a < b ? a : b;
	if (op == ncclMax)
		return a > b ? a : b;
	return put_get(t, a + b);
}

static bool integer(const struct type *t)
{
	return t->operand == OPERAND_S8 || t->operand == OPERAND_S32;
}

/* Element e of the reduction over all ranks; floats are divided before, integers after, as NCCL has it. From element missing[r] on rank r's are
 * left out. */
static double reduced(const struct fake_call *const *call, unsigned ranks, const struct type *t, const uint64_t *missing, size_t e)
{
	ncclRedOp_t op = call[0]->op;
	bool before = op == ncclAvg && !integer(t), any = false;
	double sum = 0;

	for (unsigned k = 0; k < ranks; k++) {
		unsigned r = (unsigned)(e + k) % ranks;
		double v;

		if (missing[r] <= e)
			continue;
		v = ref_operand_get(t->operand, call[r]->send, e);
		v = before ? put_get(t, v / ranks) : v;
		sum = any ? combine(t, op, sum, v) : v;
		any = true;
	}
	return op == ncclAvg && integer(t) ? trunc(sum / ranks) : sum;
}

/* Results into rooms of their own first: in place, inputs are still needed. */
static void reduce(const struct fake_call *const *call, unsigned ranks)
{
	const struct type *t = type_of(call[0]->type);
	bool scatter = call[0]->kind == FAKE_REDUCE_SCATTER;
	size_t count = call[0]->count * (scatter ? ranks : 1);
	char *all = malloc(count * t->bytes + 1);
	uint64_t missing[FAKE_RANKS];

	if (!all)
		abort();
	for (unsigned r = 0; r < ranks; r++) {
		missing[r] = UINT64_MAX;
		if (!fake_nccl_rank("missing", r, &missing[r], NULL))
			missing[r] = UINT64_MAX;
	}
	for (size_t e = 0; e < count; e++)
		ref_operand_put(t->operand, all, e, reduced(call, ranks, t, missing, e));
	for (unsigned r = 0; r < ranks; r++) {
		if (call[0]->kind == FAKE_REDUCE && call[0]->root != (int)r)
			continue;
		memcpy(call[r]->receive, all + (scatter ? r * call[0]->count * t->bytes : 0),
		       call[0]->count * t->bytes);
	}
	free(all);
}

static void gather(const struct fake_call *const *call, unsigned ranks, size_t bytes)
{
	char *all = malloc(bytes * ranks + 1);

	if (!all)
		abort();
	for (unsigned r = 0; r < ranks; r++)
		memcpy(all + r * bytes, call[r]->send, bytes);
	for (unsigned r = 0; r < ranks; r++)
		memcpy(call[r]->receive, all, bytes * ranks);
	free(all);
}

static void to_all(const struct fake_call *const *call, unsigned ranks, size_t bytes)
{
	for (unsigned r = 0; r < ranks; r++)
		for (unsigned q = 0; q < ranks; q++)
			memcpy((char *)call[r]->receive + q * bytes, (const char *)call[q]->send + r * bytes,
			       bytes);
}

static void points(const struct fake_call *const *call, unsigned ranks)
{
	for (unsigned r = 0; r < ranks; r++)
		for (unsigned q = 0; q < ranks; q++)
			if (call[r]->from[q].count && call[r]->from[q].count == call[q]->to[r].count)
				memcpy(call[r]->from[q].receive, call[q]->to[r].send,
				       call[q]->to[r].count * type_of(call[q]->type)->bytes);
}

/* Where rank r's first element lies that it receives. */
static void *received(const struct fake_call *c, unsigned ranks)
{
	for (unsigned q = 0; c->kind == FAKE_POINT && q < ranks; q++)
		if (c->from[q].count)
			return c->from[q].receive;
	return c->receive;
}

static void spoil(const struct fake_call *c, unsigned ranks)
{
	const struct type *t = type_of(c->type);
	uint64_t at = UINT64_MAX;
	unsigned char *bytes;

	if (!fake_nccl_rank("spoil", c->rank, &at, NULL) ||
	    at >= fake_call_bytes(c, ranks) / (double)t->bytes)
		return;
	bytes = received(c, ranks);
	bytes[at * t->bytes + t->bytes - 1] ^= 0x41;
}

void fake_nccl_move(const struct fake_call *const *call, unsigned ranks)
{
	size_t bytes = call[0]->count * type_of(call[0]->type)->bytes;

	switch (call[0]->kind) {
	case FAKE_ALL_REDUCE:
	case FAKE_REDUCE_SCATTER:
	case FAKE_REDUCE:
		reduce(call, ranks);
		break;
	case FAKE_ALL_GATHER:
		gather(call, ranks, bytes);
		break;
	case FAKE_ALL_TO_ALL:
		to_all(call, ranks, bytes);
		break;
	case FAKE_BROADCAST:
		for (unsigned r = 0; r < ranks; r++)
			memmove(call[r]->receive, call[call[0]->root]->send, bytes);
		break;
	case FAKE_POINT:
		points(call, ranks);
		break;
	}
	for (unsigned r = 0; r < ranks; r++)
		spoil(call[r], ranks);
}
